//===- ColumnsTogether.cpp - Reductions of a thread that read the same ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `a0 = sum(f(j)*g(j) for j)` and `a1 = sum(f(j)*h(j) for j)` of one thread are walked together:
// what both read, and compute of it, is then one load and one computation, which LLVM finds, as
// they stand side by side. A team does the same (DeviceEmitter::emitReduce).
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/ColumnSplit.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// The one axis of a reduction.
static mlir::Value axisOf(tgl::ReduceOp op) { return op.getAxes()[0]; }

bool tegula::shareReads(tgl::ReduceOp first, tgl::ReduceOp second) {
  auto reads = [](tgl::ReduceOp op) { return op.getBody().getOps<tgl::ReadOp>(); };
  auto nestOf = [](tgl::ReduceOp op) { return cast<tgl::AxesOp>(op.getOperation()); };
  if (first.getAxes().size() != 1 || second.getAxes().size() != 1)
    return false;
  return any_of(reads(first), [&](tgl::ReadOp one) {
    bool varies = any_of(one.getSubscriptExprs(),
                         [&](const tgl::ValueExpr &expr) { return expr.uses(axisOf(first)); });
    return varies && any_of(reads(second), [&](tgl::ReadOp other) {
             return isSameElement(one, nestOf(first), other, nestOf(second));
           });
  });
}

/// Of one axis, with nothing inside but what is the same for every element of a row.
static bool isColumn(tgl::ReduceOp op) {
  return op.getAxes().size() == 1 && all_of(op.getBody().front(), [](mlir::Operation &nested) {
           auto read = dyn_cast<tgl::ReadOp>(nested);
           return !nested.getNumRegions() && !(read && read.getFill());
         });
}

SmallVector<tgl::ReduceOp> tegula::columnsTogether(DeviceEmitter &e, tgl::ReduceOp first) {
  // Shorter ones are written out, one after the other.
  constexpr int64_t longestWindow = 64, maxOperations = 192;
  auto nest = cast<tgl::AxesOp>(first.getOperation());
  std::optional<int64_t> extent = tgl::knownPoints(nest);
  if (!isColumn(first) || !extent || *extent <= longestWindow || e.inWindows ||
      e.shape.columnSplit > 1 || e.unrolled.contains(first) || (!e.lanes && e.chooseLanes(nest)))
    return {first};
  SmallVector<tgl::ReduceOp> together{first};
  size_t operations = first.getBody().front().getOperations().size();
  SmallVector<tgl::ReduceOp> others = e.takeTogether(first);
  for (tgl::ReduceOp other : ArrayRef(others).drop_front()) {
    operations += other.getBody().front().getOperations().size();
    if (operations <= maxOperations && isColumn(other) && !e.unrolled.contains(other) &&
        shareReads(first, other))
      together.push_back(other);
  }
  return together;
}

void tegula::emitColumnsTogether(DeviceEmitter &e, ArrayRef<tgl::ReduceOp> together) {
  IRBuilder<> &b = e.b;
  // As emitColumn: stretches, so that the error of a long sum does not grow with its length.
  constexpr int64_t stretch = 256, manyOperations = 48;
  auto nest = cast<tgl::AxesOp>(tgl::ReduceOp(together.front()).getOperation());
  int64_t extent = *tgl::knownPoints(nest), step = e.lanes ? 4 : 8;
  size_t operations = 0;
  for (tgl::ReduceOp op : together)
    operations += op.getBody().front().getOperations().size();
  if (operations > manyOperations)
    step /= 2;
  Value *low = e.emitIndex(e.lowOf(nest, 0));
  SmallVector<size_t> sizes;
  SmallVector<Value *> initial;
  for (tgl::ReduceOp op : together) {
    Accumulator start = initialAccumulator(e, op);
    if (e.lanes)
      start = splatAccumulator(e, op, std::move(start), e.lanes->width);
    sizes.push_back(start.size());
    initial.append(start.begin(), start.end());
  }
  /// What `visit` makes of the part of each reduction, in order.
  auto forEach = [&](ArrayRef<Value *> all,
                     function_ref<Accumulator(unsigned, tgl::ReduceOp, Accumulator)> visit) {
    SmallVector<Value *> results;
    for (auto [number, op] : enumerate(together)) {
      results.append(visit(number, op, Accumulator(all.take_front(sizes[number]))));
      all = all.drop_front(sizes[number]);
    }
    return results;
  };
  auto terms = [&](Value *from, int64_t count, SmallVector<Value *> all) {
    e.checks.reportTogether([&] {
      for (int64_t term = 0; term < count; ++term) {
        Value *at = b.CreateNSWAdd(low, b.CreateNSWAdd(from, e.i64(term)));
        all = forEach(all, [&](unsigned, tgl::ReduceOp op, Accumulator before) {
          e.values[axisOf(op)] = at;
          return e.emitReducePoint(op, std::move(before));
        });
      }
    });
    return all;
  };
  auto part = [&](Value *from, int64_t count) {
    int64_t whole = count - count % step;
    e.keepNextLoopRolled = true;
    SmallVector<Value *> sums = e.emitLoop(from, b.CreateNSWAdd(from, e.i64(whole)), e.i64(step),
                                           initial, [&](Value *at, ArrayRef<Value *> now) {
                                             return terms(at, step, SmallVector<Value *>(now));
                                           });
    return terms(b.CreateNSWAdd(from, e.i64(whole)), count % step, std::move(sums));
  };
  auto add = [&](ArrayRef<Value *> before, ArrayRef<Value *> more) {
    size_t place = 0;
    return forEach(before, [&](unsigned number, tgl::ReduceOp op, Accumulator own) {
      Accumulator other(more.slice(place, sizes[number]));
      place += sizes[number];
      return combine(e, op, own, other);
    });
  };
  int64_t whole = extent - extent % stretch;
  e.keepNextLoopRolled = true;
  SmallVector<Value *> all =
      e.emitLoop(e.i64(0), e.i64(whole), e.i64(stretch), initial,
                 [&](Value *from, ArrayRef<Value *> now) { return add(now, part(from, stretch)); });
  if (whole < extent)
    all = add(all, part(e.i64(whole), extent - whole));
  forEach(all, [&](unsigned, tgl::ReduceOp op, Accumulator own) {
    e.values[op.getResult()] = resultOf(e, op, own);
    return own;
  });
}
