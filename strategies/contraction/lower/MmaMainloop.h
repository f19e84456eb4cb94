//===- MmaMainloop.h - Mainloop of warp-level MMAs (mma.sy ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mainloop of warp-level MMAs (mma.sync).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_MMAMAINLOOP_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_MMAMAINLOOP_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/CpAsyncLoad.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Multiplies stages by mma.sync; the mainloop, fast or exact.
class MmaMainloop : public ContractionCode {
public:
  explicit MmaMainloop(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context), indices(context), mmaLoads(context),
        rowBlocks(tile.rows / tile.warpRows / 16),
        columnBlocks(tile.columns / tile.warpColumns / 16) {}
  MmaProduct makeMmaProduct(unsigned number);
  Accumulators mmaMainloop(MmaProduct &product, Path path);
  void storeAccumulators(llvm::ArrayRef<Value *> accumulators, unsigned base);

private:
  Accumulators multiplyWords(MmaProduct &product, Value *stage, Value *step,
                             llvm::ArrayRef<Value *> partial, Path path);
  Accumulators multiplyStep(MmaProduct &product, Value *number, Value *stage,
                            llvm::ArrayRef<Value *> accumulators, Path path);

  WgmmaLoads wgmmaLoads;
  TileIndices indices;
  MmaLoads mmaLoads;
  unsigned rowBlocks, columnBlocks; ///< fragments of 16 in the tile of a warp
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_MMAMAINLOOP_H
