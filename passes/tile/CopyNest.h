//===- CopyNest.h - Loops whose steps copy, wait and multiply -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_COPYNEST_H
#define TEGULA_PASSES_TILE_COPYNEST_H

#include "ir/tile/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace tegula {

/// A loop whose steps are `barrier`, copies, `commit`, `await`, `barrier`, products and waits for
/// them, and loops around it that have nothing else to do with shared memory: copies may be ahead
/// of all of their steps, which are one sequence. What comes as bytes is unpacked before the
/// products that take it, which one more barrier divides from that.
class CopyNest {
public:
  /// Nothing where the loop is no such.
  static std::optional<CopyNest> around(tile::ForOp inner);

  tile::ForOp outermost() const { return loops.front(); }

  /// Whether products are under way when their step ends.
  bool isAsynchronous() const { return !productWaits.empty(); }
  /// Whether operands are unpacked.
  bool hasUnpacks() const { return !unpacks.empty(); }
  /// Registers of a block that the sums of its products take.
  int64_t accumulators() const;
  /// Bytes of a step's operands.
  int64_t stageBytes() const;
  /// Nothing where data or sizes decide.
  std::optional<int64_t> knownSteps() const;

  static tile::AllocOp allocOf(tile::CopyOp copy) {
    return copy.getTarget().getDefiningOp<tile::AllocOp>();
  }

  llvm::SmallVector<tile::ForOp> loops; ///< outermost first
  llvm::SmallVector<tile::CopyOp> copies;
  /// Before the copies, behind them, where tiles are unpacked.
  llvm::SmallVector<tile::BarrierOp> barriers;
  tile::CommitOp commit;
  tile::AwaitOp await;
  llvm::SmallVector<tile::UnpackOp> unpacks;
  llvm::SmallVector<tile::AwaitProductsOp> productWaits; ///< one behind each product
  llvm::SetVector<mlir::Operation *>
      needed; ///< ops of the loops that copies use, definitions first

  /// Makes a step's products take their operands from `stageOf` a copy, and wait for the product of
  /// the step before where they are asynchronous; without that step's barriers, copies and waits.
  /// `behindProducts`: ops between the step's products and the wait for those before.
  void takeStages(llvm::function_ref<mlir::Value(tile::CopyOp)> stageOf,
                  llvm::function_ref<void(mlir::OpBuilder &)> behindProducts);

private:
  bool matchStep(tile::ForOp inner);
  bool isAlone() const;
  bool canGoAhead();
  bool isNeeded(mlir::Value value);
};

} // namespace tegula

#endif // TEGULA_PASSES_TILE_COPYNEST_H
