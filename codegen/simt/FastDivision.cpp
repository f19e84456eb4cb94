//===- FastDivision.cpp - Division without a branch -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU's division of f32 asks whether its operands are far from 1, and has a branch for that:
// elements side by side are then computed one after the other. Two kinds of divisors need no
// branch: those that lie in a range that is known, as in a sigmoid, `1 / (1 + exp(-abs(x)))`, and
// those that all points of a nest have in common, such as the sum of a softmax, whose reciprocal is
// computed once. Both take a product with the reciprocal and one correction (Markstein, "IA-64 and
// Elementary Functions"), which gives the nearest number but where the quotient, or the correction,
// is too small to be a normal number. Where the dividend or the divisor is approximate (`afn`) the
// product alone is near enough, within 2 ULP.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/FastDivision.h"

#include "codegen/common/FloatRange.h"
#include "codegen/math/MathBuilder.h"
#include "codegen/simt/DeviceEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

/// Whether the value may be -0, or less than 0.
static bool mayBeNegative(mlir::Value value, const FloatRange &range) {
  return range.low <= 0 && !value.getDefiningOp<mlir::math::ExpOp>();
}

bool tegula::emitFastDivision(DeviceEmitter &e, mlir::Operation *op) {
  IRBuilder<> &b = e.b;
  auto division = dyn_cast<mlir::arith::DivFOp>(op);
  if (!division || !division.getType().isF32())
    return false;
  Value *dividend = e.valueOf(division.getLhs()), *divisor = e.valueOf(division.getRhs());
  auto number = [&](double value) { return ConstantFP::get(divisor->getType(), value); };
  auto like = [&](Value *value) { return e.isVector(dividend) ? e.splat(value) : value; };
  Value *inverse;
  bool isApproximate = bitEnumContainsAll(division.getFastmath(), mlir::arith::FastMathFlags::afn);
  bool mayBeSpecial = true; // an infinity, or -0
  FloatRange range = rangeOf(division.getRhs());
  int exponent;
  if (range.low == range.high && std::frexp(range.low, &exponent) == 0.5)
    return false; // by a power of two, which is a product
  if (range.low >= 0x1p-60 && range.high <= 0x1p60) {
    if (e.isVector(divisor))
      dividend = e.splat(dividend);
    MathBuilder m(b, divisor->getType());
    inverse = range.low == range.high ? number(1 / range.low)
              : isApproximate         ? m.approximateReciprocal(divisor)
                                      : m.reciprocal(divisor);
    FloatRange over = rangeOf(division.getLhs());
    mayBeSpecial = mayBeNegative(division.getLhs(), over) || over.high > 0x1p60;
    if (over.low == 1 && over.high == 1) {
      e.values[division.getResult()] = inverse;
      return true;
    }
  } else {
    // Of a thread's own point nothing else has the divisor.
    bool isCommon = e.perThread && division.getRhs().getParentBlock() != op->getBlock() &&
                    !e.isVector(divisor) &&
                    (!e.shape.byThread() || op->getBlock() != &e.statement.getBody().front());
    if (!isCommon)
      return false;
    // The reciprocal of a number near the smallest is none, that of one near the largest is no
    // normal number.
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, divisor);
    Value *scale =
        b.CreateSelect(b.CreateFCmpOLT(size, number(0x1p-100)), number(0x1p64), number(1));
    if (isApproximate)
      scale = b.CreateSelect(b.CreateFCmpOGT(size, number(0x1p100)), number(0x1p-64), scale);
    divisor = b.CreateFMul(divisor, scale);
    inverse = b.CreateFDiv(number(1), divisor);
    dividend = b.CreateFMul(dividend, like(scale));
  }
  Value *inverses = like(inverse), *divisors = like(divisor);
  Value *first = b.CreateFMul(dividend, inverses);
  if (isApproximate) {
    e.values[division.getResult()] = first;
    return true;
  }
  Value *rest = b.CreateIntrinsic(first->getType(), Intrinsic::fma,
                                  {b.CreateFNeg(first), divisors, dividend});
  Value *second = b.CreateIntrinsic(first->getType(), Intrinsic::fma, {rest, inverses, first});
  if (!mayBeSpecial) {
    e.values[division.getResult()] = second;
    return true;
  }
  // Infinities and zeros, whose signs a correction loses, stay.
  Value *isUsual = b.CreateFCmpONE(second, Constant::getNullValue(second->getType()));
  e.values[division.getResult()] = b.CreateSelect(isUsual, second, first);
  return true;
}
