//===- LowerInverse.cpp - Inverses of circular functions, hyperbolic functions ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/math/LowerExp.h"
#include "codegen/math/LowerMath.h"
#include "codegen/math/LowerSpecial.h"
#include "codegen/math/MathCoefficients.h"

using namespace llvm;

namespace tegula {

using namespace coefficients;
using V = Value *;

V call(MathBuilder &m, MathFunction function, V x) {
  return m.b.CreateCall(getMathFunction(*m.b.GetInsertBlock()->getModule(), function, m.type), {x});
}

V inDoubles(MathBuilder &m, V x, function_ref<V(MathBuilder &, V)> function) {
  if (m.isDouble)
    return function(m, x);
  MathBuilder d(m.b, m.type->getWithNewType(m.b.getDoubleTy()));
  return m.b.CreateFPTrunc(function(d, m.b.CreateFPExt(x, d.type)), m.type);
}

//===----------------------------------------------------------------------===//
// atan, asin, acos
//===----------------------------------------------------------------------===//

/// atan(numerator/denominator) for numbers that are not negative: the quotient, or that of their
/// difference and sum, or less its reciprocal, is at most tan(pi/8) in magnitude; pi/4 or pi/2
/// more, in two parts.
static V atanOfQuotient(MathBuilder &m, V numerator, V denominator) {
  constexpr double tangent = 0.41421356237309503, cotangent = 2.414213562373095;
  V isMiddle = m.gt(numerator, m.mul(denominator, m.c(tangent)));
  V isUpper = m.gt(numerator, m.mul(denominator, m.c(cotangent)));
  V top = m.select(isUpper, m.neg(denominator),
                   m.select(isMiddle, m.sub(numerator, denominator), numerator));
  V bottom =
      m.select(isUpper, numerator, m.select(isMiddle, m.add(numerator, denominator), denominator));
  V r = m.div(top, bottom), z = m.mul(r, r);
  // pi/2 and its half, and what is left of them.
  V high = m.pick(0, halfPiF32, halfPiF64), low = m.pick(1, halfPiF32, halfPiF64);
  V share = m.select(isUpper, m.c(1), m.select(isMiddle, m.c(0.5), m.c(0)));
  V rest = m.fma(m.mul(r, z), m.poly(z, atanTailF32, atanTailF64), m.mul(share, low));
  return m.add(m.mul(share, high), m.add(r, rest));
}

V emitAtan(MathBuilder &m, V x) {
  // Beyond 2^60 the reciprocal does not matter, and inf has one.
  V magnitude = m.atMost(m.abs(x), 0x1p60);
  V value = atanOfQuotient(m, magnitude, m.c(1));
  // A NaN is none of the cases, and stays in the quotient.
  return m.copysign(value, x);
}

V emitAtan2(MathBuilder &m, V y, V x) {
  // Scaled so that no sum overflows and no subnormal loses bits; two infinities are as 1 and 1.
  V a = m.abs(y), c = m.abs(x);
  V bothInfinite = m.b.CreateAnd(m.eq(a, m.inf()), m.eq(c, m.inf()));
  V bothZero = m.b.CreateAnd(m.eq(a, m.c(0)), m.eq(c, m.c(0)));
  a = m.select(bothInfinite, m.c(1), a);
  c = m.select(bothInfinite, m.c(1), m.select(bothZero, m.c(1), c));
  double big = m.isDouble ? 0x1p1000 : 0x1p120, small = m.isDouble ? 0x1p-900 : 0x1p-90;
  double down = m.isDouble ? 0x1p-100 : 0x1p-20, up = m.isDouble ? 0x1p100 : 0x1p40;
  V isBig = m.b.CreateOr(m.gt(a, m.c(big)), m.gt(c, m.c(big)));
  V isSmall = m.b.CreateAnd(m.lt(a, m.c(small)), m.lt(c, m.c(small)));
  V factor = m.select(isBig, m.c(down), m.select(isSmall, m.c(up), m.c(1)));
  a = m.mul(a, factor);
  c = m.mul(c, factor);
  // inf as the larger one: the quotient is 0, or its reciprocal is.
  V value = atanOfQuotient(m, a, c);
  value = m.select(m.eq(a, m.inf()), m.pick(0, halfPiF32, halfPiF64),
                   m.select(m.eq(c, m.inf()), m.c(0), value));
  V isNegative = m.b.CreateICmpSLT(m.bits(x), m.ic(0));
  // pi - value, with pi in two parts.
  V pi = m.mul(m.c(2), m.pick(0, halfPiF32, halfPiF64)),
    rest = m.mul(m.c(2), m.pick(1, halfPiF32, halfPiF64));
  V beyond = m.sub(pi, m.sub(value, rest));
  value = m.select(isNegative, beyond, value);
  value = m.select(m.b.CreateFCmpUNO(x, y), m.nan(), value);
  return m.copysign(value, y);
}

/// asin(x) - x of |x| <= 1/2.
static V asinRest(MathBuilder &m, V x, V z) {
  return m.mul(m.mul(x, z), m.poly(z, asinTailF32, asinTailF64));
}

V emitAsin(MathBuilder &m, V x) {
  V magnitude = m.abs(x);
  V isFar = m.gt(magnitude, m.c(0.5));
  // asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2)); beyond 1 the root is a NaN.
  V half = m.mul(m.c(0.5), m.sub(m.c(1), magnitude));
  V r = m.select(isFar, m.sqrt(half), magnitude),
    z = m.select(isFar, half, m.mul(magnitude, magnitude));
  V rest = asinRest(m, r, z);
  V far = m.sub(m.pick(0, halfPiF32, halfPiF64),
                m.fma(m.c(2), r, m.fma(m.c(2), rest, m.neg(m.pick(1, halfPiF32, halfPiF64)))));
  return m.copysign(m.select(isFar, far, m.add(r, rest)), x);
}

V emitAcos(MathBuilder &m, V x) {
  V magnitude = m.abs(x);
  V isFar = m.gt(magnitude, m.c(0.5));
  V half = m.mul(m.c(0.5), m.sub(m.c(1), magnitude));
  V r = m.select(isFar, m.sqrt(half), x), z = m.select(isFar, half, m.mul(x, x));
  V rest = asinRest(m, r, z);
  V high = m.pick(0, halfPiF32, halfPiF64), low = m.pick(1, halfPiF32, halfPiF64);
  V near = m.sub(high, m.add(r, m.sub(rest, low)));
  V twice = m.fma(m.c(2), r, m.mul(m.c(2), rest));
  V below = m.sub(m.mul(m.c(2), high), m.fma(m.c(2), r, m.fma(m.c(2), rest, m.mul(m.c(-2), low))));
  return m.select(isFar, m.select(m.lt(x, m.c(0)), below, twice), near);
}

//===----------------------------------------------------------------------===//
// Hyperbolic functions
//===----------------------------------------------------------------------===//

/// exp(x)/2 for x >= 0, which overflows where sinh and cosh do.
static V halfExp(MathBuilder &m, V x) {
  Power power = expParts(m, m.atMost(x, m.isDouble ? 711 : 90));
  return scale(m, m.add(m.c(1), power.tail), m.b.CreateSub(power.n, m.ic(1)));
}

V emitSinh(MathBuilder &m, V x) {
  V magnitude = m.abs(x);
  V z = m.mul(magnitude, magnitude);
  V near = m.fma(m.mul(magnitude, z), m.poly(z, sinhTailF32, sinhTailF64), magnitude);
  V h = halfExp(m, magnitude);
  V far = m.sub(h, m.div(m.c(0.25), h));
  return m.copysign(m.select(m.gt(magnitude, m.c(1)), far, near), x);
}

V emitCosh(MathBuilder &m, V x) {
  V h = halfExp(m, m.abs(x));
  return m.add(h, m.div(m.c(0.25), h));
}

/// log of what is beyond `limit`, where the formula's square would overflow, and ln 2 more.
static V twiceLog(MathBuilder &m, V x) {
  return m.add(call(m, MathFunction::Log, x), m.c(0x1.62e42fefa39efp-1));
}

V emitAsinh(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V t = d.abs(value), bounded = d.atMost(t, 0x1p28);
    V square = d.mul(bounded, bounded);
    // sqrt(1 + t^2) - 1 without loss.
    V root = d.add(d.c(1), d.sqrt(d.add(d.c(1), square)));
    V near = call(d, MathFunction::Log1p, d.add(bounded, d.div(square, root)));
    return d.copysign(d.select(d.gt(t, d.c(0x1p28)), twiceLog(d, t), near), value);
  });
}

V emitAcosh(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V bounded = d.atMost(value, 0x1p28);
    V u = d.sub(bounded, d.c(1)); // negative below 1: the root is a NaN
    V near = call(d, MathFunction::Log1p, d.add(u, d.sqrt(d.mul(u, d.add(u, d.c(2))))));
    V result = d.select(d.gt(value, d.c(0x1p28)), twiceLog(d, value), near);
    return d.select(d.lt(value, d.c(1)), d.nan(), result);
  });
}

V emitAtanh(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V t = d.abs(value);
    V quotient = d.div(d.add(t, t), d.sub(d.c(1), t)); // inf of 1, less than -1 beyond
    return d.copysign(d.mul(d.c(0.5), call(d, MathFunction::Log1p, quotient)), value);
  });
}

} // namespace tegula
