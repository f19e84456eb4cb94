//===- RowsInside.cpp - Rows that a nest would have inside ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/RowsInside.h"

#include "passes/analysis/ShortRows.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Elements of a row that a block's registers keep.
static constexpr int64_t keptRow = 32768;

/// The points of axes, where all extents are known.
static std::optional<int64_t> pointsOf(ArrayRef<Value> axes) {
  int64_t points = 1;
  for (Value axis : axes) {
    std::optional<int64_t> extent = (highOf(axis) - lowOf(axis)).asConstant();
    if (!extent || llvm::MulOverflow(points, *extent, points))
      return std::nullopt;
  }
  return points;
}

/// Whether the rows that the statement reduces at the points of `rest` are groups of one row: they
/// lie side by side in memory.
static bool areGroups(ParallelOp statement, ArrayRef<Value> rest) {
  return llvm::any_of(statement.getBody().getOps<ReduceOp>(), [&](ReduceOp reduce) {
    std::optional<int64_t> terms = knownPoints(cast<AxesOp>(reduce.getOperation())),
                           points = pointsOf(rest);
    return terms && points && llvm::any_of(reduce.getBody().getOps<ReadOp>(), [&](ReadOp read) {
             SmallVector<Value> axes(reduce.getAxes().begin(), reduce.getAxes().end());
             axes.append(rest.begin(), rest.end());
             int64_t span = 1;
             for (Value axis : axes) {
               std::optional<int64_t> step =
                   strideAlong(read.getTensorType(), read.getSubscriptExprs(), axis);
               std::optional<int64_t> extent = (highOf(axis) - lowOf(axis)).asConstant();
               if (!step || *step <= 0 || !extent || *extent > keptRow || *step > keptRow)
                 return false;
               span += *step * (*extent - 1);
             }
             return span == *terms * *points;
           });
  });
}

bool tegula::hasSumsInside(ParallelOp statement, ArrayRef<Value> rest) {
  constexpr int64_t shortRow = 32, longRow = 256, termsForPoint = 32, shortColumn = 128,
                    maxFewColumns = 128;
  std::optional<int64_t> points = pointsOf(rest);
  if (!points || rest.empty())
    return false;
  if (reducesShortRows(statement) && *points <= keptRow / longestInside(statement) &&
      areGroups(statement, rest))
    return false;
  return statement
      ->walk([&](ReduceOp reduce) {
        std::optional<int64_t> terms = knownPoints(cast<AxesOp>(reduce.getOperation()));
        bool inTurn = terms && *terms >= longRow && *points <= *terms / termsForPoint;
        if (!terms || inTurn)
          return WalkResult::advance();
        bool walks = runsAlongRows(reduce) ? *terms >= shortRow
                                           : *terms >= shortColumn && *points < maxFewColumns;
        return walks ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool tegula::isBesideRows(ParallelOp statement, ArrayRef<Value> rest, ParallelOp nest) {
  constexpr int64_t shortRow = 128;
  if (rest.size() != 1)
    return false;
  std::optional<int64_t> row = pointsOf(rest);
  bool isAlong = llvm::all_of(statement.getBody().getOps<WriteOp>(), [&](WriteOp write) {
    return strideAlong(write.getTensorType(), write.getSubscriptExprs(), rest[0]) == 1;
  });
  if (!row || *row < shortRow || *row > keptRow || !isAlong)
    return false;
  // Tensors that reductions over such a row read along it.
  llvm::SetVector<Value> ofRow;
  for (Operation &op : nest.getBody().front()) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (op.getNumRegions() && !reduce && !isa<ParallelOp>(op))
      return false;
    if (!reduce || reduce.getAxes().size() != 1 || knownPoints(cast<AxesOp>(op)) != row)
      continue;
    for (ReadOp read : reduce.getBody().getOps<ReadOp>())
      if (strideAlong(read.getTensorType(), read.getSubscriptExprs(), reduce.getAxes()[0]) == 1)
        ofRow.insert(read.getTensor());
  }
  return !ofRow.empty() && llvm::all_of(statement.getBody().getOps<ReadOp>(), [&](ReadOp read) {
    AxisSet varies = axesOf(read.getResult());
    bool isLarge = llvm::all_of(statement.getAxes(), [&](Value axis) {
      return varies.contains(cast<BlockArgument>(axis));
    });
    return !isLarge || (ofRow.contains(read.getTensor()) &&
                        strideAlong(read.getTensorType(), read.getSubscriptExprs(), rest[0]) == 1);
  });
}
