//===- LowerGamma.cpp - Error functions and gamma functions --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All in f64, from which f32 is rounded: these functions are rare, and their ranges of reduction
// long.
//
//===----------------------------------------------------------------------===//
#include "codegen/math/LowerExp.h"
#include "codegen/math/LowerMath.h"
#include "codegen/math/LowerSpecial.h"
#include "codegen/math/LowerTrig.h"
#include "codegen/math/MathCoefficients.h"
#include <cmath>

using namespace llvm;

namespace tegula {

using namespace coefficients;
using V = Value *;

//===----------------------------------------------------------------------===//
// Error functions
//===----------------------------------------------------------------------===//

/// erfc of x >= 1/2: exp(-x^2), the square in two parts, times a polynomial over 1 + 2x.
static V erfcFar(MathBuilder &d, V x) {
  V bounded = d.atMost(x, 28);
  V t = d.div(d.sub(bounded, d.c(4)), d.add(bounded, d.c(4)));
  V factor = d.div(d.poly(t, ArrayRef<double>(erfcFarF64)), d.fma(d.c(2), bounded, d.c(1)));
  V high = d.neg(d.mul(bounded, bounded));
  V low = d.neg(d.fma(bounded, bounded, high));
  Power power = expParts(d, high);
  V p = d.add(d.c(1), power.tail);
  return scale(d, d.mul(factor, d.fma(p, low, p)), power.n);
}

static V erfcOf(MathBuilder &d, V x) {
  V far = erfcFar(d, d.atLeast(d.abs(x), 0.5));
  V near = d.sub(d.c(1), call(d, MathFunction::Erf, x));
  V result = d.select(d.gt(x, d.c(0.5)), far, near);
  return d.select(d.isNan(x), x, result);
}

V emitErfc(MathBuilder &m, V x) { return inDoubles(m, x, erfcOf); }

V emitErfinv(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V a = d.abs(value);
    V inside = d.select(d.lt(a, d.c(1)), a, d.c(0));
    V rest = d.sub(d.c(1), inside);
    V w = d.neg(call(d, MathFunction::Log, d.mul(rest, d.add(d.c(1), inside))));
    V isFar = d.gt(w, d.c(5));
    V near = d.poly(d.sub(w, d.c(2.5)), ArrayRef<double>(erfinvNearF64));
    V far = d.poly(d.sub(d.sqrt(d.atLeast(w, 5)), d.c(4)), ArrayRef<double>(erfinvFarF64));
    V y = d.mul(inside, d.select(isFar, far, near));
    // One step of Halley's: erf(y) - x without loss, over the derivative 2/sqrt(pi) exp(-y^2).
    V error = d.select(d.gt(inside, d.c(0.5)), d.sub(rest, erfcOf(d, y)),
                       d.sub(call(d, MathFunction::Erf, y), inside));
    V slope = d.mul(d.c(1.1283791670955126), call(d, MathFunction::Exp, d.neg(d.mul(y, y))));
    V step = d.div(error, slope);
    y = d.sub(y, d.div(step, d.fma(y, step, d.c(1))));
    y = d.select(d.lt(a, d.c(0x1p-30)), d.mul(a, d.c(0.88622692545275801)), y);
    y = d.select(d.eq(a, d.c(1)), d.inf(), d.select(d.lt(a, d.c(1)), y, d.nan()));
    return d.copysign(y, value);
  });
}

//===----------------------------------------------------------------------===//
// Gamma functions
//===----------------------------------------------------------------------===//

/// The distance from the nearest whole number, and whether x is one.
static V fromWhole(MathBuilder &d, V x) {
  return d.sub(x, d.b.CreateUnaryIntrinsic(Intrinsic::roundeven, x));
}

/// lgamma of x > -1/2. Its zeros at 1 and 2 are factors, so that nothing cancels beside them.
static V lgammaPositive(MathBuilder &d, V x) {
  V isSmall = d.lt(x, d.c(0.5));
  // Below 1/2: lgamma(x + 1) - log|x|. From 3 to 8: y in [2, 3), and the logarithm of (x - 1)(x -
  // 2)...
  V y = d.select(isSmall, d.c(2), d.atMost(d.atLeast(x, 0.5), 8)), product = d.c(1);
  for (unsigned step = 0; step < 5; ++step) {
    V isLarge = d.b.CreateFCmpOGE(y, d.c(3));
    y = d.select(isLarge, d.sub(y, d.c(1)), y);
    product = d.select(isLarge, d.mul(product, y), product);
  }
  V u = d.select(isSmall, x, d.sub(y, d.c(1)));
  V isLow = d.lt(u, d.c(0.5));
  V lowU = d.select(isLow, u, d.c(0)), highU = d.select(isLow, d.c(0), d.sub(u, d.c(1.25)));
  V part = d.select(isLow, d.poly(lowU, ArrayRef<double>(lgammaLowF64)),
                    d.poly(highU, ArrayRef<double>(lgammaHighF64)));
  V value = d.mul(d.mul(u, d.sub(u, d.c(1))), part);
  V shift = call(d, MathFunction::Log, d.select(isSmall, d.abs(x), product));
  value = d.select(isSmall, d.sub(value, shift), d.add(value, shift));
  // Stirling's series.
  V isFar = d.b.CreateFCmpOGE(x, d.c(8));
  V bounded = d.atLeast(x, 8), inverse = d.div(d.c(1), bounded), z = d.mul(inverse, inverse);
  V tail = d.fma(inverse, d.poly(z, ArrayRef<double>(lgammaTailF64)), d.c(0.41893853320467274));
  V logarithm = d.sub(call(d, MathFunction::Log, bounded), d.c(1));
  V far = d.fma(d.sub(bounded, d.c(0.5)), logarithm, tail);
  return d.select(isFar, far, value);
}

V emitLgamma(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V reflects = d.lt(value, d.c(-0.5));
    V positive = lgammaPositive(d, d.select(reflects, d.neg(value), value));
    // log(pi/|x sin(pi x)|) - lgamma(|x|)
    V rest = fromWhole(d, value);
    V sine = d.abs(emitSin(d, d.mul(d.c(M_PI), rest)));
    V reflected =
        d.sub(call(d, MathFunction::Log, d.div(d.c(M_PI), d.mul(d.abs(value), sine))), positive);
    V result = d.select(reflects, reflected, positive);
    V isPole = d.b.CreateAnd(d.b.CreateFCmpOLE(value, d.c(0)), d.eq(rest, d.c(0)));
    result = d.select(d.b.CreateOr(isPole, d.eq(d.abs(value), d.inf())), d.inf(), result);
    return d.select(d.isNan(value), value, result);
  });
}

V emitDigamma(MathBuilder &m, V x) {
  return inDoubles(m, x, [](MathBuilder &d, V value) {
    V reflects = d.lt(value, d.c(0));
    V t = d.select(reflects, d.sub(d.c(1), value), value), sum = d.c(0), lost = d.c(0);
    // Upwards to 10; each term is less than the sum of those before it, and what a sum rounds away
    // is kept.
    for (unsigned step = 0; step < 10; ++step) {
      V isLow = d.lt(t, d.c(10));
      V term = d.div(d.c(1), t), next = d.add(sum, term);
      V isFinite = d.lt(next, d.inf()); // the first term may not be
      lost = d.select(d.b.CreateAnd(isLow, isFinite), d.add(lost, d.add(d.sub(sum, next), term)),
                      lost);
      sum = d.select(isLow, next, sum);
      t = d.select(isLow, d.add(t, d.c(1)), t);
    }
    V inverse = d.div(d.c(1), t), z = d.mul(inverse, inverse);
    V tail = d.fma(z, d.poly(z, ArrayRef<double>(digammaTailF64)), d.mul(d.c(0.5), inverse));
    V result = d.sub(d.sub(call(d, MathFunction::Log, t), sum), d.add(tail, lost));
    // digamma(1 - x) - pi/tan(pi x)
    V rest = fromWhole(d, value);
    V tangent = emitTan(d, d.mul(d.c(M_PI), rest));
    result = d.select(reflects, d.sub(result, d.div(d.c(M_PI), tangent)), result);
    // As PyTorch: infinite on the side of a zero, nothing at the other poles.
    result = d.select(d.b.CreateAnd(reflects, d.eq(rest, d.c(0))), d.nan(), result);
    result = d.select(d.eq(value, d.c(0)), d.copysign(d.inf(), d.neg(value)), result);
    result = d.select(d.eq(value, d.inf()), value, result);
    return d.select(d.isNan(value), value, result);
  });
}

} // namespace tegula
