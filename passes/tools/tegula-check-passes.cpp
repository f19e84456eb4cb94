//===- tegula-check-passes.cpp - Interprets kernels before and after every pass ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tegula-check-passes FILE... [--runs=N] [--seed=S] [-d M=4,N=7] [--rank=R] [--gpu]: for each
// kernel of each file (.tgl or .mlir) runs the whole pipeline on N choices of sizes and inputs, and
// says which pass first changed what it computes. Exit code 0: none did; 4: some did.
//
//===----------------------------------------------------------------------===//
#include "frontend/Check.h"
#include "frontend/OpenModule.h"
#include "frontend/lower/EmitIR.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipeline.h"
#include "passes/analysis/Equivalence.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace tegula;
using mlir::ModuleOp;
using tegula::tgl::KernelOp;

static cl::list<std::string> files(cl::Positional, cl::OneOrMore, cl::desc("FILE..."));
static cl::opt<unsigned> runs("runs", cl::init(3),
                              cl::desc("choices of sizes and inputs for each kernel"));
static cl::opt<unsigned> firstSeed("seed", cl::init(1), cl::desc("of the first choice"));
static cl::list<std::string> sizeTexts("d", cl::CommaSeparated, cl::desc("sizes to fix: M=4,N=7"));
static cl::opt<unsigned> ellipsisRank("rank", cl::desc("of `...`"));
static cl::opt<bool> gpu("gpu", cl::desc("schedule for a GPU"));
static cl::list<std::string> disabled("disable-pass", cl::CommaSeparated,
                                      cl::desc("passes to leave out"));
static cl::opt<bool> quiet("quiet", cl::desc("print failures only"));

namespace {
/// How a kernel fared.
enum class Fate { Same, Changed, NotRun };
} // namespace

/// Calls `visit` with the module of every kernel in a file, and the kernel's name; with null where
/// one cannot be compiled.
static void forEachKernel(StringRef path, mlir::MLIRContext &context,
                          function_ref<void(ModuleOp, StringRef)> visit) {
  if (path.ends_with(".mlir")) {
    mlir::OwningOpRef<ModuleOp> module = mlir::parseSourceFile<ModuleOp>(path, &context);
    KernelOp entry = module ? entryOf(*module) : KernelOp();
    visit(entry ? *module : ModuleOp(), entry ? entry.getSymName() : "");
    return;
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(path);
  if (!text) {
    errs() << path << ": " << text.getError().message() << "\n";
    visit(nullptr, "");
    return;
  }
  SourceManager sources;
  Diagnostics diagnostics(sources);
  uint32_t file = sources.add(path.str(), (*text)->getBuffer().str());
  std::unique_ptr<Module> module = openModule(sources, file, diagnostics);
  for (const std::unique_ptr<ast::Kernel> &kernel : module->file().kernels) {
    std::unique_ptr<checked::Program> program;
    InstanceOptions options;
    options.kernel = kernel->name.name;
    if (ellipsisRank.getNumOccurrences())
      options.ellipsisRank = ellipsisRank;
    Diagnostics found(sources);
    if (!diagnostics.hasErrors())
      program = check(*module, options, found);
    if (!program) {
      (diagnostics.hasErrors() ? diagnostics : found).printText(errs(), false);
      visit(nullptr, options.kernel);
      continue;
    }
    mlir::OwningOpRef<ModuleOp> emitted = emitIR(*program, sources, context);
    visit(*emitted, options.kernel);
  }
}

static Fate runOnce(ModuleOp original, StringRef path, uint64_t seed,
                    const std::map<std::string, int64_t> &sizes) {
  mlir::OwningOpRef<ModuleOp> module = original.clone();
  std::optional<KernelInputs> inputs = randomInputs(entryOf(*module), seed, sizes);
  if (!inputs) {
    errs() << path << ": no sizes were found for which the guards hold\n";
    return Fate::NotRun;
  }
  bool changed = false;
  mlir::PassManager manager(module->getContext());
  checkEquivalence(manager, *module, *inputs, [&](StringRef pass, StringRef text) {
    if (changed)
      return;
    changed = true;
    errs() << path << " (seed " << seed;
    for (auto &entry : inputs->sizes)
      errs() << ", " << entry.first() << " = " << entry.second;
    errs() << "): " << pass << " changed the result: " << text << "\n";
  });
  PipelineOptions options;
  options.target = gpu ? TargetInfo::gpu(90, true) : TargetInfo::host();
  options.disabled.assign(disabled.begin(), disabled.end());
  buildPipeline(manager, options);
  if (mlir::failed(manager.run(*module))) {
    errs() << path << ": the pipeline failed\n";
    return Fate::Changed;
  }
  return changed ? Fate::Changed : Fate::Same;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, "interprets kernels before and after every pass\n");
  std::map<std::string, int64_t> sizes;
  for (StringRef text : sizeTexts) {
    auto [name, value] = text.split('=');
    int64_t number;
    if (value.getAsInteger(10, number)) {
      errs() << "-d takes NAME=NUMBER, not '" << text << "'\n";
      return 2;
    }
    sizes[name.str()] = number;
  }
  unsigned same = 0, changed = 0, notRun = 0;
  for (const std::string &path : files) {
    mlir::MLIRContext context;
    context.loadDialect<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
    forEachKernel(path, context, [&](ModuleOp module, StringRef kernel) {
      std::string name = path + ": " + kernel.str();
      if (!module) {
        errs() << name << ": not a kernel that can be run\n";
        ++notRun;
        return;
      }
      Fate fate = Fate::Same;
      for (unsigned run = 0; run < runs && fate == Fate::Same; ++run)
        fate = runOnce(module, name, firstSeed + run, sizes);
      same += fate == Fate::Same;
      changed += fate == Fate::Changed;
      notRun += fate == Fate::NotRun;
      if (!quiet && fate == Fate::Same)
        outs() << name << ": the same after every pass\n";
    });
  }
  outs() << same << " kernels the same, " << changed << " changed, " << notRun << " not run\n";
  return changed ? 4 : 0;
}
