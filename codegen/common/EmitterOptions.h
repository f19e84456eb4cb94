//===- EmitterOptions.h - What steers the emission of code --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the target and the switches of the command line ask of emitters.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_EMITTEROPTIONS_H
#define TEGULA_CODEGEN_COMMON_EMITTEROPTIONS_H

#include "target/TargetInfo.h"
#include <string>

namespace tegula {

struct EmitterOptions {
  TargetInfo target = TargetInfo::host();
  /// Bytes of a vector register; 0: no vectors (device code).
  unsigned vectorBytes = 0;
  /// Vectors only along axes that are known to be so many of them, without a rest.
  bool wholeVectors = false;
  /// Who sees atomic operations at once: all (empty), or a scope of the target's by name.
  std::string atomicScope;
  /// Alignment of a kernel's tensors in bytes; 0: that of their elements.
  unsigned tensorAlignment = 0;
  /// A launch may start while the one before it in the same call still runs (sm_90): it waits for
  /// it itself.
  bool dependentLaunches = false;
  /// The split-K launch that combines partial sums starts early and waits (programmatic dependent
  /// launch, sm_90).
  bool earlyCombine = false;
  /// Blocks of a split tile reduce in a cluster, if clusters fit.
  bool clusterReduce = false;
  /// Threads transpose tiles in registers if tensors are in different orders.
  bool transposeTiles = true;
  bool raggedLanes = true;
  bool segmentedCombines = true;
  /// Teams of threads sort short rows, and find the first few elements of any, in registers.
  bool registerSorts = true;
  /// Blocks are rasterised so that points that read the same elements run together.
  bool rasterizes = true;
  /// Threads take tiles of points whose windows share elements.
  bool windowTiles = true;
  /// Threads of a team keep states that each uses alone in registers.
  bool stateRegisters = true;
  /// Blocks of a cluster send by st.async, whose bytes an mbarrier counts.
  bool usesAsyncStores = true;
  /// Consumers load the first stages while a producer makes TMA descriptors.
  bool prologueLoads = true;
  /// Persistent blocks split the last partial wave over K, if the tile says so.
  bool splitKTail = true;
  /// The next row is prefetched to shared memory.
  bool prefetchesRows = true;
  /// Each warp runs the epilogue for its own accumulators, through shared memory or in registers.
  bool warpEpilogue = true, registerEpilogue = true;
  /// The epilogue stores by cp.async.bulk.
  bool bulkStores = true;
  /// Verify every access, not only those that data decides.
  bool checked = false;
  /// Verify what is proved too, in the code as it always is: an access that leaves its tensor is a
  /// defect of the compiler, and is reported as one.
  bool evenProved = false;
  /// Device code tells the line of the program of each instruction.
  bool lineTables = false;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_EMITTEROPTIONS_H
