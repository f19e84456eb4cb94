//===- TargetOptions.cpp - Options of passes and code generation for a target ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/TargetOptions.h"

#include "codegen/ptx/Ptx.h"

using namespace llvm;
using namespace tegula;

StringRef tegula::deviceOf(const CompileOptions &options) {
  return options.target == "emulate" ? options.emulatedDevice : options.target;
}

unsigned tegula::capabilityOf(const CompileOptions &options) {
  return deviceCapability(deviceOf(options));
}

TargetInfo tegula::targetOf(const CompileOptions &options, PassRuns *runs) {
  if (options.target == "cpu")
    return TargetInfo::host();
  TargetInfo target = TargetInfo::gpu(capabilityOf(options), deviceOf(options) == "sm_90a");
  target.usesBulkLoads &= !runs || runs->shouldRun("bulk-copies", "");
  target.tma16Bit &= !runs || runs->shouldRun("tma-16bit", "");
  target.jointTiles &= !runs || runs->shouldRun("joint-tiles", "");
  if (options.target == "emulate") {
    target.minTmaMacs = 0; // its products are small
    target.multiprocessors = options.emulatedMultiprocessors;
  }
  return target;
}

EmitterOptions tegula::deviceOptionsOf(const CompileOptions &options, PassRuns *runs) {
  bool isEmulated = options.target == "emulate";
  auto isOn = [&](StringRef name) { return !runs || runs->shouldRun(name, ""); };
  EmitterOptions emitter;
  emitter.target = targetOf(options, runs);
  emitter.checked = options.checked;
  emitter.evenProved = options.evenProved;
  emitter.lineTables = options.lineTables;
  emitter.tensorAlignment = options.alignment;
  // What a device gets for tensors as they are allocated, as here.
  if (isEmulated && !options.sizes.empty())
    emitter.tensorAlignment = 16;
  emitter.dependentLaunches =
      options.dependentLaunches && !isEmulated && emitter.target.hasDependentLaunch;
  emitter.earlyCombine = emitter.target.hasDependentLaunch && isOn("early-combine");
  emitter.clusterReduce = emitter.target.clusterBlocks > 1 && isOn("cluster-reduce");
  emitter.transposeTiles = isOn("transpose-tiles");
  emitter.raggedLanes = isOn("ragged-lanes");
  emitter.segmentedCombines = isOn("segmented-combines");
  emitter.registerSorts = isOn("register-sorts");
  emitter.rasterizes = isOn("rasterize");
  emitter.windowTiles = isOn("window-tiles");
  emitter.stateRegisters = isOn("state-registers");
  emitter.prefetchesRows = isOn("row-prefetch");
  emitter.warpEpilogue = isOn("warp-epilogue");
  emitter.registerEpilogue = isOn("register-epilogue");
  emitter.bulkStores = isOn("bulk-stores");
  emitter.usesAsyncStores = isOn("async-stores");
  emitter.prologueLoads = isOn("prologue-loads");
  emitter.splitKTail = isOn("split-k-tail");
  return emitter;
}
