//===- AlignAxes.cpp - Splits axes to match those of another statement ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statistics of groups of channels go through the channels as `4*g + e`, what comes before and
// after them as `o`. Over the groups they can be one nest once all of them have the axis g.
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/AlignAxes.h"
#include "passes/fuse/Access.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// The axis of the statement that the subscript is, from 0 on.
static std::optional<unsigned> wholeAxis(const ValueExpr &subscript, ParallelOp statement) {
  auto axis = dyn_cast_or_null<BlockArgument>(subscript.asValue());
  if (!axis || axesOpOf(axis) != statement || lowOf(axis).asConstant() != 0)
    return std::nullopt;
  return axis.getArgNumber();
}

SmallVector<AlignedAxis, 1> tegula::axesToAlign(ParallelOp statement, ParallelOp other,
                                                Prover &prover) {
  SmallVector<AlignedAxis, 1> found;
  SmallVector<Access> theirs = accessesIn(other);
  for (const Access &mine : accessesIn(statement))
    for (const Access &access : theirs) {
      if (mine.tensor != access.tensor || !(mine.writes || access.writes))
        continue;
      for (auto [dim, subscript, digits] : llvm::enumerate(mine.subscripts, access.subscripts)) {
        std::optional<unsigned> axis = subscript ? wholeAxis(*subscript, statement) : std::nullopt;
        if (!axis || !digits ||
            llvm::any_of(found, [&](const AlignedAxis &one) { return one.axis == *axis; }))
          continue;
        ValueExpr extent = highOf(statement.getAxes()[*axis]);
        for (Value digit : digits->operands()) {
          if (axesOpOf(digit) != other || lowOf(digit).asConstant() != 0)
            continue;
          std::optional<IndexExpr> low = weightIn(*digits, digit);
          ValueExpr high = highOf(digit);
          // What costs most comes last.
          if (!low || low->asConstant() == 1 || !high.operands().empty() ||
              !extent.operands().empty() ||
              !prover.proves(Condition::zero(high.expr() * *low - extent.expr())) ||
              !digitOf(*digits, digit, access.op, prover))
            continue;
          // Windows of pooling: points would not be neighbours in memory any more, and what they
          // have inside is too short for neighbours of its own.
          constexpr int64_t shortRow = 8;
          if (dim + 1 == mine.subscripts.size() && low->asConstant() &&
              *low->asConstant() < shortRow)
            return {};
          found.push_back({*axis, high.expr(), *low, nameOf(digit).str()});
          break;
        }
      }
    }
  // From the last one: those before keep their numbers while it is split.
  llvm::sort(found, [](const AlignedAxis &a, const AlignedAxis &b) { return a.axis > b.axis; });
  return found;
}

void tegula::alignAxes(ParallelOp statement, ArrayRef<AlignedAxis> axes, Prover &prover) {
  auto owner = cast<AxesOp>(statement.getOperation());
  for (const AlignedAxis &split : axes) {
    std::string name = getAxisName(owner, split.axis).str();
    BlockArgument high =
        insertAxis(owner, split.axis, {split.highName, ValueExpr(0), ValueExpr(split.high)});
    BlockArgument low =
        insertAxis(owner, split.axis + 1, {name, ValueExpr(0), ValueExpr(split.low)});
    OpBuilder builder(statement);
    replaceAllUsesWithExpr(builder, owner.getAxes()[split.axis + 2],
                           ValueExpr(split.low) * ValueExpr(high) + ValueExpr(low));
    eraseAxis(owner, split.axis + 2);
  }
  // Quotients and remainders of what was one axis are axes now.
  statement->walk([&](IndexedOp op) {
    if (op.getOperation() == statement)
      return;
    AxisScope scope(prover, op);
    foldIndices(op);
    rewriteExprs(op, [&](const ValueExpr &expr) { return scope.simplify(expr); });
  });
}
