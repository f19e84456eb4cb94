//===- DeviceContraction.h - Matrix products on tensor cores ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits device code for a statement that has a tile (strategies/contraction/plan/TensorTile.h). A
// block computes one tile of the result for each point of the batch axes:
//
//   for each product of the statement         MmaMainloop.cpp, WgmmaMainloop.cpp
//     for each 128 bytes of the K axis
//       wait until this step's tiles of A and B are in shared memory
//       start copying the tiles of a later step
//                                             load/CpAsyncLoad.cpp, load/BulkLoad.cpp,
//                                             load/TmaDescriptors.cpp
//       evaluate elements that cannot be copied, into registers
//       multiply fragments; accumulators are in registers
//       store the evaluated elements          load/SwizzledSharedStore.cpp
//   store the accumulators, run the epilogue  Epilogue.h
//
// An operand may be evaluated at any point, so a convolution is an implicit GEMM. Elements outside
// of an operand are 0 in shared memory.
//
// f32 operands keep their accuracy by split precision: an element is the sum of two TF32 terms
// (3xTF32), or of two f16 terms with a scale for each row and column (load/SplitPrecision.cpp).
// Tensor cores truncate, so accumulators are promoted to f32 registers after each step. A tile with
// inaccurate results is recomputed on an exact path (AccuracyCheck.cpp, CheckedMainloop.cpp).
//
// The numbers that the host needs are block/ContractionNumbers.h's. Each other feature is a class
// of its own, over a shared block/ContractionContext.h:
//
//   WarpSpecialization.h     producer warps load (load/Producer.h), consumer warps multiply
//                            (ConsumerMainloop.h, ByteMainloop.cpp), through load/StageRings.h
//   block/PersistentScheduler.h, PersistentProducer.h, PersistentConsumer.h
//                            persistent blocks compute several tiles
//   SplitK.h                 blocks share a tile's K axis: cluster reduction, or a second launch
//   block/SplitKTail.h       all persistent blocks share the tiles of the last partial wave
//   load/PrologueLoads.h     consumers load the first stages while a producer makes descriptors
//   load/PrepackOperands.h, load/PrepackWindows.h
//                            a launch before splits or reorders the operands
//   load/HaloTile.h, HaloMainloop.h
//                            one copy of an image's halo tile serves all filter taps
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H

#include "strategies/contraction/lower/block/ContractionContext.h"

namespace tegula {

/// Emits the launches of a contraction, a tile for each block.
class DeviceContraction {
public:
  DeviceContraction(Emitter &emitter, const ContractionNumbers &numbers)
      : context(emitter, numbers) {}

  /// Emits a block's work: mainloop and epilogue. With splits it ends with partial sums in
  /// `workspace`.
  void emitTile(llvm::Value *workspace);
  /// Emits the launch that adds up partial sums and runs the epilogue.
  void emitCombine(llvm::Value *workspace);
  void emitPrepack(llvm::Value *workspace);
  void emitTmaDescriptors(llvm::Value *workspace);
  /// The layout of the tile that emitTile emitted, for drawings.
  TileLayout layout(llvm::StringRef function) const;

private:
  ContractionContext context;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H
