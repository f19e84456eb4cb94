//===- AccuracyCheck.cpp - Flags inaccurate sums of split-precision products ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An element far below its line's largest keeps fewer bits in planes of f16 than f32 has: its error
// is up to 2^-25 of what scaling makes 2^9 to 2^10 (load/SplitPrecision.cpp). That says nothing
// where what it is multiplied with is as large as all else: large terms make it a part of a sum's
// error that f32's own roundings exceed. It says everything where the other operand makes up for
// it, as where columns of one have other units and rows of the other take them out again, or where
// what is large meets zeros: then sums are as small as their errors.
//
// So sums tell. With the scales still in them the terms that were lost are, over K points,
//
//   2^-25 / sqrt(3) * sqrt(2 K) * 2^8.5 = 2^-16.8 sqrt(K)
//
// of either sign (roundings are independent, and 2^8.5 is the size of a normal number where the
// largest of 64 is below 2^10), where products of normal numbers have sums of 2^17 sqrt(K). A tile
// is added up again, with care, where all of a thread's sums are small beside that.
//
// Or where a neighbourhood is: the thread's sums along a row; or, along a column, four of rows that
// follow each other. Of random numbers one sum may be that small by chance, not four of them; but
// rows that are much alike, as deep in a network, have sums that are small together. What is lost
// of one line and not of all, though, is lost as that line is wide: what is large there meets
// zeros. Its first step, where its scale comes from, tells: eight neighbours are far below the
// step's largest. The sign of one over the scale says so. Where none of a thread's lines is wide,
// small is what is left of sums of which all was lost. A neighbourhood with a sum of 0 says
// nothing: beside where operands have zeros alone, as along the diagonal of a triangular matrix,
// sums have few terms, and many are small.
//
// A sum may be lost alone: where a row has a 0 just where a column has what is large. Where a line
// is wide its warp adds such a sum up again from the operands, point by point, and puts it into its
// place in shared memory, which takes as long as a tile of a short sum. By chance it happens to one
// sum in 2^30.
//
// Sums of zeros alone are 0 and right. So that they are known from those of which all is lost, an
// element that is not 0 has a plane that is not 0. What such elements of a unit keep is not of
// their own sign: of numbers of one sign it would be a part of all sums, and not of alternating
// signs: of equal factors it would add up to 0.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/AccuracyCheck.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

/// Fours of a warp's sums with a lone one that are added up again by themselves, one after the
/// other: of 4096 points each takes about 43 us, the whole tile by all warps 400 (128 x 128, an
/// H100; docs/rationale.md).
static constexpr unsigned maxFlaggedSums = 8;

/// Exponents of the size of sums, over sqrt(K), from which on what was lost is not looked for:
/// errors of sums of that size are 2^-20 of them; where values are rounded to TF32's 11 bits,
/// 2^-13; of windows, which share a scale with far more elements and are as small as this next to
/// where an image is dark, 2^-17.
static int smallSumExponent(bool isRounded, bool hasWindow) {
  return isRounded ? -4 : hasWindow ? 0 : 3;
}
/// The same of a sum alone, less that: errors are 2^-17, 2^-14 of windows, 2^-11 of values that are
/// rounded.
static int singleSumExponent(bool isRounded) { return isRounded ? 2 : 3; }
/// Where no line is wide, less that.
static constexpr int narrowExponent = 13;

//===----------------------------------------------------------------------===//
// Sums that are not finite
//===----------------------------------------------------------------------===//

/// A bit, the same for all threads of the block: whether a sum is not finite, or `orElse` holds in
/// any thread.
Value *AccuracyCheck::isAnyNotFinite(ArrayRef<Value *> accumulators, Value *orElse,
                                     bool flagsPerThread) {
  // 0 unless there is an infinity or NaN; of every fourth, so that they do not wait for each other.
  Value *zero = ConstantFP::get(b.getFloatTy(), 0), *parts[] = {zero, zero, zero, zero};
  for (auto [number, sum] : enumerate(accumulators))
    parts[number % 4] =
        b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma, {sum, zero, parts[number % 4]});
  Value *all = b.CreateFAdd(b.CreateFAdd(parts[0], parts[1]), b.CreateFAdd(parts[2], parts[3]));
  Value *own = b.CreateFCmpUNO(all, all);
  if (orElse)
    own = b.CreateOr(own, orElse);
  return flagsPerThread ? own : isAny(own);
}

/// Whether it is true for any of the threads that the code is for, which meet.
Value *AccuracyCheck::isAny(Value *own) {
  if (numbers.isWarpSpecialized())
    return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_count,
                             {i32(context.consumerBarrier), i32(numbers.threads()), own});
  return b.CreateIntrinsic(b.getInt1Ty(), Intrinsic::nvvm_barrier_cta_red_or_aligned_all,
                           {i32(0), own});
}

//===----------------------------------------------------------------------===//
// Sums that are small
//===----------------------------------------------------------------------===//

/// The size of sums of the block, scales still in them, below which neighbours may be what was
/// lost; a power of two (f32).
Value *AccuracyCheck::smallestSum(const WgmmaProduct &product) {
  constexpr int bias = 127, mantissaBits = 23;
  int64_t pointsOfStep = int64_t(product.a.shared.depth()) * product.substeps;
  Value *points =
      b.CreateTrunc(b.CreateMul(product.kLoop.steps, i64(pointsOfStep)), b.getInt32Ty());
  // The exponent of the next power of four.
  Value *bits =
      b.CreateSub(i32(33), b.CreateBinaryIntrinsic(Intrinsic::ctlz, points, b.getFalse()));
  bool hasWindow = product.a.window || product.b.window;
  Value *exponent =
      b.CreateAdd(b.CreateLShr(bits, i32(1)),
                  i32(bias + smallSumExponent(products[product.number].isRounded, hasWindow)));
  return b.CreateBitCast(b.CreateShl(exponent, i32(mantissaBits)), b.getFloatTy());
}

/// Whether one of this thread's lines is wide.
Value *AccuracyCheck::hasWideLine(const WgmmaProduct &product, TileCoord place,
                                  unsigned numAccumulators) {
  Type *word = b.getInt32Ty(), *pair = FixedVectorType::get(word, 2);
  Value *rows = precision.scaleOfLine(product, place.row);
  Value *columns =
      precision.scaleOfLine(product, b.CreateAdd(place.column, i32(product.b.firstLine)));
  auto at = [&](Value *from, Value *words) { return b.CreateInBoundsGEP(word, from, words); };
  Value *ofRows = b.CreateOr(b.CreateAlignedLoad(word, rows, Align(4)),
                             b.CreateAlignedLoad(word, at(rows, i32(8)), Align(4)));
  e.keepNextLoopRolled = true;
  Value *signs = e.emitLoop(
      i64(0), i64(2 * numAccumulators), i64(8), {ofRows}, // of every eight columns two
      [&](Value *column, ArrayRef<Value *> current) -> SmallVector<Value *> {
        Value *two = b.CreateAlignedLoad(pair, at(columns, b.CreateTrunc(column, word)), Align(8));
        Value *both = b.CreateOr(b.CreateExtractElement(two, uint64_t(0)),
                                 b.CreateExtractElement(two, uint64_t(1)));
        return {b.CreateOr(current.front(), both)};
      },
      "column")[0];
  return b.CreateICmpSLT(signs, i32(0));
}

/// What the sizes of a thread's sums are looked at in: for each two of its rows that its sums are
/// in, all bits but signs where the row is the statement's, none where it is not. Such a row is the
/// last again: what it tells would be told as often.
std::array<Value *, 2> AccuracyCheck::masksOfRows(Value *row) {
  constexpr uint32_t withoutSigns = 0x7fff7fff;
  std::array<Value *, 2> masks{i32(withoutSigns), i32(withoutSigns)};
  for (unsigned which = 0; !here.rows.fits && which < 2; ++which) {
    Value *number = b.CreateAdd(here.rows.first, wide(b.CreateAdd(row, i32(8 * which))));
    masks[which] = b.CreateSelect(b.CreateICmpSLT(number, here.rows.total), masks[which], i32(0));
  }
  return masks;
}

static Value *larger(IRBuilder<> &b, Value *one, Value *other) {
  return b.CreateBinaryIntrinsic(Intrinsic::umax, one, other);
}
static Value *smaller(IRBuilder<> &b, Value *one, Value *other) {
  return b.CreateBinaryIntrinsic(Intrinsic::umin, one, other);
}

/// Sizes so that 0 is the largest number: so is what is next to it, and one comparison tells.
static Value *order(IRBuilder<> &b, Value *sizes) {
  return b.CreateSub(sizes, ConstantInt::get(sizes->getType(), 1));
}

/// Of what is in the two halves of a word.
using Choice = Value *(IRBuilder<> &, Value *, Value *);
static Value *ofHalves(IRBuilder<> &b, Value *halves, Choice choose) {
  return choose(b, b.CreateExtractElement(halves, uint64_t(0)),
                b.CreateExtractElement(halves, uint64_t(1)));
}

/// How large this thread's sums are, in order. Upper halves tell: limits are powers of two, and
/// sums that are not 0 are no less than products of planes, 2^-48. A word has those of two columns.
AccuracyCheck::AccumulatorSizes AccuracyCheck::sizesOf(ArrayRef<Value *> accumulators,
                                                       TileCoord first) {
  constexpr int nextRow = 4; // lanes: rows follow each other (Wgmma.h)
  constexpr uint32_t halves = 0x7632;
  Type *word = b.getInt32Ty(), *pairOfHalves = FixedVectorType::get(b.getInt16Ty(), 2);
  std::array<Value *, 2> masks = masksOfRows(first.row);
  auto bitsOf = [&](unsigned number) { return b.CreateBitCast(accumulators[number], word); };
  auto sizesAt = [&](unsigned number) {
    Value *pair = b.CreateIntrinsic(word, Intrinsic::nvvm_prmt,
                                    {bitsOf(number), bitsOf(number + 1), i32(halves)});
    return order(b, b.CreateBitCast(b.CreateAnd(pair, masks[number / 2 % 2]), pairOfHalves));
  };
  auto choose = [&](Value *condition, Value *one, Value *other) {
    return b.CreateSelect(condition, one, other);
  };

  AccumulatorSizes sizes;
  // Of two words of columns a lane and that of the next row have one each to look at.
  Value *isNext = b.CreateICmpNE(b.CreateAnd(here.lane, i32(nextRow)), i32(0));
  Value *ofRows[2] = {}, *ofColumns = Constant::getAllOnesValue(pairOfHalves), *ofAll = ofColumns;
  for (unsigned number = 0; number < accumulators.size(); number += 8) {
    Value *ofTwo[2];
    for (unsigned which = 0; which < 2; ++which) {
      Value *own[] = {sizesAt(number + 4 * which), sizesAt(number + 4 * which + 2)};
      for (unsigned row = 0; row < 2; ++row)
        ofRows[row] = ofRows[row] ? larger(b, ofRows[row], own[row]) : own[row];
      ofTwo[which] = b.CreateBitCast(larger(b, own[0], own[1]), word);
      sizes.ofFours.push_back(smaller(b, own[0], own[1]));
      ofAll = smaller(b, ofAll, sizes.ofFours.back());
    }
    Value *given = choose(isNext, ofTwo[0], ofTwo[1]), *kept = choose(isNext, ofTwo[1], ofTwo[0]);
    given = b.CreateIntrinsic(word, Intrinsic::nvvm_shfl_sync_bfly_i32,
                              {i32(-1), given, i32(nextRow), i32(31)});
    ofColumns = smaller(
        b, ofColumns,
        larger(b, b.CreateBitCast(kept, pairOfHalves), b.CreateBitCast(given, pairOfHalves)));
  }
  Value *mostly = Constant::getAllOnesValue(b.getInt16Ty()), *minOfRows = mostly,
        *largest = b.getInt16(0);
  for (unsigned which = 0; which < 2; ++which) {
    Value *both = ofHalves(b, ofRows[which], larger);
    minOfRows = smaller(b, minOfRows, both);
    largest = larger(b, largest, choose(b.CreateICmpNE(masks[which], i32(0)), both, b.getInt16(0)));
  }
  // Columns beyond the last are the last again: four of the thread's are others. So are rows: one
  // of the thread's is another.
  Value *areOthers = b.CreateICmpNE(masks[0], i32(0));
  if (!here.columns.fits) {
    Value *fourth = b.CreateAdd(here.columns.first, wide(b.CreateAdd(first.column, i32(9))));
    areOthers = b.CreateAnd(areOthers, b.CreateICmpSLT(fourth, here.columns.total));
  }
  sizes.largest = choose(areOthers, largest, mostly);
  sizes.minOfNeighbourhoods =
      smaller(b, ofHalves(b, ofColumns, smaller), choose(areOthers, minOfRows, mostly));
  sizes.least = ofHalves(b, ofAll, smaller);
  return sizes;
}

/// Whether all of this thread's sums are small, or a neighbourhood of them, and not 0, and which of
/// its sums are alone; scales are still in them. The warp's threads come here together.
AccuracyFlags AccuracyCheck::flagInaccurate(const WgmmaProduct &product,
                                            ArrayRef<Value *> accumulators) {
  Type *word = b.getInt32Ty();
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  AccumulatorSizes sizes = sizesOf(accumulators, first);
  Value *limit = smallestSum(product);
  auto below = [&](int exponent) { // as sizes in order
    Value *less = b.CreateFMul(limit, ConstantFP::get(b.getFloatTy(), std::ldexp(1.0, -exponent)));
    return order(b,
                 b.CreateTrunc(b.CreateLShr(b.CreateBitCast(less, word), i32(16)), b.getInt16Ty()));
  };
  int alone = singleSumExponent(products[product.number].isRounded);
  auto look = [&]() -> SmallVector<Value *> {
    Value *isWide = hasWideLine(product, first, accumulators.size());
    auto limitOf = [&](int exponent) {
      return b.CreateSelect(isWide, below(exponent), below(exponent + narrowExponent));
    };
    Value *both = b.CreateVectorSplat(2, limitOf(alone)), *flagged = i32(0);
    for (auto [number, ofFour] : enumerate(sizes.ofFours)) {
      Value *isFlagged = b.CreateICmpNE(b.CreateBitCast(smaller(b, ofFour, both), word),
                                        b.CreateBitCast(both, word));
      flagged = b.CreateSelect(isFlagged, b.CreateOr(flagged, i32(int64_t(1) << number)), flagged);
    }
    return {b.CreateICmpULT(sizes.minOfNeighbourhoods, limitOf(0)), flagged};
  };
  Value *isSuspect = b.CreateOr(b.CreateICmpULT(sizes.minOfNeighbourhoods, below(0)),
                                b.CreateICmpULT(sizes.least, below(alone)));
  SmallVector<Value *> found = e.emitIfElse(isSuspect, look, {b.getFalse(), i32(0)});
  // Of many the whole tile is sooner added up again.
  Value *own = b.CreateUnaryIntrinsic(Intrinsic::ctpop, found[1]);
  Value *flagged = b.CreateIntrinsic(word, Intrinsic::nvvm_redux_sync_add, {own, i32(-1)});
  Value *areMany = b.CreateICmpUGT(flagged, i32(maxFlaggedSums));
  Value *isInaccurate =
      b.CreateOr(b.CreateOr(found[0], areMany), b.CreateICmpULT(sizes.largest, below(0)));
  return {isInaccurate, found[1], b.CreateSelect(areMany, i32(0), flagged)};
}

//===----------------------------------------------------------------------===//
// Single sums again
//===----------------------------------------------------------------------===//

/// The block's sums of two of the tile's rows and two of its columns (i32), rows first, the same
/// for the warp, which adds them up in f32.
std::array<Value *, 4> AccuracyCheck::recomputeFour(WgmmaProduct product, ArrayRef<Value *> rows,
                                                    ArrayRef<Value *> columns) {
  constexpr unsigned warpThreads = 32;
  product.a.vector = product.b.vector = 1;
  int64_t pointsOfStep = int64_t(product.a.shared.depth()) * product.substeps;
  assert(pointsOfStep % warpThreads == 0 && "a unit has 8, a line of a stage 4 or 8 units");
  // Points of a thread whose loads are under way together.
  unsigned atOnce = pointsOfStep % (2 * warpThreads) ? 1 : 2;
  Value *points = b.CreateMul(product.kLoop.steps, i64(pointsOfStep)),
        *zero = ConstantFP::get(b.getFloatTy(), 0);
  auto numbersOf = [&](const WgmmaOperand &operand, ArrayRef<Value *> lines) {
    return std::array{wgmmaLoads.numberOf(operand, wide(lines[0]), 1),
                      wgmmaLoads.numberOf(operand, wide(lines[1]), 1)};
  };
  std::array<Value *, 2> rowNumbers = numbersOf(product.a, rows),
                         columnNumbers = numbersOf(product.b, columns);
  e.keepNextLoopRolled = true;
  SmallVector<Value *> accumulators = e.emitLoop(
      i64(0), points, i64(warpThreads * atOnce), SmallVector<Value *>(4, zero),
      [&](Value *first, ArrayRef<Value *> current) {
        SmallVector<Value *> next(current), factors[2];
        for (unsigned n = 0; n < atOnce; ++n) {
          Value *point = b.CreateAdd(first, wide(b.CreateAdd(here.lane, i32(n * warpThreads))));
          Value *step = indices.stepInKLoop(product.kLoop, b.CreateUDiv(point, i64(pointsOfStep)));
          Value *k = b.CreateAdd(b.CreateMul(step, i64(pointsOfStep)),
                                 b.CreateURem(point, i64(pointsOfStep)));
          for (Value *number : rowNumbers)
            factors[n].push_back(wgmmaLoads.loadElement(product, product.a, k, number));
          for (Value *number : columnNumbers)
            factors[n].push_back(wgmmaLoads.loadElement(product, product.b, k, number));
        }
        for (ArrayRef<Value *> its : ArrayRef(factors, atOnce))
          for (unsigned number = 0; number < 4; ++number)
            next[number] = b.CreateIntrinsic(b.getFloatTy(), Intrinsic::fma,
                                             {its[number / 2], its[2 + number % 2], next[number]});
        return next;
      },
      "point");
  for (Value *&sum : accumulators)
    for (unsigned apart = warpThreads / 2; apart; apart /= 2)
      sum = b.CreateFAdd(sum, b.CreateIntrinsic(b.getFloatTy(), Intrinsic::nvvm_shfl_sync_bfly_f32,
                                                {i32(-1), sum, i32(apart), i32(31)}));
  return {accumulators[0], accumulators[1], accumulators[2], accumulators[3]};
}

/// Puts what lone sums are into their places among those from `base` on, where all of the warp's
/// are; its threads come here together.
void AccuracyCheck::recomputeFlagged(const WgmmaProduct &product, const AccuracyFlags &flags,
                                     unsigned base) {
  Type *word = b.getInt32Ty();
  auto first = [&](Value *bits) {
    return b.CreateBinaryIntrinsic(Intrinsic::cttz, bits, b.getFalse());
  };
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), wide(flags.numFlagged), i64(1), flags.flagged,
      [&](Value *, ArrayRef<Value *> left) -> SmallVector<Value *> {
        // The first four of the first thread that has some.
        Value *hasSome = b.CreateICmpNE(left.front(), i32(0));
        Value *owner =
            first(b.CreateIntrinsic(word, Intrinsic::nvvm_vote_ballot_sync, {i32(-1), hasSome}));
        Value *number =
            b.CreateIntrinsic(word, Intrinsic::nvvm_shfl_sync_idx_i32,
                              {i32(-1), b.CreateShl(first(left.front()), i32(2)), owner, i32(31)});
        TileCoord place = wgmmaAccumulatorAt(b, tile, here.thread, owner, number);
        Value *rows[] = {place.row, b.CreateAdd(place.row, i32(8))};
        Value *columns[] = {place.column, b.CreateAdd(place.column, i32(1))};
        std::array<Value *, 4> accumulators = recomputeFour(product, rows, columns);
        Value *isOwner = b.CreateICmpEQ(here.lane, owner);
        e.emitIf(isOwner, [&] {
          Value *inGroup = b.CreateSub(place.column, warpgroupCorner(b, tile, here.thread).column);
          for (unsigned which = 0; which < 2; ++which)
            storePair(accumulators[2 * which], accumulators[2 * which + 1],
                      here.accumulatorAddress(rows[which],
                                              b.CreateAdd(here.epilogueCorner(), inGroup), base));
        });
        Value *remaining = b.CreateAnd(left.front(), b.CreateSub(left.front(), i32(1)));
        return {b.CreateSelect(isOwner, remaining, left.front())};
      },
      "alone");
}
