//===- TileKernelLowering.cpp - Launches of the tile dialect ------------------ -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/lower/TileKernelLowering.h"

#include "codegen/tile/TileEmitter.h"

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

StrategyLowering::Coverage TileKernelLowering::coverage(const StatementMatch &match,
                                                        const EmitterOptions &options) const {
  return !options.checked && placedKernel(match.op) ? Coverage::WithGeneral : Coverage::None;
}

void TileKernelLowering::lower(StatementLowering &statement, const StatementMatch &match) const {
  tile::KernelOp kernel = placedKernel(match.op);
  KernelLowering &lowering = statement.kernel;
  std::string name = lowering.newName() + "_tiles";
  TileEmitter emitter(lowering.module, lowering.options, lowering.code.sites, kernel);
  emitter.emit(statement.op, name, statement.inputs);
  lowering.finish(emitter);
  PlanTiles &tiles = statement.step.tiles;
  IndexExpr blocks = *TileEmitter::numBlocks(kernel);
  tiles.launches = {{name, blocks, unsigned(*kernel.getThreads()),
                     unsigned(*kernel.getSharedBytes()), what.str()}};
  tiles.workspaceBytes = blocks * TileRoles::workspaceOfBlock(kernel);
  tiles.largestNumber = blocks;
  statement.align(TileEmitter::alignedTensors(kernel));
}
