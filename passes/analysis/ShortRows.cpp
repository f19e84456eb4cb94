//===- ShortRows.cpp - Nests that reduce a short row at each point --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/ShortRows.h"

#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Rows that fill no vectors of a few threads; of which no more is made than their sum, which a
/// thread has as soon; rows that a block takes as well.
static constexpr int64_t minRow = 16, minSum = 32, maxRow = 512;

/// Whether a point of the nest holds no regions, and bounds use none of its own axes.
static bool isPlainBox(AxesOp nest) {
  for (const AxisRange &range : getAxisRanges(nest))
    for (Value own : nest.getAxes())
      if (range.lo.uses(own) || range.hi.uses(own))
        return false;
  return llvm::none_of(*nest.getAxesBlock(),
                       [](Operation &op) { return op.getNumRegions() || isa<TempOp, SortOp>(op); });
}

/// Whether a temporary of a point holds an element for each point of nests directly inside, which
/// all have the same points: each reads only what it has written.
static bool isKeptByPoints(TempOp temp, ParallelOp nest) {
  constexpr int64_t mostKept = 256;
  std::optional<int64_t> elements;
  bool isRead = false;
  for (Operation *user : temp->getUsers()) {
    auto read = dyn_cast<ReadOp>(user);
    auto write = dyn_cast<WriteOp>(user);
    if (read ? read.getFill() || read.getGuard() || read.getChecked() ||
                   !read.getExactExprs().empty()
             : !write || write.getCombine() || write.getGuard() || write.getChecked())
      return false;
    isRead |= bool(read);
    auto inner = dyn_cast<AxesOp>(user->getParentOp());
    if (!inner || inner->getParentOp() != nest || inner.getAxes().size() != 1)
      return false;
    AxisRange range = getAxisRange(inner, 0);
    std::optional<int64_t> points = range.hi.asConstant();
    if (range.lo.asConstant() != 0 || !points || *points > mostKept ||
        (elements && points != elements))
      return false;
    elements = points;
    SmallVector<ValueExpr> place = read ? read.getSubscriptExprs() : write.getSubscriptExprs();
    if (elementOffset(temp.getTensor().getType(), place).asValue() != inner.getAxes()[0])
      return false;
  }
  return isRead && !temp.getTensor().getType().getElementType().isInteger(4);
}

/// Whether a read moves by one element along an axis of the reduction.
static bool readsNeighbours(ReduceOp reduce) {
  return llvm::any_of(reduce.getBody().getOps<ReadOp>(), [&](ReadOp read) {
    return llvm::any_of(reduce.getAxes(), [&](Value axis) {
      return strideAlong(read.getTensorType(), read.getSubscriptExprs(), axis) == 1;
    });
  });
}

bool tegula::reducesShortRows(ParallelOp nest) {
  bool hasRow = false;
  int64_t least = nest.getBody().getOps<ParallelOp>().empty() ? minSum : minRow;
  for (Operation &op : nest.getBody().front()) {
    auto temp = dyn_cast<TempOp>(op);
    if (isa<SortOp>(op) || (temp && !isKeptByPoints(temp, nest)))
      return false;
    if (!op.getNumRegions())
      continue;
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce && !isa<ParallelOp>(op))
      return false;
    auto inner = cast<AxesOp>(op);
    std::optional<int64_t> points = knownPoints(inner);
    if (!points || *points < 1 || *points > maxRow || !isPlainBox(inner))
      return false;
    hasRow |= reduce && *points >= least && runsAlongRows(reduce) && readsNeighbours(reduce);
  }
  return hasRow;
}

int64_t tegula::longestInside(ParallelOp nest) {
  int64_t longest = 0;
  for (Operation &op : nest.getBody().front())
    if (auto inner = dyn_cast<AxesOp>(op)) {
      std::optional<int64_t> points = knownPoints(inner);
      if (!points)
        return 0;
      longest = std::max(longest, *points);
    }
  return longest;
}
