//===- EmitVariances.cpp - Variances in one pass ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Number, first term, mean less that and squared distances from the mean of the terms so far: a
// term is added as in Welford, "Note on a method for calculating corrected sums of squares and
// products", 1962; two such triples are combined as in Chan, Golub and LeVeque, "Updating formulae
// and a pairwise algorithm for computing sample variances", 1979. No large numbers cancel, so the
// result is as good as with the mean known first. The mean is kept as its distance from the first
// term: terms that are large and close together would otherwise round it again and again.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Accumulators.h"
#include "codegen/common/LogSumExps.h"
#include "codegen/common/ScalarEmitter.h"
#include "codegen/math/MathBuilder.h"

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

Accumulator tegula::combineVariances(ScalarEmitter &e, const Accumulator &lhs,
                                     const Accumulator &rhs) {
  IRBuilder<> &b = e.b;
  auto like = [&](Value *value, Value *other) {
    auto *vector = dyn_cast<VectorType>(other->getType());
    return vector && !e.isVector(value) ? b.CreateVectorSplat(vector->getElementCount(), value)
                                        : value;
  };
  auto fma = [&](Value *x, Value *y, Value *z) {
    return b.CreateIntrinsic(Intrinsic::fma, {z->getType()}, {like(x, z), like(y, z), z});
  };
  Value *zero = Constant::getNullValue(lhs[0]->getType());
  Value *isFirst = b.CreateFCmpOEQ(lhs[0], zero);
  auto either = [&](Value *ours, Value *theirs) {
    Value *condition = isFirst;
    if (e.isVector(theirs) && !e.isVector(condition))
      condition =
          b.CreateVectorSplat(cast<VectorType>(theirs->getType())->getElementCount(), condition);
    return b.CreateSelect(condition, theirs, ours);
  };
  Value *count = b.CreateFAdd(like(lhs[0], rhs[0]), like(rhs[0], lhs[0]));
  // Times the reciprocal, as numbers of terms have one: loads of the terms after it are not behind
  // a division's branch.
  Value *inverse = MathBuilder(b, count->getType()).reciprocal(count);
  bool isTerm = rhs[0] == ConstantFP::get(rhs[0]->getType(), 1);
  Value *weight = isTerm ? inverse : b.CreateFMul(like(rhs[0], count), inverse);
  Value *theirs = like(rhs[1], lhs[1]);
  Value *origin = either(like(lhs[1], theirs), theirs);
  Value *mean = like(lhs[2], origin), *distances = like(lhs[3], origin);
  Value *from = b.CreateFSub(theirs, origin);
  if (isTerm) {
    Value *apart = b.CreateFSub(from, mean);
    Value *next = fma(apart, weight, mean);
    return {count, origin, next, fma(apart, b.CreateFSub(from, next), distances)};
  }
  // Nothing and nothing is nothing.
  zero = Constant::getNullValue(count->getType());
  weight = b.CreateSelect(b.CreateFCmpOEQ(count, zero), zero, weight);
  Value *apart = b.CreateFSub(b.CreateFAdd(from, like(rhs[2], from)), mean);
  Value *between = b.CreateFMul(like(b.CreateFMul(like(lhs[0], weight), weight), apart), apart);
  distances = b.CreateFAdd(distances, like(rhs[3], distances));
  return {count, origin, fma(apart, weight, mean), fma(between, apart, distances)};
}

Accumulator tegula::splatAccumulator(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator,
                                     unsigned width) {
  bool countsAlike =
      op.getKind() == ReduceKind::Var && !op.getFilter() && !(e.lanes && e.lanes->mask);
  for (Value *&element : MutableArrayRef(accumulator).drop_front(countsAlike))
    if (!e.isVector(element))
      element = e.b.CreateVectorSplat(width, element);
  return accumulator;
}

Value *tegula::resultOf(ScalarEmitter &e, tgl::ReduceOp op, const Accumulator &accumulator) {
  IRBuilder<> &b = e.b;
  if (op.getKind() == ReduceKind::ArgMax || op.getKind() == ReduceKind::ArgMin)
    return resultOfPlace(e, accumulator[1]);
  if (op.getKind() == ReduceKind::LogSumExp)
    return logarithmOf(e, accumulator);
  if (op.getKind() != ReduceKind::Var)
    return accumulator.back();
  Value *count = accumulator[0], *distances = accumulator[3];
  if (op.getUnbiased()) // with one term 0/0, with none it is 0/-1: hence the maximum
    count = b.CreateMaxNum(b.CreateFSub(count, ConstantFP::get(count->getType(), 1)),
                           Constant::getNullValue(count->getType()));
  if (e.isVector(distances) && !e.isVector(count))
    count = b.CreateVectorSplat(cast<VectorType>(distances->getType())->getElementCount(), count);
  return b.CreateFDiv(distances, count);
}
