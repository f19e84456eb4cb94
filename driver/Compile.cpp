//===- Compile.cpp - tegula compile -----------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "driver/FileIO.h"
#include "driver/InstanceArgs.h"
#include "driver/Load.h"
#include "frontend/EmitIR.h"
#include "frontend/Printer.h"
#include "mlir/IR/Verifier.h"
#include "passes/Pipeline.h"

using namespace llvm;

namespace tegula {

static cl::SubCommand sub("compile", "Show what a program becomes at each stage");
static cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("FILE"), cl::sub(sub));
static cl::opt<std::string> kernelName("kernel", cl::value_desc("NAME"),
                                       cl::desc("The kernel (default: the file's last)"),
                                       cl::sub(sub));
static cl::opt<std::string> emitWhat("emit", cl::value_desc("ast|tgl|scheduled"),
                                     cl::desc("What to print"), cl::init("scheduled"),
                                     cl::sub(sub));
static cl::opt<std::string> stopAfter("stop-after", cl::value_desc("PHASE"),
                                      cl::desc("Print the IR after this phase"), cl::sub(sub));
static cl::opt<std::string> target("target", cl::value_desc("cpu|sm_80|sm_90a"),
                                   cl::desc("The machine"), cl::init("cpu"), cl::sub(sub));
static cl::opt<std::string> outPath("o", cl::value_desc("OUT"), cl::desc("Where to write"),
                                    cl::init("-"), cl::sub(sub));
static cl::list<std::string> sizeTexts("d", cl::value_desc("M=64,N=128"),
                                       cl::desc("Sizes known when compiling"), cl::sub(sub));
static cl::list<std::string> constantTexts("p", cl::value_desc("eps=1e-3"),
                                           cl::desc("Compile-time constants"), cl::sub(sub));
static cl::list<std::string> typeTexts("type", cl::value_desc("T=f16"),
                                       cl::desc("Types of generic parameters"), cl::sub(sub));
static cl::opt<unsigned> rank("rank", cl::desc("How many dims '...' stands for"), cl::init(1),
                              cl::sub(sub));
static cl::list<std::string> givenOptionals("with", cl::value_desc("bias"),
                                            cl::desc("Optional tensors that are passed"),
                                            cl::CommaSeparated, cl::sub(sub));
static cl::list<std::string> disabled("disable", cl::value_desc("tgl-fuse"),
                                      cl::desc("Passes left out"), cl::CommaSeparated,
                                      cl::sub(sub));
static cl::list<std::string>
    printAfter("print-after", cl::value_desc("tgl-fuse|all"),
               cl::desc("Print the IR after these passes to standard error"), cl::CommaSeparated,
               cl::sub(sub));
static cl::opt<int64_t> tile("tile", cl::desc("Elements of a tile where no schedule says"),
                             cl::init(EmitOptions().tile), cl::sub(sub));
static cl::opt<bool> timing("timing", cl::desc("Print the times of all passes"), cl::sub(sub));
static cl::opt<bool> locations("locations", cl::desc("Print where each operation comes from"),
                               cl::sub(sub));

/// The last phase that is wanted, from --stop-after and --emit.
static std::optional<Phase> lastPhase() {
  if (!stopAfter.empty()) {
    std::optional<Phase> phase = parsePhase(stopAfter);
    if (phase && *phase <= Phase::Schedule)
      return phase;
    errs() << "tegula: there is no phase '" << stopAfter << "' to stop after; phases are";
    for (const PhaseInfo &info : phases())
      if (info.phase <= Phase::Schedule)
        errs() << (info.phase == Phase::Parse ? " " : ", ") << info.name;
    errs() << '\n';
    return std::nullopt;
  }
  if (emitWhat == "ast")
    return Phase::Parse;
  if (emitWhat == "tgl")
    return Phase::Emit;
  if (emitWhat == "scheduled")
    return Phase::Schedule;
  errs() << "tegula: --emit takes ast, tgl or scheduled, not '" << emitWhat << "'\n";
  return std::nullopt;
}

static ExitCode writeText(StringRef text) {
  if (Error error = writeFile(outPath, text)) {
    errs() << "tegula: " << toString(std::move(error)) << '\n';
    return ExitMissingResource;
  }
  return ExitSuccess;
}

static ExitCode run() {
  std::optional<Phase> last = lastPhase();
  InstanceOptions instance;
  instance.kernel = kernelName;
  instance.ellipsisRank = rank;
  instance.givenOptionals.assign(givenOptionals.begin(), givenOptionals.end());
  if (!last || !parseSizes(sizeTexts, instance.sizes) ||
      !parseConstants(constantTexts, instance.constants) || !parseTypes(typeTexts, instance.types))
    return ExitWrongCall;
  if (tile < 1) {
    errs() << "tegula: --tile takes a positive number\n";
    return ExitWrongCall;
  }

  std::unique_ptr<LoadedFile> loaded = load(path);
  if (!loaded)
    return ExitWrongCall;
  std::string text;
  raw_string_ostream os(text);
  if (loaded->diagnostics.hasErrors()) {
    loaded->print(/*json=*/false);
    return ExitWrongProgram;
  }
  if (*last == Phase::Parse) {
    dump(loaded->module->file(), os);
    return writeText(text);
  }
  if (!loaded->module->entry(kernelName)) {
    errs() << "tegula: '" << path << "' has no kernel"
           << (kernelName.empty() ? "" : " '" + kernelName + "'") << '\n';
    return ExitWrongCall;
  }

  std::unique_ptr<checked::Program> program = check(*loaded->module, instance, loaded->diagnostics);
  loaded->print(/*json=*/false);
  if (!program)
    return ExitWrongProgram;
  if (*last == Phase::Check)
    return ExitSuccess;

  mlir::MLIRContext context;
  EmitOptions emitOptions;
  emitOptions.tile = tile;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      emitIR(*program, loaded->sources, context, emitOptions);
  if (mlir::failed(mlir::verify(*module)))
    return ExitInternalError;
  if (*last > Phase::Emit) {
    PipelineOptions options;
    options.machine = target == "cpu" ? Machine::CPU : Machine::GPU;
    options.disabled.assign(disabled.begin(), disabled.end());
    options.printAfter.assign(printAfter.begin(), printAfter.end());
    options.timing = timing;
    mlir::PassManager manager(&context);
    buildPipeline(manager, options, *last);
    instrument(manager, options);
    if (mlir::failed(manager.run(*module)))
      return ExitInternalError;
  }
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo(true, /*prettyForm=*/false);
  module->print(os, flags);
  os << '\n';
  return writeText(text);
}

const Command compileCommand = {sub, run};

} // namespace tegula
