//===- TmaOperand.cpp - Operands that TMA can load ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/TmaOperand.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// Limits of TMA descriptors: extents of 32 bits, strides of 40 bits that are multiples of 16.
static constexpr int64_t maxExtent = (int64_t(1) << 31) - 1, maxStride = int64_t(1) << 40,
                         strideUnit = 16;

namespace {
/// Points that are counted through by one number.
struct Dim {
  int64_t extent, step; ///< step: elements
};
} // namespace

/// The axes `group` of `op` as one dim of `offset`, where they are one.
static std::optional<Dim> dimOf(tgl::AxesOp op, ArrayRef<unsigned> group, bool collapses,
                                const tgl::ValueExpr &offset, tgl::PointsOf *pointsOf) {
  // Of a size that is invariant what choices go by: descriptors get the extents of the launch.
  std::optional<int64_t> points = pointsOf(op, group);
  if (!points || *points < 1 || *points > maxExtent)
    return std::nullopt;
  std::optional<unsigned> moving;
  for (unsigned axis : group) {
    if (tgl::knownPoints(op, {axis}) == 1)
      continue;
    if (moving && !collapses)
      return std::nullopt;
    moving = axis;
  }
  if (collapses && !group.empty())
    moving = group.back();
  if (!moving)
    return Dim{1, 0};
  std::optional<int64_t> step = tgl::stepAlong(offset, op.getAxes()[*moving]);
  if (!step)
    return std::nullopt;
  return Dim{*points, *step};
}

std::optional<TmaOperand> tegula::planTmaOperand(const ContractionPlan &plan, tgl::ReduceOp reduce,
                                                 const ContractionSide &side,
                                                 ArrayRef<unsigned> lines, tgl::ReadOp read,
                                                 bool kMajor, tgl::PointsOf *pointsOf) {
  tgl::AxesOp axes = tgl::axesOfOp(tgl::ParallelOp(plan.op)), summed = tgl::axesOfOp(reduce);
  if (read.getFill())
    return std::nullopt;
  tgl::ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
  bool isOfAxes = all_of(offset.operands(), [&](mlir::Value value) {
    return is_contained(axes.getAxes(), value) || is_contained(summed.getAxes(), value);
  });
  if (!isOfAxes)
    return std::nullopt;
  int64_t elementBytes = read.getTensorType().getElementType().getIntOrFloatBitWidth() / 8;
  std::optional<Dim> ofSum = dimOf(summed, to_vector(seq<unsigned>(0, summed.getAxes().size())),
                                   side.collapsesSum, offset, pointsOf);
  std::optional<Dim> ofLines = dimOf(axes, lines, side.collapsesAxes, offset, pointsOf);
  if (!ofSum || !ofLines)
    return std::nullopt;
  auto [near, far] = kMajor ? std::pair(*ofSum, *ofLines) : std::pair(*ofLines, *ofSum);
  if (near.extent > 1 && near.step != 1)
    return std::nullopt;
  TmaOperand map;
  map.extents.push_back(near.extent);
  auto add = [&](const Dim &dim) {
    // The stride of a dim of one point is never used, but has to be valid.
    int64_t stride =
        dim.extent == 1 ? alignTo(near.extent * elementBytes, strideUnit) : dim.step * elementBytes;
    if (stride <= 0 || stride % strideUnit || stride >= maxStride)
      return false;
    map.extents.push_back(dim.extent);
    map.strides.push_back(stride);
    return true;
  };
  if (!add(far))
    return std::nullopt;
  for (unsigned axis : plan.batch) {
    std::optional<Dim> dim = dimOf(axes, {axis}, /*collapses=*/false, offset, pointsOf);
    if (!dim)
      return std::nullopt;
    if (dim->extent == 1 || dim->step == 0) // all points of the batch have it in common
      continue;
    if (map.extents.size() == TmaOperand::maxTmaDims || !add(*dim))
      return std::nullopt;
    map.batch.push_back(axis);
  }
  return map;
}
