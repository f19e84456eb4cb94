//===- StorageTypes.cpp - Element types of tensors as LLVM IR ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/StorageTypes.h"

#include "codegen/llvm/PtxVersion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

Type *StorageConverter::like(Value *shape, Type *scalar) {
  if (auto *vector = dyn_cast<VectorType>(shape->getType()))
    return VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

Value *StorageConverter::constant(Value *shape, uint64_t bits, unsigned width) {
  return ConstantInt::get(like(shape, b.getIntNTy(width)), bits);
}

StorageConverter::Format StorageConverter::formatOf(mlir::Type element) {
  if (element.isBF16())
    return {7, 8, 127, true, 0x7f7f, 0x7fc0};
  if (isa<mlir::Float8E4M3FNType>(element))
    return {3, 4, 7, false, 0x7e, 0x7f, 464}; // no infinity: overflow is nan
  assert(isa<mlir::Float8E5M2Type>(element) && "the element types with formats of their own");
  return {2, 5, 15, true, 0x7b, 0x7e, 61440};
}

/// To f32 such that a later rounding to fewer bits is right: what f32 cannot hold leaves an odd
/// last bit
/// ("round to odd", Boldo and Melquiond 2008).
Value *StorageConverter::toF32(Value *value) {
  Type *f32 = like(value, b.getFloatTy());
  if (!value->getType()->getScalarType()->isDoubleTy())
    return value;
  Value *rounded = b.CreateFPTrunc(value, f32);
  Value *back = b.CreateFPExt(rounded, value->getType());
  Type *i32 = like(value, b.getInt32Ty());
  Value *bits = b.CreateBitCast(rounded, i32);
  Value *inexact = b.CreateFCmpONE(back, value);
  Value *tooLarge = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(Intrinsic::fabs, back),
                                    b.CreateUnaryIntrinsic(Intrinsic::fabs, value));
  bits = b.CreateSub(bits, b.CreateZExt(tooLarge, i32));
  bits = b.CreateOr(bits, b.CreateZExt(inexact, i32));
  return b.CreateBitCast(bits, f32);
}

Value *StorageConverter::decodeSmall(Value *raw, const Format &format) {
  Type *i32 = like(raw, b.getInt32Ty()), *f32 = like(raw, b.getFloatTy());
  unsigned bits = 1 + format.mantissa + format.exponent;
  Value *wide = b.CreateZExt(raw, i32);
  Value *sign = b.CreateShl(b.CreateLShr(wide, bits - 1), 31);
  Value *magnitude = b.CreateAnd(wide, (1u << (bits - 1)) - 1);
  Value *shifted = b.CreateShl(magnitude, 23 - format.mantissa);
  // Subnormals are integers times a power of two; normal numbers get their exponent rebiased.
  Value *scale = ConstantFP::get(f32, std::ldexp(1.0, 1 - int(format.bias) - int(format.mantissa)));
  Value *subnormal = b.CreateFMul(b.CreateUIToFP(magnitude, f32), scale);
  Value *normal =
      b.CreateBitCast(b.CreateAdd(shifted, ConstantInt::get(i32, (127 - format.bias) << 23)), f32);
  Value *isSubnormal = b.CreateICmpULT(magnitude, ConstantInt::get(i32, 1u << format.mantissa));
  Value *absolute = b.CreateSelect(isSubnormal, subnormal, normal);
  if (format.hasInfinity) {
    Value *infinity = ConstantInt::get(i32, format.largest + 1);
    absolute =
        b.CreateSelect(b.CreateICmpEQ(magnitude, infinity), ConstantFP::getInfinity(f32), absolute);
    absolute =
        b.CreateSelect(b.CreateICmpUGT(magnitude, infinity), ConstantFP::getNaN(f32), absolute);
  } else {
    absolute = b.CreateSelect(b.CreateICmpUGT(magnitude, ConstantInt::get(i32, format.largest)),
                              ConstantFP::getNaN(f32), absolute);
  }
  return b.CreateBitCast(b.CreateOr(b.CreateBitCast(absolute, i32), sign), f32);
}

Value *StorageConverter::encodeSmall(Value *value, const Format &format) {
  value = toF32(value);
  Type *i32 = like(value, b.getInt32Ty()), *f32 = like(value, b.getFloatTy());
  unsigned bits = 1 + format.mantissa + format.exponent, dropped = 23 - format.mantissa;
  auto number = [&](uint32_t n) { return ConstantInt::get(i32, n); };
  Value *all = b.CreateBitCast(value, i32);
  Value *sign = b.CreateShl(b.CreateLShr(all, 31), bits - 1);
  Value *magnitude = b.CreateAnd(all, 0x7fffffff);

  // Normal numbers: add half of what is dropped, less one where the last kept bit is even.
  Value *odd = b.CreateAnd(b.CreateLShr(magnitude, dropped), number(1));
  Value *rounded = b.CreateAdd(magnitude, b.CreateAdd(odd, number((1u << (dropped - 1)) - 1)));
  Value *result = b.CreateLShr(rounded, dropped);
  if (format.exponent != 8) {
    result = b.CreateSub(result, number((127 - format.bias) << format.mantissa));
    // Subnormal results: adding 2^(23 + e) for the right e makes the sum's own rounding keep
    // multiples of the smallest subnormal, and its low bits count them.
    unsigned magicExponent = 127 + 23 + 1 - format.bias - format.mantissa;
    Value *magic = b.CreateBitCast(number(magicExponent << 23), f32);
    Value *absolute = b.CreateBitCast(magnitude, f32);
    Value *counted = b.CreateSub(b.CreateBitCast(b.CreateFAdd(absolute, magic), i32),
                                 number(magicExponent << 23));
    Value *small = b.CreateICmpULT(magnitude, number((127 - format.bias + 1) << 23));
    result = b.CreateSelect(small, counted, result);
  }
  unsigned overflow = format.hasInfinity ? format.largest + 1 : format.nan;
  result =
      b.CreateSelect(b.CreateICmpUGT(result, number(format.largest)), number(overflow), result);
  Value *isNan = b.CreateICmpUGT(magnitude, number(0x7f800000));
  result = b.CreateSelect(isNan, number(format.nan), result);
  return b.CreateTrunc(b.CreateOr(result, sign), like(value, b.getIntNTy(bits)));
}

/// bf16, two neighbours at a time.
Value *StorageConverter::encodePackedBF16(Value *value, unsigned nan) {
  auto pairOf = [&](Value *low, Value *high) {
    Value *pair = b.CreateBitCast(b.CreateIntrinsic(Intrinsic::nvvm_ff2bf16x2_rn, {high, low}),
                                  b.getInt32Ty());
    return hasPackedMinimum ? mendPair(pair, low, high, nan) : pair;
  };
  auto *vector = dyn_cast<FixedVectorType>(value->getType());
  if (!vector)
    return b.CreateTrunc(pairOf(value, ConstantFP::get(b.getFloatTy(), 0)), b.getInt16Ty());
  unsigned count = vector->getNumElements();
  Value *words = PoisonValue::get(FixedVectorType::get(b.getInt32Ty(), divideCeil(count, 2)));
  for (unsigned n = 0; n < count; n += 2) {
    Value *low = b.CreateExtractElement(value, n);
    Value *high =
        n + 1 < count ? b.CreateExtractElement(value, n + 1) : ConstantFP::get(b.getFloatTy(), 0);
    words = b.CreateInsertElement(words, pairOf(low, high), n / 2);
  }
  Value *all = b.CreateBitCast(words, FixedVectorType::get(b.getInt16Ty(), alignTo(count, 2)));
  return count % 2 ? b.CreateShuffleVector(all, to_vector(seq<int>(0, count))) : all;
}

/// Two neighbours of bf16 in a word: the sign of each is that of its value, and of a nan all else
/// is `nan`. The instruction makes 0x7fff of every nan, and no number has a magnitude between that
/// of infinity and it. Signs of numbers are there already.
Value *StorageConverter::mendPair(Value *pair, Value *low, Value *high, unsigned nan) {
  auto bits = [&](Value *one) { return b.CreateBitCast(one, b.getInt32Ty()); };
  auto *halves = FixedVectorType::get(b.getInt16Ty(), 2);
  Value *bounded = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateBitCast(pair, halves),
                                           ConstantInt::get(halves, nan));
  constexpr unsigned upperHalves = 0x7632; // bytes, PTX ISA, "prmt"
  Value *signs = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_prmt,
                                   {bits(low), bits(high), b.getInt32(upperHalves)});
  return b.CreateOr(b.CreateBitCast(bounded, b.getInt32Ty()), b.CreateAnd(signs, 0x80008000));
}

/// bf16 as a device loads it, two elements to a word: an instruction for each.
Value *StorageConverter::decodeBF16Words(Value *raw) {
  unsigned count = cast<FixedVectorType>(raw->getType())->getNumElements();
  Value *words = b.CreateBitCast(raw, FixedVectorType::get(b.getInt32Ty(), count / 2));
  SmallVector<int> inTurns;
  for (unsigned word = 0; word < count / 2; ++word)
    inTurns.append({int(word), int(count / 2 + word)});
  Value *all =
      b.CreateShuffleVector(b.CreateShl(words, 16), b.CreateAnd(words, 0xffff0000), inTurns);
  return b.CreateBitCast(all, like(raw, b.getFloatTy()));
}

/// PTX ISA, "cvt": .e4m3x2 and .e5m2x2 on sm_89 and newer.
static constexpr unsigned f8ConvertPtx = 81;

/// The elements of a vector, or the one value, in pairs; a last one alone has `other` beside it.
static SmallVector<std::pair<Value *, Value *>> pairsOf(IRBuilder<> &b, Value *value,
                                                        Value *other) {
  auto *vector = dyn_cast<FixedVectorType>(value->getType());
  if (!vector)
    return {{value, other}};
  SmallVector<std::pair<Value *, Value *>> pairs;
  for (unsigned n = 0, count = vector->getNumElements(); n < count; n += 2)
    pairs.push_back({b.CreateExtractElement(value, n),
                     n + 1 < count ? b.CreateExtractElement(value, n + 1) : other});
  return pairs;
}

/// What `pairsOf` has taken apart: as many elements as `shape` has of those of the pairs, each a
/// vector of two.
static Value *joinPairs(IRBuilder<> &b, Value *shape, ArrayRef<Value *> pairs) {
  auto *vector = dyn_cast<FixedVectorType>(shape->getType());
  if (!vector)
    return b.CreateExtractElement(pairs[0], uint64_t(0));
  Type *element = cast<VectorType>(pairs[0]->getType())->getElementType();
  Value *all = PoisonValue::get(FixedVectorType::get(element, vector->getNumElements()));
  for (unsigned n = 0; n < vector->getNumElements(); ++n)
    all = b.CreateInsertElement(all, b.CreateExtractElement(pairs[n / 2], n % 2), n);
  return all;
}

/// f8 by way of f16, which holds all of its numbers.
Value *StorageConverter::decodeF8Pairs(Value *raw, const Format &format) {
  needPtx(*b.GetInsertBlock()->getModule(), f8ConvertPtx);
  auto *pair = FixedVectorType::get(b.getInt8Ty(), 2);
  SmallVector<Value *> decoded;
  for (auto [low, high] : pairsOf(b, raw, b.getInt8(0))) {
    Value *both = b.CreateInsertElement(PoisonValue::get(pair), low, uint64_t(0));
    both = b.CreateBitCast(b.CreateInsertElement(both, high, 1), b.getInt16Ty());
    Value *halves = b.CreateIntrinsic(format.exponent == 4 ? Intrinsic::nvvm_e4m3x2_to_f16x2_rn
                                                           : Intrinsic::nvvm_e5m2x2_to_f16x2_rn,
                                      {both});
    decoded.push_back(b.CreateFPExt(halves, FixedVectorType::get(b.getFloatTy(), 2)));
  }
  return joinPairs(b, raw, decoded);
}

/// The instruction makes the largest finite number of what is beyond, and one nan of all.
Value *StorageConverter::encodeF8Pairs(Value *value, const Format &format) {
  needPtx(*b.GetInsertBlock()->getModule(), f8ConvertPtx);
  value = toF32(value);
  SmallVector<Value *> encoded;
  for (auto [low, high] : pairsOf(b, value, ConstantFP::get(b.getFloatTy(), 0))) {
    Value *both = b.CreateIntrinsic(format.exponent == 4 ? Intrinsic::nvvm_ff_to_e4m3x2_rn
                                                         : Intrinsic::nvvm_ff_to_e5m2x2_rn,
                                    {high, low});
    encoded.push_back(b.CreateBitCast(both, FixedVectorType::get(b.getInt8Ty(), 2)));
  }
  Value *finite = joinPairs(b, value, encoded);
  // Halfway to the number that would come next, which is where even ones are rounded to.
  bool isNextEven = format.largest % 2;
  Value *limit = ConstantFP::get(value->getType(), format.halfwayBeyond);
  Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  Value *isBeyond = isNextEven ? b.CreateFCmpUGE(size, limit) : b.CreateFCmpUGT(size, limit);
  Value *bits = b.CreateBitCast(value, like(value, b.getInt32Ty()));
  Value *sign = b.CreateTrunc(b.CreateAnd(b.CreateLShr(bits, 24), 0x80), finite->getType());
  Value *beyond = constant(value, format.hasInfinity ? format.largest + 1 : format.nan, 8);
  if (format.hasInfinity)
    beyond = b.CreateSelect(b.CreateFCmpUNO(value, value), constant(value, format.nan, 8), beyond);
  return b.CreateSelect(isBeyond, b.CreateOr(beyond, sign), finite);
}

Value *StorageConverter::decode(Value *raw, mlir::Type element) {
  if (element.isF32() || element.isF64() || element.isInteger(64) || element.isInteger(32))
    return raw;
  if (element.isF16())
    return b.CreateFPExt(raw, like(raw, b.getFloatTy()));
  if (element.isInteger(1))
    return b.CreateICmpNE(raw, Constant::getNullValue(raw->getType()));
  if (auto integer = dyn_cast<mlir::IntegerType>(element)) {
    if (integer.getWidth() == 4)
      raw = b.CreateTrunc(raw, like(raw, b.getIntNTy(4)));
    Type *i32 = like(raw, b.getInt32Ty());
    return integer.isUnsigned() ? b.CreateZExt(raw, i32) : b.CreateSExt(raw, i32);
  }
  if (element.isBF16()) { // the upper half of an f32
    auto *vector = dyn_cast<FixedVectorType>(raw->getType());
    bool isWords = vector && vector->getNumElements() % 2 == 0 && !isa<InsertElementInst>(raw);
    if (isWords && hasPackedBF16Convert)
      return decodeBF16Words(raw);
    Value *wide = b.CreateZExt(raw, like(raw, b.getInt32Ty()));
    return b.CreateBitCast(b.CreateShl(wide, 16), like(raw, b.getFloatTy()));
  }
  Format format = formatOf(element);
  return hasF8Convert ? decodeF8Pairs(raw, format) : decodeSmall(raw, format);
}

Value *StorageConverter::encode(Value *value, mlir::Type element) {
  if (element.isF64() || element.isF32())
    return b.CreateFPCast(value, like(value, element.isF64() ? b.getDoubleTy() : b.getFloatTy()));
  if (element.isF16()) // there is no instruction from f64
    return b.CreateFPTrunc(toF32(value), like(value, b.getHalfTy()));
  if (element.isInteger(1))
    return b.CreateZExt(value, like(value, b.getInt8Ty()));
  if (auto integer = dyn_cast<mlir::IntegerType>(element)) {
    unsigned width = std::max(8u, integer.getWidth()); // i4 keeps its low nibble when stored
    return b.CreateSExtOrTrunc(value, like(value, b.getIntNTy(width)));
  }
  if (element.isBF16() && hasPackedBF16Convert) {
    // The instruction makes 0x7fff of every nan; what is stored is the same on all machines.
    unsigned quiet = formatOf(element).nan;
    Value *single = toF32(value), *packed = encodePackedBF16(single, quiet);
    if (hasPackedMinimum)
      return packed;
    Value *bits = b.CreateBitCast(single, like(value, b.getInt32Ty()));
    Value *sign =
        b.CreateTrunc(b.CreateAnd(b.CreateLShr(bits, 16), 0x8000), like(value, b.getInt16Ty()));
    return b.CreateSelect(b.CreateFCmpUNO(single, single), b.CreateOr(sign, quiet), packed);
  }
  if (hasF8Convert && !element.isBF16())
    return encodeF8Pairs(value, formatOf(element));
  return encodeSmall(value, formatOf(element));
}

Value *StorageConverter::saturate(Value *value, mlir::Type element, bool nearest) {
  Type *from = value->getType()->getScalarType();
  auto integer = dyn_cast<mlir::IntegerType>(element);
  if (!integer) { // to a float
    if (from->isIntegerTy(1))
      value = b.CreateUIToFP(value, like(value, b.getFloatTy()));
    else if (from->isIntegerTy()) // f64 holds every i32; i64 rounds once more at most
      value = b.CreateSIToFP(value, like(value, element.isF64() || from->getIntegerBitWidth() <= 32
                                                    ? b.getDoubleTy()
                                                    : b.getFloatTy()));
    if (element.isF32() || element.isF64())
      return b.CreateFPCast(value, like(value, element.isF64() ? b.getDoubleTy() : b.getFloatTy()));
    return encode(value, element);
  }
  unsigned width = integer.getWidth();
  if (width == 1)
    return b.CreateZExt(from->isFloatingPointTy()
                            ? b.CreateFCmpUNE(value, Constant::getNullValue(value->getType()))
                            : b.CreateICmpNE(value, Constant::getNullValue(value->getType())),
                        like(value, b.getInt8Ty()));
  bool isUnsigned = integer.isUnsigned();
  unsigned stored = std::max(8u, width);
  if (from->isFloatingPointTy()) {
    if (nearest)
      value = b.CreateUnaryIntrinsic(Intrinsic::roundeven, value);
    Type *exact = like(value, b.getIntNTy(width)); // saturates to its own range, nan to 0
    Value *result = b.CreateIntrinsic(isUnsigned ? Intrinsic::fptoui_sat : Intrinsic::fptosi_sat,
                                      {exact, value->getType()}, {value});
    Type *target = like(value, b.getIntNTy(stored));
    return isUnsigned ? b.CreateZExt(result, target) : b.CreateSExt(result, target);
  }
  if (from->isIntegerTy(1))
    return b.CreateZExt(value, like(value, b.getIntNTy(stored)));
  unsigned have = from->getIntegerBitWidth();
  if (!nearest) // wraps
    return b.CreateSExtOrTrunc(value, like(value, b.getIntNTy(stored)));
  if (isUnsigned && width >= have)
    value =
        b.CreateBinaryIntrinsic(Intrinsic::smax, value, Constant::getNullValue(value->getType()));
  if (width < have) {
    int64_t low = isUnsigned ? 0 : -(int64_t(1) << (width - 1));
    int64_t high = isUnsigned ? (int64_t(1) << width) - 1 : (int64_t(1) << (width - 1)) - 1;
    value = b.CreateBinaryIntrinsic(Intrinsic::smax, value,
                                    ConstantInt::getSigned(value->getType(), low));
    value = b.CreateBinaryIntrinsic(Intrinsic::smin, value,
                                    ConstantInt::getSigned(value->getType(), high));
  }
  return b.CreateSExtOrTrunc(value, like(value, b.getIntNTy(stored)));
}
