//===- tegula-device-opt.cpp - Runs passes on textual device code ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tegula-opt is for MLIR: refuses LLVM IR that does not verify, or does not wait for what it
// starts (async/Async.h), and runs this compiler's passes over it, and LLVM's own, by name.
//
//   tegula-device-opt --passes=count-groups,place-fences,lower-rings kernel.ll
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Async.h"
#include "codegen/llvm/BypassDivisions.h"
#include "codegen/llvm/PrefetchSteps.h"
#include "compiler/ParallelCodegen.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace tegula;

static cl::opt<std::string> input(cl::Positional, cl::desc("<file, or - for standard input>"),
                                  cl::init("-"));
static cl::opt<std::string>
    output("o", cl::desc("Where the code goes, in place of standard output"), cl::init("-"));
static cl::opt<std::string> passes("passes",
                                   cl::desc("Passes by name, in order, as LLVM's opt takes them"));

static void registerPasses(PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [](StringRef name, FunctionPassManager &manager, ArrayRef<PassBuilder::PipelineElement>) {
        if (name == "count-groups")
          manager.addPass(async::CountGroupsPass());
        else if (name == "place-fences")
          manager.addPass(async::PlaceFencesPass());
        else if (name == "lower-rings")
          manager.addPass(async::LowerRingsPass());
        else if (name == "bypass-divisions")
          manager.addPass(BypassDivisionsPass());
        else if (name == "prefetch-steps")
          manager.addPass(PrefetchStepsPass());
        else
          return false;
        return true;
      });
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "Runs passes on device code\n");
  LLVMContext context;
  std::string heard;
  collectErrors(context, heard);
  SMDiagnostic problem;
  std::unique_ptr<llvm::Module> module = parseIRFile(input, problem, context);
  if (!module) {
    problem.print(argv[0], errs());
    return 1;
  }
  if (Error error = async::verifyAsync(*module)) {
    logAllUnhandledErrors(std::move(error), WithColor::error(errs(), argv[0]));
    return 1;
  }
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graph;
  ModuleAnalysisManager modules;
  PassBuilder builder;
  registerPasses(builder);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);
  ModulePassManager manager;
  if (!passes.empty())
    if (Error error = builder.parsePassPipeline(manager, passes)) {
      logAllUnhandledErrors(std::move(error), WithColor::error(errs(), argv[0]));
      return 1;
    }
  manager.run(*module, modules);
  if (!heard.empty())
    errs() << StringRef(heard).ltrim() << "\n";
  if (!heard.empty() || verifyModule(*module, &errs()))
    return 1;
  std::error_code error;
  ToolOutputFile file(output, error, sys::fs::OF_Text);
  if (error) {
    WithColor::error(errs(), argv[0]) << output << ": " << error.message() << "\n";
    return 1;
  }
  module->print(file.os(), nullptr);
  file.keep();
  return 0;
}
