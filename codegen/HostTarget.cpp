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
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <unistd.h>

using namespace llvm;

namespace tegula {

HostTarget::HostTarget(std::string cpu, std::string features)
    : triple(sys::getProcessTriple()), cpu(std::move(cpu)), features(std::move(features)) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::unique_ptr<MCSubtargetInfo> known(lookup().createMCSubtargetInfo(
      Triple(triple), this->cpu, this->features));
  auto has = [&](StringRef name) { return known->checkFeatures(("+" + name).str()); };
  if (has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq")) {
    vectorBytes = 64;
    vectorRegisters = 32;
    hasMasks = true;
  } else if (has("avx2")) {
    vectorBytes = 32;
  }
  hasHalf = has("f16c");
  hasFma = has("fma");
  if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
    l1Bytes = bytes;
  if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
    l2Bytes = bytes;
}

const HostTarget &HostTarget::get() {
  static const HostTarget host = [] {
    SubtargetFeatures features;
    for (const auto &feature : sys::getHostCPUFeatures())
      features.AddFeature(feature.first(), feature.second);
    return HostTarget(sys::getHostCPUName().str(), features.getString());
  }();
  return host;
}

std::optional<HostTarget> HostTarget::named(StringRef cpu) {
  const HostTarget &host = get();
  std::unique_ptr<MCSubtargetInfo> known(
      host.lookup().createMCSubtargetInfo(Triple(host.triple), "", ""));
  if (!known->isCPUStringValid(cpu))
    return std::nullopt;
  return HostTarget(cpu.str(), "");
}

const Target &HostTarget::lookup() const {
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(Triple(triple), error);
  assert(target && "the native target is registered");
  return *target;
}

std::unique_ptr<TargetMachine> HostTarget::createMachine() const {
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard;
  return std::unique_ptr<TargetMachine>(lookup().createTargetMachine(
      Triple(triple), cpu, features, options, Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Default, true));
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
