//===- JointTile.cpp - Tiles that products share --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/JointTile.h"

#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/plan/TileMemory.h"

using namespace llvm;
using namespace tegula;

static tgl::AxesOp axesOfOp(tgl::ReduceOp reduce) {
  return cast<tgl::AxesOp>(reduce.getOperation());
}

/// Whether `other` sums over the same points as `first`, axis by axis.
static bool haveSamePoints(tgl::ReduceOp first, tgl::ReduceOp other) {
  SmallVector<tgl::AxisRange> its = tgl::getAxisRanges(axesOfOp(first)),
                              others = tgl::getAxisRanges(axesOfOp(other));
  return equal(its, others, [](const tgl::AxisRange &a, const tgl::AxisRange &b) {
    return a.lo == b.lo && a.hi == b.hi;
  });
}

/// The place that the operand reads, with the axes of the sum `of` in place of its own.
static tgl::ValueExpr placeOf(tgl::ReadOp read, tgl::ReduceOp reduce, tgl::ReduceOp of) {
  tgl::ValueExpr place = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
  for (auto [own, axis] : zip_equal(axesOfOp(reduce).getAxes(), axesOfOp(of).getAxes()))
    place = place.substitute(own, tgl::ValueExpr(axis));
  return place;
}

bool tegula::haveCommonRows(const ContractionPlan &plan, ArrayRef<ProductOperands> products) {
  if (products.size() < 2)
    return false;
  const ProductOperands &first = products.front();
  tgl::ReduceOp sum = plan.products.front().reduce;
  return all_of(zip_equal(plan.products, products), [&](auto pair) {
    auto &[product, operands] = pair;
    const ContractionOperand &rows = operands.a;
    return !product.scales && operands.type == first.type && rows.isPlain && rows.read &&
           operands.b.isPlain && rows.kMajor == first.a.kMajor &&
           operands.b.kMajor == first.b.kMajor && haveSamePoints(sum, product.reduce) &&
           tgl::ReadOp(rows.read).getTensor() == tgl::ReadOp(first.a.read).getTensor() &&
           placeOf(rows.read, product.reduce, sum) == placeOf(first.a.read, sum, sum);
  });
}

bool tegula::mayBeJoint(const TensorTile &tile) {
  constexpr int64_t warpgroupRows = 64, warpgroupThreads = 128;
  bool hasAllColumns = tile.threads() / warpgroupThreads * warpgroupRows == tile.rows;
  return tile.joint > 1 && tile.warpgroups && !tile.prepacked && !tile.halo && hasAllColumns &&
         tile.columns % (tile.joint * jointPanel) == 0;
}

std::optional<TensorTile> tegula::jointTileOf(TensorTile tile, ArrayRef<ProductOperands> products) {
  tile.joint = products.size();
  if (!mayBeJoint(tile))
    return std::nullopt;
  TargetInfo machine = TargetInfo::measured();
  machine.minTmaMacs = 0; // whether boxes pay is weighed where the machine is known
  TileMemory memory(tile, products, machine);
  if (!memory.usesTma() || !memory.are16Bit())
    return std::nullopt;
  return tile;
}
