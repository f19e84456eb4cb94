//===- LowerMath.cpp - Elementary functions in plain arithmetic ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/math/LowerMath.h"
#include "codegen/math/LowerExp.h"
#include "codegen/math/LowerSpecial.h"
#include "codegen/math/LowerTrig.h"
#include "codegen/math/MathBuilder.h"
#include "codegen/math/MathCoefficients.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <numbers>

using namespace llvm;

namespace tegula {

using namespace coefficients;
using V = Value *;

StringRef toString(MathFunction function) {
  switch (function) {
  case MathFunction::Exp:
    return "exp";
  case MathFunction::ExpLow:
    return "explow";
  case MathFunction::ExpShort:
    return "expshort";
  case MathFunction::Exp2:
    return "exp2";
  case MathFunction::Expm1:
    return "expm1";
  case MathFunction::Log:
    return "log";
  case MathFunction::Log2:
    return "log2";
  case MathFunction::Log1p:
    return "log1p";
  case MathFunction::Log1pExp:
    return "log1pexp";
  case MathFunction::Log1pExpShort:
    return "log1pexpshort";
  case MathFunction::Sin:
    return "sin";
  case MathFunction::Cos:
    return "cos";
  case MathFunction::Tan:
    return "tan";
  case MathFunction::Tanh:
    return "tanh";
  case MathFunction::TanhShort:
    return "tanhshort";
  case MathFunction::Erf:
    return "erf";
  case MathFunction::ErfShort:
    return "erfshort";
  case MathFunction::Log10:
    return "log10";
  case MathFunction::Asin:
    return "asin";
  case MathFunction::Acos:
    return "acos";
  case MathFunction::Atan:
    return "atan";
  case MathFunction::Atan2:
    return "atan2";
  case MathFunction::Sinh:
    return "sinh";
  case MathFunction::Cosh:
    return "cosh";
  case MathFunction::Asinh:
    return "asinh";
  case MathFunction::Acosh:
    return "acosh";
  case MathFunction::Atanh:
    return "atanh";
  case MathFunction::Erfc:
    return "erfc";
  case MathFunction::Erfinv:
    return "erfinv";
  case MathFunction::Lgamma:
    return "lgamma";
  case MathFunction::Digamma:
    return "digamma";
  case MathFunction::Pow:
    return "pow";
  case MathFunction::Rsqrt:
    return "rsqrt";
  case MathFunction::Fmod:
    return "fmod";
  }
  llvm_unreachable("every elementary function has a name");
}

//===----------------------------------------------------------------------===//
// Exponentials
//===----------------------------------------------------------------------===//

V scale(MathBuilder &m, V p, V n) {
  V half = m.b.CreateAShr(n, m.ic(1));
  V rest = m.b.CreateSub(n, half);
  return m.mul(m.mul(p, m.pow2(half)), m.pow2(rest));
}

/// n = round(x / ln 2) as integer and float, found by the addition of a magic number.
struct Rounded {
  V integer, value, shifted;
};
static Rounded roundTimes(MathBuilder &m, V x, V factor) {
  V shifted = factor ? m.fma(x, factor, m.magic()) : m.add(x, m.magic());
  return {m.b.CreateSub(m.bits(shifted), m.bits(m.magic())), m.sub(shifted, m.magic()),
          m.bits(shifted)};
}

Power expParts(MathBuilder &m, V x) {
  Rounded n = roundTimes(m, x, m.pick(0, log2eF32, log2eF64));
  V r = m.fma(n.value, m.neg(m.pick(0, ln2F32, ln2F64)), x);
  r = m.fma(n.value, m.neg(m.pick(1, ln2F32, ln2F64)), r);
  V tail = m.poly(r, expTailF32, expTailF64);
  return {m.fma(m.mul(r, r), tail, r), n.integer, n.shifted};
}

/// Below them results are 0.
static constexpr double minExpF32 = -104, minExpF64 = -746;

static V emitExp(MathBuilder &m, V x) {
  x = m.atLeast(m.atMost(x, m.isDouble ? 710 : 89), m.isDouble ? minExpF64 : minExpF32);
  Power power = expParts(m, x);
  // As in scale(), the addition of 1 and the first product at once: powers of two round nothing.
  V half = m.b.CreateAShr(power.n, m.ic(1)), first = m.pow2(half);
  return m.mul(m.fma(power.tail, first, first), m.pow2(m.b.CreateSub(power.n, half)));
}

/// The same bits for x of at most maxExpLow: scaled by a constant power of two every 2^n is a
/// normal number.
static V emitExpLow(MathBuilder &m, V x) {
  unsigned up = m.isDouble ? 512 : 64;
  Power power = expParts(m, m.atLeast(x, m.isDouble ? minExpF64 : minExpF32));
  V scaled = m.fromBits(m.b.CreateAdd(m.b.CreateShl(power.shifted, m.ic(m.mantissaBits())),
                                      m.ic(uint64_t(m.bias() + up) << m.mantissaBits())));
  return m.mul(m.fma(power.tail, scaled, scaled), m.c(std::ldexp(1.0, -int(up))));
}

/// The square of 2^(x log2(e)/2), which is a normal number wherever the result is a number: results
/// that are subnormal or overflow are rounded by the product. The argument's rounding gives a
/// relative error of |x| 2^-24, the power twice its own.
static V emitExpShort(MathBuilder &m, V x) {
  if (!m.hasApproximations())
    return emitExp(m, x);
  V root = m.approximateExp2(m.mul(x, m.c(0.5 * numbers::log2e)));
  return m.mul(root, root);
}

/// exp(x) where neither x nor the result is far from 1: |x| < 80, and anything for a NaN. The power
/// is added to the exponent of p.
static V emitNearExp(MathBuilder &m, V x, bool isShort) {
  if (isShort && m.hasApproximations())
    return m.approximateExp2(m.mul(x, m.c(numbers::log2e)));
  Power power = expParts(m, x);
  V p = m.add(m.c(1), power.tail);
  return m.fromBits(m.b.CreateAdd(m.bits(p), m.b.CreateShl(power.n, m.ic(m.mantissaBits()))));
}

/// 2^(x + low) for a small correction `low`, which may be null.
static V emitExp2(MathBuilder &m, V x, V low = nullptr) {
  x = m.atLeast(m.atMost(x, m.isDouble ? 1025 : 129), m.isDouble ? -1080 : -152);
  Rounded n = roundTimes(m, x, nullptr);
  V r = m.sub(x, n.value);
  if (low)
    r = m.add(r, low);
  return scale(m, m.fma(r, m.poly(r, exp2TailF32, exp2TailF64), m.c(1)), n.integer);
}

static V emitExpm1(MathBuilder &m, V x) {
  V bounded = m.atLeast(m.atMost(x, m.isDouble ? 710 : 89), m.isDouble ? -40 : -20);
  Rounded n = roundTimes(m, bounded, m.pick(0, log2eF32, log2eF64));
  V ln2Low = m.neg(m.pick(1, ln2F32, ln2F64));
  V high = m.fma(n.value, m.neg(m.pick(0, ln2F32, ln2F64)), bounded);
  V r = m.fma(n.value, ln2Low, high);
  V low = m.fma(n.value, ln2Low, m.sub(high, r));
  V p = m.add(r, m.fma(m.mul(r, r), m.poly(r, expm1TailF32, expm1TailF64), low));
  // 2^n (p + 1) - 1; the largest n has no 2^n in range, so that one doubles at the end.
  V largest = m.ic(m.bias() + 1);
  V isLargest = m.b.CreateICmpEQ(n.integer, largest);
  V power = m.pow2(m.select(isLargest, m.ic(m.bias()), n.integer));
  V value = m.fma(power, p, m.sub(power, m.c(1)));
  value = m.mul(value, m.select(isLargest, m.c(2), m.c(1)));
  return m.select(m.eq(x, m.c(0)), x, value); // keeps -0
}

//===----------------------------------------------------------------------===//
// Logarithms
//===----------------------------------------------------------------------===//

/// x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)], for positive finite x.
struct Decomposed {
  V k;     // integer
  V power; // k as a float
  V f;
};

static std::pair<V, V> exponentAndMantissa(MathBuilder &m, V x) {
  uint64_t rootHalf = m.isDouble ? 0x3fe6a09e667f3bcdull : 0x3f3504f3ull;
  uint64_t mantissaMask = (uint64_t(1) << m.mantissaBits()) - 1;
  V shifted = m.b.CreateSub(m.bits(x), m.ic(rootHalf));
  V k = m.b.CreateAShr(shifted, m.ic(m.mantissaBits()));
  V mantissa = m.b.CreateAdd(m.b.CreateAnd(shifted, m.ic(mantissaMask)), m.ic(rootHalf));
  return {k, m.fromBits(mantissa)};
}

static Decomposed decompose(MathBuilder &m, V x) {
  V subnormal = m.lt(x, m.c(m.isDouble ? 0x1p-1022 : 0x1p-126));
  unsigned shift = m.mantissaBits() + 2;
  V normal = m.select(subnormal, m.mul(x, m.c(m.isDouble ? 0x1p54 : 0x1p25)), x);
  auto [k, mantissa] = exponentAndMantissa(m, normal);
  k = m.b.CreateSub(k, m.select(subnormal, m.ic(shift), m.ic(0)));
  return {k, m.toFloat(k), m.sub(mantissa, m.c(1))};
}

/// log(1 + f) = f + the result.
static V logCorrection(MathBuilder &m, V f) {
  if (!m.isDouble)
    return m.mul(m.mul(f, f), m.fma(f, m.poly(f, ArrayRef<float>(logTailF32)), m.c(-0.5)));
  // With s = f/(2+f): log(1+f) = 2s + s^3 T(s^2) = f - (h - s (h + s^2 T)), h = f^2/2.
  V s = m.div(f, m.add(m.c(2), f));
  V z = m.mul(s, s);
  V h = m.mul(m.c(0.5), m.mul(f, f));
  V tail = m.mul(z, m.poly(z, ArrayRef<double>(atanhTailF64)));
  return m.sub(m.mul(s, m.add(h, tail)), h);
}

/// k ln 2 + log(1 + f).
static V naturalLog(MathBuilder &m, V power, V f) {
  V low = m.fma(power, m.pick(1, ln2F32, ln2F64), logCorrection(m, f));
  return m.fma(power, m.pick(0, ln2F32, ln2F64), m.add(f, low));
}

/// The values of a logarithm outside the positive finite numbers.
static V logSpecialCases(MathBuilder &m, V x, V value) {
  value = m.select(m.eq(x, m.inf()), x, value);
  value = m.select(m.eq(x, m.c(0)), m.neg(m.inf()), value);
  return m.select(m.b.CreateFCmpULT(x, m.c(0)), m.nan(), value);
}

static V emitLog(MathBuilder &m, V x) {
  Decomposed d = decompose(m, x);
  return logSpecialCases(m, x, naturalLog(m, d.power, d.f));
}

static V emitLog2(MathBuilder &m, V x) {
  Decomposed d = decompose(m, x);
  V correction = logCorrection(m, d.f);
  V sum = m.add(d.f, correction);
  V rest = m.add(m.sub(d.f, sum), correction);
  // (sum + rest) / ln 2 in two parts, then k is added without loss.
  V log2e = m.pick(0, log2eF32, log2eF64);
  V high = m.mul(sum, log2e);
  V low = m.fma(sum, log2e, m.neg(high));
  low = m.fma(rest, log2e, m.fma(sum, m.pick(1, log2eF32, log2eF64), low));
  V value = m.add(d.power, high);
  V error = m.add(m.sub(d.power, value), high);
  return logSpecialCases(m, x, m.add(value, m.add(error, low)));
}

static V emitLog10(MathBuilder &m, V x) {
  Decomposed d = decompose(m, x);
  V correction = logCorrection(m, d.f);
  V sum = m.add(d.f, correction);
  V rest = m.add(m.sub(d.f, sum), correction);
  // As in emitLog2; k log10(2) is exact in its first part.
  V factor = m.pick(0, log10eF32, log10eF64);
  V high = m.mul(sum, factor);
  V low = m.fma(sum, factor, m.neg(high));
  low = m.fma(rest, factor, m.fma(sum, m.pick(1, log10eF32, log10eF64), low));
  V whole = m.mul(d.power, m.pick(0, log10Of2F32, log10Of2F64));
  low = m.fma(d.power, m.pick(1, log10Of2F32, log10Of2F64), low);
  V value = m.add(whole, high);
  V error = m.add(m.sub(whole, value), high);
  return logSpecialCases(m, x, m.add(value, m.add(error, low)));
}

static V emitLog1p(MathBuilder &m, V x) {
  V sum = m.add(m.c(1), x);
  auto [k, mantissa] = exponentAndMantissa(m, sum);
  // f = x 2^-k + (2^-k - 1), as accurate as x; 2^(2-k) is always a normal number.
  V power = m.pow2(m.b.CreateSub(m.ic(2), k));
  V f = m.fma(m.mul(m.c(0.25), x), power, m.fma(m.c(0.25), power, m.c(-1)));
  V value = naturalLog(m, m.toFloat(k), f);
  value = logSpecialCases(m, sum, value);
  return m.select(m.lt(m.abs(x), m.c(m.isDouble ? 0x1p-54 : 0x1p-25)), x, value);
}

/// log1p(exp(-|x|)): the sum is 2 at most, so that its exponent takes one comparison, and nothing
/// is special.
static V emitLog1pExp(MathBuilder &m, V x, bool isShort) {
  V e = m.neg(m.abs(x));
  e = isShort ? emitExpShort(m, e) : emitExpLow(m, e);
  V isUpper =
      m.b.CreateFCmpOGE(m.add(m.c(1), e), m.c(m.isDouble ? 0x1.6a09e667f3bcdp+0 : 0x1.6a09e6p+0));
  V f = m.select(isUpper, m.fma(m.c(0.5), e, m.c(-0.5)), e);
  return naturalLog(m, m.select(isUpper, m.c(1), m.c(0)), f);
}

//===----------------------------------------------------------------------===//
// tanh, erf
//===----------------------------------------------------------------------===//

static V emitTanh(MathBuilder &m, V x, bool isShort) {
  V magnitude = m.abs(x);
  V z = m.mul(x, x);
  V near = m.fma(m.mul(magnitude, z), m.poly(z, tanhTailF32, tanhTailF64), magnitude);
  V bounded = m.atMost(magnitude, 20); // where 1 is the nearest number for long
  V sum = m.add(emitNearExp(m, m.add(bounded, bounded), isShort), m.c(1));
  V inverse = isShort && m.hasApproximations() ? m.approximateReciprocal(sum) : m.reciprocal(sum);
  V far = m.fma(m.c(-2), inverse, m.c(1));
  V isFar = m.b.CreateFCmpOGE(magnitude, m.c(0.55)); // not a NaN, which is near then
  return m.copysign(m.select(isFar, far, near), x);
}

/// `table[index]` for each lane.
static V lookUp(MathBuilder &m, ArrayRef<double> table, V index, const Twine &name) {
  Module &module = *m.b.GetInsertBlock()->getModule();
  GlobalVariable *global = module.getGlobalVariable(name.str(), true);
  if (!global) {
    Constant *data = ConstantDataArray::get(m.b.getContext(), table);
    global =
        new GlobalVariable(module, data->getType(), true, GlobalValue::InternalLinkage, data, name);
  }
  V address = m.b.CreateGEP(m.b.getDoubleTy(), global, index);
  if (auto *vector = dyn_cast<FixedVectorType>(m.type))
    return m.b.CreateMaskedGather(vector, address, Align(8));
  return m.b.CreateLoad(m.type, address);
}

/// erf from both sides of 1.
static V joinErf(MathBuilder &m, V x, V near, V rest) {
  V far = m.copysign(m.sub(m.c(1), rest), x);
  return m.select(m.b.CreateFCmpOGE(m.abs(x), m.c(1)), far, near); // of a NaN near, which it stays
}

static V emitErfShort(MathBuilder &m, V x) {
  V near = m.fma(x, m.poly(m.mul(x, x), ArrayRef<float>(erfNearShort)), x);
  V power = m.poly(m.atMost(m.abs(x), 4), ArrayRef<float>(erfFarShort));
  return joinErf(m, x, near, m.approximateExp2(power));
}

static V emitErf(MathBuilder &m, V x) {
  V z = m.mul(x, x);
  V near = m.fma(x, m.poly(z, erfNearF32, erfNearF64), x);
  V magnitude = m.abs(x);
  V q;
  if (!m.isDouble) {
    q = m.poly(m.atMost(magnitude, 4), ArrayRef<float>(erfFarF32));
  } else {
    // Seven pieces of width 3/4, each a polynomial around its centre.
    const double *pieces[] = {erfFarF64_0, erfFarF64_1, erfFarF64_2, erfFarF64_3,
                              erfFarF64_4, erfFarF64_5, erfFarF64_6};
    constexpr unsigned count = std::size(erfFarF64_0);
    V bounded = m.atLeast(m.atMost(magnitude, 6.2), 1);
    bounded = m.select(m.isNan(bounded), m.c(1), bounded);
    V piece = m.b.CreateFPToSI(m.mul(m.sub(bounded, m.c(1)), m.c(4.0 / 3)), m.intType);
    V center = m.fma(m.toFloat(piece), m.c(0.75), m.c(1.375));
    V t = m.sub(bounded, center);
    for (unsigned k = count; k-- > 0;) {
      SmallVector<double> table;
      for (const double *coefficients : pieces)
        table.push_back(coefficients[k]);
      V coefficient = lookUp(m, table, piece, "tegula.erf.table." + Twine(k));
      q = k == count - 1 ? coefficient : m.fma(q, t, coefficient);
    }
  }
  return joinErf(m, x, near, emitNearExp(m, m.neg(q), /*isShort=*/false));
}

//===----------------------------------------------------------------------===//
// pow
//===----------------------------------------------------------------------===//

/// 2^(y log2(x)) for x > 0 in doubles: the logarithm in two doubles, to about 2^-64.
static V powPositive(MathBuilder &m, V x, V y) {
  Decomposed d = decompose(m, x);
  V mantissa = m.add(d.f, m.c(1));
  V sumHigh = m.add(mantissa, m.c(1));
  V sumLow = m.sub(mantissa, m.sub(sumHigh, m.c(1)));
  V sHigh = m.div(d.f, sumHigh);
  V sLow = m.fma(m.neg(sHigh), sumHigh, d.f);
  sLow = m.div(m.fma(m.neg(sHigh), sumLow, sLow), sumHigh);
  V zHigh = m.mul(sHigh, sHigh);
  V zLow = m.fma(sHigh, sHigh, m.neg(zHigh));
  zLow = m.fma(m.add(sHigh, sHigh), sLow, zLow);
  // T(z) = t0 + z (t1 + ...), its leading sum kept in two parts.
  ArrayRef<double> tail(atanhTailF64);
  V rest = m.mul(zHigh, m.poly(zHigh, tail.drop_front()));
  V tHigh = m.add(m.c(tail[0]), rest);
  V tLow = m.add(m.sub(m.c(tail[0]), tHigh), rest);
  // w = z T(z), then 2 + w.
  V wHigh = m.mul(zHigh, tHigh);
  V wLow = m.fma(zHigh, tHigh, m.neg(wHigh));
  wLow = m.fma(zHigh, tLow, m.fma(zLow, tHigh, wLow));
  V uHigh = m.add(m.c(2), wHigh);
  V uLow = m.add(m.add(m.sub(m.c(2), uHigh), wHigh), wLow);
  // log(1+f) = s (2 + w), then over ln 2.
  V logHigh = m.mul(sHigh, uHigh);
  V logLow = m.fma(sHigh, uHigh, m.neg(logHigh));
  logLow = m.fma(sHigh, uLow, m.fma(sLow, uHigh, logLow));
  V high = m.mul(logHigh, m.c(log2eF64[0]));
  V low = m.fma(logHigh, m.c(log2eF64[0]), m.neg(high));
  low = m.fma(logLow, m.c(log2eF64[0]), m.fma(logHigh, m.c(log2eF64[1]), low));
  V sum = m.add(d.power, high);
  low = m.add(m.add(m.sub(d.power, sum), high), low);
  V log2High = m.add(sum, low);
  V log2Low = m.add(m.sub(sum, log2High), low);
  // y times that; where the product is out of range its low part does not matter.
  V product = m.mul(y, log2High);
  V productLow = m.fma(y, log2Low, m.fma(y, log2High, m.neg(product)));
  productLow = m.select(m.lt(m.abs(product), m.c(1100)), productLow, m.c(0));
  return emitExp2(m, product, productLow);
}

static V emitPow(MathBuilder &m, V x, V y) {
  V magnitude = m.abs(x);
  V value;
  if (m.isDouble) {
    value = powPositive(m, magnitude, y);
    // 0 and inf have no logarithm in two parts.
    V isZero = m.eq(magnitude, m.c(0)), isInf = m.eq(magnitude, m.inf());
    V extreme = m.b.CreateOr(isZero, isInf);
    V grows = m.b.CreateXor(isZero, m.gt(y, m.c(0)));
    value = m.select(extreme, m.select(grows, m.inf(), m.c(0)), value);
    value = m.select(m.b.CreateFCmpUNO(x, y), m.nan(), value);
  } else {
    Type *wide = m.type->getWithNewType(m.b.getDoubleTy());
    MathBuilder d(m.b, wide);
    V log = emitLog2(d, m.b.CreateFPExt(magnitude, wide));
    V power = emitExp2(d, d.mul(m.b.CreateFPExt(y, wide), log));
    value = m.b.CreateFPTrunc(power, m.type);
  }
  // Signs of negative bases: y must be an integer, an odd one negates.
  V limit = m.c(m.isDouble ? 0x1p53 : 0x1p24); // from here every number is an even integer
  V yMagnitude = m.abs(y);
  V small = m.lt(yMagnitude, limit);
  V bounded = m.select(small, yMagnitude, m.c(0));
  V integer = m.b.CreateFPToSI(bounded, m.intType);
  V isInteger = m.eq(m.toFloat(integer), bounded);
  V odd = m.b.CreateAnd(isInteger, m.b.CreateICmpNE(m.b.CreateAnd(integer, m.ic(1)), m.ic(0)));
  V signBit = m.b.CreateICmpSLT(m.bits(x), m.ic(0));
  value = m.select(m.b.CreateAnd(odd, signBit), m.neg(value), value);
  V undefined = m.b.CreateAnd(m.b.CreateAnd(m.lt(x, m.c(0)), m.b.CreateNot(isInteger)),
                              m.lt(magnitude, m.inf()));
  value = m.select(undefined, m.nan(), value);
  V one = m.b.CreateOr(m.eq(x, m.c(1)), m.eq(y, m.c(0)));
  V unitBase = m.b.CreateAnd(m.eq(magnitude, m.c(1)), m.eq(yMagnitude, m.inf()));
  return m.select(m.b.CreateOr(one, unitBase), m.c(1), value);
}

/// The remainder of division towards zero, exact as in C. Long division: while x >= y, x loses the
/// largest multiple of y 2^k whose quotient fits the mantissa; k makes that quotient about `step`
/// bits wide. A quotient that division rounded up by one leaves a negative rest, which is mended.
static V emitFmod(MathBuilder &m, V x, V y) {
  IRBuilder<> &b = m.b;
  if (!m.isDouble) { // f64 has no subnormals here, and exact results of f32 operands are f32
    Type *wide = m.type->getWithNewType(b.getDoubleTy());
    MathBuilder d(b, wide);
    return b.CreateFPTrunc(emitFmod(d, b.CreateFPExt(x, wide), b.CreateFPExt(y, wide)), m.type);
  }
  constexpr int step = 50;
  V magnitude = m.abs(x), divisor = m.abs(y);
  V isDefined = b.CreateAnd(m.lt(magnitude, m.inf()), m.gt(divisor, m.c(0)));
  V start = m.select(isDefined, magnitude, m.c(0));
  divisor = m.select(isDefined, divisor, m.c(1));
  // The exponent of a positive number; subnormal ones count as the smallest after scaling by 2^64.
  auto exponent = [&](V value) {
    V isSmall = m.lt(value, m.c(0x1p-1000));
    V scaled = m.select(isSmall, m.mul(value, m.c(0x1p64)), value);
    V field = b.CreateLShr(m.bits(scaled), m.ic(m.mantissaBits()));
    return b.CreateSub(field, m.select(isSmall, m.ic(64), m.ic(0)));
  };
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *head = BasicBlock::Create(b.getContext(), "divide", function);
  BasicBlock *body = BasicBlock::Create(b.getContext(), "divide.step", function);
  BasicBlock *done = BasicBlock::Create(b.getContext(), "divided", function);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  PHINode *rest = b.CreatePHI(m.type, 2);
  rest->addIncoming(start, before);
  V isLarge = b.CreateFCmpOGE(rest, divisor);
  b.CreateCondBr(m.type->isVectorTy() ? b.CreateOrReduce(isLarge) : isLarge, body, done);
  b.SetInsertPoint(body);
  V shift = b.CreateSub(b.CreateSub(exponent(rest), exponent(divisor)), m.ic(step));
  shift = b.CreateBinaryIntrinsic(Intrinsic::smax, shift, m.ic(0));
  shift = b.CreateBinaryIntrinsic(Intrinsic::smin, shift, m.ic(2 * m.bias()));
  // In two halves: 2^shift alone may not be a number.
  V half = b.CreateLShr(shift, m.ic(1));
  V multiple = m.mul(m.mul(divisor, m.pow2(half)), m.pow2(b.CreateSub(shift, half)));
  V quotient = b.CreateUnaryIntrinsic(Intrinsic::trunc, m.div(rest, multiple));
  V less = m.fma(m.neg(quotient), multiple, rest);
  less = m.select(m.lt(less, m.c(0)), m.add(less, multiple), less);
  rest->addIncoming(m.select(isLarge, less, rest), b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(done);
  return m.copysign(m.select(isDefined, rest, m.nan()), x);
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static V emitBody(MathFunction function, MathBuilder &m, V x, V y) {
  switch (function) {
  case MathFunction::Exp:
    return emitExp(m, x);
  case MathFunction::ExpLow:
    return emitExpLow(m, x);
  case MathFunction::Exp2:
    return emitExp2(m, x);
  case MathFunction::Expm1:
    return emitExpm1(m, x);
  case MathFunction::Log:
    return emitLog(m, x);
  case MathFunction::Log2:
    return emitLog2(m, x);
  case MathFunction::Log1p:
    return emitLog1p(m, x);
  case MathFunction::ExpShort:
    return emitExpShort(m, x);
  case MathFunction::Log1pExp:
    return emitLog1pExp(m, x, /*isShort=*/false);
  case MathFunction::Log1pExpShort:
    return emitLog1pExp(m, x, /*isShort=*/true);
  case MathFunction::Sin:
    return emitSin(m, x);
  case MathFunction::Cos:
    return emitCos(m, x);
  case MathFunction::Tan:
    return emitTan(m, x);
  case MathFunction::Tanh:
    return emitTanh(m, x, /*isShort=*/false);
  case MathFunction::TanhShort:
    return emitTanh(m, x, /*isShort=*/true);
  case MathFunction::Erf:
    return emitErf(m, x);
  case MathFunction::ErfShort:
    return m.hasApproximations() ? emitErfShort(m, x) : emitErf(m, x);
  case MathFunction::Log10:
    return emitLog10(m, x);
  case MathFunction::Asin:
    return emitAsin(m, x);
  case MathFunction::Acos:
    return emitAcos(m, x);
  case MathFunction::Atan:
    return emitAtan(m, x);
  case MathFunction::Atan2:
    return emitAtan2(m, x, y);
  case MathFunction::Sinh:
    return emitSinh(m, x);
  case MathFunction::Cosh:
    return emitCosh(m, x);
  case MathFunction::Asinh:
    return emitAsinh(m, x);
  case MathFunction::Acosh:
    return emitAcosh(m, x);
  case MathFunction::Atanh:
    return emitAtanh(m, x);
  case MathFunction::Erfc:
    return emitErfc(m, x);
  case MathFunction::Erfinv:
    return emitErfinv(m, x);
  case MathFunction::Lgamma:
    return emitLgamma(m, x);
  case MathFunction::Digamma:
    return emitDigamma(m, x);
  case MathFunction::Pow:
    return emitPow(m, x, y);
  case MathFunction::Rsqrt:
    return m.div(m.c(1), m.sqrt(x));
  case MathFunction::Fmod:
    return emitFmod(m, x, y);
  }
  llvm_unreachable("every elementary function has a body");
}

Function *getMathFunction(Module &module, MathFunction function, Type *type) {
  assert((type->getScalarType()->isFloatTy() || type->getScalarType()->isDoubleTy()) &&
         "elementary functions work on float and double");
  std::string name = ("tegula." + toString(function) + ".").str();
  raw_string_ostream os(name);
  if (auto *vector = dyn_cast<FixedVectorType>(type))
    os << 'v' << vector->getNumElements();
  os << (type->getScalarType()->isDoubleTy() ? "f64" : "f32");
  if (Function *existing = module.getFunction(name))
    return existing;
  SmallVector<Type *, 2> arguments(numArguments(function), type);
  auto *result = Function::Create(FunctionType::get(type, arguments, false),
                                  GlobalValue::InternalLinkage, name, module);
  // Said here, so that no pass has to find out that a call of what a loop does not change can leave
  // it.
  for (auto attribute : {Attribute::AlwaysInline, Attribute::NoUnwind, Attribute::WillReturn,
                         Attribute::NoFree, Attribute::NoSync})
    result->addFnAttr(attribute);
  result->setDoesNotAccessMemory();
  IRBuilder<> b(BasicBlock::Create(module.getContext(), "entry", result));
  MathBuilder m(b, type);
  V y = arguments.size() > 1 ? result->getArg(1) : nullptr;
  b.CreateRet(emitBody(function, m, result->getArg(0), y));
  return result;
}

} // namespace tegula
