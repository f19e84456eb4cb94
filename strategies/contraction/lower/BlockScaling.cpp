//===- BlockScaling.cpp - Scales of blocks of a sum -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has sums of two rows (wgmma) and of many columns. A scale that is constant over blocks
// of columns, as that of 128 x 128 weights, is loaded once for the columns of a block; so is one of
// rows.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/BlockScaling.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/ADT/DenseMap.h"

using namespace llvm;
using namespace tegula;

/// Rows or columns, from each multiple of the result on, that have one scale: `most`, a power of
/// two, or a part of it.
static unsigned pointsOfScale(const ContractionSide &side, tgl::AxesOp axes,
                              ArrayRef<unsigned> group, unsigned most) {
  if (group.size() != 1)
    return 1;
  mlir::Value axis = axes.getAxes()[group.front()];
  auto isConstantOver = [&](unsigned points) {
    return all_of(side.slice, [&](mlir::Operation *op) {
      return !is_contained(valuesUsedBy(op), axis) || isConstantAlong(op, axis, points);
    });
  };
  for (unsigned points = most; points > 1; points /= 2)
    if (isConstantOver(points))
      return points;
  return 1;
}

BlockScaling::Side BlockScaling::describe(const ContractionSide &side, const TileDim &group,
                                          Value *first, ArrayRef<unsigned> places) {
  // The thread's own place is less than 8 rows or columns from where a fragment begins. Tiles, and
  // those of warps and warpgroups, begin at multiples of what a thread's places span: of 192
  // columns the half of every second block of 128 is the next tile's.
  constexpr unsigned fragmentPoints = 8;
  Side result{&side, &group, first, {}, {}};
  if (side.factors.empty())
    return result;
  unsigned span = alignTo(*max_element(places) + 1, fragmentPoints),
           points = pointsOfScale(side, axes, group.axes, span & -span);
  DenseMap<unsigned, unsigned> known;
  for (unsigned place : places) {
    unsigned start = points < fragmentPoints ? place : place - place % points;
    auto [entry, isNew] = known.try_emplace(start, result.starts.size());
    if (isNew)
      result.starts.push_back(start);
    result.scaleOf.push_back(entry->second);
  }
  return result;
}

BlockScaling::BlockScaling(ContractionContext &context, const ContractionProduct &product,
                           const KLoop &sum, unsigned depth, TileCoord first,
                           ArrayRef<FragmentStep> places)
    : ContractionCode(context), product(product), sum(sum), depth(depth), indices(context) {
  SmallVector<unsigned> down, right;
  for (const FragmentStep &place : places) {
    down.push_back(place.down);
    right.push_back(place.right);
  }
  rows = describe(product.scales.a, here.rows, first.row, down);
  columns = describe(product.scales.b, here.columns, first.column, right);
  assert((!product.scales || product.scales.points % depth == 0) &&
         !(numScales() && sum.isReordered));
}

BlockScaling::Accumulators BlockScaling::load(Value *number) {
  Accumulators loaded;
  if (!numScales())
    return loaded;
  Value *last = b.CreateSub(sum.steps, i64(1));
  Value *step = indices.stepInKLoop(sum, b.CreateBinaryIntrinsic(Intrinsic::smin, number, last));
  Value *k = b.CreateMul(step, i64(depth));
  for (const Side *one : {&rows, &columns})
    for (unsigned start : one->starts) {
      Value *line = b.CreateAdd(one->group->first, wide(b.CreateAdd(one->first, i32(start))));
      if (!one->group->fits)
        line =
            b.CreateBinaryIntrinsic(Intrinsic::smin, line, b.CreateSub(one->group->total, i64(1)));
      loaded.push_back(indices.valueAt(product.reduce, sum, *one->side, *one->group, k, line));
    }
  return loaded;
}

BlockScaling::Accumulators BlockScaling::promote(ArrayRef<Value *> loaded, unsigned firstNumber,
                                                 ArrayRef<Value *> sums,
                                                 ArrayRef<Value *> partial) const {
  Accumulators result;
  DenseMap<std::pair<Value *, Value *>, Value *> products;
  for (auto [n, both] : enumerate(zip_equal(sums, partial))) {
    auto [sum, added] = both;
    if (!numScales()) {
      result.push_back(b.CreateFAdd(sum, added));
      continue;
    }
    unsigned number = firstNumber + n;
    Value *row = rows.scaleOf.empty() ? nullptr : loaded[rows.scaleOf[number]];
    Value *column =
        columns.scaleOf.empty() ? nullptr : loaded[rows.starts.size() + columns.scaleOf[number]];
    Value *&scale = products[{row, column}];
    if (!scale)
      scale = !row ? column : !column ? row : b.CreateFMul(row, column);
    result.push_back(b.CreateIntrinsic(Intrinsic::fma, {sum->getType()}, {added, scale, sum}));
  }
  return result;
}
