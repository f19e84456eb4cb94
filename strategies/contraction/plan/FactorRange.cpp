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

/// Whether a value is the largest of a row, made here or by a statement before.
static bool isLargest(mlir::Value value) {
  mlir::Operation *op = value.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<tgl::ReduceOp>(op))
    return reduce.getKind() == tgl::ReduceKind::Max;
  auto read = dyn_cast_or_null<tgl::ReadOp>(op);
  return read && read.getTensor().getDefiningOp<tgl::TempOp>() &&
         any_of(read.getTensor().getUsers(), [](mlir::Operation *user) {
           auto write = dyn_cast<tgl::WriteOp>(user);
           auto reduce = write ? write.getValue().getDefiningOp<tgl::ReduceOp>() : tgl::ReduceOp();
           return reduce && reduce.getKind() == tgl::ReduceKind::Max;
         });
}

/// exp(x - m) with the largest x of a row: the first of a row's elements are seldom far below 1,
/// which is the largest.
static bool isSoftmaxPower(mlir::Operation *power) {
  auto difference = power->getOperand(0).getDefiningOp<arith::SubFOp>();
  return difference && isLargest(difference.getRhs());
}

static bool isMultiple(mlir::Value value, unsigned left) {
  mlir::Operation *op = value.getDefiningOp();
  if (!op || left == 0)
    return false;
  auto isAny = [&](auto values) {
    return any_of(values, [&](mlir::Value one) { return isMultiple(one, left - 1); });
  };
  if (isa<math::ExpOp, math::Exp2Op>(op))
    return !isSoftmaxPower(op);
  if (isa<arith::MulFOp, arith::NegFOp, tgl::ConvertOp>(op))
    return isAny(op->getOperands());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isMultiple(select.getTrueValue(), left - 1) ||
           isMultiple(select.getFalseValue(), left - 1);
  if (auto quotient = dyn_cast<arith::DivFOp>(op)) {
    // e/(1 + e), of a sigmoid, is at most 1, and mostly not far below.
    auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
    bool isShare = sum && is_contained(sum->getOperands(), quotient.getLhs());
    return !isShare && isMultiple(quotient.getLhs(), left - 1);
  }
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
