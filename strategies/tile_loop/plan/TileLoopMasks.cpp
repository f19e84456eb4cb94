//===- TileLoopMasks.cpp - Masks that data decides ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/plan/TileLoopMasks.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "strategies/tile_loop/plan/TileLoopBounds.h"

using namespace llvm;
using namespace tegula;
namespace arith = mlir::arith;

MaskSide MaskAnalysis::sideOf(mlir::Value value) const {
  tgl::AxisSet axes = tgl::axesOf(value);
  bool hasRow = axes.contains(row), hasColumn = axes.contains(column);
  return hasRow && hasColumn ? MaskSide::Both
         : hasRow            ? MaskSide::Row
         : hasColumn         ? MaskSide::Column
                             : MaskSide::Block;
}

SmallVector<mlir::Value, 2> MaskAnalysis::partsOf(mlir::Value condition) {
  mlir::Operation *op = condition.getDefiningOp();
  if (isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op))
    return {op->getOperand(0), op->getOperand(1)};
  if (isa_and_nonnull<arith::XOrIOp>(op) && matchPattern(op->getOperand(1), mlir::m_One()))
    return {op->getOperand(0)};
  return {};
}

MaskLeaf MaskAnalysis::leafOf(mlir::Value condition) const {
  if (!sliceOf(condition))
    return MaskLeaf::Unknown;
  if (sideOf(condition) != MaskSide::Both)
    return MaskLeaf::Truth;
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return MaskLeaf::Unknown;
  auto type = dyn_cast<mlir::IntegerType>(compare.getLhs().getType());
  MaskSide lhs = sideOf(compare.getLhs()), rhs = sideOf(compare.getRhs());
  bool isApart = (lhs == MaskSide::Row && rhs == MaskSide::Column) ||
                 (lhs == MaskSide::Column && rhs == MaskSide::Row);
  return isApart && type && type.getWidth() <= 64 ? MaskLeaf::Compared : MaskLeaf::Unknown;
}

bool MaskAnalysis::addSlice(mlir::Value value, SetVector<mlir::Operation *> &slice) const {
  mlir::Operation *def = value.getDefiningOp();
  if (!def || !op->isProperAncestor(def) || slice.contains(def))
    return true;
  auto read = dyn_cast<tgl::ReadOp>(def);
  auto temp = read ? read.getTensor().getDefiningOp<tgl::TempOp>() : tgl::TempOp();
  if (read ? read.getChecked() || (temp && op->isProperAncestor(temp))
           : def->getNumRegions() != 0 || !mlir::isMemoryEffectFree(def))
    return false;
  if (!all_of(def->getOperands(), [&](mlir::Value used) { return addSlice(used, slice); }))
    return false;
  slice.insert(def);
  return true;
}

std::optional<SetVector<mlir::Operation *>> MaskAnalysis::sliceOf(mlir::Value value) const {
  SetVector<mlir::Operation *> slice;
  return addSlice(value, slice) ? std::optional(slice) : std::nullopt;
}

/// Whether a part that the numbers of a block say something about reads data.
static bool isOfData(const MaskAnalysis &analysis, mlir::Value condition) {
  SmallVector<mlir::Value, 2> parts = MaskAnalysis::partsOf(condition);
  if (!parts.empty())
    return any_of(parts, [&](mlir::Value part) { return isOfData(analysis, part); });
  return analysis.leafOf(condition) != MaskLeaf::Unknown &&
         any_of(*analysis.sliceOf(condition),
                [](mlir::Operation *op) { return isa<tgl::ReadOp>(op); });
}

SmallVector<TileLoopPlan::DataMask> tegula::dataMasksOf(const TileLoopPlan &plan) {
  SmallVector<TileLoopPlan::DataMask> masks;
  tgl::AxesOp axes = cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
  tgl::TilesOp tiles = plan.tiles;
  tiles.walk([&](arith::SelectOp select) {
    auto nest = dyn_cast<tgl::ParallelOp>(select->getParentOp());
    if (!nest || nest->getParentOp() != tiles || !select.getCondition().getType().isInteger(1))
      return;
    mlir::BlockArgument column = cast<tgl::AxesOp>(nest.getOperation()).getAxes()[0];
    mlir::Value condition = select.getCondition();
    if (tgl::getAxisRange(cast<tgl::AxesOp>(nest.getOperation()), 0).lo.asConstant() ||
        affineMask(condition, column, axes.getAxes()[plan.row]) ||
        any_of(masks, [&](const auto &mask) { return mask.condition == condition; }))
      return;
    MaskAnalysis analysis(plan, column);
    if (analysis.sliceOf(condition) && isOfData(analysis, condition))
      masks.push_back({condition, column, changesNothingWithout(plan, condition)});
  });
  return masks;
}
