//===- JointTile.cpp - Tiles that products share --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/JointTile.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "strategies/contraction/plan/TileMemory.h"
#include "strategies/contraction/plan/TileReductions.h"

using namespace llvm;
using namespace tegula;

/// Whether `other` sums over the same points as `first`, axis by axis.
static bool haveSamePoints(tgl::ReduceOp first, tgl::ReduceOp other) {
  SmallVector<tgl::AxisRange> its = tgl::getAxisRanges(tgl::axesOfOp(first)),
                              others = tgl::getAxisRanges(tgl::axesOfOp(other));
  return equal(its, others, [](const tgl::AxisRange &a, const tgl::AxisRange &b) {
    return a.lo == b.lo && a.hi == b.hi;
  });
}

/// The place that the operand reads, with the axes of the sum `of` in place of its own.
static tgl::ValueExpr placeOf(tgl::ReadOp read, tgl::ReduceOp reduce, tgl::ReduceOp of) {
  tgl::ValueExpr place = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
  for (auto [own, axis] : zip_equal(tgl::axesOfOp(reduce).getAxes(), tgl::axesOfOp(of).getAxes()))
    place = place.substitute(own, tgl::ValueExpr(axis));
  return place;
}

/// Whether operands of all products are copies of tensors of one type, in the same order.
static bool lieAlike(const ContractionPlan &plan, ArrayRef<ProductOperands> products) {
  const ProductOperands &first = products.front();
  return all_of(zip_equal(plan.products, products), [&](auto pair) {
    auto &[product, operands] = pair;
    const ContractionOperand &rows = operands.a, &columns = operands.b;
    return !product.scales && operands.type == first.type && rows.isPlain && rows.read &&
           columns.isPlain && rows.kMajor == first.a.kMajor && columns.kMajor == first.b.kMajor;
  });
}

bool tegula::haveCommonRows(const ContractionPlan &plan, ArrayRef<ProductOperands> products) {
  if (products.size() < 2 || !lieAlike(plan, products))
    return false;
  tgl::ReadOp first = products.front().a.read;
  tgl::ReduceOp sum = plan.products.front().reduce;
  return all_of(zip_equal(plan.products, products), [&](auto pair) {
    auto &[product, operands] = pair;
    tgl::ReadOp rows = operands.a.read;
    return haveSamePoints(sum, product.reduce) && rows.getTensor() == first.getTensor() &&
           placeOf(rows, product.reduce, sum) == placeOf(first, sum, sum);
  });
}

bool tegula::areOneSum(const ContractionPlan &plan, ArrayRef<ProductOperands> products) {
  if (products.size() < 2 || !lieAlike(plan, products))
    return false;
  DenseSet<mlir::Value> sums;
  for (const ContractionProduct &product : plan.products)
    sums.insert(tgl::ReduceOp(product.reduce).getResult());
  size_t added = 0;
  for (mlir::Operation *op : plan.epilogue)
    if (isa<mlir::arith::AddFOp>(op) && all_of(op->getOperands(), [&](mlir::Value value) {
          return sums.contains(value) && value.hasOneUse();
        })) {
      sums.insert(op->getResult(0));
      ++added;
    }
  return added + 1 == products.size();
}

bool tegula::maySumsStayInWarps(const ContractionPlan &plan) {
  constexpr int64_t laneColumns = 4;
  auto axes = cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
  return partialWrites(plan.op).empty() && !plan.columns.empty() &&
         tgl::knownPoints(axes, plan.columns).value_or(1) % laneColumns == 0 &&
         tgl::knownPoints(axes, {plan.columns.back()}).value_or(1) % laneColumns == 0;
}

std::optional<TensorTile> tegula::separateTileOf(TensorTile tile,
                                                 ArrayRef<ProductOperands> products,
                                                 const TargetInfo &machine) {
  int64_t most = tile.statementColumns();
  tile.joint = 1;
  tile.accumulated = false;
  for (int64_t columns : {most, 2 * jointPanel, jointPanel}) {
    tile.columns = std::min(columns, most);
    if (TileMemory(tile, products, machine).sharedBytes() <= machine.sharedBytes)
      return tile;
  }
  return std::nullopt;
}

bool tegula::mayHaveOneMainloop(const TensorTile &tile) {
  constexpr int64_t warpgroupRows = 64, warpgroupThreads = 128;
  bool hasAllColumns = tile.threads() / warpgroupThreads * warpgroupRows == tile.rows;
  return tile.hasOneMainloop() && tile.warpgroups && !tile.prepacked && !tile.halo &&
         hasAllColumns && tile.columns % (tile.joint * jointPanel) == 0;
}

bool tegula::canHaveOneMainloop(const TensorTile &tile, ArrayRef<ProductOperands> products) {
  if (!mayHaveOneMainloop(tile))
    return false;
  TargetInfo machine = TargetInfo::measured();
  machine.minTmaMacs = 0; // whether boxes pay is weighed where the machine is known
  TileMemory memory(tile, products, machine);
  return memory.usesTma() && memory.are16Bit() && separateTileOf(tile, products, machine);
}
