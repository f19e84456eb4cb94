//===- EpiloguePlan.h - What the epilogue of a tile has to do ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sorts the operations of an epilogue by when they run, and decides which threads run it: all of
// the block, each warp for its own accumulators, or each lane in registers.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_EPILOGUEPLAN_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_EPILOGUEPLAN_H

#include "codegen/common/Emitter.h"
#include "strategies/contraction/plan/TileMemory.h"
#include "strategies/contraction/plan/TileReductions.h"

namespace tegula {

class EpiloguePlan {
public:
  /// `paddedColumns`: the padded extents of the last axes of the columns; none: they are not
  /// padded.
  EpiloguePlan(const ContractionPlan &plan, const TensorTile &tile, const TileMemory &memory,
               const EmitterOptions &options, llvm::ArrayRef<int64_t> paddedColumns);

  /// Number of rows that interleave in the result, as the phases of a transposed convolution do;
  /// else 1.
  static unsigned interleavedRows(const ContractionPlan &plan);
  /// Whether the warp epilogue applies: all writes are contiguous along columns, and nothing
  /// written is read.
  bool fitsWarpEpilogue() const;
  tgl::WriteOp lineWrite() const;
  tgl::WriteOp registerWrite() const;
  mlir::arith::CmpIOp guardOfRows() const;

  /// A write of partial results, with the operations that compute its value.
  struct PartialWrite {
    tgl::WriteOp write;
    llvm::SmallVector<mlir::Operation *> made;
    TileReductions lines;
  };

  // The operations of the epilogue, in order: recomputation of non-finite sums, operations that
  // need no accumulator, pure operations on accumulators, and operations with effects or that wait
  // for those.
  llvm::SmallVector<mlir::Operation *> recomputeOps, early, values, effects;
  mlir::Value
      recomputed; ///< the value that `effects` uses instead of the sum, if sums are recomputed
  bool readsElements = false; ///< whether `early` reads values that vary along rows and columns
  llvm::SmallVector<PartialWrite, 0> partials;
  mlir::Operation *misfit = nullptr; ///< a write of partial results of another tile: our defect

  /// Columns of a lane, and rows and lanes of a warp, in the warp epilogue.
  static constexpr unsigned laneColumns = 4, warpRows = 16, warpThreads = 32;
  /// Columns that pass through a warp's lines at a time in the register epilogue, and columns that
  /// a lane stores.
  static constexpr unsigned lineColumns = 64, storedColumns = 8;
  /// Bytes of such a line: what lanes store and load at a time is in all banks.
  static constexpr unsigned linePitch = 2 * lineColumns + 16;

private:
  void findRecomputeOps();
  void takePartialWrites(llvm::ArrayRef<int64_t> paddedColumns);
  void separateEffects();
  bool writesVectors(tgl::WriteOp write) const;
  bool areAligned(tgl::WriteOp write, int64_t count) const;
  bool areRuns(tgl::WriteOp write, int64_t count) const;
  tgl::WriteOp onlyWrite() const;

  const ContractionPlan &plan;
  const TensorTile &tile;
  const TileMemory &memory;
  const EmitterOptions &options;
  bool isPadded;
  tgl::AxesOp axes;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_EPILOGUEPLAN_H
