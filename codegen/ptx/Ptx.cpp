//===- Ptx.cpp - LLVM IR for NVPTX to PTX -----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Ptx.h"
#include "codegen/async/Async.h"
#include "codegen/llvm/BypassDivisions.h"
#include "codegen/llvm/PassGate.h"
#include "codegen/llvm/PrefetchSteps.h"
#include "codegen/llvm/PtxVersion.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/ScopedNoAliasAA.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/InitializePasses.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Pass.h"
#include "llvm/PassRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/CorrelatedValuePropagation.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/InferAlignment.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <mutex>

using namespace llvm;
using namespace tegula;

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

static constexpr StringRef tripleText = "nvptx64-nvidia-cuda";

/// Code generation finds some of its passes by name in the registry; without this they would
/// silently not run.
void tegula::initializeDeviceTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    PassRegistry &registry = *PassRegistry::getPassRegistry();
    initializeCore(registry);
    initializeAnalysis(registry);
    initializeCodeGen(registry);
    initializeScalarOpts(registry);
    initializeTransformUtils(registry);
    initializeTarget(registry);
  });
}

unsigned tegula::deviceCapability(StringRef target) {
  if (!target.consume_front("sm_"))
    return 0;
  if (target.ends_with("a") || target.ends_with("f"))
    target = target.drop_back();
  unsigned value = 0;
  return target.getAsInteger(10, value) ? 0 : value;
}

namespace {
/// An architecture, and the oldest PTX version that has it and what we use of it (PTX ISA, "Release
/// history"; st.async came with 8.1): what older drivers still load.
struct Architecture {
  StringLiteral name;
  unsigned ptxVersion;
};
} // namespace

/// All of capability 8.0 or newer that LLVM's NVPTX back end knows (a unit test compares).
static constexpr Architecture architectures[] = {
    {"sm_80", 78},   {"sm_86", 78},   {"sm_87", 78},   {"sm_88", 90},   {"sm_89", 78},
    {"sm_90", 81},   {"sm_90a", 81},  {"sm_100", 86},  {"sm_100a", 86}, {"sm_100f", 88},
    {"sm_101", 86},  {"sm_101a", 86}, {"sm_101f", 88}, {"sm_103", 88},  {"sm_103a", 88},
    {"sm_103f", 88}, {"sm_110", 90},  {"sm_110a", 90}, {"sm_110f", 90}, {"sm_120", 87},
    {"sm_120a", 87}, {"sm_120f", 88}, {"sm_121", 88},  {"sm_121a", 88}, {"sm_121f", 88},
};

static const Architecture *findArchitecture(StringRef target) {
  const Architecture *found =
      find_if(architectures, [&](const Architecture &one) { return one.name == target; });
  return found == std::end(architectures) ? nullptr : found;
}

bool tegula::isDeviceTarget(StringRef target) { return findArchitecture(target); }

SmallVector<StringRef> tegula::deviceTargets() {
  return map_to_vector(architectures, [](const Architecture &one) { return StringRef(one.name); });
}

std::string tegula::expectedDeviceTargets() {
  return "a device of capability 8.0 or newer that LLVM " LLVM_VERSION_STRING " knows (" +
         join(deviceTargets(), ", ") + ")";
}

std::string tegula::deviceTarget(int major, int minor) {
  std::string plain = "sm_" + std::to_string(major * 10 + minor);
  // Architecture-specific instructions (wgmma, tcgen05) exist in the "a" variants from 9.0 on.
  return major >= 9 ? plain + "a" : plain;
}

Expected<std::unique_ptr<TargetMachine>> tegula::createDeviceMachine(StringRef target,
                                                                     unsigned minPtxVersion) {
  initializeDeviceTarget();
  Triple triple(tripleText);
  std::string message;
  const Target *nvptx = TargetRegistry::lookupTarget(triple, message);
  if (!nvptx)
    return createStringError(inconvertibleErrorCode(), message);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Standard; // fma only where `contract` allows
  // LLVM ends the process for an architecture or a version that it does not know.
  const Architecture *architecture = findArchitecture(target);
  if (!architecture)
    return createStringError(inconvertibleErrorCode(),
                             "expected " + expectedDeviceTargets() + ", got '" + target + "'");
  std::string feature = "+ptx" + std::to_string(std::max(architecture->ptxVersion, minPtxVersion));
  std::unique_ptr<TargetMachine> machine(
      nvptx->createTargetMachine(triple, target, feature, options, std::nullopt, std::nullopt,
                                 CodeGenOptLevel::Default)); // Aggressive: the same code, later
  if (!machine)
    return createStringError(inconvertibleErrorCode(), "no NVPTX target machine for " + target);
  return machine;
}

void tegula::applyDeviceTarget(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

/// An analysis is no pass that would ask before it runs: asked here, in the middle end and again in
/// code generation.
static bool runsAliasAnalysis(const Module &module) {
  OptPassGate &gate = module.getContext().getOptPassGate();
  return !gate.isEnabled() || gate.shouldRunPass("nvptx-aa", "");
}

void tegula::optimizeForDevice(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager graph;
  ModuleAnalysisManager modules;
  std::unique_ptr<PassInstrumentationCallbacks> gate = gateCallbacks(module.getContext());
  // With the target's own cost model and alias analysis.
  PassBuilder builder(&machine, PipelineTuningOptions(), std::nullopt, gate.get());
  if (!runsAliasAnalysis(module)) // registered first, it is that of all
    functions.registerPass([] {
      AAManager aliases;
      aliases.registerFunctionAnalysis<BasicAA>();
      aliases.registerFunctionAnalysis<ScopedNoAliasAA>();
      aliases.registerFunctionAnalysis<TypeBasedAA>();
      aliases.registerModuleAnalysis<GlobalsAA>();
      return aliases;
    });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graph, modules);

  FunctionPassManager perFunction;
  perFunction.addPass(async::CountGroupsPass());
  perFunction.addPass(async::PlaceFencesPass());
  perFunction.addPass(async::LowerRingsPass());
  perFunction.addPass(SROAPass(SROAOptions::ModifyCFG));
  perFunction.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  perFunction.addPass(InstCombinePass());
  perFunction.addPass(SimplifyCFGPass());
  perFunction.addPass(
      createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  perFunction.addPass(EarlyCSEPass(/*UseMemorySSA=*/true)); // of what is invariant now
  perFunction.addPass(CorrelatedValuePropagationPass());    // 32-bit divisions where ranges allow
  perFunction.addPass(InferAlignmentPass());                // vectors are one access
  perFunction.addPass(ADCEPass());
  perFunction.addPass(SimplifyCFGPass());
  perFunction.addPass(BypassDivisionsPass()); // and where values do
  perFunction.addPass(PrefetchStepsPass());
  ModulePassManager all;
  all.addPass(AlwaysInlinerPass());
  all.addPass(createModuleToFunctionPassAdaptor(std::move(perFunction)));
  all.addPass(GlobalDCEPass());
  all.run(module, modules);
}

namespace {
/// Code generation without passes that take a third of its time and find nothing in our code,
/// unless they are asked for: addresses are canonical polynomials already. On tiles strength
/// reduction of straight lines saves 4 % of the instructions, shifts and additions of addresses in
/// shared memory, which ptxas folds.
class DevicePasses : public legacy::PassManager {
public:
  DevicePasses(const Module &module, PassRuns *runs)
      : runs(runs), hasAliasAnalysis(runsAliasAnalysis(module)) {}

  void add(Pass *pass) override {
    StringRef name = pass->getPassName();
    bool isLeftOut = name == "Straight line strength reduction" ? !adds("slsr")
                     : name == "Nary reassociation"             ? !adds("nary-reassociate")
                     : name == "Early CSE"                      ? true
                     : name == "NVPTX Address space based Alias Analysis" ? !hasAliasAnalysis
                                                                          : false;
    if (isLeftOut)
      delete pass;
    else
      PassManager::add(pass);
  }

private:
  bool adds(StringRef pass) { return runs && runs->shouldAdd(pass); }

  PassRuns *runs;
  bool hasAliasAnalysis;
};
} // namespace

std::string tegula::emitPtx(Module &module, TargetMachine &machine, PassRuns *runs) {
  SmallString<0> text;
  raw_svector_ostream stream(text);
  DevicePasses passes(module, runs);
  bool failed = machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::AssemblyFile);
  assert(!failed && "NVPTX writes assembly");
  (void)failed;
  passes.run(module);
  return std::string(text);
}
