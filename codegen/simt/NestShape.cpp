//===- NestShape.cpp - Shapes of nests, and who does them -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/NestShape.h"

#include "codegen/common/AccessShape.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/RegisterTiles.h"
#include "passes/analysis/ShortRows.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

void tegula::splitAxes(tgl::AxesOp op, SmallVectorImpl<unsigned> &box,
                       SmallVectorImpl<unsigned> &rest) {
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
    bool independent = true;
    tgl::AxisRange range = getAxisRange(op, axis);
    for (mlir::Value own : op.getAxes())
      independent &= !range.lo.uses(own) && !range.hi.uses(own);
    (independent ? box : rest).push_back(axis);
  }
}

bool tegula::hasRowShape(tgl::AxesOp nest) {
  SmallVector<unsigned> box, rest;
  splitAxes(nest, box, rest);
  return rest.empty() && tgl::knownPoints(nest);
}

bool tegula::isSameRow(Emitter &e, tgl::AxesOp first, tgl::AxesOp second) {
  if (first.getAxes().size() != second.getAxes().size() || !hasRowShape(second))
    return false;
  for (unsigned axis = 0; axis < first.getAxes().size(); ++axis)
    if ((e.lowOf(first, axis) - e.lowOf(second, axis)).asConstant() != 0 ||
        (e.highOf(first, axis) - e.highOf(second, axis)).asConstant() != 0)
      return false;
  std::optional<LaneChoice> lane = e.chooseLanes(first), other = e.chooseLanes(second);
  return lane.has_value() == other.has_value() &&
         (!lane || (lane->axis == other->axis && lane->width == other->width));
}

bool tegula::isSameElement(tgl::ReadOp first, tgl::AxesOp firstNest, tgl::ReadOp second,
                           tgl::AxesOp secondNest) {
  if (first.getTensor() != second.getTensor())
    return false;
  auto own = [](tgl::AxesOp nest, mlir::Value value) -> int {
    auto argument = dyn_cast<mlir::BlockArgument>(value);
    return argument && argument.getOwner() == nest.getAxesBlock() ? int(argument.getArgNumber())
                                                                  : -1;
  };
  return all_of_zip(
      first.getSubscriptExprs(), second.getSubscriptExprs(),
      [&](const ValueExpr &left, const ValueExpr &right) {
        return left.expr() == right.expr() &&
               all_of_zip(left.operands(), right.operands(), [&](mlir::Value a, mlir::Value b) {
                 int axis = own(firstNest, a);
                 return axis == own(secondNest, b) && (axis >= 0 || a == b);
               });
      });
}

bool tegula::runsAlongPoints(tgl::ParallelOp op) {
  return LaneChoices::prefersOwnAxes(cast<tgl::AxesOp>(op.getOperation()),
                                     DeviceEmitter::accessBytes);
}

bool tegula::isLarge(tgl::TempOp temp) {
  std::optional<int64_t> bytes = tensorBytes(temp.getTensor().getType(), 16).asConstant();
  return !bytes || *bytes > maxThreadBytes;
}

SmallVector<tgl::AxesOp> tegula::nestsThatOwn(tgl::TempOp temp) {
  SmallVector<tgl::AxesOp> nests;
  for (mlir::Operation *user : temp->getUsers()) {
    SmallVector<ValueExpr> place;
    auto read = dyn_cast<tgl::ReadOp>(user);
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (read && !read.getFill() && !read.getChecked() && read.getExactExprs().empty())
      place = read.getSubscriptExprs();
    else if (write && !write.getCombine() && !write.getChecked())
      place = write.getSubscriptExprs();
    else
      return {};
    // A nest of one axis that the team deals out, in steps of loops at most.
    auto nest = dyn_cast<tgl::AxesOp>(user->getParentOp());
    auto parallel = dyn_cast<tgl::ParallelOp>(user->getParentOp());
    if (!nest || nest.getAxes().size() != 1 || nest->hasAttr(pointTileAttrName) ||
        (parallel && (runsSerially(parallel) || dealsToParts(parallel))))
      return {};
    mlir::Operation *around = nest->getParentOp();
    while (isa<tgl::ForOp>(around))
      around = around->getParentOp();
    tgl::AxisRange range = getAxisRange(nest, 0);
    auto owner = temp->getParentOfType<tgl::ParallelOp>();
    bool isWhole = around == owner &&
                   (!around->getParentOfType<tgl::ParallelOp>() || dealsToParts(owner)) &&
                   range.lo.asConstant() == 0 && range.hi.asConstant() &&
                   (nests.empty() || range.hi == getAxisRange(nests.front(), 0).hi);
    if (!isWhole || elementOffset(temp.getTensor().getType(), place).asValue() != nest.getAxes()[0])
      return {};
    nests.push_back(nest);
  }
  return temp.getTensor().getType().getElementType().isInteger(4) ? SmallVector<tgl::AxesOp>()
                                                                  : nests;
}

bool tegula::dealsToParts(tgl::ParallelOp nest) {
  // All threads of the team come to what stands directly in the statement.
  auto statement = dyn_cast<tgl::ParallelOp>(nest->getParentOp());
  return statement && !nest->hasAttr(pointTileAttrName) &&
         !statement->getParentOfType<tgl::AxesOp>() &&
         !statement->getParentOfType<tgl::TilesOp>() &&
         hasRowShape(cast<tgl::AxesOp>(nest.getOperation())) &&
         *tgl::knownPoints(cast<tgl::AxesOp>(nest.getOperation())) > 0 && reducesShortRows(nest);
}

unsigned tegula::threadsOfPart(tgl::ParallelOp nest, unsigned team,
                               function_ref<std::optional<LaneChoice>(tgl::AxesOp)> laneOf) {
  constexpr unsigned least = 2; // that are no single threads
  int64_t vectors = least;
  for (mlir::Operation &nested : nest.getBody().front())
    if (auto inner = dyn_cast<tgl::AxesOp>(nested)) {
      std::optional<LaneChoice> lane = laneOf(inner);
      int64_t width = lane ? lane->width : 1;
      vectors = std::max<int64_t>(vectors, divideCeil(*tgl::knownPoints(inner), width));
    }
  return PowerOf2Ceil(std::min<int64_t>(vectors, std::min(team, DeviceEmitter::warp)));
}

bool tegula::runsSerially(tgl::ParallelOp nest) {
  if (dealsToParts(nest) || nest->hasAttr(pointTileAttrName))
    return false;
  // Terms of a row for each point from where on it is worth while that threads come together for
  // it.
  constexpr int64_t termsForPoint = 32, shortRow = 256;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(nest.getOperation()));
  int64_t terms = 0, inside = 0, nested = 0;
  bool isPlain = true, hasTemps = false, hasLarge = false;
  for (tgl::AxisRange &range : tgl::getAxisRanges(cast<tgl::AxesOp>(nest.getOperation())))
    isPlain &= range.lo.operands().empty() && range.hi.operands().empty();
  nest.getBody().walk([&](mlir::Operation *op) {
    isPlain &= !isa<tgl::ForOp, tgl::TilesOp, tgl::SortOp>(op);
    if (auto temp = dyn_cast<tgl::TempOp>(op)) {
      hasTemps = true;
      hasLarge |= isLarge(temp);
    }
    if (op->getParentOp() != nest || !isa<tgl::ReduceOp, tgl::ParallelOp>(op))
      return;
    std::optional<int64_t> own = tgl::knownPoints(cast<tgl::AxesOp>(op));
    inside = std::max(inside, own.value_or(0));
    if (isa<tgl::ParallelOp>(op))
      nested = std::max(nested, own.value_or(0));
    auto reduce = dyn_cast<tgl::ReduceOp>(op);
    if (reduce && own && runsAlongRows(reduce))
      terms = std::max(terms, *own);
  });
  if (!isPlain || !points || *points <= 0)
    return false;
  // A thread alone would walk through a part of memory of its own for each point, far from its
  // neighbours'.
  if (hasLarge)
    return inside >= shortRow;
  // Of nests inside all threads take the points, where the nest around has too few for them.
  if (!hasTemps && nested >= shortRow && *points < nested)
    return true;
  return !hasTemps && terms >= shortRow && *points <= terms / termsForPoint;
}
