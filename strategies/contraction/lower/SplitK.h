//===- SplitK.h - Split-K and its reductions --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Split-K and its reductions.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_SPLITK_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_SPLITK_H

#include "strategies/contraction/lower/Epilogue.h"
#include "strategies/contraction/lower/WarpSpecialization.h"
#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// The K slice of a block, and how the slices of a tile are added up.
class SplitK : public ContractionCode {
public:
  explicit SplitK(ContractionContext &context)
      : ContractionCode(context), indices(context), roles(context) {}
  /// Emits the launch that adds up partial sums and runs the epilogue.
  void emitCombine();
  /// Sets the block's tile and its part of the sum.
  void setSplit();
  void startClusterReduce();
  void clusterReduce();
  void storePartials();

private:
  void forThreadElements(llvm::function_ref<void(unsigned number, Value *row, Value *column)> body);
  Value *partialAddress(Value *blockNumber, unsigned product, Value *first, unsigned number);
  void forFoursOfPartials(
      llvm::function_ref<void(unsigned product, Value *row, Value *column, Value *element)> body);
  Value *receivedAddress(unsigned product, Value *slot, Value *element);
  void sendPartials();
  void reducePartials();

  TileIndices indices;
  WarpSpecialization roles;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_SPLITK_H
