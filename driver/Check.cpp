//===- Check.cpp - tegula check ----------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "frontend/Check.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("check", "Say what is wrong with programs");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE..."), cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print diagnostics as JSON Lines (docs/diagnostics.md)"),
                          cl::sub(sub));
static cl::opt<std::string> onlyKernel("kernel", cl::value_desc("NAME"),
                                       cl::desc("Check this kernel alone (default: all)"),
                                       cl::sub(sub));

void checkKernels(LoadedFile &loaded, StringRef only) {
  if (loaded.diagnostics.hasErrors())
    return;
  for (const auto &kernel : loaded.module->file().kernels) {
    if (!only.empty() && kernel->name.name != only)
      continue;
    InstanceOptions options;
    options.kernel = kernel->name.name;
    check(*loaded.module, options, loaded.diagnostics);
  }
}

static ExitCode run() {
  ExitCode result = ExitSuccess;
  for (const std::string &path : paths) {
    std::unique_ptr<LoadedFile> loaded = load(path);
    if (!loaded)
      return ExitWrongCall;
    if (!loaded->diagnostics.hasErrors() && !loaded->module->entry(onlyKernel)) {
      errs() << "tegula: '" << path << "' has no kernel '" << onlyKernel << "'\n";
      return ExitWrongCall;
    }
    checkKernels(*loaded, onlyKernel);
    loaded->print(json);
    if (loaded->diagnostics.hasErrors())
      result = ExitWrongProgram;
  }
  return result;
}

const Command checkCommand = {sub, run};

} // namespace tegula
