//===- ContractionStrategy.h - Strategy `contraction` -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTIONSTRATEGY_H
#define TEGULA_STRATEGIES_CONTRACTIONSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/contraction/plan/TensorTile.h"

namespace tegula {

/// Matrix products, and the tile in which a block computes them on tensor cores.
struct ContractionMatch final : StatementMatch {
  ContractionMatch(tgl::ParallelOp op, TensorProduct product)
      : StatementMatch(contractionStrategy(), op), product(std::move(product)) {}

  TensorProduct product;
  llvm::SmallVector<RankedTile> ranked; ///< all tiles that the statement can have
  TensorTile tile;

  mlir::Attribute attribute() const override {
    return tile.toAttribute(tgl::ParallelOp(op).getContext());
  }
  static bool classof(const StatementMatch *match) {
    return &match->strategy == &contractionStrategy();
  }
};

/// The statement's tile that agrees with the settings: with the name `wanted` where there is such
/// (and what it says after colons of stages and raster, `128x128/1:stages=3`, as far as that fits),
/// else the fastest by the model. Where none agrees the nearest by the settings; nothing where
/// another strategy is to run it.
Matched<TensorTile> chooseTile(tgl::ParallelOp op, llvm::ArrayRef<ScheduleSetting> settings,
                               const TargetInfo &machine, llvm::StringRef wanted);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTIONSTRATEGY_H
