//===- Fmt.cpp - tegula fmt --------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/Load.h"
#include "driver/Programs.h"
#include "frontend/print/Printer.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("fmt", "Rewrite programs in the canonical form, in place");
static cl::list<std::string>
    paths(cl::Positional, cl::OneOrMore,
          cl::desc("FILE-OR-FOLDER... ('-': standard input to standard output)"), cl::sub(sub));
static cl::opt<bool> checkOnly("check", cl::desc("Only name the files that would change"),
                               cl::cat(outputOptions), cl::sub(sub));

static ExitCode formatFile(StringRef path) {
  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  // A file of functions alone is no program, and has a form.
  bool isWrong = llvm::any_of(loaded->diagnostics.all(),
                              [](const Diagnostic &one) { return one.code != Code::EmptyFile; });
  if (isWrong) {
    loaded->print(/*json=*/false);
    return ExitWrongProgram;
  }
  StringRef text = loaded->sources.text(loaded->file);
  std::string formatted = print(loaded->module->file(), text);
  if (checkOnly) {
    if (formatted == text)
      return ExitSuccess;
    outs() << path << '\n';
    return ExitWrongProgram;
  }
  if (formatted == text && path != "-")
    return ExitSuccess;
  if (Error error = writeFile(path, formatted)) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    return ExitMissingResource;
  }
  return ExitSuccess;
}

static ExitCode run() {
  std::vector<std::string> files;
  if (!findPrograms(paths, files))
    return ExitWrongCall;
  ExitCode result = ExitSuccess;
  for (const std::string &path : files)
    if (ExitCode code = formatFile(path)) {
      if (code != ExitWrongProgram)
        return code;
      result = code;
    }
  return result;
}

const Command fmtCommand = {sub, run};

} // namespace tegula
