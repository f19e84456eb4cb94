//===- AccuracyCheck.h - Flags inaccurate sums of split-pr ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flags inaccurate sums of split-precision products.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_ACCURACYCHECK_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_ACCURACYCHECK_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"
#include <array>

namespace tegula {

/// Flags accumulators that may be inaccurate, and recomputes single ones.
class AccuracyCheck : public ContractionCode {
public:
  explicit AccuracyCheck(ContractionContext &context)
      : ContractionCode(context), precision(context), wgmmaLoads(context), indices(context) {}
  Value *isAnyNotFinite(llvm::ArrayRef<Value *> accumulators, Value *orElse = nullptr,
                        bool flagsPerThread = false);
  Value *isAny(Value *own);
  AccuracyFlags flagInaccurate(const WgmmaProduct &product, llvm::ArrayRef<Value *> accumulators);
  void recomputeFlagged(const WgmmaProduct &product, const AccuracyFlags &flags, unsigned base);

private:
  /// Magnitudes of a thread's accumulators, as i16 keys in which 0 is the largest: the smallest of
  /// all, of each four, and of neighbourhoods (by their largest element), and the largest of all.
  struct AccumulatorSizes {
    Value *least, *minOfNeighbourhoods, *largest;
    llvm::SmallVector<Value *> ofFours;
  };
  Value *smallestSum(const WgmmaProduct &product);
  Value *hasWideLine(const WgmmaProduct &product, TileCoord place, unsigned numAccumulators);
  std::array<Value *, 2> masksOfRows(Value *row);
  AccumulatorSizes sizesOf(llvm::ArrayRef<Value *> accumulators, TileCoord first);
  std::array<Value *, 4> recomputeFour(WgmmaProduct product, llvm::ArrayRef<Value *> rows,
                                       llvm::ArrayRef<Value *> columns);

  SplitPrecision precision;
  WgmmaLoads wgmmaLoads;
  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_ACCURACYCHECK_H
