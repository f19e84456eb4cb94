//===- OrderSums.cpp - Deterministic accumulation -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/OrderSums.h"
#include "ir/tgl/Invariance.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ORDERSUMSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Writes that add numbers whose sum depends on their order.
static SmallVector<WriteOp> sumsIn(ParallelOp parallel) {
  SmallVector<WriteOp> sums;
  parallel.getBody().walk([&](WriteOp write) {
    if (write.getCombine() == ReduceKind::Sum && isa<FloatType>(write.getValue().getType()))
      sums.push_back(write);
  });
  return sums;
}

/// Whether points that differ in the axis write different elements.
static bool tellsElementsApart(Value axis, WriteOp write) {
  return llvm::any_of(write.getSubscriptExprs(),
                      [&](const ValueExpr &subscript) { return subscript == ValueExpr(axis); });
}

ParallelOp tegula::orderSums(ParallelOp parallel) {
  SmallVector<WriteOp> sums = sumsIn(parallel);
  auto nest = cast<AxesOp>(parallel.getOperation());
  SmallVector<Value> apart;
  SmallVector<unsigned> inOrder;
  for (unsigned axis = 0; axis < parallel.getAxes().size(); ++axis) {
    Value own = parallel.getAxes()[axis];
    AxisRange range = getAxisRange(nest, axis);
    bool isApart =
        llvm::all_of(sums, [&](WriteOp write) { return tellsElementsApart(own, write); });
    for (unsigned before : inOrder) // bounds that its loop gives
      isApart &=
          !range.lo.uses(parallel.getAxes()[before]) && !range.hi.uses(parallel.getAxes()[before]);
    if (isApart)
      apart.push_back(own);
    else
      inOrder.push_back(axis);
  }
  if (sums.empty() || inOrder.empty())
    return parallel;
  OpBuilder builder(parallel);
  IRMapping map;
  ParallelOp outer = copyAxes(builder, parallel.getLoc(), apart, map);
  builder.setInsertionPointToEnd(&outer.getBody().front());
  auto inMap = [&](Value value) -> std::optional<ValueExpr> {
    return ValueExpr(map.lookupOrDefault(value));
  };
  for (unsigned axis : inOrder) {
    AxisRange range = getAxisRange(nest, axis);
    auto loop =
        ForOp::create(builder, parallel.getLoc(), ArrayRef<StringRef>{getAxisName(nest, axis)},
                      range.lo.substitute(inMap), range.hi.substitute(inMap));
    map.map(parallel.getAxes()[axis], loop.getLoopVar());
    builder.setInsertionPointToEnd(&loop.getBody().front());
    builder.setInsertionPoint(YieldOp::create(builder, parallel.getLoc(), ValueRange()));
  }
  for (Operation &op : parallel.getBody().front())
    builder.clone(op, map);
  parallel.erase();
  return outer;
}

namespace {
struct OrderSumsPass : Counted<tegula::impl::OrderSumsPassBase<OrderSumsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    if (!getOperation().getDeterministic() && Invariance::of(getOperation()).isFree())
      return;
    SmallVector<ParallelOp> parallels; // nested ones first
    getOperation().walk([&](ParallelOp parallel) { parallels.push_back(parallel); });
    for (ParallelOp parallel : parallels) {
      unsigned axes = parallel.getAxes().size();
      count("axes put in order", axes - orderSums(parallel).getAxes().size());
    }
  }
};
} // namespace
