//===- HostTarget.cpp - The target of CPU code ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/HostTarget.h"
#include "codegen/common/Emitter.h"
#include "codegen/llvm/PassGate.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LoopAnalysisManager.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Inliner.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/DivRemPairs.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopUnrollPass.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <unistd.h>

using namespace llvm;

namespace tegula {

HostTarget::HostTarget(std::string cpu, std::string features)
    : triple(sys::getProcessTriple()), cpu(std::move(cpu)), features(std::move(features)) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::unique_ptr<MCSubtargetInfo> known(
      lookup().createMCSubtargetInfo(Triple(triple), this->cpu, this->features));
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
  return std::unique_ptr<TargetMachine>(
      lookup().createTargetMachine(Triple(triple), cpu, features, options, Reloc::PIC_,
                                   CodeModel::Small, CodeGenOptLevel::Default, true));
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

namespace {
/// Full unrolling, where the emitter has made a loop for it: the analysis of all others is not
/// free.
struct UnrollConstantLoops : PassInfoMixin<UnrollConstantLoops> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses) {
    if (!function.hasFnAttribute(hasConstantLoop))
      return PreservedAnalyses::all();
    return createFunctionToLoopPassAdaptor(LoopFullUnrollPass(2)).run(function, analyses);
  }
};

/// LLVM's selection for x86 takes a shift of a gather's or scatter's index for a factor of the
/// address, which is of 64 bits as well: from 2^64 on it becomes 0, and an index that is in bounds
/// reads anywhere. All that such a shift leaves in an address is 0.
struct DropShiftedOutIndices : PassInfoMixin<DropShiftedOutIndices> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    bool changed = false;
    for (Instruction &instruction : instructions(function)) {
      auto *access = dyn_cast<IntrinsicInst>(&instruction);
      if (!access || (access->getIntrinsicID() != Intrinsic::masked_gather &&
                      access->getIntrinsicID() != Intrinsic::masked_scatter))
        continue;
      unsigned operand = access->getIntrinsicID() == Intrinsic::masked_gather ? 0 : 1;
      auto *address = dyn_cast<GetElementPtrInst>(access->getArgOperand(operand));
      const APInt *shift;
      if (!address || address->getNumIndices() != 1 ||
          !PatternMatch::match(
              address->getOperand(1),
              PatternMatch::m_Shl(PatternMatch::m_Value(), PatternMatch::m_APInt(shift))))
        continue;
      uint64_t bytes = function.getDataLayout().getTypeAllocSize(address->getSourceElementType());
      if (shift->getZExtValue() + countr_zero(bytes) < 64)
        continue;
      address->setOperand(1, Constant::getNullValue(address->getOperand(1)->getType()));
      changed = true;
    }
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};
} // namespace

/// What our code needs of LLVM, and no more: it has its vectors, its accumulators and its order of
/// memory when it comes here. Elementary functions are inlined as they are met, from the inside
/// out, so that each is simplified once. Loops keep their shape, but small constant ones disappear;
/// with `unroll` those that run for long are unrolled at the end.
static ModulePassManager hostPipeline(bool unroll) {
  FunctionPassManager simplify;
  simplify.addPass(SROAPass(SROAOptions::ModifyCFG));
  simplify.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  simplify.addPass(InstCombinePass());
  simplify.addPass(SimplifyCFGPass());
  // Addresses and bounds to where they are constant, and elementary functions of what is.
  simplify.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  // Windows of constant size, steps of sorts.
  simplify.addPass(UnrollConstantLoops());
  simplify.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  simplify.addPass(SimplifyCFGPass());
  if (unroll) {
    simplify.addPass(LoopUnrollPass(LoopUnrollOptions(2)));
    simplify.addPass(InstCombinePass());
    simplify.addPass(SimplifyCFGPass());
  }
  simplify.addPass(DropShiftedOutIndices());
  simplify.addPass(DivRemPairsPass());
  simplify.addPass(DCEPass());
  CGSCCPassManager calls;
  calls.addPass(InlinerPass(/*OnlyMandatory=*/true));
  calls.addPass(createCGSCCToFunctionPassAdaptor(std::move(simplify)));
  ModulePassManager passes;
  passes.addPass(createModuleToPostOrderCGSCCPassAdaptor(std::move(calls)));
  passes.addPass(GlobalDCEPass());
  return passes;
}

/// Elementary functions of more instructions than this are called: the code for vectors of a sine
/// is as long as that of most kernels, and takes as long to compile.
static constexpr unsigned maxInlined = 64;
/// Unrolling gains up to 15 % (softmax on one thread) and costs as much as half of the other time:
/// it is for modules of few instructions, where that is a few milliseconds.
static constexpr unsigned maxUnrolled = 1000;

/// The function of a kernel where it only computes numbers and calls others: selecting its
/// instructions with care would take longer than it will ever run.
static bool isRunOnce(const Function &function) {
  if (function.isDeclaration() || function.hasLocalLinkage())
    return false;
  SmallVector<std::pair<const BasicBlock *, const BasicBlock *>> loops;
  FindFunctionBackedges(function, loops);
  return loops.empty();
}

void optimize(Module &module, TargetMachine &machine) {
  for (Function &function : module)
    if (function.hasFnAttribute(Attribute::AlwaysInline) &&
        function.getInstructionCount() > maxInlined) {
      function.removeFnAttr(Attribute::AlwaysInline);
      function.addFnAttr(Attribute::NoInline);
    }
  for (Function &function : module)
    if (isRunOnce(function)) {
      function.addFnAttr(Attribute::OptimizeNone);
      function.addFnAttr(Attribute::NoInline); // which the other demands
    }
  std::unique_ptr<PassInstrumentationCallbacks> gate = gateCallbacks(module.getContext());
  PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt, gate.get());
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  hostPipeline(module.getInstructionCount() <= maxUnrolled).run(module, modules);
}

} // namespace tegula
