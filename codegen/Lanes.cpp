//===- Lanes.cpp - Which axis becomes vector lanes --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/Emitter.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {
/// Looks through one body for what forbids vectors along an axis and what they would cost.
class LaneCost {
public:
  LaneCost(mlir::Block &body, mlir::Value axis) : axis(axis) {
    varying.insert(axis);
    visit(body, 1.0);
  }

  bool possible = true;
  double cost = 0; // in vector memory operations
  unsigned operations = 0;
  unsigned widestBytes = 1;

private:
  bool varies(const ValueExpr &expr) const {
    return any_of(expr.operands(), [&](mlir::Value value) { return varying.contains(value); });
  }

  void access(tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts, double weight) {
    if (type.getElementType().isInteger(4) && subscripts.size() && varies(subscripts.back())) {
      cost += 16 * weight; // nibbles are gathered
      return;
    }
    ValueExpr offset = Emitter::elementOffset(type, subscripts);
    switch (Emitter::strideAlong(offset, axis, [&](mlir::Value value) {
      return value != axis && varying.contains(value);
    })) {
    case Emitter::Stride::Uniform:
      cost += 0.25 * weight;
      break;
    case Emitter::Stride::Unit:
      cost += weight;
      break;
    case Emitter::Stride::Other:
      cost += 12 * weight; // a gather of 16 lanes costs about as much as 12 loads
      break;
    }
  }

  void visit(mlir::Block &block, double weight) {
    for (mlir::Operation &op : block) {
      ++operations;
      bool depends = any_of(op.getOperands(), [&](mlir::Value v) { return varying.contains(v); });
      if (auto read = dyn_cast<tgl::ReadOp>(op)) {
        access(read.getTensorType(), read.getSubscriptExprs(), weight);
      } else if (auto write = dyn_cast<tgl::WriteOp>(op)) {
        access(write.getTensorType(), write.getSubscriptExprs(), weight);
        if (write.getAdd())
          cost += 16 * weight;
      } else if (auto reduce = dyn_cast<tgl::ReduceOp>(op)) {
        if (depends) // its bounds differ from lane to lane
          possible = false;
        visit(reduce.getBody().front(), weight * 8);
      } else if (isa<tgl::ParallelOp, tgl::ForOp, tgl::TilesOp, tgl::TempOp, tgl::ScanOp,
                     tgl::SortOp>(op)) {
        possible = false;
      }
      for (mlir::Type type : op.getResultTypes())
        if (type.isIntOrFloat() && type.getIntOrFloatBitWidth() > 1)
          widestBytes = std::max(widestBytes, type.getIntOrFloatBitWidth() / 8);
      if (depends || readsVarying(op))
        for (mlir::Value result : op.getResults())
          varying.insert(result);
    }
  }

  /// A reduction varies if anything inside it does.
  bool readsVarying(mlir::Operation &op) {
    bool result = false;
    op.walk([&](mlir::Operation *inner) {
      result |= any_of(inner->getOperands(), [&](mlir::Value v) { return varying.contains(v); });
    });
    return result;
  }

  mlir::Value axis;
  DenseSet<mlir::Value> varying;
};
} // namespace

std::optional<Emitter::LaneChoice> Emitter::chooseLanes(tgl::AxesOp op) {
  if (options.vectorBytes == 0 || lanes || op.getAxes().empty())
    return std::nullopt;
  std::optional<LaneChoice> best;
  double bestCost = 0;
  for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
    // Later axes whose bounds use this one would have bounds that differ from lane to lane.
    bool bounds = false;
    for (unsigned later = axis + 1; later < op.getAxes().size(); ++later)
      bounds |= lowOf(op, later).uses(op.getAxes()[axis]) || highOf(op, later).uses(op.getAxes()[axis]);
    if (bounds)
      continue;
    LaneCost cost(*op.getAxesBlock(), op.getAxes()[axis]);
    if (!cost.possible)
      continue;
    // Among equals the last axis wins: its points are next to each other in most tensors.
    if (best && cost.cost > bestCost)
      continue;
    // As many lanes as fit in one register for f32; f64 and i64 values take several registers then.
    unsigned width = std::max(1u, options.vectorBytes / 4);
    unsigned unroll = cost.operations <= 24 ? 4 : cost.operations <= 64 ? 2 : 1;
    best = LaneChoice{axis, width, unroll};
    bestCost = cost.cost;
  }
  return best;
}
