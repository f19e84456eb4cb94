//===- Check.cpp - tegula check ----------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/Check.h"
#include "codegen/ptx/Ptx.h"
#include "compiler/Compiler.h"
#include "driver/CheckKernels.h"
#include "driver/Commands.h"
#include "driver/InstanceArgs.h"
#include "driver/Programs.h"
#include "driver/Why.h"
#include "frontend/print/ProgramText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("check", "Say what is wrong with programs");
static cl::list<std::string> paths(cl::Positional, cl::OneOrMore, cl::desc("FILE-OR-FOLDER..."),
                                   cl::sub(sub));
static cl::opt<bool> json("json", cl::desc("Print diagnostics as JSON Lines (docs/diagnostics.md)"),
                          cl::cat(outputOptions), cl::sub(sub));
static cl::opt<std::string> onlyKernel("kernel", cl::value_desc("NAME"),
                                       cl::desc("Check this kernel alone (default: all)"),
                                       cl::cat(inputOptions), cl::sub(sub));

static cl::opt<bool> guards("guards",
                            cl::desc("List what every launch checks of the sizes, and the "
                                     "declarations that would prove it"),
                            cl::cat(outputOptions), cl::sub(sub));

static cl::opt<std::string>
    target("target", cl::value_desc("sm_90a"),
           cl::desc("A device: say also what bounds each launch there, and why no faster strategy "
                    "computes it, as compile --why does"),
           cl::cat(targetOptions), cl::sub(sub));
static cl::opt<std::string> machineName("machine", cl::value_desc("h200|h100"),
                                        cl::desc("With --target: the card (default: h200 for "
                                                 "sm_90a)"),
                                        cl::cat(targetOptions), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("With --target: sizes"), cl::cat(inputOptions),
                                       cl::sub(sub));

static void printGuards(const LoadedFile &loaded, const checked::Program &program) {
  static const char *kinds[] = {"nonneg", "zero", "nonzero", "divides", "inbounds"};
  if (!json)
    outs() << "kernel " << program.name << ": "
           << (program.guards.empty() ? "no size is refused\n" : "a launch is refused unless\n");
  for (const checked::Guard &guard : program.guards) {
    auto [line, column] = loaded.sources.lineAndColumn(guard.span.file, guard.span.begin);
    std::string condition = conditionOf(program, guard);
    if (!json) {
      outs() << "  " << condition << "   # " << loaded.sources.name(guard.span.file) << ':' << line
             << ':' << column << ": " << guard.message << '\n';
      if (!guard.advice.empty())
        outs() << "    to prove it: " << guard.advice << '\n';
      continue;
    }
    llvm::json::Object object{{"schema", "tegula.guard"},
                              {"version", 1},
                              {"kernel", program.name},
                              {"kind", kinds[guard.kind]},
                              {"condition", condition},
                              {"message", guard.message},
                              {"file", loaded.sources.name(guard.span.file)},
                              {"line", line},
                              {"column", column}};
    if (!guard.advice.empty())
      object["advice"] = guard.advice;
    outs() << llvm::json::Value(std::move(object)) << '\n';
  }
}

/// What bounds the launches of a right kernel. One that does not compile as it stands, as it needs
/// constants, says so.
static void printPerformance(LoadedFile &loaded, const CompileOptions &given,
                             const checked::Program &program, const report::DeviceLimits *machine) {
  CompileOptions options = given;
  options.instance.kernel = program.name;
  Diagnostics unheard(loaded.sources);
  Expected<std::unique_ptr<CompiledKernel>> compiled =
      compileKernel(*loaded.module, options, unheard);
  std::string reason;
  if (!compiled)
    reason = toString(compiled.takeError());
  else if (!*compiled)
    reason = unheard.all().empty() ? "it does not compile" : unheard.all().front().message;
  if (!json) {
    outs() << "kernel " << program.name << ":"
           << (reason.empty() ? "\n" + whyText((*compiled)->launches, machine)
                              : " " + reason + '\n');
    return;
  }
  llvm::json::Object object{{"schema", "tegula.performance"},
                            {"version", 1},
                            {"kernel", program.name},
                            {"file", loaded.sources.name(loaded.file)},
                            {"target", options.target}};
  if (machine)
    object["machine"] = machine->name;
  if (reason.empty())
    object["launches"] = whyJson((*compiled)->launches, machine);
  else
    object["reason"] = reason;
  outs() << llvm::json::Value(std::move(object)) << '\n';
}

void checkKernels(LoadedFile &loaded, StringRef only,
                  std::vector<std::unique_ptr<checked::Program>> *programs) {
  std::vector<std::unique_ptr<checked::Program>> found =
      checkAll(*loaded.module, only, guards, loaded.diagnostics);
  if (programs)
    *programs = std::move(found);
}

bool tellSyntaxErrors(LoadedFile &loaded) {
  if (!loaded.diagnostics.hasErrors())
    return false;
  checkKernels(loaded);
  loaded.print(/*json=*/false);
  return true;
}

static ExitCode run() {
  std::vector<std::string> files;
  if (!findPrograms(paths, files))
    return ExitWrongCall;
  CompileOptions options;
  const report::DeviceLimits *machine = nullptr;
  if (target.empty() && (!machineName.empty() || !sizeTexts.empty())) {
    errs() << "tegula: -d and --machine are for --target\n";
    return ExitWrongCall;
  }
  if (!target.empty()) {
    if (!isDeviceTarget(target)) {
      errs() << "tegula: --target takes " << expectedDeviceTargets() << ", not '" << target
             << "'\n";
      return ExitWrongCall;
    }
    options.target = target;
    options.explain = true;
    options.stopAfter = Phase::Schedule;
    if (!findMachine(machineName, target, machine) || !parseSizes(sizeTexts, options.sizes))
      return ExitWrongCall;
  }
  ExitCode result = ExitSuccess;
  for (const std::string &path : files) {
    std::unique_ptr<LoadedFile> loaded = load(path);
    if (!loaded)
      return ExitWrongCall;
    if (!loaded->diagnostics.hasErrors() && !loaded->module->entry(onlyKernel)) {
      errs() << "tegula: '" << path << "' has no kernel '" << onlyKernel << "'\n";
      return ExitWrongCall;
    }
    std::vector<std::unique_ptr<checked::Program>> programs;
    checkKernels(*loaded, onlyKernel, &programs);
    loaded->print(json);
    if (guards)
      for (const auto &program : programs)
        printGuards(*loaded, *program);
    if (!target.empty() && !loaded->diagnostics.hasErrors())
      for (const auto &program : programs)
        printPerformance(*loaded, options, *program, machine);
    if (loaded->diagnostics.hasErrors())
      result = ExitWrongProgram;
  }
  return result;
}

const Command checkCommand = {sub, run};

} // namespace tegula
