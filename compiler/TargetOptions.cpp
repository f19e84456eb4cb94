//===- TargetOptions.cpp - Options of passes and code generation for a target ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/TargetOptions.h"

#include "codegen/ptx/Ptx.h"
#include "target/DeviceFacts.h"

using namespace llvm;
using namespace tegula;

StringRef tegula::deviceOf(const CompileOptions &options) {
  return options.target == "emulate" ? options.emulatedDevice : options.target;
}

unsigned tegula::capabilityOf(const CompileOptions &options) {
  return deviceCapability(deviceOf(options));
}

TileMachine tegula::tileMachineOf(const CompileOptions &options, PassRuns *runs) {
  if (options.target == "cpu")
    return {};
  return {device::sharedBytes(capabilityOf(options)), deviceOf(options) == "sm_90a",
          !runs || runs->shouldRun("bulk-copies", ""), !runs || runs->shouldRun("tma-16bit", ""),
          options.target == "emulate" ? 0 : TileMachine().minTmaMacs};
}

EmitterOptions tegula::deviceOptionsOf(const CompileOptions &options, PassRuns *runs) {
  bool isEmulated = options.target == "emulate";
  auto isOn = [&](StringRef name) { return !runs || runs->shouldRun(name, ""); };
  EmitterOptions emitter;
  emitter.checked = options.checked;
  emitter.evenProved = options.evenProved;
  emitter.lineTables = options.lineTables;
  emitter.tensorAlignment = options.alignment;
  // What a device gets for tensors as they are allocated, as here.
  if (isEmulated && !options.sizes.empty())
    emitter.tensorAlignment = 16;
  emitter.dependentLaunches =
      options.dependentLaunches && !isEmulated && deviceCapability(options.target) >= 90;
  emitter.earlyCombine = capabilityOf(options) >= 90 && isOn("early-combine");
  emitter.sharedBytes = tileMachineOf(options, runs).sharedBytes;
  emitter.clusterBlocks = device::clusterBlocks(capabilityOf(options));
  emitter.clusterReduce = emitter.clusterBlocks > 1 && isOn("cluster-reduce");
  emitter.transposeTiles = isOn("transpose-tiles");
  emitter.registerSorts = isOn("register-sorts");
  emitter.rasterizes = isOn("rasterize");
  emitter.windowTiles = isOn("window-tiles");
  emitter.prefetchesRows = isOn("row-prefetch");
  emitter.warpEpilogue = isOn("warp-epilogue");
  emitter.registerEpilogue = isOn("register-epilogue");
  emitter.bulkStores = isOn("bulk-stores");
  emitter.usesAsyncStores = isOn("async-stores");
  if (isEmulated)
    emitter.multiprocessors = options.emulatedMultiprocessors;
  emitter.hasPackedBF16Convert = capabilityOf(options) >= 80;
  emitter.hasF8 = capabilityOf(options) >= 89;
  emitter.hasWgmma = tileMachineOf(options, runs).hasWgmma;
  emitter.usesBulkLoads = tileMachineOf(options, runs).usesBulkLoads;
  emitter.tma16Bit = tileMachineOf(options, runs).tma16Bit;
  emitter.minTmaMacs = tileMachineOf(options, runs).minTmaMacs;
  emitter.prologueLoads = isOn("prologue-loads");
  emitter.splitKTail = isOn("split-k-tail");
  return emitter;
}
