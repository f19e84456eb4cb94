//===- PackedGemmPanels.cpp - Packs the operands of a CPU matrix product into panels ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/PackedGemm.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Elements of rows and columns
//===----------------------------------------------------------------------===//

/// The axes' values at every element of the unit, counted like a milometer.
void PackedGemmEmitter::fillTable(Side &side) {
  if (side.isSingle)
    return;
  unsigned rank = side.group.size();
  SmallVector<Value *> start;
  Value *rest = side.first;
  for (unsigned k = rank; k-- > 0;) {
    Value *extent = b.CreateBinaryIntrinsic(Intrinsic::umax, side.extents[k], i64(1));
    start.insert(start.begin(), k ? b.CreateURem(rest, extent) : rest);
    rest = b.CreateUDiv(rest, extent);
  }
  e.emitLoop(i64(0), side.count, i64(1), start, [&](Value *number, ArrayRef<Value *> digits) {
    SmallVector<Value *> next(digits.begin(), digits.end());
    Value *carry = b.getTrue();
    for (unsigned k = rank; k-- > 0;) {
      Value *place = b.CreateAdd(b.CreateMul(side.tableLength, i64(k)), number);
      b.CreateStore(b.CreateAdd(side.lows[k], digits[k]),
                    b.CreateInBoundsGEP(b.getInt64Ty(), side.tables, place));
      Value *following = b.CreateAdd(digits[k], b.CreateZExt(carry, b.getInt64Ty()));
      carry = b.CreateICmpEQ(following, side.extents[k]);
      next[k] = k ? b.CreateSelect(carry, i64(0), following) : following;
    }
    return next;
  });
}

/// Sets the axes to element `number` of the unit.
void PackedGemmEmitter::setElement(Side &side, Value *number) {
  for (auto [k, axis] : enumerate(side.group)) {
    Value *value;
    if (!side.isSingle) {
      Value *place = b.CreateAdd(b.CreateMul(side.tableLength, i64(k)), number);
      value = b.CreateLoad(b.getInt64Ty(), b.CreateInBoundsGEP(b.getInt64Ty(), side.tables, place));
    } else {
      value = side.lows[k];
      if (k + 1 == side.group.size())
        value = b.CreateAdd(value, b.CreateAdd(side.first, number));
    }
    e.values[axes.getAxes()[axis]] = value;
    e.checks.setCountsOthers(axes.getAxes()[axis],
                             side.isSingle && side.group.size() > 1 && k + 1 == side.group.size());
  }
}

/// Spreads `axis` = base + lane over lanes, of which [from, to) count; from null: 0.
void PackedGemmEmitter::spread(mlir::Value axis, unsigned width, Value *base, Value *from,
                               Value *to, function_ref<void()> body) {
  SmallVector<Constant *> wide, narrow;
  for (unsigned lane = 0; lane < width; ++lane) {
    wide.push_back(b.getInt64(lane));
    narrow.push_back(b.getInt32(lane));
  }
  auto bound = [&](Value *value) {
    return b.CreateVectorSplat(width, b.CreateTrunc(value, b.getInt32Ty()));
  };
  Value *numbers = ConstantVector::get(narrow);
  Value *mask = b.CreateICmpULT(numbers, bound(to));
  if (from)
    mask = b.CreateAnd(mask, b.CreateICmpUGE(numbers, bound(from)));
  e.lanes = Emitter::Lanes{axis, width, base, b.CreateAdd(base, i64(width - 1)), mask};
  e.values[axis] = b.CreateAdd(b.CreateVectorSplat(width, base), ConstantVector::get(wide));
  body();
  e.lanes.reset();
}

/// Spreads elements first, first + 1, ... of the unit over lanes. Where they lie on several
/// stretches of the last axis, `body` runs for each of these with a mask for the lanes on it.
void PackedGemmEmitter::withVector(Side &side, Value *first, unsigned width,
                                   function_ref<void()> body) {
  mlir::Value axis = axes.getAxes()[side.group.back()];
  Value *left = minimum(b.CreateSub(side.count, first), i64(width));
  if (side.isSingle) {
    setElement(side, first);
    Value *base = e.values[axis];
    return spread(axis, width, base, nullptr, left, body);
  }
  // for (lane = 0; lane < left; lane += run)
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *head = BasicBlock::Create(b.getContext(), "stretch", function);
  BasicBlock *done = BasicBlock::Create(b.getContext(), "stretches", function);
  b.CreateCondBr(b.CreateICmpSGT(left, i64(0)), head, done);
  b.SetInsertPoint(head);
  PHINode *lane = b.CreatePHI(b.getInt64Ty(), 2);
  lane->addIncoming(i64(0), before);
  setElement(side, b.CreateAdd(first, lane));
  Value *position = e.values[axis];
  Value *end = b.CreateAdd(side.lows.back(), side.extents.back());
  Value *next = minimum(left, b.CreateAdd(lane, b.CreateSub(end, position)));
  spread(axis, width, b.CreateSub(position, lane), lane, next, body);
  lane->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, left), head, done);
  b.SetInsertPoint(done);
}

/// The factors' product at the current axes, one element for each lane.
Value *PackedGemmEmitter::evaluate(const ContractionSide &side) {
  for (mlir::Operation *op : side.slice)
    e.emitOp(op);
  Value *result = nullptr;
  for (mlir::Value factor : side.factors) {
    Value *value = e.splat(e.valueOf(factor));
    result = result ? b.CreateFMul(result, value) : value;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Sets the summed axes to all points of the block [begin, end) in order; with `withLast` false all
/// but the last axis, `position` being that of the first point along it. `collapsed`: the last axis
/// counts for all.
void PackedGemmEmitter::forSum(const ContractionProduct &product, const Sum &sum, Value *begin,
                               Value *end, bool collapsed, bool withLast,
                               function_ref<void(Value *position)> body) {
  tgl::AxesOp summed = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
  unsigned rank = summed.getAxes().size();
  e.checks.setCountsOthers(summed.getAxes().back(), collapsed && rank > 1);
  if (collapsed || rank == 1) {
    for (unsigned k = 0; k + 1 < rank; ++k)
      e.values[summed.getAxes()[k]] = sum.lows[k];
    // As numbers of points: the block of a single axis starts at the axis's value, of several at 0.
    Value *first = begin, *last = end;
    if (rank > 1 && !sum.collapsed) {
      first = b.CreateMul(b.CreateSub(begin, sum.low), sum.inner);
      last = b.CreateMul(b.CreateSub(end, sum.low), sum.inner);
    }
    if (!withLast) {
      e.values[summed.getAxes().back()] = first;
      return body(i64(0));
    }
    e.emitLoop(first, last, i64(1), {}, [&](Value *k, ArrayRef<Value *>) {
      e.values[summed.getAxes().back()] = k;
      body(b.CreateSub(k, first));
      return SmallVector<Value *>();
    });
    return;
  }
  std::function<void(unsigned, Value *)> nest = [&](unsigned axis, Value *position) {
    if (axis == rank)
      return body(position);
    Value *low = axis ? sum.lows[axis] : begin;
    Value *high = axis ? b.CreateAdd(sum.lows[axis], sum.extents[axis]) : end;
    if (axis + 1 == rank && !withLast) {
      e.values[summed.getAxes()[axis]] = low;
      return body(b.CreateMul(position, sum.extents[axis]));
    }
    Value *before = axis ? b.CreateMul(position, sum.extents[axis]) : position;
    e.emitLoop(low, high, i64(1), {}, [&](Value *k, ArrayRef<Value *>) {
      e.values[summed.getAxes()[axis]] = k;
      nest(axis + 1, b.CreateAdd(before, b.CreateSub(k, low)));
      return SmallVector<Value *>();
    });
  };
  nest(0, i64(0));
}

/// Panels [position][panel] of all elements of the unit.
void PackedGemmEmitter::pack(Side &side, const ContractionProduct &product,
                             const ContractionSide &factors, const Sum &sum, Value *begin,
                             Value *end, Value *panels, Value *panelLength) {
  Value *count = ceilDiv(side.count, i64(side.panel));
  e.emitLoop(
      i64(0), count, i64(1), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *panel = at(panels, b.CreateMul(number, b.CreateMul(panelLength, i64(side.panel))));
        Value *first = b.CreateMul(number, i64(side.panel));
        unsigned group = std::min(side.panel, lanes);
        e.keepNextLoopRolled = true; // copies of all of this would gain nothing
        e.emitLoop(
            i64(0), i64(side.panel / group), i64(1), {}, [&](Value *part, ArrayRef<Value *>) {
              Value *offset = b.CreateMul(part, i64(group));
              Value *start = b.CreateAdd(first, offset);
              e.emitIf(b.CreateICmpSLT(start, side.count), [&] {
                if (factors.lanesAlongK)
                  packAlongSum(side, product, factors, sum, begin, end, at(panel, offset), start,
                               group);
                else
                  packAlongAxes(side, product, factors, sum, begin, end, at(panel, offset), start);
              });
              return SmallVector<Value *>();
            });
        return SmallVector<Value *>();
      },
      "panel");
}

/// Lanes along rows (columns): each vector goes to the panel as it is.
void PackedGemmEmitter::packAlongAxes(Side &side, const ContractionProduct &product,
                                      const ContractionSide &factors, const Sum &sum, Value *begin,
                                      Value *end, Value *panel, Value *first) {
  unsigned width = std::min(side.panel, lanes);
  withVector(side, first, width, [&] {
    forSum(product, sum, begin, end, factors.collapsesSum, true, [&](Value *position) {
      Value *vector = evaluate(factors);
      Value *to = at(panel, b.CreateMul(position, i64(side.panel)));
      b.CreateMaskedStore(vector, to, Align(elementBytes), e.lanes->mask);
    });
  });
}

/// Lanes along the sum: a tile of `group` rows (columns) at a time is turned around. What a run
/// leaves beyond its end the next one overwrites; panels have room for the last.
void PackedGemmEmitter::packAlongSum(Side &side, const ContractionProduct &product,
                                     const ContractionSide &factors, const Sum &sum, Value *begin,
                                     Value *end, Value *panel, Value *first, unsigned group) {
  tgl::AxesOp summed = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
  mlir::Value axis = summed.getAxes().back();
  unsigned rank = summed.getAxes().size();
  bool oneRun = factors.collapsesSum || rank == 1;
  // Memory of the function, whose entry block runs once.
  IRBuilder<> entry(&b.GetInsertBlock()->getParent()->getEntryBlock(),
                    b.GetInsertBlock()->getParent()->getEntryBlock().getFirstInsertionPt());
  AllocaInst *tile = entry.CreateAlloca(ArrayType::get(element, group * lanes), nullptr, "tile");
  tile->setAlignment(Align(cacheLine));
  forSum(product, sum, begin, end, factors.collapsesSum, false, [&](Value *position) {
    Value *base = e.values[axis];
    Value *length = sum.extents.back();
    if (oneRun)
      length = b.CreateMul(b.CreateSub(end, begin), sum.inner);
    e.emitLoop(i64(0), length, i64(lanes), {}, [&](Value *k, ArrayRef<Value *>) {
      e.keepNextLoopRolled = true;
      e.emitLoop(i64(0), i64(group), i64(1), {}, [&](Value *row, ArrayRef<Value *>) {
        // Beyond the last row (column) it is repeated: nobody looks at the result.
        setElement(side, minimum(b.CreateAdd(first, row), b.CreateSub(side.count, i64(1))));
        Value *left = minimum(b.CreateSub(length, k), i64(lanes));
        spread(axis, lanes, b.CreateAdd(base, k), nullptr, left, [&] {
          b.CreateAlignedStore(evaluate(factors), at(tile, b.CreateMul(row, i64(lanes))),
                               Align(cacheLine));
        });
        return SmallVector<Value *>();
      });
      b.CreateCall(turnKernel(group, side.panel),
                   {tile, at(panel, b.CreateMul(b.CreateAdd(position, k), i64(side.panel)))});
      return SmallVector<Value *>();
    });
  });
}

} // namespace tegula
