//===- PartialSums.cpp - Sums over several axes, an axis at a time --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/PartialSums.h"

#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static AxesOp axesOp(Operation *op) { return cast<AxesOp>(op); }

std::optional<PartialSums> PartialSums::make(ParallelOp whole) {
  PartialSums made;
  made.whole = whole;
  for (ReduceOp reduce : whole.getBody().front().getOps<ReduceOp>()) {
    if (made.sum)
      return std::nullopt;
    made.sum = reduce;
  }
  if (!made.sum || made.sum.getKind() != ReduceKind::Sum || made.sum.getFilter() ||
      !made.sum.getType().isF32() || made.sum.getAxes().size() < 2)
    return std::nullopt;
  std::optional<Contraction> contraction = matchContraction(made.sum);
  if (!contraction || contraction->factors.size() != 2)
    return std::nullopt;
  // Parts are a tensor of the statement's axes and those of the sum but one: a box of known size.
  int64_t most = -1;
  for (Operation *op : {whole.getOperation(), made.sum.getOperation()})
    for (unsigned axis = 0; axis < axesOp(op).getAxes().size(); ++axis) {
      std::optional<int64_t> points = knownPoints(axesOp(op), {axis});
      if (!points || getAxisRange(axesOp(op), axis).lo.asConstant() != 0)
        return std::nullopt;
      if (op == made.sum && *points > most)
        made.kept = axis, most = *points;
    }
  OpBuilder b(whole);
  Location loc = made.sum.getLoc();
  SmallVector<Value> axes(whole.getAxes().begin(), whole.getAxes().end());
  for (auto [number, axis] : llvm::enumerate(made.sum.getAxes()))
    if (number != made.kept)
      axes.push_back(axis);
  SmallVector<IndexExprAttr> dims;
  SmallVector<ValueExpr> subscripts;
  for (Value axis : axes)
    dims.push_back(IndexExprAttr::get(b.getContext(), IndexExpr(*highOf(axis).asConstant())));
  made.temp =
      TempOp::create(b, loc, TglTensorType::get(b.getContext(), dims, b.getF32Type()), "parts");
  IRMapping inside;
  made.parts = copyAxes(b, loc, axes, inside);
  for (Value axis : axes)
    subscripts.push_back(ValueExpr(inside.lookup(axis)));
  b.setInsertionPointToEnd(&made.parts.getBody().front());
  for (Operation &op : whole.getBody().front())
    if (&op != made.sum && op.getNumResults() && op.getNumRegions() == 0)
      b.clone(op, inside);
  AxisSpec spec = getAxisSpec(axesOp(made.sum), made.kept);
  auto reduce = ReduceOp::create(b, loc, b.getF32Type(), ReduceKind::Sum, {spec});
  if (Attribute precision = made.sum->getAttr(precisionAttrName))
    reduce->setAttr(precisionAttrName, precision);
  WriteOp::create(b, loc, reduce.getResult(), made.temp.getTensor(), subscripts);
  Block &block = reduce.getBody().front();
  block.clear();
  b.setInsertionPointToEnd(&block);
  inside.map(made.sum.getAxes()[made.kept], Value(reduce.getAxes()[0]));
  for (Operation &op : made.sum.getBody().front().without_terminator())
    b.clone(op, inside);
  YieldOp::create(b, loc, ValueRange(inside.lookupOrDefault(made.sum.getReduced())));
  made.parts.walk([](IndexedOp op) { foldIndices(op); });
  eraseUnusedOps(made.parts.getBody().front());
  return made;
}

void PartialSums::use() {
  OpBuilder b(sum);
  SmallVector<AxisSpec> specs;
  SmallVector<unsigned> others;
  for (unsigned axis = 0; axis < sum.getAxes().size(); ++axis)
    if (axis != kept) {
      specs.push_back(getAxisSpec(axesOp(sum), axis));
      others.push_back(axis);
    }
  auto reduce = ReduceOp::create(b, sum.getLoc(), b.getF32Type(), ReduceKind::Sum, specs);
  Block &block = reduce.getBody().front();
  block.clear();
  b.setInsertionPointToEnd(&block);
  SmallVector<ValueExpr> subscripts;
  for (Value axis : whole.getAxes())
    subscripts.push_back(ValueExpr(axis));
  for (Value axis : reduce.getAxes())
    subscripts.push_back(ValueExpr(axis));
  Value part = ReadOp::create(b, sum.getLoc(), temp.getTensor(), subscripts);
  YieldOp::create(b, sum.getLoc(), ValueRange(part));
  sum.getResult().replaceAllUsesWith(reduce.getResult());
  sum.erase();
}

void PartialSums::drop() {
  parts.erase();
  temp.erase();
}
