//===- EmitLogSumExps.cpp - Logarithms of sums of exponentials in one pass --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/EmitArith.h"
#include "codegen/common/LogSumExps.h"
#include "codegen/common/ScalarEmitter.h"
#include "codegen/math/LowerMath.h"

using namespace llvm;
using namespace tegula;

static Value *callMath(ScalarEmitter &e, MathFunction function, Value *x) {
  return e.b.CreateCall(getMathFunction(e.module, function, x->getType()), x);
}

Value *tegula::originOfExponentials(ScalarEmitter &e, Value *largest) {
  IRBuilder<> &b = e.b;
  Value *none = ConstantFP::getInfinity(largest->getType(), /*Negative=*/true);
  return b.CreateSelect(b.CreateFCmpOEQ(largest, none), Constant::getNullValue(largest->getType()),
                        largest);
}

Value *tegula::exponentialFrom(ScalarEmitter &e, Value *value, Value *origin) {
  return callMath(e, MathFunction::ExpLow, e.b.CreateFSub(value, origin));
}

Accumulator tegula::combineExponentials(ScalarEmitter &e, const Accumulator &lhs,
                                        const Accumulator &rhs) {
  IRBuilder<> &b = e.b;
  Value *all[] = {lhs[0], lhs[1], rhs[0], rhs[1]};
  e.align(all);
  Value *largest = emitExtreme(b, Intrinsic::maximum, all[0], all[2]),
        *origin = originOfExponentials(e, largest);
  Value *left = b.CreateFMul(all[1], exponentialFrom(e, all[0], origin)),
        *right = b.CreateFMul(all[3], exponentialFrom(e, all[2], origin));
  return {largest, b.CreateFAdd(left, right)};
}

Value *tegula::logarithmOf(ScalarEmitter &e, const Accumulator &exponentials) {
  IRBuilder<> &b = e.b;
  Value *all[] = {exponentials[0], exponentials[1]};
  e.align(all);
  Value *infinity = ConstantFP::getInfinity(all[0]->getType());
  Value *isInfinite = b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(Intrinsic::fabs, all[0]), infinity);
  return b.CreateSelect(isInfinite, all[0],
                        b.CreateFAdd(callMath(e, MathFunction::Log, all[1]), all[0]));
}
