//===- HostTarget.cpp - The machine that CPU code is made for -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/HostTarget.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <unistd.h>

using namespace llvm;

namespace tegula {

const HostTarget &HostTarget::get() {
  static const HostTarget host = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    HostTarget target;
    target.triple = sys::getProcessTriple();
    target.cpu = sys::getHostCPUName().str();
    StringMap<bool> found = sys::getHostCPUFeatures();
    SubtargetFeatures features;
    for (const auto &feature : found)
      features.AddFeature(feature.first(), feature.second);
    target.features = features.getString();
    auto has = [&](StringRef name) { return found.lookup(name); };
    if (has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq")) {
      target.vectorBytes = 64;
      target.vectorRegisters = 32;
      target.hasMasks = true;
    } else if (has("avx2")) {
      target.vectorBytes = 32;
    }
    target.hasHalf = has("f16c");
    target.hasFma = has("fma");
    if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
      target.l1Bytes = bytes;
    if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
      target.l2Bytes = bytes;
    return target;
  }();
  return host;
}

std::unique_ptr<TargetMachine> HostTarget::createMachine() const {
  std::string error;
  Triple parsed(triple);
  const Target *target = TargetRegistry::lookupTarget(parsed, error);
  assert(target && "the native target is registered");
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      parsed, cpu, features, options, Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Default, true));
}

void applyTarget(Module &module, const HostTarget &target, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(8 * target.vectorBytes));
    function.addFnAttr("min-legal-vector-width", std::to_string(8 * target.vectorBytes));
  }
}

void optimize(Module &module, TargetMachine &machine) {
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules);
}

} // namespace tegula
