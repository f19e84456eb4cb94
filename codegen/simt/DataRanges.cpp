//===- DataRanges.cpp - Sums over ranges that data gives --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DataRanges.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

bool tegula::isDataRange(tgl::ReduceOp reduce) {
  if (reduce.getAxes().size() != 1)
    return false;
  tgl::AxisRange range = getAxisRange(cast<tgl::AxesOp>(reduce.getOperation()), 0);
  auto isData = [](mlir::Value value) { return !isa<mlir::BlockArgument>(value); };
  return any_of(range.lo.operands(), isData) || any_of(range.hi.operands(), isData);
}

std::optional<int64_t> tegula::meanLength(tgl::ReduceOp reduce, tgl::ParallelOp statement) {
  if (!isDataRange(reduce) || reduce->getParentOp() != statement || statement.getAxes().empty())
    return std::nullopt;
  tgl::AxisRange range = getAxisRange(cast<tgl::AxesOp>(reduce.getOperation()), 0);
  tgl::AxisSet axes;
  for (const ValueExpr &end : {range.lo, range.hi})
    for (mlir::Value operand : end.operands())
      axes.insert_range(tgl::axesOf(operand));
  int64_t rows = 1;
  for (mlir::BlockArgument axis : axes) {
    if (axis.getOwner()->getParentOp() != statement)
      return std::nullopt;
    std::optional<int64_t> points =
        tgl::knownPoints(cast<tgl::AxesOp>(statement.getOperation()), {axis.getArgNumber()});
    if (!points || MulOverflow(rows, *points, rows))
      return std::nullopt;
  }
  mlir::Value own = reduce.getAxes()[0], last = statement.getAxes().back();
  std::optional<int64_t> elements;
  bool alongPoints = false;
  reduce.getBody().walk([&](tgl::ReadOp read) {
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    alongPoints |= strideAlong(read.getTensorType(), subscripts, last) == 1;
    if (subscripts.empty() || subscripts.back() != ValueExpr(own))
      return;
    for (const ValueExpr &other : ArrayRef(subscripts).drop_back())
      alongPoints |= !other.asConstant();
    std::optional<int64_t> dim = read.getTensorType().getDims().back().getExpr().asConstant();
    if (dim)
      elements = std::min(elements.value_or(*dim), *dim);
  });
  if (alongPoints || !elements || rows <= 0)
    return std::nullopt;
  return std::max<int64_t>(divideCeil(*elements, rows), 1);
}

SmallVector<Value *> tegula::distributeRange(DeviceEmitter &e, ArrayRef<tgl::ReduceOp> together,
                                             Value *count, ArrayRef<Value *> start, unsigned ahead,
                                             DistributedBody body) {
  IRBuilder<> &b = e.b;
  auto isSum = [](tgl::ReduceOp reduce) {
    return reduce.getKind() == tgl::ReduceKind::Sum &&
           isa<mlir::FloatType>(reduce.getReduced().getType());
  };
  // Behind what reductions carry: what rounding has taken from each sum.
  SmallVector<Value *> inits(start);
  for (tgl::ReduceOp reduce : together)
    if (isSum(reduce))
      inits.push_back(Constant::getNullValue(initialAccumulator(e, reduce)[0]->getType()));
  int64_t team = e.shape.team;
  SmallVector<Value *> carried = e.emitLoop(
      e.thread, count, e.i64(team * ahead), inits, [&](Value *first, ArrayRef<Value *> now) {
        SmallVector<Value *> part(start);
        e.checks.reportTogether([&] {
          for (unsigned round = 0; round < ahead; ++round) {
            Value *number = first, *exists = nullptr;
            if (round) {
              number = b.CreateNSWAdd(first, e.i64(round * team));
              exists = b.CreateICmpSLT(number, count);
              number =
                  b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(count, e.i64(1)));
            }
            part = body(number, exists, part);
          }
        });
        SmallVector<Value *> next, lost;
        ArrayRef<Value *> before = now, added = part;
        size_t error = start.size();
        for (tgl::ReduceOp reduce : together) {
          size_t parts = initialAccumulator(e, reduce).size();
          if (isSum(reduce)) {
            Value *sum = b.CreateFAdd(before[0], added[0]);
            Value *kept = b.CreateFSub(sum, before[0]);
            Value *taken = b.CreateFAdd(b.CreateFSub(before[0], b.CreateFSub(sum, kept)),
                                        b.CreateFSub(added[0], kept));
            next.push_back(sum);
            lost.push_back(b.CreateFAdd(now[error++], taken));
          } else {
            next.append(combine(e, reduce, Accumulator(before.take_front(parts)),
                                Accumulator(added.take_front(parts))));
          }
          before = before.drop_front(parts);
          added = added.drop_front(parts);
        }
        next.append(lost);
        return next;
      });
  size_t place = 0, error = start.size();
  for (tgl::ReduceOp reduce : together) {
    if (isSum(reduce)) { // what is lost from infinity is no number
      Value *lost = carried[error++], *sum = carried[place];
      carried[place] = b.CreateSelect(b.CreateFCmpORD(lost, lost), b.CreateFAdd(sum, lost), sum);
    }
    place += initialAccumulator(e, reduce).size();
  }
  carried.truncate(start.size());
  return carried;
}
