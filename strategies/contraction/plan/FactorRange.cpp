//===- FactorRange.cpp - How far apart the sizes of a factor's elements are --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/FactorRange.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace llvm;
using namespace tegula;
namespace arith = mlir::arith;
namespace math = mlir::math;

/// Operations and statements that are followed.
static constexpr unsigned farthest = 24;

static bool isMultiple(mlir::Value value, unsigned left) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op || left == 0)
    return false;
  auto isAny = [&](auto values) {
    return any_of(values, [&](mlir::Value one) { return isMultiple(one, left - 1); });
  };
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return true;
  if (isa<arith::MulFOp, arith::NegFOp, tgl::ConvertOp>(op))
    return isAny(op->getOperands());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isMultiple(select.getTrueValue(), left - 1) ||
           isMultiple(select.getFalseValue(), left - 1);
  if (auto quotient = dyn_cast<arith::DivFOp>(op))
    return isMultiple(quotient.getLhs(), left - 1);
  auto read = dyn_cast<tgl::ReadOp>(op);
  if (!read || !read.getTensor().getDefiningOp<tgl::TempOp>())
    return false;
  return any_of(read.getTensor().getUsers(), [&](mlir::Operation *user) {
    auto write = dyn_cast<tgl::WriteOp>(user);
    return write && isMultiple(write.getValue(), left - 1);
  });
}

bool tegula::isMultipleOfPower(mlir::Value factor, ArrayRef<mlir::BlockArgument> summed) {
  tgl::AxisSet varies = tgl::axesOf(factor);
  return any_of(summed, [&](mlir::BlockArgument axis) { return varies.contains(axis); }) &&
         isMultiple(factor, farthest);
}
