//===- LowerTrig.cpp - sin, cos and tan in plain arithmetic -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/math/LowerTrig.h"
#include "codegen/math/MathBuilder.h"
#include "codegen/math/MathCoefficients.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tegula {

using namespace coefficients;
using V = Value *;

/// x = quadrant * pi/2 + high + low, |high| <= pi/4 (a little more where rounding decides).
struct Reduced {
  V high, low, quadrant;
};

/// Above this the three parts of pi/2 do not suffice.
static double fastLimit(const MathBuilder &m) { return m.isDouble ? 0x1p30 : 100000.0; }

static Reduced reduceFast(MathBuilder &m, V x) {
  V shifted = m.fma(x, m.c(0x1.45f306dc9c883p-1), m.magic());
  V j = m.neg(m.sub(shifted, m.magic()));
  V first = m.fma(j, m.pick(0, halfPiF32, halfPiF64), x); // exact
  // The product with the second part and the sum, each with its rounding error.
  V second = m.pick(1, halfPiF32, halfPiF64);
  V product = m.mul(j, second);
  V productError = m.fma(j, second, m.neg(product));
  V sum = m.add(first, product);
  V back = m.sub(sum, first);
  V sumError = m.add(m.sub(first, m.sub(sum, back)), m.sub(product, back));
  V rest = m.fma(j, m.pick(2, halfPiF32, halfPiF64), m.add(productError, sumError));
  V high = m.add(sum, rest);
  V low = m.add(m.sub(sum, high), rest);
  return {high, low, m.bits(shifted)};
}

/// `tegula.reduce.<type>(x) -> {high, low, quadrant}` for one large finite x.
///
/// x = f 2^e with an integer f. Bits of 2/pi whose product with x is a multiple of 4 do not matter;
/// of those that follow, 192 are taken (2 for the quadrant, 53 for the width of f, up to 62 that
/// cancel, and more than a result needs), and the product is computed modulo 2^192.
static Function *getReduceLarge(Module &module, bool isDouble) {
  LLVMContext &context = module.getContext();
  std::string name = isDouble ? "tegula.reduce.f64" : "tegula.reduce.f32";
  if (Function *existing = module.getFunction(name))
    return existing;
  IRBuilder<> b(context);
  Type *type = isDouble ? b.getDoubleTy() : b.getFloatTy();
  Type *intType = isDouble ? b.getInt64Ty() : b.getInt32Ty();
  Type *i64 = b.getInt64Ty(), *i128 = b.getInt128Ty(), *f64 = b.getDoubleTy();
  auto *function = Function::Create(
      FunctionType::get(StructType::get(context, {type, type, intType}), {type}, false),
      GlobalValue::InternalLinkage, name, module);
  for (auto attribute :
       {Attribute::NoInline, Attribute::NoUnwind, Attribute::WillReturn, Attribute::Cold})
    function->addFnAttr(attribute);
  function->setDoesNotAccessMemory(); // but a constant table
  b.SetInsertPoint(BasicBlock::Create(context, "entry", function));
  auto ic = [&](uint64_t value) { return b.getInt64(value); };

  // The table starts with a zero word, so that windows may begin before the binary point.
  SmallVector<uint64_t> words = {0};
  words.append(std::begin(twoOverPi), std::end(twoOverPi));
  Constant *data = ConstantDataArray::get(context, words);
  auto *table = new GlobalVariable(module, data->getType(), true, GlobalValue::InternalLinkage,
                                   data, name + ".table");

  unsigned mantissaBits = isDouble ? 52 : 23, bias = isDouble ? 1023 : 127;
  V x = function->getArg(0);
  V bits = b.CreateZExt(b.CreateBitCast(x, intType), i64);
  V exponent = b.CreateAnd(b.CreateLShr(bits, mantissaBits), ic(isDouble ? 0x7ff : 0xff));
  V fraction = b.CreateOr(b.CreateAnd(bits, ic((uint64_t(1) << mantissaBits) - 1)),
                          ic(uint64_t(1) << mantissaBits));
  // Bit i of the table weighs 2^(63-i); the window starts where f 2^e 2^(63-i) reaches 2 (weights
  // 2 and 1 are the quadrant).
  V e = b.CreateSub(exponent, ic(bias + mantissaBits));
  V start = b.CreateAdd(e, ic(62));
  V word = b.CreateLShr(start, 6), shift = b.CreateAnd(start, ic(63));
  auto load = [&](unsigned k) {
    return b.CreateLoad(i64, b.CreateGEP(i64, table, b.CreateAdd(word, ic(k))));
  };
  auto window = [&](unsigned k) {
    return b.CreateZExt(b.CreateIntrinsic(i64, Intrinsic::fshl, {load(k), load(k + 1), shift}),
                        i128);
  };
  V wide = b.CreateZExt(fraction, i128);
  V product = b.CreateShl(b.CreateMul(wide, window(0)), 64);
  product = b.CreateAdd(product, b.CreateMul(wide, window(1)));
  product = b.CreateAdd(product, b.CreateLShr(b.CreateMul(wide, window(2)), 64));
  // Two bits of quadrant, 126 bits of fraction; to the nearest quadrant.
  V quarter = b.CreateShl(ConstantInt::get(i128, 1), 125);
  V quadrant = b.CreateTrunc(b.CreateLShr(b.CreateAdd(product, quarter), 126), i64);
  V rest = b.CreateSub(product, b.CreateShl(b.CreateZExt(quadrant, i128), 126));
  V isNegative = b.CreateICmpSLT(rest, ConstantInt::get(i128, 0));
  V magnitude = b.CreateSelect(isNegative, b.CreateNeg(rest), rest);
  // The leading 53 bits and the next 53 as doubles.
  V zeros = b.CreateIntrinsic(i128, Intrinsic::ctlz, {magnitude, b.getFalse()});
  V normal = b.CreateShl(magnitude, zeros);
  auto piece = [&](unsigned shift) {
    V digits =
        b.CreateAnd(b.CreateTrunc(b.CreateLShr(normal, shift), i64), ic((uint64_t(1) << 53) - 1));
    return b.CreateSIToFP(digits, f64);
  };
  // normal = piece(75) 2^75 + piece(22) 2^22, and rest = normal 2^-(126 + zeros).
  V power = b.CreateSub(ic(1023 + 75 - 126), b.CreateTrunc(zeros, i64));
  V unit = b.CreateBitCast(b.CreateShl(power, 52), f64);
  V high = b.CreateFMul(piece(75), unit);
  V low = b.CreateFMul(b.CreateFMul(piece(22), ConstantFP::get(f64, 0x1p-53)), unit);
  // Times pi/2.
  MathBuilder m(b, f64);
  V p = m.mul(high, m.c(halfPiF64[0]));
  V q = m.fma(high, m.c(halfPiF64[0]), m.neg(p));
  q = m.fma(high, m.c(halfPiF64[1]), m.fma(low, m.c(halfPiF64[0]), q));
  high = m.add(p, q);
  low = m.add(m.sub(p, high), q);
  // Sign of x: all of it turns around.
  V negative = b.CreateICmpSLT(b.CreateBitCast(x, intType), ConstantInt::get(intType, 0));
  V flip = b.CreateXor(negative, isNegative);
  high = m.select(flip, m.neg(high), high);
  low = m.select(flip, m.neg(low), low);
  quadrant = b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant);
  if (!isDouble) {
    V rounded = b.CreateFPTrunc(high, type);
    low = b.CreateFPTrunc(m.sub(high, b.CreateFPExt(rounded, f64)), type);
    high = rounded;
  }
  V result = PoisonValue::get(function->getReturnType());
  result = b.CreateInsertValue(result, high, 0);
  result = b.CreateInsertValue(result, low, 1);
  b.CreateRet(b.CreateInsertValue(result, b.CreateTrunc(quadrant, intType), 2));
  return function;
}

static Reduced callReduceLarge(MathBuilder &m, V x) {
  Module &module = *m.b.GetInsertBlock()->getModule();
  V result = m.b.CreateCall(getReduceLarge(module, m.isDouble), {x});
  return {m.b.CreateExtractValue(result, 0), m.b.CreateExtractValue(result, 1),
          m.b.CreateExtractValue(result, 2)};
}

/// Replaces the lanes of `fast` whose argument is large.
static Reduced reduceLargeLanes(MathBuilder &m, V x, V isLarge, Reduced fast) {
  auto *vector = dyn_cast<FixedVectorType>(m.type);
  if (!vector)
    return callReduceLarge(m, x);
  // A loop over the lanes; they are in memory meanwhile.
  MathBuilder scalar(m.b, vector->getElementType());
  IRBuilder<> &b = m.b;
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *head = BasicBlock::Create(b.getContext(), "lane", function);
  BasicBlock *large = BasicBlock::Create(b.getContext(), "large", function);
  BasicBlock *next = BasicBlock::Create(b.getContext(), "next", function);
  BasicBlock *done = BasicBlock::Create(b.getContext(), "done", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  PHINode *lane = b.CreatePHI(b.getInt64Ty(), 2);
  SmallVector<PHINode *> values;
  SmallVector<V> starts = {fast.high, fast.low, fast.quadrant};
  for (V start : starts) {
    values.push_back(b.CreatePHI(start->getType(), 2));
    values.back()->addIncoming(start, before);
  }
  lane->addIncoming(b.getInt64(0), before);
  b.CreateCondBr(b.CreateExtractElement(isLarge, lane), large, next);
  b.SetInsertPoint(large);
  Reduced one = callReduceLarge(scalar, b.CreateExtractElement(x, lane));
  SmallVector<V> updated = {b.CreateInsertElement(values[0], one.high, lane),
                            b.CreateInsertElement(values[1], one.low, lane),
                            b.CreateInsertElement(values[2], one.quadrant, lane)};
  b.CreateBr(next);
  b.SetInsertPoint(next);
  SmallVector<V> merged;
  for (auto [value, update] : zip(values, updated)) {
    PHINode *phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(value, head);
    phi->addIncoming(update, large);
    value->addIncoming(phi, next);
    merged.push_back(phi);
  }
  V following = b.CreateAdd(lane, b.getInt64(1));
  lane->addIncoming(following, next);
  b.CreateCondBr(b.CreateICmpEQ(following, b.getInt64(vector->getNumElements())), done, head);
  b.SetInsertPoint(done);
  return {merged[0], merged[1], merged[2]};
}

static Reduced reduce(MathBuilder &m, V x) {
  IRBuilder<> &b = m.b;
  V magnitude = m.abs(x);
  Reduced fast = reduceFast(m, x);
  V isLarge = b.CreateAnd(m.gt(magnitude, m.c(fastLimit(m))), m.lt(magnitude, m.inf()));
  V any = m.type->isVectorTy() ? b.CreateOrReduce(isLarge) : isLarge;
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *slow = BasicBlock::Create(b.getContext(), "slow", function);
  BasicBlock *after = BasicBlock::Create(b.getContext(), "reduced", function);
  auto *branch = b.CreateCondBr(any, slow, after);
  branch->setMetadata(LLVMContext::MD_prof,
                      MDNode::get(b.getContext(), {MDString::get(b.getContext(), "branch_weights"),
                                                   ConstantAsMetadata::get(b.getInt32(1)),
                                                   ConstantAsMetadata::get(b.getInt32(1 << 20))}));
  b.SetInsertPoint(slow);
  Reduced large = reduceLargeLanes(m, x, isLarge, fast);
  BasicBlock *slowEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  auto merge = [&](V quick, V careful) {
    PHINode *phi = b.CreatePHI(quick->getType(), 2);
    phi->addIncoming(quick, before);
    phi->addIncoming(careful, slowEnd);
    return phi;
  };
  Reduced result = {merge(fast.high, large.high), merge(fast.low, large.low),
                    merge(fast.quadrant, large.quadrant)};
  result.high = m.select(m.lt(magnitude, m.inf()), result.high, m.nan());
  return result;
}

static V sinKernel(MathBuilder &m, const Reduced &r, V z) {
  V cube = m.mul(r.high, z);
  V low = m.fma(m.mul(z, m.c(-0.5)), r.low, r.low);
  return m.add(r.high, m.fma(cube, m.poly(z, sinTailF32, sinTailF64), low));
}

static V cosKernel(MathBuilder &m, const Reduced &r, V z) {
  V half = m.mul(z, m.c(0.5));
  V leading = m.sub(m.c(1), half);
  V error = m.sub(m.sub(m.c(1), leading), half);
  V tail = m.fma(m.mul(z, z), m.poly(z, cosTailF32, cosTailF64), m.mul(m.neg(r.high), r.low));
  return m.add(leading, m.add(error, tail));
}

static V bitSet(MathBuilder &m, V quadrant, unsigned bit) {
  return m.b.CreateICmpNE(m.b.CreateAnd(quadrant, m.ic(bit)), m.ic(0));
}

/// Below this sin and tan are x to within a third of a unit; also keeps -0.
static V isTiny(MathBuilder &m, V x) { return m.lt(m.abs(x), m.c(m.isDouble ? 0x1p-27 : 0x1p-13)); }

V emitSin(MathBuilder &m, V x) {
  Reduced r = reduce(m, x);
  V z = m.mul(r.high, r.high);
  V value = m.select(bitSet(m, r.quadrant, 1), cosKernel(m, r, z), sinKernel(m, r, z));
  value = m.select(bitSet(m, r.quadrant, 2), m.neg(value), value);
  return m.select(isTiny(m, x), x, value);
}

V emitCos(MathBuilder &m, V x) {
  Reduced r = reduce(m, x);
  V z = m.mul(r.high, r.high);
  V value = m.select(bitSet(m, r.quadrant, 1), sinKernel(m, r, z), cosKernel(m, r, z));
  V next = m.b.CreateAdd(r.quadrant, m.ic(1));
  return m.select(bitSet(m, next, 2), m.neg(value), value);
}

V emitTan(MathBuilder &m, V x) {
  Reduced r = reduce(m, x);
  V z = m.mul(r.high, r.high);
  V sine = sinKernel(m, r, z), cosine = cosKernel(m, r, z);
  V odd = bitSet(m, r.quadrant, 1);
  V value = m.div(m.select(odd, m.neg(cosine), sine), m.select(odd, sine, cosine));
  return m.select(isTiny(m, x), x, value);
}

} // namespace tegula
