//===- SplitPrecision.cpp - f32 elements as scaled sums of 16-bit terms -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 values keep their accuracy (Ootomo and Yokota, arXiv 2203.03341): x * s = h + l with h the
// nearest number of f16 and l that of the rest, products hh, hl and lh. The power of two s puts the
// largest element of a row's (or column's) first step below 2^10: so all up to 64 times as large
// fit, and elements down to 2^-12 of it keep 22 bits, smaller ones an error of 2^-34 of it. Tensor
// cores truncate what they add up: sums are kept for 32 or 64 points of the sum and added to f32
// sums in registers.
//
// Where that does not hold a tile is computed again by mmaMainloop: where a sum is not finite (an
// element too large, or itself not finite), or as small as what was lost of it (AccuracyCheck.cpp).
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/SplitPrecision.h"

#include "codegen/nvgpu/BF16Terms.h"
#include "target/DeviceFacts.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Exponent of the scale where that step is 0: for elements below 2^10.
static constexpr int zeroStepExponent = 6;

/// The exponent of half the least number of f16 above 0: what is not larger is rounded to 0.
static constexpr int underflowExponent = -25;

/// The bits of f16 that an element of a unit has instead of 0.
static uint32_t underflowBits(unsigned place) {
  static_assert(WgmmaSharedLayout::chunk == 8);
  constexpr StringLiteral signs = "++-+-++-";
  return signs[place] == '-' ? 0x8001 : 0x0001;
}

/// Some neighbours in a wide line are less than its largest times two to that. Where half of all
/// elements are 0 that is one line in 1000.
static constexpr int wideExponent = -12;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Of what is kept of lines, word `number` (i32).
Value *SplitPrecision::lineScaleWord(Value *number) {
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(memory.linesBase())));
}

/// Where bits of the largest absolute value of a line's first step are; or one over its scale.
Value *SplitPrecision::lineScaleAddress(LineValue which, Value *line) {
  return lineScaleWord(b.CreateAdd(line, i32(unsigned(which) * (tile.rows + tile.columns))));
}

/// Where one over the scale of a line is.
Value *SplitPrecision::scaleOfLine(const WgmmaProduct &product, Value *line) {
  if (!numbers.isPrepacked())
    return lineScaleAddress(LineValue::InverseScale, line);
  return lineScaleWord(product.scalesBefore ? b.CreateAdd(product.scalesBefore, line) : line);
}

/// The power of two for a line that puts its maximum, as bits, from 2^`scaledExponent` on and below
/// twice that; or one over it.
Value *SplitPrecision::scaleOf(Value *maximum, bool isInverse, int scaledExponent) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(maximum, i32(mantissaBits));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, exponent, i32(scaledExponent + 1));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umin, exponent, i32(2 * bias));
  exponent = b.CreateSelect(b.CreateICmpEQ(maximum, i32(0)),
                            i32(bias + scaledExponent - zeroStepExponent), exponent);
  Value *scale = isInverse ? b.CreateSub(exponent, i32(scaledExponent))
                           : b.CreateSub(i32(2 * bias + scaledExponent), exponent);
  return b.CreateBitCast(b.CreateShl(scale, i32(mantissaBits)), b.getFloatTy());
}

/// One over the scale of a line of which that is the `largest` of the first step and that the
/// `least`, less 1, of what is the largest of neighbours and not 0, as bits: below 0 where the line
/// is wide.
Value *SplitPrecision::inverseScale(Value *largest, Value *least, int scaledExponent) {
  constexpr int mantissaBits = 23;
  Value *limit =
      b.CreateBinaryIntrinsic(Intrinsic::usub_sat, largest, i32(-wideExponent << mantissaBits));
  Value *inverse = scaleOf(largest, /*isInverse=*/true, scaledExponent);
  return b.CreateSelect(b.CreateICmpULT(least, limit), b.CreateFNeg(inverse), inverse);
}

/// Makes what is at `largest` in shared memory the bits of `value` at least, and what is at `least`
/// these, less 1, at most: of 0 that is the largest number.
void SplitPrecision::noteLargest(Value *largest, Value *least, Value *value) {
  SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("block");
  Value *bits = b.CreateBitCast(value, b.getInt32Ty());
  b.CreateAtomicRMW(AtomicRMWInst::UMax, largest, bits, Align(4), AtomicOrdering::Monotonic, scope);
  b.CreateAtomicRMW(AtomicRMWInst::UMin, least, b.CreateSub(bits, i32(1)), Align(4),
                    AtomicOrdering::Monotonic, scope);
}

Value *SplitPrecision::largestOf(Value *chunk) {
  return b.CreateFPMaxReduce(b.CreateUnaryIntrinsic(Intrinsic::fabs, chunk));
}

/// Takes the scales out of the sums of the tile. (Signs say something else: AccuracyCheck.cpp.)
void SplitPrecision::unscale(const WgmmaProduct &product, MutableArrayRef<Value *> accumulators) {
  // Places are a constant from the first, which the optimiser does not see.
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  Value *ofRow = scaleOfLine(product, first.row);
  Value *ofColumn = scaleOfLine(product, b.CreateAdd(first.column, i32(product.b.firstLine)));
  auto load = [&](Value *place, Type *type, unsigned further) {
    Value *from = b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4);
    return b.CreateUnaryIntrinsic(
        Intrinsic::fabs,
        b.CreateAlignedLoad(type, from, Align(type->getPrimitiveSizeInBits() / 8)));
  };
  Value *rows[] = {load(ofRow, b.getFloatTy(), 0), load(ofRow, b.getFloatTy(), 8)},
        *columns = nullptr;
  for (auto [number, sum] : enumerate(accumulators)) {
    if (number % 4 == 0) // of two neighbours, for two rows
      columns = load(ofColumn, FixedVectorType::get(b.getFloatTy(), 2), number * 2);
    sum = b.CreateFMul(b.CreateFMul(sum, rows[number / 2 % 2]),
                       b.CreateExtractElement(columns, number % 2));
  }
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

/// Whether one of these four words of f16 has a 0.
static Value *hasZero(IRBuilder<> &b, Value *words) {
  auto *pair = FixedVectorType::get(b.getHalfTy(), 2);
  auto sizeAt = [&](unsigned number) {
    return b.CreateUnaryIntrinsic(
        Intrinsic::fabs, b.CreateBitCast(b.CreateExtractElement(words, uint64_t(number)), pair));
  };
  auto smaller = [&](Value *one, Value *other) { return b.CreateMinimum(one, other); };
  Value *least = smaller(smaller(sizeAt(0), sizeAt(1)), smaller(sizeAt(2), sizeAt(3)));
  return b.CreateOrReduce(b.CreateFCmpOEQ(least, Constant::getNullValue(pair)));
}

/// `words`, the large parts of a unit times its scale, where no element is 0 that is not 0 in the
/// unit. That one is is rare, and of numbers that are not 0 few instructions find out.
Value *SplitPrecision::keepNonZero(Value *chunk, Value *scale, Value *words) {
  constexpr int bias = 127, mantissaBits = 23;
  constexpr unsigned count = WgmmaSharedLayout::chunk;
  auto splat = [&](Value *value) { return b.CreateVectorSplat(count, value); };
  auto keepSome = [&]() -> Value * {
    // Numbers up to that are lost: a power of two, as the scale is.
    Value *least = b.CreateSub(i32((2 * bias + underflowExponent) << mantissaBits),
                               b.CreateBitCast(scale, b.getInt32Ty()));
    least = b.CreateBinaryIntrinsic(Intrinsic::smax, least, i32(0));
    // Without their signs, and with 0 the largest, one comparison of words tells.
    Value *bits = b.CreateShl(b.CreateBitCast(chunk, FixedVectorType::get(b.getInt32Ty(), count)),
                              splat(i32(1)));
    Value *smallest = b.CreateIntMinReduce(b.CreateSub(bits, splat(i32(1))), /*IsSigned=*/false);
    auto keep = [&]() -> Value * {
      Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, chunk);
      Value *isSmall = b.CreateFCmpOLE(size, splat(b.CreateBitCast(least, b.getFloatTy())));
      Value *isLost = b.CreateAnd(isSmall,
                                  b.CreateFCmpONE(chunk, Constant::getNullValue(chunk->getType()))),
            *kept = words;
      for (unsigned place = 0; place < count; ++place) {
        Value *word = b.CreateExtractElement(kept, uint64_t(place / 2));
        unsigned shift = place % 2 * 16;
        Value *its = b.CreateOr(b.CreateAnd(word, i32(~(0xffffu << shift))),
                                i32(underflowBits(place) << shift));
        word = b.CreateSelect(b.CreateExtractElement(isLost, uint64_t(place)), its, word);
        kept = b.CreateInsertElement(kept, word, uint64_t(place / 2));
      }
      return kept;
    };
    return e.emitIfElse(b.CreateICmpULT(smallest, b.CreateShl(least, i32(1))), keep, words);
  };
  return e.emitIfElse(hasZero(b, words), keepSome, words);
}

/// A unit as the sum of three vectors of bf16, four words each, the largest first: its first eight
/// bits, the next and the last. Bits are cut off, so that no term is infinite where the element is
/// not. What is left of an infinity is NaN, and an infinity times a term of 0 is: sums show it.
SmallVector<Value *> SplitPrecision::bf16Terms(Value *chunk) {
  constexpr unsigned count = WgmmaSharedLayout::chunk;
  SmallVector<Value *> terms;
  for (unsigned term = 0; term < device::bf16Terms; ++term) {
    Value *own = PoisonValue::get(FixedVectorType::get(b.getInt32Ty(), count / 2));
    for (unsigned word = 0; word < count / 2; ++word)
      own =
          b.CreateInsertElement(own,
                                upperHalves(b, b.CreateExtractElement(chunk, uint64_t(2 * word)),
                                            b.CreateExtractElement(chunk, uint64_t(2 * word + 1))),
                                word);
    terms.push_back(own);
    if (term + 1 < device::bf16Terms)
      chunk = withoutUpperHalf(b, chunk);
  }
  return terms;
}

/// A unit times its line's scale as the sum of one or two vectors of f16, four words each. Elements
/// that are not 0 have a large part that is not 0.
std::array<Value *, 2> SplitPrecision::splitChunk(Value *chunk, Value *scale, unsigned terms) {
  auto *words = FixedVectorType::get(b.getInt32Ty(), WgmmaSharedLayout::chunk / 2);
  std::array<Value *, 2> result{PoisonValue::get(words), PoisonValue::get(words)};
  for (unsigned word = 0; word < WgmmaSharedLayout::chunk / 2; ++word) {
    std::array<Value *, 2> values;
    for (unsigned n = 0; n < 2; ++n) {
      Value *element = b.CreateExtractElement(chunk, uint64_t(2 * word + n));
      values[n] = b.CreateFMul(element, scale);
    }
    for (unsigned term = 0; term < terms; ++term) {
      Value *pair = b.CreateIntrinsic(Intrinsic::nvvm_ff2f16x2_rn, {values[1], values[0]});
      result[term] =
          b.CreateInsertElement(result[term], b.CreateBitCast(pair, b.getInt32Ty()), word);
      for (unsigned n = 0; n < 2; ++n)
        values[n] = b.CreateFSub(
            values[n], b.CreateFPExt(b.CreateExtractElement(pair, uint64_t(n)), b.getFloatTy()));
    }
  }
  result[0] = keepNonZero(chunk, scale, result[0]);
  return result;
}
