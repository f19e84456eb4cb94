//===- ProductReductionLowering.cpp - The launch of a product's reduction -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statement's kernel has been formed and placed by passes (passes/tile): the statement stands
// in its `otherwise`.
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"
#include "strategies/StatementMatches.h"
#include "strategies/lower/StrategyLowering.h"

using namespace llvm;
using namespace tegula;

/// The kernel in tiles that computes the statement; null: passes that form or place it were left
/// out.
static tile::KernelOp placedKernel(tgl::ParallelOp op) {
  auto kernel = dyn_cast<tile::KernelOp>(op->getParentOp());
  return kernel && TileEmitter::canEmit(kernel) && TileEmitter::numBlocks(kernel)
             ? kernel
             : tile::KernelOp();
}

namespace {
class ProductReductionLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &match, const EmitterOptions &options) const override {
    return !options.checked && placedKernel(match.op) ? Coverage::WithGeneral : Coverage::None;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    tile::KernelOp kernel = placedKernel(match.op);
    KernelLowering &lowering = statement.kernel;
    std::string name = lowering.newName() + "_tiles";
    TileEmitter emitter(lowering.module, lowering.options, lowering.code.sites, kernel);
    emitter.emit(statement.op, name, statement.inputs);
    lowering.finish(emitter);
    PlanTiles &tiles = statement.step.tiles;
    IndexExpr blocks = *TileEmitter::numBlocks(kernel);
    tiles.launches = {{name, blocks, unsigned(*kernel.getThreads()),
                       unsigned(*kernel.getSharedBytes()), "rows of a product"}};
    tiles.largestNumber = blocks;
    statement.align(TileEmitter::alignedTensors(kernel));
  }
};
} // namespace

const StrategyLowering &tegula::productReductionLowering() {
  static const ProductReductionLowering instance;
  return instance;
}
