//===- TargetOptions.cpp - What a target means for passes and code ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/TargetOptions.h"

#include "codegen/Ptx.h"
#include "passes/DeviceFacts.h"

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
          !runs || runs->shouldRun("bulk-copies", ""),
          !runs || runs->shouldRun("boxes-of-halves", ""),
          options.target == "emulate" ? 0 : TileMachine().leastBoxed};
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
  emitter.earlySums = capabilityOf(options) >= 90 && isOn("early-sums");
  emitter.sharedBytes = tileMachineOf(options, runs).sharedBytes;
  emitter.clusterBlocks = device::clusterBlocks(capabilityOf(options));
  emitter.sharesSums = emitter.clusterBlocks > 1 && isOn("cluster-sums");
  emitter.squares = isOn("squares");
  emitter.teamSorts = isOn("team-sorts");
  emitter.ordersPoints = isOn("order-points");
  emitter.tilesWindows = isOn("window-tiles");
  emitter.copiesRows = isOn("row-copies");
  emitter.warpRests = isOn("warp-rests");
  emitter.pairRests = isOn("pair-rests");
  emitter.bulkStores = isOn("bulk-stores");
  emitter.countsStores = isOn("counted-stores");
  if (isEmulated)
    emitter.multiprocessors = options.emulatedMultiprocessors;
  emitter.hasBrainPairs = capabilityOf(options) >= 80;
  emitter.hasF8 = capabilityOf(options) >= 89;
  emitter.hasWarpgroups = tileMachineOf(options, runs).hasWarpgroups;
  emitter.copiesInBulk = tileMachineOf(options, runs).copiesInBulk;
  emitter.boxesOfHalves = tileMachineOf(options, runs).boxesOfHalves;
  emitter.leastBoxed = tileMachineOf(options, runs).leastBoxed;
  emitter.firstStages = isOn("first-stages");
  emitter.tailTiles = isOn("tail-tiles");
  return emitter;
}
