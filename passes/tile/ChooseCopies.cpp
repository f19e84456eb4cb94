//===- ChooseCopies.cpp - Asynchronous copies of operands -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_CHOOSECOPIESPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

/// Whether the ops before the read, which find its place, are the same along a line.
static bool areOfLines(Block &point, tgl::ReadOp read, BlockArgument along) {
  llvm::SmallPtrSet<Value, 8> varies{along};
  for (Operation &op : point.without_terminator()) {
    bool isLast = &op == read;
    if (op.getNumRegions() || isLast != (op.getNextNode() == point.getTerminator()))
      return false;
    for (Value operand : op.getOperands())
      if (varies.contains(operand)) {
        if (isLast && operand != along)
          return false;
        varies.insert_range(op.getResults());
      }
  }
  return !read.getGuard() || !varies.contains(read.getGuard());
}

/// Whether 16 bytes of a line are neighbours in memory, begin at a multiple of that, and exist
/// together.
static bool canCopyVectors(tile::CopyOp copy) {
  Block &point = copy.getBody().front();
  auto read = copy.getYielded().getDefiningOp<tgl::ReadOp>();
  if (!read || read->getBlock() != &point || read.getFill() || !read.getExactExprs().empty())
    return false;
  tile::SharedType type = copy.getTarget().getType();
  if (read.getTensorType().getElementType() != type.getElementType())
    return false;
  int64_t vector = 128 / type.getElementType().getIntOrFloatBitWidth();
  unsigned along = type.getKMajor() ? 1 : 0;
  if (!areOfLines(point, read, point.getArgument(along)))
    return false;
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  if (stepAlong(offset, point.getArgument(along)) != 1)
    return false;
  auto span = copy.getSpans()[along].getDefiningOp<tile::SpanOp>(),
       lines = copy.getSpans()[1 - along].getDefiningOp<tile::SpanOp>();
  if (!span || !lines || !tile::isMultipleEverywhere(span.getEndExpr(), vector) ||
      !tile::isMultipleEverywhere(span.getBaseExpr(), vector))
    return false;
  offset = offset.substitute(point.getArgument(along), ValueExpr(int64_t(0)));
  return tile::isMultipleEverywhere(offset, vector);
}

/// Commits what the copies before a barrier have started, and waits for it.
static void awaitBefore(tile::BarrierOp barrier) {
  OpBuilder builder(barrier);
  Value token =
      tile::CommitOp::create(builder, barrier.getLoc(), tile::TokenType::get(builder.getContext()));
  tile::AwaitOp::create(builder, barrier.getLoc(), token);
}

namespace {
struct ChooseCopiesPass : Counted<tegula::impl::ChooseCopiesPassBase<ChooseCopiesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    unsigned asynchronous = 0;
    SmallVector<Block *> blocks;
    getOperation().walk([&](tile::CopyOp copy) {
      if (blocks.empty() || blocks.back() != copy->getBlock())
        blocks.push_back(copy->getBlock());
    });
    for (Block *block : blocks) {
      bool isPending = false;
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        if (auto copy = dyn_cast<tile::CopyOp>(op); copy && canCopyVectors(copy)) {
          copy.setKind(tile::CopyKind::CpAsync);
          isPending = true;
          ++asynchronous;
        } else if (auto barrier = dyn_cast<tile::BarrierOp>(op); barrier && isPending) {
          awaitBefore(barrier);
          isPending = false;
        }
      }
    }
    count("asynchronous copies", asynchronous);
  }
};
} // namespace
