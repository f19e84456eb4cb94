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
// A sum may be lost alone: where a row has a 0 just where a column has what is large. One that is smaller still, 2^-5 of what a
// neighbourhood may be, its warp adds up again from the operands, point by point, and puts it into its place in shared memory: of
// ordinary data one in 2^19 is that small by chance, one of 30 tiles of 128 x 128 has such a sum.
//
// Sums of zeros alone are 0 and right. So that they are known from those of which all is lost, an element that is not 0
// has a plane that is not 0. What such elements of a unit keep is not of their own sign: of numbers of one sign it would be a part
// of all sums, and not of alternating signs: of equal factors it would add up to 0.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

/// The least number of f16 above 0; what is not larger than its half is rounded to 0.
static constexpr double leastOfPlane = 0x1p-24;
static constexpr int lostExponent = -25;

/// Fours of a thread's sums with a lone one that are added up again by themselves.
static constexpr unsigned mostLone = 2;

/// What an element of a unit that would be 0 is instead, before scaling if `least` is.
static Value *keptElement(IRBuilder<> &b, Value *least, unsigned place) {
  static_assert(PlaneTile::unit == 8);
  constexpr StringLiteral signs = "++-+-++-";
  return signs[place] == '-' ? b.CreateFNeg(least) : least;
}

/// Exponents of the size of sums, over sqrt(K), from which on what was lost is not looked for: errors of sums of that size are
/// 2^-20 of them; where values are rounded to TF32's 11 bits, 2^-13; of windows, which share a scale with far more elements
/// and are as small as this next to where an image is dark, 2^-17.
static int smallSumExponent(bool isRounded, bool hasWindow) { return isRounded ? -4 : hasWindow ? 0 : 3; }
/// The same of a sum alone, less that: errors are 2^-15, 2^-11 and 2^-12. A row's or a column's sums are that small together or
/// not at all, unless by chance, and what is computed again by chance takes time.
static int aloneExponent(bool isRounded) { return isRounded ? 2 : 5; }

/// The `scaled` value of a unit's element `place`; not 0 where the element is not.
Value *DeviceContraction::keepNonZero(Value *element, Value *scaled, unsigned place) {
  Type *type = b.getFloatTy();
  Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, scaled);
  Value *isSmall = b.CreateFCmpOLE(size, ConstantFP::get(type, std::ldexp(1.0, lostExponent)));
  Value *isLost = b.CreateAnd(isSmall, b.CreateFCmpONE(element, ConstantFP::get(type, 0)));
  return b.CreateSelect(isLost, keptElement(b, ConstantFP::get(type, leastOfPlane), place), scaled);
}

/// A unit to be stored with this scale, none of whose elements is lost. That one is is rare: few instructions find out.
Value *DeviceContraction::keepUnit(Value *unit, Value *scale) {
  constexpr int bias = 127, mantissaBits = 23;
  unsigned count = PlaneTile::unit;
  auto splat = [&](Value *value) { return b.CreateVectorSplat(count, value); };
  // Numbers up to that are lost: a power of two, as the scale is.
  Value *least = b.CreateSub(i32((2 * bias + lostExponent) << mantissaBits), b.CreateBitCast(scale, b.getInt32Ty()));
  least = b.CreateBinaryIntrinsic(Intrinsic::smax, least, i32(0));
  // Without their signs, and with 0 the largest, one comparison of words tells.
  Value *words = b.CreateBitCast(unit, FixedVectorType::get(b.getInt32Ty(), count));
  Value *smallest = b.CreateIntMinReduce(b.CreateSub(b.CreateShl(words, splat(i32(1))), splat(i32(1))), /*IsSigned=*/false);
  auto keep = [&]() -> Value * {
    Value *limit = b.CreateBitCast(least, b.getFloatTy());
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, unit), *kept = PoisonValue::get(unit->getType());
    Value *large = b.CreateFMul(limit, ConstantFP::get(b.getFloatTy(), leastOfPlane * std::ldexp(1.0, -lostExponent)));
    for (unsigned place = 0; place < count; ++place)
      kept = b.CreateInsertElement(kept, keptElement(b, large, place), uint64_t(place));
    Value *isSomething = b.CreateFCmpONE(unit, Constant::getNullValue(unit->getType()));
    Value *isLost = b.CreateAnd(b.CreateFCmpOLE(size, splat(limit)), isSomething);
    return b.CreateSelect(isLost, kept, unit);
  };
  return e.emitIfElse(b.CreateICmpULT(smallest, b.CreateShl(least, i32(1))), keep, unit);
}

/// The size of sums of the block, scales still in them, below which neighbours may be what was lost; a power of two (f32).
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

/// What the sizes of a thread's sums are looked at in: for each two of its rows that its sums are in, all bits but signs where the
/// row is the statement's, none where it is not. Such a row is the last again: what it tells would be told as often.
std::array<Value *, 2> DeviceContraction::masksOfRows(Value *row) {
  constexpr uint32_t withoutSigns = 0x7fff7fff;
  std::array<Value *, 2> masks{i32(withoutSigns), i32(withoutSigns)};
  for (unsigned which = 0; !here.rows.fits && which < 2; ++which) {
    Value *number = b.CreateAdd(here.rows.first, wide(b.CreateAdd(row, i32(8 * which))));
    masks[which] = b.CreateSelect(b.CreateICmpSLT(number, here.rows.total), masks[which], i32(0));
  }
  return masks;
}

/// Whether a neighbourhood of this thread's sums is small, and not 0, and which of its sums are smaller still; scales are
/// still in them.
DeviceContraction::Doubts DeviceContraction::findDoubts(const PlaneProduct &product, ArrayRef<Value *> sums) {
  constexpr int nextRow = 4; // lanes: rows follow each other (Warpgroup.h)
  // Upper halves tell: the limit is a power of two, and sums that are not 0 are no less than products of planes, 2^-48. A word
  // has those of two columns, without signs.
  constexpr uint32_t halves = 0x7632;
  Type *word = b.getInt32Ty(), *pairOfHalves = FixedVectorType::get(b.getInt16Ty(), 2);
  TilePlace place = groupSum(b, tile, here.thread, here.lane, i32(0));
  std::array<Value *, 2> masks = masksOfRows(place.row);
  auto bitsOf = [&](unsigned number) { return b.CreateBitCast(sums[number], word); };
  // With 0 the largest number: so is what is next to it, and one comparison tells.
  auto order = [&](Value *sizes) { return b.CreateSub(sizes, ConstantInt::get(sizes->getType(), 1)); };
  auto sizesAt = [&](unsigned number) {
    Value *pair = b.CreateIntrinsic(word, Intrinsic::nvvm_prmt, {bitsOf(number), bitsOf(number + 1), i32(halves)});
    return order(b.CreateBitCast(b.CreateAnd(pair, masks[number / 2 % 2]), pairOfHalves));
  };
  auto larger = [&](Value *one, Value *other) { return b.CreateBinaryIntrinsic(Intrinsic::umax, one, other); };
  auto smaller = [&](Value *one, Value *other) { return b.CreateBinaryIntrinsic(Intrinsic::umin, one, other); };
  auto choose = [&](Value *condition, Value *one, Value *other) { return b.CreateSelect(condition, one, other); };

  // Of two words of columns a lane and that of the next row have one each to look at.
  Value *isNext = b.CreateICmpNE(b.CreateAnd(here.lane, i32(nextRow)), i32(0));
  Value *ofRows[2] = {}, *leastOfColumns = Constant::getAllOnesValue(pairOfHalves), *leastOfAll = leastOfColumns;
  SmallVector<Value *> ofFours;
  for (unsigned number = 0; number < sums.size(); number += 8) {
    Value *ofColumns[2];
    for (unsigned which = 0; which < 2; ++which) {
      Value *own[] = {sizesAt(number + 4 * which), sizesAt(number + 4 * which + 2)};
      for (unsigned row = 0; row < 2; ++row)
        ofRows[row] = ofRows[row] ? larger(ofRows[row], own[row]) : own[row];
      ofColumns[which] = b.CreateBitCast(larger(own[0], own[1]), word);
      ofFours.push_back(smaller(own[0], own[1]));
      leastOfAll = smaller(leastOfAll, ofFours.back());
    }
    Value *given = choose(isNext, ofColumns[0], ofColumns[1]), *kept = choose(isNext, ofColumns[1], ofColumns[0]);
    given = b.CreateIntrinsic(word, Intrinsic::nvvm_shfl_sync_bfly_i32, {i32(-1), given, i32(nextRow), i32(31)});
    Value *both = larger(b.CreateBitCast(kept, pairOfHalves), b.CreateBitCast(given, pairOfHalves));
    leastOfColumns = smaller(leastOfColumns, both);
  }
  auto half = [&](Value *halves, unsigned number) { return b.CreateExtractElement(halves, number); };
  auto leastHalf = [&](Value *halves) { return smaller(half(halves, 0), half(halves, 1)); };
  Value *leastOfRows = nullptr;
  for (Value *ofRow : ofRows) {
    Value *both = larger(half(ofRow, 0), half(ofRow, 1));
    leastOfRows = leastOfRows ? smaller(leastOfRows, both) : both;
  }
  // Columns beyond the last are the last again: four of the thread's are others.
  if (!here.columns.fits) {
    Value *fourth = b.CreateAdd(here.columns.first, wide(b.CreateAdd(place.column, i32(9))));
    Value *mostly = Constant::getAllOnesValue(b.getInt16Ty());
    leastOfRows = choose(b.CreateICmpSLT(fourth, here.columns.total), leastOfRows, mostly);
  }
  // As sizes in order.
  auto limitOf = [&](Value *limit) {
    Value *upper = b.CreateLShr(b.CreateBitCast(limit, word), i32(16));
    return order(b.CreateTrunc(upper, b.getInt16Ty()));
  };
  Value *limit = smallestSum(product);
  double fraction = std::ldexp(1.0, -aloneExponent(products[product.number].isRounded));
  Value *ofAlone = limitOf(b.CreateFMul(limit, ConstantFP::get(b.getFloatTy(), fraction)));
  Doubts doubts;
  doubts.isUnsafe = b.CreateICmpULT(smaller(leastHalf(leastOfColumns), leastOfRows), limitOf(limit));
  doubts.lone = e.emitIfElse(
      b.CreateICmpULT(leastHalf(leastOfAll), ofAlone),
      [&] {
        Value *both = b.CreateVectorSplat(2, ofAlone), *mask = i32(0);
        for (auto [number, ofFour] : enumerate(ofFours)) {
          Value *isLone = b.CreateICmpNE(b.CreateBitCast(smaller(ofFour, both), word), b.CreateBitCast(both, word));
          mask = choose(isLone, b.CreateOr(mask, i32(int64_t(1) << number)), mask);
        }
        return mask;
      },
      i32(0));
  // Of many the whole tile is sooner added up again.
  Value *areMany = b.CreateICmpUGT(b.CreateUnaryIntrinsic(Intrinsic::ctpop, doubts.lone), i32(mostLone));
  doubts.isUnsafe = b.CreateOr(doubts.isUnsafe, areMany);
  return doubts;
}

//===----------------------------------------------------------------------===//
// Lone sums again
//===----------------------------------------------------------------------===//

/// The block's sums of two of the tile's rows and two of its columns (i32), rows first, the same for the warp, which adds them up in
/// f32.
std::array<Value *, 4> DeviceContraction::sumUpFour(PlaneProduct product, ArrayRef<Value *> rows,
                                                    ArrayRef<Value *> columns) {
  constexpr unsigned warpThreads = 32;
  product.row.vector = product.column.vector = 1;
  int64_t pointsOfStep = int64_t(product.row.shared.depth()) * product.substeps;
  assert(pointsOfStep % warpThreads == 0 && "a unit has 8, a line of a stage 4 or 8 units");
  // Points of a thread whose loads are under way together.
  unsigned atOnce = pointsOfStep % (2 * warpThreads) ? 1 : 2;
  Value *points = b.CreateMul(product.sum.steps, i64(pointsOfStep)), *zero = ConstantFP::get(b.getFloatTy(), 0);
  auto numbersOf = [&](const PlaneOperand &operand, ArrayRef<Value *> lines) {
    return std::array{numberOf(operand, wide(lines[0]), 1), numberOf(operand, wide(lines[1]), 1)};
  };
  std::array<Value *, 2> rowNumbers = numbersOf(product.row, rows), columnNumbers = numbersOf(product.column, columns);
  e.nextLoopStays = true;
  SmallVector<Value *> sums = e.emitLoop(
      i64(0), points, i64(warpThreads * atOnce), SmallVector<Value *>(4, zero),
      [&](Value *first, ArrayRef<Value *> current) {
        SmallVector<Value *> next(current), factors[2];
        for (unsigned n = 0; n < atOnce; ++n) {
          Value *point = b.CreateAdd(first, wide(b.CreateAdd(here.lane, i32(n * warpThreads))));
          Value *step = stepInSum(product.sum, b.CreateUDiv(point, i64(pointsOfStep)));
          Value *k = b.CreateAdd(b.CreateMul(step, i64(pointsOfStep)), b.CreateURem(point, i64(pointsOfStep)));
          for (Value *number : rowNumbers)
            factors[n].push_back(loadElement(product, product.row, k, number));
          for (Value *number : columnNumbers)
            factors[n].push_back(loadElement(product, product.column, k, number));
        }
        for (ArrayRef<Value *> its : ArrayRef(factors, atOnce))
          for (unsigned number = 0; number < 4; ++number)
            next[number] = b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma,
                                             {its[number / 2], its[2 + number % 2], next[number]});
        return next;
      },
      "point");
  for (Value *&sum : sums)
    for (unsigned apart = warpThreads / 2; apart; apart /= 2)
      sum = b.CreateFAdd(sum, b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_shfl_sync_bfly_f32,
                                                {i32(-1), sum, i32(apart), i32(31)}));
  return {sums[0], sums[1], sums[2], sums[3]};
}

/// Puts what lone sums are into their places among those from `base` on, where all of the warp's are; its threads come here
/// together.
void DeviceContraction::mendLoneSums(const PlaneProduct &product, const Doubts &doubts, unsigned base) {
  Type *word = b.getInt32Ty();
  auto first = [&](Value *bits) { return b.CreateBinaryIntrinsic(Intrinsic::cttz, bits, b.getFalse()); };
  Value *own = b.CreateUnaryIntrinsic(Intrinsic::ctpop, doubts.lone);
  Value *total = b.CreateIntrinsic(word, Intrinsic::nvvm_redux_sync_add, {own, i32(-1)});
  e.nextLoopStays = true;
  e.emitLoop(
      i64(0), wide(total), i64(1), doubts.lone,
      [&](Value *, ArrayRef<Value *> left) -> SmallVector<Value *> {
        // The first four of the first thread that has some.
        Value *hasSome = b.CreateICmpNE(left.front(), i32(0));
        Value *owner = first(b.CreateIntrinsic(word, Intrinsic::nvvm_vote_ballot_sync, {i32(-1), hasSome}));
        Value *number = b.CreateIntrinsic(word, Intrinsic::nvvm_shfl_sync_idx_i32,
                                          {i32(-1), b.CreateShl(first(left.front()), i32(2)), owner, i32(31)});
        TilePlace place = groupSum(b, tile, here.thread, owner, number);
        Value *rows[] = {place.row, b.CreateAdd(place.row, i32(8))};
        Value *columns[] = {place.column, b.CreateAdd(place.column, i32(1))};
        std::array<Value *, 4> sums = sumUpFour(product, rows, columns);
        Value *isOwner = b.CreateICmpEQ(here.lane, owner);
        e.emitIf(isOwner, [&] {
          Value *inGroup = b.CreateSub(place.column, groupCorner(b, tile, here.thread).column);
          for (unsigned which = 0; which < 2; ++which)
            storePair(sums[2 * which], sums[2 * which + 1],
                      here.sumPlace(rows[which], b.CreateAdd(here.placedCorner(), inGroup), base));
        });
        Value *rest = b.CreateAnd(left.front(), b.CreateSub(left.front(), i32(1)));
        return {b.CreateSelect(isOwner, rest, left.front())};
      },
      "alone");
}
