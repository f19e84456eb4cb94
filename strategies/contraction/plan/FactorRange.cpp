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
#include "llvm/ADT/SetVector.h"

using namespace llvm;
using namespace tegula;
namespace arith = mlir::arith;
namespace math = mlir::math;

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

/// What a value is a multiple of: itself, or its factors. Quotients are multiples of their
/// numerators, selections of either value, elements of temporaries of what is written there.
static void pushFactors(mlir::Value value, SetVector<mlir::Value> &values) {
  mlir::Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::MulFOp, arith::NegFOp, tgl::ConvertOp>(op)) {
    values.insert_range(op->getOperands());
  } else if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
    values.insert(select.getTrueValue());
    values.insert(select.getFalseValue());
  } else if (auto quotient = dyn_cast_or_null<arith::DivFOp>(op)) {
    // e/(1 + e), of a sigmoid, is at most 1, and mostly not far below.
    auto sum = quotient.getRhs().getDefiningOp<arith::AddFOp>();
    if (!sum || !is_contained(sum->getOperands(), quotient.getLhs()))
      values.insert(quotient.getLhs());
  } else if (auto read = dyn_cast_or_null<tgl::ReadOp>(op);
             read && read.getTensor().getDefiningOp<tgl::TempOp>()) {
    for (mlir::Operation *user : read.getTensor().getUsers())
      if (auto write = dyn_cast<tgl::WriteOp>(user))
        values.insert(write.getValue());
  }
}

bool tegula::isMultipleOfPower(mlir::Value factor, ArrayRef<mlir::BlockArgument> summed) {
  tgl::AxisSet varies = tgl::axesOf(factor);
  if (none_of(summed, [&](mlir::BlockArgument axis) { return varies.contains(axis); }))
    return false;
  SetVector<mlir::Value> values;
  values.insert(factor);
  for (size_t next = 0; next < values.size(); ++next) { // grows
    mlir::Operation *op = values[next].getDefiningOp();
    if (isa_and_nonnull<math::ExpOp, math::Exp2Op>(op) && !isSoftmaxPower(op))
      return true;
    pushFactors(values[next], values);
  }
  return false;
}
