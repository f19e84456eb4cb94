//===- Accumulators.cpp - What reductions carry, and how it comes together --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Accumulators.h"

#include "codegen/common/EmitArith.h"
#include "codegen/common/LogSumExps.h"
#include "codegen/common/ScalarEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;

static bool isArg(ReduceKind kind) {
  return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
}

/// Type that is accumulated: of what the region yields.
static mlir::Type reducedType(tgl::ReduceOp op) {
  return op.getKind() == ReduceKind::Count ? op.getType() : op.getReduced().getType();
}

/// Positions of argmax and argmin are kept in half a word where that holds them: of all that is
/// done for a term they are most.
static Type *positionType(ScalarEmitter &e, tgl::ReduceOp op) {
  IRBuilder<> &b = e.b;
  std::optional<int64_t> high =
      getAxisRange(cast<tgl::AxesOp>(op.getOperation()), 0).hi.asConstant();
  bool isShort = high && *high >= 0 && *high <= std::numeric_limits<int32_t>::max();
  return isShort ? b.getInt32Ty() : b.getInt64Ty();
}

Constant *tegula::noPlace(Type *type) {
  return ConstantInt::get(type, APInt::getSignedMinValue(type->getScalarSizeInBits()));
}

Value *tegula::resultOfPlace(ScalarEmitter &e, Value *place) {
  IRBuilder<> &b = e.b;
  Type *wide = place->getType()->getWithNewType(b.getInt64Ty());
  return b.CreateSelect(b.CreateICmpEQ(place, noPlace(place->getType())),
                        Constant::getAllOnesValue(wide), b.CreateSExt(place, wide));
}

Accumulator tegula::initialAccumulator(ScalarEmitter &e, tgl::ReduceOp op) {
  bool hasPosition = isArg(op.getKind());
  Accumulator initial = initialAccumulator(e, op.getKind(), e.typeOf(reducedType(op)),
                                           hasPosition ? positionType(e, op) : nullptr);
  if (initial.empty()) {
    e.fail(op, "this reduction is expanded before code generation");
    return {ConstantFP::get(e.typeOf(op.getType()), 0)};
  }
  return initial;
}

Accumulator tegula::initialAccumulator(ScalarEmitter &e, ReduceKind kind, Type *type,
                                       Type *position) {
  IRBuilder<> &b = e.b;
  auto number = [&](double real, int64_t integer) -> Constant * {
    return type->isFloatingPointTy() ? ConstantFP::get(type, real)
                                     : cast<Constant>(ConstantInt::getSigned(type, integer));
  };
  auto extreme = [&](bool lowest) -> Constant * {
    if (type->isFloatingPointTy())
      return ConstantFP::getInfinity(type, lowest);
    unsigned width = type->getIntegerBitWidth();
    return ConstantInt::get(type, lowest ? APInt::getSignedMinValue(width)
                                         : APInt::getSignedMaxValue(width));
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    // -0.0 is the identity of addition, but over nothing a sum is +0.
    return {number(0, 0)};
  case ReduceKind::Prod:
    return {number(1, 1)};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.getFalse()};
  case ReduceKind::All:
    return {b.getTrue()};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    return {extreme(kind == ReduceKind::ArgMax), noPlace(position)};
  case ReduceKind::Var:
    return {number(0, 0), number(0, 0), number(0, 0), number(0, 0)};
  case ReduceKind::LogSumExp:
    return {extreme(true), number(0, 0)};
  default:
    return {};
  }
}

/// Whether the right number is better than the left one: nan is best.
static Value *isBetter(ScalarEmitter &e, ReduceKind kind, Value *lhs, Value *rhs) {
  IRBuilder<> &b = e.b;
  bool largest = kind == ReduceKind::ArgMax;
  if (!lhs->getType()->isFPOrFPVectorTy())
    return largest ? b.CreateICmpSGT(rhs, lhs) : b.CreateICmpSLT(rhs, lhs);
  Value *beats = largest ? b.CreateFCmpUGT(rhs, lhs) : b.CreateFCmpULT(rhs, lhs); // or one is nan
  return b.CreateAnd(beats, b.CreateFCmpORD(lhs, lhs));
}

Accumulator tegula::combine(ScalarEmitter &e, ReduceKind kind, const Accumulator &lhs,
                            const Accumulator &rhs) {
  IRBuilder<> &b = e.b;
  bool isFloat = lhs[0]->getType()->isFPOrFPVectorTy();
  auto extreme = [&](bool largest) {
    if (isFloat)
      return emitExtreme(b, largest ? Intrinsic::maximum : Intrinsic::minimum, lhs[0], rhs[0]);
    return b.CreateBinaryIntrinsic(largest ? Intrinsic::smax : Intrinsic::smin, lhs[0], rhs[0]);
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    return {isFloat ? b.CreateFAdd(lhs[0], rhs[0]) : b.CreateAdd(lhs[0], rhs[0])};
  case ReduceKind::Prod:
    return {isFloat ? b.CreateFMul(lhs[0], rhs[0]) : b.CreateMul(lhs[0], rhs[0])};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.CreateOr(lhs[0], rhs[0])};
  case ReduceKind::All:
    return {b.CreateAnd(lhs[0], rhs[0])};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: {
    // rhs wins if it is there and lhs is not, if it is better, or as good and earlier.
    Value *better = isBetter(e, kind, lhs[0], rhs[0]), *worse = isBetter(e, kind, rhs[0], lhs[0]);
    Value *equal = b.CreateNot(b.CreateOr(better, worse));
    Value *none = noPlace(lhs[1]->getType());
    Value *present = b.CreateICmpNE(rhs[1], none);
    Value *first = b.CreateICmpEQ(lhs[1], none);
    Value *earlier = b.CreateAnd(equal, b.CreateICmpSLT(rhs[1], lhs[1]));
    Value *take = b.CreateAnd(present, b.CreateOr(first, b.CreateOr(better, earlier)));
    return {b.CreateSelect(take, rhs[0], lhs[0]), b.CreateSelect(take, rhs[1], lhs[1])};
  }
  case ReduceKind::Var:
    return combineVariances(e, lhs, rhs);
  case ReduceKind::LogSumExp:
    return combineExponentials(e, lhs, rhs);
  default:
    return lhs;
  }
}

/// The next point of an argmax or argmin, which is later than all that the accumulator has seen.
Accumulator tegula::takeNext(ScalarEmitter &e, ReduceKind kind, Accumulator accumulator,
                             Accumulator point, Value *counts) {
  IRBuilder<> &b = e.b;
  for (auto [element, before] : zip_equal(point, accumulator)) {
    Value *operands[] = {element, before};
    e.align(operands);
    element = operands[0];
    before = operands[1];
  }
  Value *first = b.CreateICmpEQ(accumulator[1], noPlace(accumulator[1]->getType()));
  Value *take = e.emitAnd(counts, b.CreateOr(first, isBetter(e, kind, accumulator[0], point[0])));
  for (auto [element, before] : zip_equal(point, accumulator)) {
    Value *operands[] = {take, element, before};
    e.align(operands);
    before = b.CreateSelect(operands[0], operands[1], operands[2]);
  }
  return accumulator;
}

/// Vectors are halved until one lane is left: a fixed, pairwise order.
Accumulator tegula::combineLanes(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator,
                                 unsigned width) {
  IRBuilder<> &b = e.b;
  for (unsigned half = width / 2; half; half /= 2) {
    SmallVector<int> lower, upper;
    for (unsigned lane = 0; lane < half; ++lane) {
      lower.push_back(lane);
      upper.push_back(lane + half);
    }
    Accumulator left, right;
    for (Value *element : accumulator) {
      left.push_back(e.isVector(element) ? b.CreateShuffleVector(element, lower) : element);
      right.push_back(e.isVector(element) ? b.CreateShuffleVector(element, upper) : element);
    }
    accumulator = combine(e, op, left, right);
  }
  for (Value *&element : accumulator)
    if (e.isVector(element))
      element = b.CreateExtractElement(element, uint64_t(0));
  return accumulator;
}

Accumulator tegula::addPoint(ScalarEmitter &e, tgl::ReduceOp op, Accumulator accumulator) {
  IRBuilder<> &b = e.b;
  Value *value = e.valueOf(op.getReduced());
  if (op.getKind() == ReduceKind::Count) {
    Type *type = e.typeOf(op.getType());
    value = b.CreateZExt(value,
                         e.isVector(value) ? VectorType::get(type, e.lanes->width, false) : type);
  }
  Accumulator point = {value};
  if (isArg(op.getKind())) {
    Value *position = e.valueOf(op.getAxes()[0]);
    Type *type = positionType(e, op);
    point.push_back(b.CreateTrunc(position, position->getType()->getWithNewType(type)));
  }
  if (op.getKind() == ReduceKind::Var) // one term, which is its own mean
    point = {ConstantFP::get(e.typeOf(op.getType()), 1), value,
             Constant::getNullValue(value->getType()), Constant::getNullValue(value->getType())};
  if (op.getKind() == ReduceKind::LogSumExp) // exp(value - value)
    point.push_back(ConstantFP::get(value->getType(), 1));
  // Points that the filter leaves out, and lanes of this reduction's own axis that do not exist, do
  // not count. (Lanes of an axis outside compute something that nobody stores.)
  Value *counts = op.getFilter() ? e.valueOf(op.getFilter()) : nullptr;
  if (e.lanes && e.lanes->mask && is_contained(op.getAxes(), e.lanes->axis))
    counts = e.emitAnd(counts, e.lanes->mask);
  if (isArg(op.getKind()))
    return takeNext(e, op.getKind(), accumulator, std::move(point), counts);
  if (counts) {
    Accumulator identity = initialAccumulator(e, op);
    for (auto [element, neutral] : zip_equal(point, identity)) {
      Value *operands[] = {counts, element, neutral};
      e.align(operands);
      element = b.CreateSelect(operands[0], operands[1], operands[2]);
    }
  }
  for (auto [element, sum] : zip_equal(point, accumulator)) {
    Value *operands[] = {element, sum};
    e.align(operands);
    element = operands[0];
    sum = operands[1];
  }
  // A product is added to its sum by one instruction, without being rounded in between.
  IRBuilder<>::FastMathFlagGuard guard(b);
  FastMathFlags flags = b.getFastMathFlags();
  flags.setAllowContract(op.getKind() == ReduceKind::Sum);
  b.setFastMathFlags(flags);
  return combine(e, op, accumulator, point);
}

Accumulator tegula::combine(ScalarEmitter &e, tgl::ReduceOp op, const Accumulator &lhs,
                            const Accumulator &rhs) {
  return combine(e, op.getKind(), lhs, rhs);
}
