//===- LostBits.cpp - Sums of what planes could not hold --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element far below its line's largest keeps fewer bits in planes of f16 than f32 has: its error is up to 2^-25 of
// what scaling makes 2^9 to 2^10 (WarpgroupRoles.cpp). That says nothing where what it is multiplied with is as large as
// all else: large terms make it a part of a sum's error that f32's own roundings exceed. It says everything where the
// other operand makes up for it, as where columns of one have other units and rows of the other take them out again, or
// where what is large meets zeros: then sums are as small as their errors.
//
// So sums tell. With the scales still in them the terms that were lost are, over K points,
//
//   2^-25 / sqrt(3) * sqrt(2 K) * 2^8.5 = 2^-16.8 sqrt(K)
//
// of either sign (roundings are independent, and 2^8.5 is the size of a normal number where the largest of 64 is below
// 2^10), where products of normal numbers have sums of 2^17 sqrt(K). A tile is added up again, with care, where a
// neighbourhood of sums is small beside that: the sums of a thread along a row; or, along a column, four of rows that
// follow each other. Of ordinary data one sum may be that small, not four of them. A neighbourhood with a sum of 0 says nothing:
// beside where operands have zeros alone, as along the diagonal of a triangular matrix, sums have few terms, and many are small.
//
// Sums of zeros alone are 0 and right. So that they are known from those of which all is lost, an element that is not 0
// has a plane that is not 0.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// The least number of f16 above 0.
static constexpr double leastOfPlane = 0x1p-24;
static constexpr int leastExponent = -24;

/// Exponents of the size of sums, over sqrt(K), from which on what was lost is not looked for: errors of sums of that size are
/// 2^-20 of them; where values are rounded to TF32's 11 bits, 2^-13; of windows, which share a scale with far more elements
/// and are as small as this next to where an image is dark, 2^-17.
static int smallSumExponent(bool isRounded, bool hasWindow) { return isRounded ? -4 : hasWindow ? 0 : 3; }

/// The element's `scaled` value; not 0 where it is not.
Value *DeviceContraction::keepNonZero(Value *element, Value *scaled) {
  Type *type = b.getFloatTy();
  Value *isSmall = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(Intrinsic::fabs, scaled), ConstantFP::get(type, leastOfPlane));
  Value *isLost = b.CreateAnd(isSmall, b.CreateFCmpONE(element, ConstantFP::get(type, 0)));
  Value *least = b.CreateBinaryIntrinsic(Intrinsic::copysign, ConstantFP::get(type, leastOfPlane), element);
  return b.CreateSelect(isLost, least, scaled);
}

/// A unit to be stored with this scale, none of whose elements is lost. That one is is rare: few instructions find out.
Value *DeviceContraction::keepUnit(Value *unit, Value *scale) {
  constexpr int bias = 127, mantissaBits = 23;
  unsigned count = PlaneTile::unit;
  auto splat = [&](Value *value) { return b.CreateVectorSplat(count, value); };
  // Numbers below that are lost: a power of two, as the scale is.
  Value *least = b.CreateSub(i32((2 * bias + leastExponent) << mantissaBits), b.CreateBitCast(scale, b.getInt32Ty()));
  least = b.CreateBinaryIntrinsic(Intrinsic::smax, least, i32(0));
  // Without their signs, and with 0 the largest, one comparison of words tells.
  Value *words = b.CreateBitCast(unit, FixedVectorType::get(b.getInt32Ty(), count));
  Value *smallest = b.CreateIntMinReduce(b.CreateSub(b.CreateShl(words, splat(i32(1))), splat(i32(1))), /*IsSigned=*/false);
  auto keep = [&]() -> Value * {
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, unit), *limit = splat(b.CreateBitCast(least, b.getFloatTy()));
    Value *isSomething = b.CreateFCmpONE(unit, Constant::getNullValue(unit->getType()));
    Value *isLost = b.CreateAnd(b.CreateFCmpOLT(size, limit), isSomething);
    return b.CreateSelect(isLost, b.CreateBinaryIntrinsic(Intrinsic::copysign, limit, unit), unit);
  };
  return e.emitIfElse(b.CreateICmpULT(smallest, b.CreateShl(least, i32(1))), keep, unit);
}

/// The size of sums of the block, scales still in them, below which they may be what was lost; a power of two (f32).
Value *DeviceContraction::smallestSum(const PlaneProduct &product) {
  constexpr int bias = 127, mantissaBits = 23;
  int64_t pointsOfStep = int64_t(product.row.shared.depth()) * product.substeps;
  Value *points = b.CreateTrunc(b.CreateMul(product.sum.steps, i64(pointsOfStep)), b.getInt32Ty());
  // The exponent of the next power of four.
  Value *bits = b.CreateSub(i32(33), b.CreateBinaryIntrinsic(Intrinsic::ctlz, points, b.getFalse()));
  bool hasWindow = product.row.window || product.column.window;
  Value *exponent = b.CreateAdd(b.CreateLShr(bits, i32(1)),
                                i32(bias + smallSumExponent(products[product.number].isRounded, hasWindow)));
  return b.CreateBitCast(b.CreateShl(exponent, i32(mantissaBits)), b.getFloatTy());
}

/// Whether a neighbourhood of this thread's sums is small, and not 0; scales are still in them.
Value *DeviceContraction::anySumTooSmall(const PlaneProduct &product, ArrayRef<Value *> sums) {
  constexpr int nextRow = 4; // lanes: rows follow each other (Warpgroup.h)
  // Upper halves tell: the limit is a power of two, and sums that are not 0 are no less than products of planes, 2^-48. A word
  // has those of two columns, without signs.
  constexpr uint32_t halves = 0x7632, withoutSigns = 0x7fff7fff;
  Type *pairOfHalves = FixedVectorType::get(b.getInt16Ty(), 2);
  auto bitsOf = [&](unsigned number) { return b.CreateBitCast(sums[number], b.getInt32Ty()); };
  // With 0 the largest number: so is what is next to it, and one comparison tells.
  auto order = [&](Value *sizes) { return b.CreateSub(sizes, ConstantInt::get(sizes->getType(), 1)); };
  auto sizesAt = [&](unsigned number) {
    Value *word = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_prmt, {bitsOf(number), bitsOf(number + 1), i32(halves)});
    return order(b.CreateBitCast(b.CreateAnd(word, i32(withoutSigns)), pairOfHalves));
  };
  auto larger = [&](Value *one, Value *other) { return b.CreateBinaryIntrinsic(Intrinsic::umax, one, other); };
  auto choose = [&](Value *condition, Value *one, Value *other) { return b.CreateSelect(condition, one, other); };

  // Of two words of columns a lane and that of the next row have one each to look at.
  Value *isNext = b.CreateICmpNE(b.CreateAnd(here.lane, i32(nextRow)), i32(0));
  Value *ofRows[2] = {}, *leastOfColumns = Constant::getAllOnesValue(pairOfHalves);
  for (unsigned number = 0; number < sums.size(); number += 8) {
    Value *ofColumns[2];
    for (unsigned which = 0; which < 2; ++which) {
      Value *own[] = {sizesAt(number + 4 * which), sizesAt(number + 4 * which + 2)};
      for (unsigned row = 0; row < 2; ++row)
        ofRows[row] = ofRows[row] ? larger(ofRows[row], own[row]) : own[row];
      ofColumns[which] = b.CreateBitCast(larger(own[0], own[1]), b.getInt32Ty());
    }
    Value *given = choose(isNext, ofColumns[0], ofColumns[1]), *kept = choose(isNext, ofColumns[1], ofColumns[0]);
    given = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_shfl_sync_bfly_i32, {i32(-1), given, i32(nextRow), i32(31)});
    Value *both = larger(b.CreateBitCast(kept, pairOfHalves), b.CreateBitCast(given, pairOfHalves));
    leastOfColumns = b.CreateBinaryIntrinsic(Intrinsic::umin, leastOfColumns, both);
  }
  auto half = [&](Value *halves, unsigned number) { return b.CreateExtractElement(halves, number); };
  Value *least = b.CreateBinaryIntrinsic(Intrinsic::umin, half(leastOfColumns, 0), half(leastOfColumns, 1));
  for (Value *ofRow : ofRows)
    least = b.CreateBinaryIntrinsic(Intrinsic::umin, least, larger(half(ofRow, 0), half(ofRow, 1)));
  Value *limit = b.CreateLShr(b.CreateBitCast(smallestSum(product), b.getInt32Ty()), i32(16));
  return b.CreateICmpULT(least, order(b.CreateTrunc(limit, b.getInt16Ty())));
}
