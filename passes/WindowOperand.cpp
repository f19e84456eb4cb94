//===- WindowOperand.cpp - Operands whose elements several windows use ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/WindowOperand.h"

#include "ir/TglUtils.h"
#include "passes/Nest.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

int64_t SumOrder::points(tgl::AxesOp summed) const {
  if (!padded)
    return tgl::knownPoints(summed).value_or(0);
  return tgl::knownPoints(summed, ArrayRef(axes).drop_back()).value_or(0) * padded;
}

/// Whether a subscript is the axis plus something that is a multiple of a run wherever it is read.
static bool walksInRuns(const ValueExpr &subscript, mlir::Value axis) {
  if (tgl::stepAlong(subscript, axis) != 1)
    return false;
  ValueExpr start = subscript.substitute(axis, ValueExpr(int64_t(0)));
  return llvm::all_of(start.expr().terms(), [](const IndexExpr::Term &term) {
    return term.coefficient % WindowOperand::run == 0;
  });
}

static std::optional<WindowOperand> planAlong(tgl::ReadOp read, tgl::AxesOp summed, unsigned channelAxis) {
  mlir::Value channel = summed.getAxes()[channelAxis];
  if (tgl::getAxisRange(summed, channelAxis).lo.asConstant() != 0)
    return std::nullopt;
  WindowOperand window;
  window.channelAxis = channelAxis;
  SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
  auto usesSum = [&](const ValueExpr &subscript) {
    return llvm::any_of(summed.getAxes(), [&](mlir::Value axis) { return subscript.uses(axis); });
  };
  auto isComputed = [&](mlir::Value value) { // in the sum, so that no axis shows how it moves
    return value.getDefiningOp() && value.getParentBlock() == summed.getAxesBlock();
  };
  auto isOfStatement = [&](mlir::Value value) {
    return !llvm::is_contained(summed.getAxes(), value) && axesOpOf(value);
  };
  bool hasChannels = false, isShared = false;
  for (auto [number, subscript, dim] : enumerate(subscripts, read.getTensorType().getDims())) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent || *extent < 1 || llvm::any_of(subscript.operands(), isComputed))
      return std::nullopt;
    if (subscript.uses(channel)) {
      if (hasChannels || !walksInRuns(subscript, channel))
        return std::nullopt;
      hasChannels = true;
      window.channelDim = number;
      window.channels = *extent;
      // Fills are for pixels and images alone.
      Prover prover(sizeFacts(read->getParentOfType<tgl::KernelOp>()));
      AxisScope scope(prover, read);
      if (!scope.provesInBounds(subscript, dim.getExpr()))
        return std::nullopt;
    } else if (usesSum(subscript)) {
      window.pixelDims.push_back(number);
      window.pixels *= *extent;
      bool walks = false;
      for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis)
        walks |= subscript.uses(summed.getAxes()[axis]) && tgl::knownPoints(summed, {axis}) != 1;
      // Points of one line are another's where both the sum and the statement walk along the dim.
      isShared |= walks && llvm::any_of(subscript.operands(), isOfStatement);
    } else {
      window.imageDims.push_back(number);
      window.images *= *extent;
    }
  }
  return hasChannels && isShared ? std::optional(std::move(window)) : std::nullopt;
}

/// Whether elements are what is multiplied or, of f32, numbers of 16 bits are made of them.
static bool canBeKept(mlir::Type element, Multiplicand type) {
  switch (type) {
  case Multiplicand::F16:
    return element.isF16();
  case Multiplicand::BF16:
    return element.isBF16();
  case Multiplicand::TF32:
    return element.isF32();
  }
  llvm_unreachable("a type of multiplicands");
}

std::optional<WindowOperand> tegula::planWindows(const ContractionOperand &operand, Multiplicand type,
                                                 tgl::ReduceOp reduce) {
  auto summed = axesOfOp(reduce);
  tgl::ReadOp read = operand.read;
  if (!operand.isPlain || !canBeKept(read.getTensorType().getElementType(), type) || !tgl::knownPoints(summed))
    return std::nullopt;
  // The longest axis has the fewest points beyond its own.
  std::optional<WindowOperand> best;
  for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis) {
    std::optional<WindowOperand> window = planAlong(read, summed, axis);
    if (window && (!best || *tgl::knownPoints(summed, {axis}) > *tgl::knownPoints(summed, {best->channelAxis})))
      best = std::move(window);
  }
  return best;
}

PackedProduct tegula::planPackedProduct(const ProductOperands &operands, tgl::ReduceOp reduce) {
  auto summed = axesOfOp(reduce);
  PackedProduct packed;
  packed.order.axes = to_vector(seq<unsigned>(0, summed.getAxes().size()));
  packed.column = planWindows(operands.column, operands.type, reduce);
  if (!packed.column)
    packed.row = planWindows(operands.row, operands.type, reduce);
  const std::optional<WindowOperand> &window = packed.column ? packed.column : packed.row;
  if (!window)
    return packed;
  llvm::erase(packed.order.axes, window->channelAxis);
  packed.order.axes.push_back(window->channelAxis);
  packed.order.padded = alignTo(*tgl::knownPoints(summed, {window->channelAxis}), WindowOperand::run);
  return packed;
}
