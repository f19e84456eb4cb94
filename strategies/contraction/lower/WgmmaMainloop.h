//===- WgmmaMainloop.h - Mainloop of warpgroup MMAs (wgmma ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mainloop of warpgroup MMAs (wgmma).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_WGMMAMAINLOOP_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_WGMMAMAINLOOP_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Multiplies stages by wgmma; the mainloop of blocks without producer warps.
class WgmmaMainloop : public ContractionCode {
public:
  explicit WgmmaMainloop(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context), indices(context), stageRings(context) {}
  void storeWgmmaAccumulators(llvm::ArrayRef<Value *> accumulators, unsigned base);
  /// Issues the MMAs of one stage, for all columns of the warpgroup or for `columns` from
  /// `firstColumn` on.
  Accumulators multiplyTerms(const WgmmaProduct &product, Value *stage,
                             llvm::ArrayRef<Value *> accumulators);
  /// Calls `multiply` for each pair of terms whose product is not negligible.
  static void forTermPairs(const WgmmaProduct &product,
                           llvm::function_ref<void(unsigned aTerm, unsigned bTerm)> multiply);
  Accumulators multiplyTerms(const WgmmaProduct &product, Value *stage,
                             llvm::ArrayRef<Value *> accumulators, unsigned firstColumn,
                             unsigned columns);
  Accumulators wgmmaMainloop(const WgmmaProduct &product);
  Accumulators wgmmaMainloopOfTerms(const WgmmaProduct &product);

private:
  WgmmaLoads wgmmaLoads;
  TileIndices indices;
  StageRings stageRings;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_WGMMAMAINLOOP_H
