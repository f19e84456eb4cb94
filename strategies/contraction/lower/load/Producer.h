//===- Producer.h - What producer warps do for a tile -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What producer warps do for a tile.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PRODUCER_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PRODUCER_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/BulkLoad.h"
#include "strategies/contraction/lower/load/PrepackedLoads.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Loads the stages of a tile: copies them, or finds scales and splits elements.
class Producer : public ContractionCode {
public:
  explicit Producer(ContractionContext &context)
      : ContractionCode(context), precision(context), wgmmaLoads(context), stageRings(context),
        bulkLoads(context), prepackedLoads(context), indices(context) {}
  void produce(const WgmmaProduct &product);
  void storeShortTile(const WgmmaProduct &product, unsigned count, llvm::ArrayRef<Value *> loaded,
                      llvm::function_ref<void(unsigned number)> afterStage);
  void produceShortTile(const WgmmaProduct &product, unsigned count,
                        llvm::ArrayRef<Value *> loaded);
  llvm::SmallVector<Value *> noCopies();
  llvm::SmallVector<Value *> produceCopies(const WgmmaProduct &product,
                                           llvm::ArrayRef<Value *> before);
  void endCopies(const WgmmaProduct &product, Value *total);
  /// All products of a block that ends with its tile.
  void produceAll();

private:
  void forThreadLines(const WgmmaProduct &product, llvm::function_ref<void(Value *line)> body);
  llvm::SmallVector<Value *> findScales(const WgmmaProduct &product,
                                        llvm::ArrayRef<Value *> chunks);

  SplitPrecision precision;
  WgmmaLoads wgmmaLoads;
  StageRings stageRings;
  BulkLoads bulkLoads;
  PrepackedLoads prepackedLoads;
  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PRODUCER_H
