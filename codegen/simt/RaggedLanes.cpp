//===- RaggedLanes.cpp - Lanes where rows are no whole vectors --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/RaggedLanes.h"

#include "codegen/common/AccessShape.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr int64_t warpPoints = 32;
/// The least share of lanes that must have a point, of 100.
static constexpr int64_t fullShare = 88;
/// What is emitted twice, with all lanes and with a mask.
static constexpr unsigned maxOperations = 96;

namespace {
struct Access {
  tgl::TglTensorType type;
  mlir::Value tensor;
  ValueExpr offset;
  bool isWrite;
};
} // namespace

/// The accesses of the statement; nothing where it does more than read, compute and write a point.
static std::optional<SmallVector<Access>> accessesOf(tgl::ParallelOp op) {
  SmallVector<Access> accesses;
  unsigned operations = 0;
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions() || isa<tgl::TempOp>(inside) || ++operations > maxOperations)
      return std::nullopt;
    if (auto read = dyn_cast<tgl::ReadOp>(inside)) {
      accesses.push_back({read.getTensorType(), read.getTensor(),
                          tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()),
                          false});
    } else if (auto write = dyn_cast<tgl::WriteOp>(inside)) {
      if (write.getCombine())
        return std::nullopt;
      auto type = write.getTensorType();
      accesses.push_back(
          {type, write.getTensor(), tgl::elementOffset(type, write.getSubscriptExprs()), true});
    }
  }
  if (any_of(accesses, [](const Access &one) { return isPacked(one.type.getElementType()); }))
    return std::nullopt;
  return accesses;
}

bool tegula::beginsWithVectors(mlir::Value tensor, const ValueExpr &offset, mlir::Value axis,
                               unsigned width, unsigned tensorAlignment) {
  auto type = cast<tgl::TglTensorType>(tensor.getType());
  if (!tensor.getDefiningOp() && tensorAlignment < storageBytes(type.getElementType()) * width)
    return false;
  ValueExpr rest = offset;
  for (mlir::Value operand : offset.operands()) {
    std::optional<int64_t> step = tgl::stepAlong(offset, operand);
    if (!step || (operand != axis && *step % width))
      return false;
    rest = rest.substitute(operand, ValueExpr(int64_t(0)));
  }
  std::optional<int64_t> begin = rest.asConstant();
  return begin && *begin % width == 0;
}

int64_t tegula::raggedVectors(const LaneChoice &lane, int64_t points) {
  int64_t side = lane.apart; // vectors that lie side by side
  return divideCeil(points, side * lane.width) * side;
}

std::optional<LaneChoice> tegula::chooseRaggedLanes(tgl::ParallelOp op, ArrayRef<unsigned> outer,
                                                    unsigned vectorBytes,
                                                    unsigned tensorAlignment) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  if (!vectorBytes || !tgl::knownPoints(nest) || outer.size() != op.getAxes().size())
    return std::nullopt;
  std::optional<SmallVector<Access>> accesses = accessesOf(op);
  if (!accesses)
    return std::nullopt;
  for (unsigned axis : reverse(outer)) {
    mlir::Value variable = op.getAxes()[axis];
    std::optional<int64_t> points = tgl::knownPoints(nest, axis);
    std::optional<int64_t> low = tgl::getAxisRange(nest, axis).lo.asConstant();
    auto stepOf = [&](const Access &one) {
      return stepAlong(one.offset, variable, [](mlir::Value value) {
        return !isa<mlir::BlockArgument>(value); // data
      });
    };
    // Of elements that are apart, threads side by side read fewer lines at a time without lanes.
    bool isAlong = points && low && all_of(*accesses, [&](const Access &one) {
                     std::optional<int64_t> step = stepOf(one);
                     return one.isWrite ? step == 1 : !step || step == 0 || step == 1;
                   });
    if (!isAlong)
      continue;
    auto isUse = [&](const LaneChoice &lane) {
      int64_t vectors = raggedVectors(lane, *points);
      return *points * 100 >= vectors * lane.width * fullShare;
    };
    unsigned widest = 2; // bytes
    for (const Access &one : *accesses)
      if (stepOf(one) == 1)
        widest = std::max(widest, storageBytes(one.type.getElementType()));
    LaneChoice lane{axis, vectorBytes / std::min(widest, 4u), 1};
    lane.hasRest = true;
    bool isAligned = *low % lane.width == 0 && all_of(*accesses, [&](const Access &one) {
      return stepOf(one) != 1 ||
             beginsWithVectors(one.tensor, one.offset, variable, lane.width, tensorAlignment);
    });
    if (isAligned && isUse(lane))
      return lane;
    lane.apart = warpPoints;
    for (; lane.width > 1; lane.width /= 2)
      if (isUse(lane))
        return lane;
  }
  return std::nullopt;
}
