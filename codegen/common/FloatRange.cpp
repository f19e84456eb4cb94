//===- FloatRange.cpp - Ranges of floating-point values -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/FloatRange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

FloatRange tegula::rangeOf(mlir::Value value, unsigned depth) {
  constexpr unsigned deepest = 6;
  mlir::Operation *op = value.getDefiningOp();
  APFloat constant(0.0);
  if (mlir::matchPattern(value, mlir::m_ConstantFloat(&constant)))
    return {constant.convertToDouble(), constant.convertToDouble()};
  if (!op || depth == deepest)
    return {};
  auto of = [&](unsigned operand) { return rangeOf(op->getOperand(operand), depth + 1); };
  if (isa<mlir::math::AbsFOp>(op)) {
    FloatRange its = of(0);
    double most = std::max(std::abs(its.low), std::abs(its.high));
    return {std::max({0.0, its.low, -its.high}), most};
  }
  if (isa<mlir::arith::NegFOp>(op)) {
    FloatRange its = of(0);
    return {-its.high, -its.low};
  }
  if (isa<mlir::math::ExpOp>(op)) {
    FloatRange its = of(0);
    return {std::exp(its.low), std::exp(its.high)};
  }
  if (isa<mlir::arith::AddFOp>(op)) {
    FloatRange left = of(0), right = of(1);
    return {left.low + right.low, left.high + right.high};
  }
  if (isa<mlir::arith::MaximumFOp>(op)) {
    FloatRange left = of(0), right = of(1);
    return {std::max(left.low, right.low), std::max(left.high, right.high)};
  }
  if (isa<mlir::arith::MinimumFOp>(op)) {
    FloatRange left = of(0), right = of(1);
    return {std::min(left.low, right.low), std::min(left.high, right.high)};
  }
  return {};
}
