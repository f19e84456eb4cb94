//===- FuseVariances.cpp - Mean and variance in one pass over memory ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/SameValue.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_FUSEVARIANCESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Rows up to this many terms stay in the registers of a block, where the second pass costs no
/// memory traffic.
static constexpr int64_t rowInRegisters = 32768;
/// Columns up to this length are not worth a division for each term.
static constexpr int64_t shortColumn = 64;

static bool isNumber(Value value, int64_t number) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) &&
         constant.getValueAsDouble() == static_cast<double>(number);
}

/// `x` of `(x - mean)^2`, the mean from outside the reduction.
static std::optional<std::pair<Value, Value>> matchSquaredDifference(ReduceOp squares) {
  auto product = squares.getReduced().getDefiningOp<arith::MulFOp>();
  if (!product || product.getLhs() != product.getRhs())
    return std::nullopt;
  auto difference = product.getLhs().getDefiningOp<arith::SubFOp>();
  if (!difference || !squares->isProperAncestor(difference))
    return std::nullopt;
  auto isInside = [&](Value value) {
    return squares.getBody().isAncestor(value.getParentRegion());
  };
  Value lhs = difference.getLhs(), rhs = difference.getRhs();
  if (isInside(lhs) == isInside(rhs))
    return std::nullopt;
  return isInside(lhs) ? std::pair(lhs, rhs) : std::pair(rhs, lhs);
}

/// Whether a tensor that `op` reads is written by an op from `first` on and before it.
static bool changesInBetween(Operation *first, Operation *op) {
  llvm::SetVector<Value> reads = accessesOf(op).reads;
  for (Operation *between = first; between != op; between = between->getNextNode())
    if (llvm::any_of(accessesOf(between).writes,
                     [&](Value tensor) { return reads.contains(tensor); }))
      return true;
  return false;
}

/// What a read gives that follows a write of the same element in the block around it; null: it has
/// to be read.
static Value valueWritten(ReadOp read) {
  Type element = read.getTensorType().getElementType();
  if (read.getFill() || read.getGuard() || !read.getExactExprs().empty() ||
      element != read.getType())
    return Value();
  SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
  for (Operation *place = read; !isa<LaunchOp, KernelOp>(place); place = place->getParentOp()) {
    if (!isa<ReadOp, ReduceOp>(
            place)) // other ops with regions may write before the read, in another round
      return Value();
    for (Operation *op = place->getPrevNode(); op; op = op->getPrevNode()) {
      if (!accessesOf(op).writes.contains(read.getTensor()))
        continue;
      auto write = dyn_cast<WriteOp>(op);
      bool same =
          write && !write.getCombine() && !write.getGuard() &&
          llvm::all_of_zip(write.getSubscriptExprs(), subscripts, [](auto &left, auto &right) {
            return (left - right).asConstant() == 0;
          });
      return same ? write.getValue() : Value();
    }
  }
  return Value();
}

namespace {
struct FuseVariancesPass : Counted<tegula::impl::FuseVariancesPassBase<FuseVariancesPass>> {
  void runOnOperation() override {
    // A mean that a later statement also wants is written before it is used.
    SmallVector<ReadOp> reads;
    getOperation().walk([&](ReadOp read) { reads.push_back(read); });
    for (ReadOp read : reads)
      if (Value value = valueWritten(read)) {
        read.replaceAllUsesWith(value);
        read.erase();
        count("reads forwarded");
      }
    SmallVector<ReduceOp> sums;
    getOperation().walk([&](ReduceOp reduce) {
      if (reduce.getKind() == ReduceKind::Sum && !reduce.getFiltered())
        sums.push_back(reduce);
    });
    for (ReduceOp reduce : sums)
      if (fuse(reduce))
        count("variances fused");
  }

  bool fuse(ReduceOp squares) {
    std::optional<int64_t> terms = knownPoints(cast<AxesOp>(squares.getOperation()));
    if (!terms || *terms <= (runsAlongRows(squares) ? rowInRegisters : shortColumn))
      return false;
    auto matched = matchSquaredDifference(squares);
    if (!matched)
      return false;
    auto [term, mean] = *matched;
    auto quotient = mean.getDefiningOp<arith::DivFOp>();
    if (!quotient || !isNumber(quotient.getRhs(), *terms))
      return false;
    auto sum = quotient.getLhs().getDefiningOp<ReduceOp>();
    if (!sum || sum.getKind() != ReduceKind::Sum || sum.getFiltered() ||
        sum->getBlock() != squares->getBlock() ||
        !sameTerms(sum, sum.getReduced(), squares, term) || changesInBetween(sum, squares))
      return false;

    // squares = var * terms
    OpBuilder builder(squares);
    Location loc = squares.getLoc();
    auto axes = cast<AxesOp>(squares.getOperation());
    auto variance =
        ReduceOp::create(builder, loc, squares.getType(), ReduceKind::Var, axes.getLows(),
                         axes.getHighs(), axes.getIndices(), axes.getNames().value_or(ArrayAttr()),
                         /*unbiased=*/false, /*filtered=*/false, /*mapping=*/StringAttr());
    IRMapping map;
    squares.getBody().cloneInto(&variance.getBody(), map);
    if (variance.getBody().getBlocks().size() > 1) // the builder's own
      variance.getBody().front().erase();
    variance.getYield()->setOperand(0, map.lookup(term));
    eraseUnusedOps(variance.getBody().front());
    Value number = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(squares.getType(), static_cast<double>(*terms)));
    Value product = arith::MulFOp::create(builder, loc, variance.getResult(), number);
    squares.replaceAllUsesWith(product);
    squares.erase();
    // Next to the sum: what stands between them is made of scalars.
    llvm::SetVector<Value> used = valuesUsedBy(variance);
    bool canMove = llvm::all_of(used, [&](Value value) {
      Operation *definition = value.getDefiningOp();
      return !definition || definition->getBlock() != sum->getBlock() ||
             definition->isBeforeInBlock(sum);
    });
    if (canMove)
      variance->moveAfter(sum);
    return true;
  }
};
} // namespace
