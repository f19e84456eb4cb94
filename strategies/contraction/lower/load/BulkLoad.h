//===- BulkLoad.h - Loads operands by cp.async.bulk -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads operands by cp.async.bulk.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_BULKLOAD_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_BULKLOAD_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/PrepackedLoads.h"
#include "strategies/contraction/lower/load/PrologueLoads.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/TmaDescriptors.h"

namespace tegula {

/// Loads stages by bulk copies or TMA, which one thread issues.
class BulkLoads : public ContractionCode {
public:
  explicit BulkLoads(ContractionContext &context)
      : ContractionCode(context), prologue(context), stageRings(context), indices(context),
        prepackedLoads(context), tmaDescriptors(context) {}
  void produceBulkLoads(const WgmmaProduct &product);

private:
  void loadBulk(Value *to, Value *from, unsigned bytes, Value *barrier);

  PrologueLoads prologue;
  StageRings stageRings;
  TileIndices indices;
  PrepackedLoads prepackedLoads;
  TmaDescriptors tmaDescriptors;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_BULKLOAD_H
