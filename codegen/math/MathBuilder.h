//===- MathBuilder.h - Short spellings for arithmetic on one float type -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits LLVM IR on float or double, scalar or vector, with integers of the same width beside them.
// No fast-math flag is set: rounding is exactly what is written.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_MATHBUILDER_H
#define TEGULA_CODEGEN_MATH_MATHBUILDER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace tegula {

class MathBuilder {
public:
  using V = llvm::Value *;

  MathBuilder(llvm::IRBuilder<> &b, llvm::Type *type)
      : b(b), type(type), isDouble(type->getScalarType()->isDoubleTy()),
        intType(type->getWithNewType(isDouble ? b.getInt64Ty() : b.getInt32Ty())) {}

  V c(double value) { return llvm::ConstantFP::get(type, value); }
  V ic(uint64_t value) { return llvm::ConstantInt::get(intType, value); }
  V inf() { return llvm::ConstantFP::getInfinity(type); }
  V nan() { return llvm::ConstantFP::getNaN(type); }

  V add(V x, V y) { return b.CreateFAdd(x, y); }
  V sub(V x, V y) { return b.CreateFSub(x, y); }
  V mul(V x, V y) { return b.CreateFMul(x, y); }
  V div(V x, V y) { return b.CreateFDiv(x, y); }
  /// 1/x, rounded to nearest, for x from 1 to 2^100. Division of any numbers costs GPUs a branch
  /// for each, and what is computed beside it the freedom to be mixed with that.
  V reciprocal(V x) {
    if (!hasApproximations())
      return div(c(1), x);
    // The hardware's has an error of 1 ULP at most (PTX ISA, "rcp.approx.ftz.f32"), one step of
    // Newton's the rest.
    V first = approximateReciprocal(x);
    return fma(fma(neg(x), first, c(1)), first, first);
  }
  /// Whether it is f32 on a device that has the approximations below.
  bool hasApproximations() const {
    return !isDouble && b.GetInsertBlock()->getModule()->getTargetTriple().isNVPTX();
  }
  /// 1/x with an error of 1 ULP, 0 for what would be subnormal.
  V approximateReciprocal(V x) { return forLanes(llvm::Intrinsic::nvvm_rcp_approx_ftz_f, x); }
  /// 2^x with a relative error of 2^-22 (PTX ISA, "ex2.approx.ftz.f32"), 0 for what would be
  /// subnormal.
  V approximateExp2(V x) { return forLanes(llvm::Intrinsic::nvvm_ex2_approx_ftz, x); }
  V neg(V x) { return b.CreateFNeg(x); }
  V abs(V x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  V sqrt(V x) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  V fma(V x, V y, V z) { return b.CreateIntrinsic(type, llvm::Intrinsic::fma, {x, y, z}); }
  V copysign(V magnitude, V sign) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  V select(V condition, V yes, V no) { return b.CreateSelect(condition, yes, no); }
  V lt(V x, V y) { return b.CreateFCmpOLT(x, y); }
  V gt(V x, V y) { return b.CreateFCmpOGT(x, y); }
  V eq(V x, V y) { return b.CreateFCmpOEQ(x, y); }
  V isNan(V x) { return b.CreateFCmpUNO(x, x); }
  /// The smaller (larger) of a value and a constant bound; NaN stays NaN.
  V atMost(V x, double bound) { return select(gt(x, c(bound)), c(bound), x); }
  V atLeast(V x, double bound) { return select(lt(x, c(bound)), c(bound), x); }

  V bits(V x) { return b.CreateBitCast(x, intType); }
  V fromBits(V x) { return b.CreateBitCast(x, type); }
  V toFloat(V x) { return b.CreateSIToFP(x, type); }
  unsigned mantissaBits() const { return isDouble ? 52 : 23; }
  unsigned bias() const { return isDouble ? 1023 : 127; }
  /// 2^n for an integer n in the range of normal numbers.
  V pow2(V n) { return fromBits(b.CreateShl(b.CreateAdd(n, ic(bias())), ic(mantissaBits()))); }
  /// 1.5 * 2^mantissaBits: adding it rounds to an integer, which then stands in the low bits.
  V magic() { return c(isDouble ? 0x1.8p52 : 0x1.8p23); }

  template <typename T> V poly(V x, llvm::ArrayRef<T> coefficients) {
    V value = c(coefficients.back());
    for (T coefficient : llvm::reverse(coefficients.drop_back()))
      value = fma(value, x, c(coefficient));
    return value;
  }
  /// The polynomial of the type at hand.
  template <size_t N, size_t M> V poly(V x, const float (&single)[N], const double (&twice)[M]) {
    return isDouble ? poly(x, llvm::ArrayRef<double>(twice))
                    : poly(x, llvm::ArrayRef<float>(single));
  }
  template <size_t N, size_t M>
  V pick(unsigned k, const float (&single)[N], const double (&twice)[M]) {
    return isDouble ? c(twice[k]) : c(single[k]);
  }

  llvm::IRBuilder<> &b;
  llvm::Type *type;
  bool isDouble;
  llvm::Type *intType;

private:
  /// An intrinsic of one f32, for each lane.
  V forLanes(llvm::Intrinsic::ID id, V x) {
    auto call = [&](V one) { return b.CreateIntrinsic(b.getFloatTy(), id, {one}); };
    auto *vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    if (!vector)
      return call(x);
    V all = llvm::PoisonValue::get(type);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
      all = b.CreateInsertElement(all, call(b.CreateExtractElement(x, lane)), lane);
    return all;
  }
};

} // namespace tegula

#endif // TEGULA_CODEGEN_MATH_MATHBUILDER_H
