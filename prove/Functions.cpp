//===- Functions.cpp - Signs, opaque functions and roundings ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/DTypes.h"
#include "prove/Number.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace tegula;
using namespace tegula::prove;

static constexpr unsigned places = Chains::places;

Number Algebra::abs(const Number &a) {
  if (a.kind == Number::NotANumber)
    return a;
  return compare(a, integer(0)) == Comparison::Less ? neg(a) : a;
}

Number Algebra::copySign(const Number &x, const Number &sign) {
  bool wantsNegative = compare(sign, integer(0)) == Comparison::Less;
  Number magnitude = abs(x);
  return wantsNegative ? neg(magnitude) : magnitude;
}

namespace {
enum class Parity { None, Odd, Even };
struct Form {
  Parity parity;
  bool isZeroAtZero;
  Real (*value)(Real);
  Real (*slope)(Real);
};
} // namespace

static Real erfInverse(Real x) {
  Real low = -12, high = 12;
  for (int step = 0; step < 140; ++step) {
    Real middle = (low + high) / 2;
    (std::erf(middle) < x ? low : high) = middle;
  }
  return (low + high) / 2;
}

static Real digamma(Real x) {
  if (x < 0)
    return digamma(1 - x) - M_PIl / std::tan(M_PIl * x);
  Real sum = 0;
  for (; x < 40; ++x)
    sum -= 1 / x;
  Real z = 1 / (x * x);
  Real series = z * (1 / 12.L - z * (1 / 120.L - z * (1 / 252.L - z * (1 / 240.L - z / 132.L))));
  return sum + std::log(x) - 1 / (2 * x) - series;
}

static const Form &formOf(Algebra::Opaque function) {
  static const Form forms[] = {
      {Parity::Odd, true, [](Real x) { return std::sin(x); }, [](Real x) { return std::cos(x); }},
      {Parity::Even, false, [](Real x) { return std::cos(x); }, [](Real x) { return std::sin(x); }},
      {Parity::Odd, true, [](Real x) { return std::erf(x); },
       [](Real x) { return M_2_SQRTPIl * std::exp(-x * x); }},
      {Parity::Odd, true, [](Real x) { return std::atan(x); },
       [](Real x) { return 1 / (1 + x * x); }},
      {Parity::Odd, true, [](Real x) { return std::asin(x); },
       [](Real x) { return 1 / std::sqrt(1 - x * x); }},
      {Parity::Odd, true, [](Real x) { return std::cbrt(x); },
       [](Real x) { return 1 / (3 * std::cbrt(x) * std::cbrt(x)); }},
      {Parity::Odd, true, erfInverse,
       [](Real x) {
         Real y = erfInverse(x);
         return std::exp(y * y) / M_2_SQRTPIl;
       }},
      {Parity::None, false, [](Real x) { return std::lgamma(x); }, digamma},
      {Parity::None, false, digamma,
       [](Real x) { return (digamma(x + 1e-6L) - digamma(x - 1e-6L)) / 2e-6L; }},
  };
  return forms[unsigned(function)];
}

Number Algebra::opaque(Opaque function, const Number &a) {
  if (a.kind == Number::NotANumber)
    return a;
  if (a.kind == Number::Infinite) {
    Real limit = formOf(function).value(a.real * std::numeric_limits<Real>::infinity());
    if (function == Opaque::Erf)
      return integer(limit < 0 ? -1 : 1);
    require(false, "function of an infinity");
    return nan();
  }
  const Form &form = formOf(function);
  if (form.isZeroAtZero && isZero(a))
    return integer(0);
  Number result;
  for (unsigned k = 0; k < places; ++k) {
    // Of x and -x one stands for both.
    uint64_t argument = a.residues[k], opposite = chain[k].neg(argument);
    bool flips = form.parity != Parity::None && opposite < argument;
    uint64_t value = hash(16 + unsigned(function), k, flips ? opposite : argument);
    if (function == Opaque::Cos && argument == 0)
      value = chain[k].one();
    result.residues[k] = flips && form.parity == Parity::Odd ? chain[k].neg(value) : value;
  }
  result.real = form.value(a.real);
  auto slope = double(std::fabs(form.slope(a.real)));
  propagate(result, a, slope);
  result.slack += 4 * double(std::numeric_limits<Real>::epsilon());
  result.numerator = 1;
  return finish(result, 4);
}

Number Algebra::atan2(const Number &y, const Number &x) {
  if (y.kind != Number::Finite || x.kind != Number::Finite) {
    require(false, "atan2 of an infinity");
    return nan();
  }
  Number result;
  for (unsigned k = 0; k < places; ++k)
    result.residues[k] = hash(8, k, mix(y.residues[k], x.residues[k]));
  result.real = std::atan2(y.real, x.real);
  Real square = y.real * y.real + x.real * x.real;
  require(square > 0, "atan2 of zeros");
  double scale = square > 0 ? 1 / double(std::sqrt(square)) : 0;
  propagate(result, y, scale);
  propagate(result, x, scale);
  result.slack += 4 * double(std::numeric_limits<Real>::epsilon());
  result.numerator = 1;
  return finish(result, 4);
}

static Real rounded(Algebra::Rounding how, Real value) {
  switch (how) {
  case Algebra::Rounding::Floor:
    return std::floor(value);
  case Algebra::Rounding::Ceil:
    return std::ceil(value);
  case Algebra::Rounding::Trunc:
    return std::trunc(value);
  case Algebra::Rounding::Nearest:
    return std::nearbyint(value);
  case Algebra::Rounding::Away:
    return std::round(value);
  }
  return value;
}

int64_t Algebra::toInteger(Rounding how, const Number &a) {
  if (a.kind == Number::NotANumber)
    return 0;
  constexpr int64_t least = std::numeric_limits<int64_t>::min(),
                    greatest = std::numeric_limits<int64_t>::max();
  if (a.kind == Number::Infinite)
    return a.real < 0 ? least : greatest;
  ++events.roundings;
  noteCondition(a);
  Real result = rounded(how, a.real);
  // Where a value may be on either side of a step, it must be an integer by its residues, whose
  // neighbours all roundings but those at halves agree about.
  if (Real reach = 4 * Real(a.slack);
      rounded(how, a.real - reach) != rounded(how, a.real + reach)) {
    Real nearest = std::nearbyint(a.real);
    bool isInteger = std::fabs(nearest) < 0x1p62L && same(a, integer(int64_t(nearest)));
    require(isInteger, "rounding");
    if (isInteger)
      result = nearest;
  }
  if (result >= 0x1p63L)
    return greatest;
  if (result < -0x1p63L)
    return least;
  return int64_t(result);
}

Number Algebra::round(Rounding how, const Number &a) {
  if (a.kind != Number::Finite)
    return a;
  require(std::fabs(a.real) < 0x1p62L, "rounding of a large number");
  Number result = integer(toInteger(how, a));
  result.error = a.error;
  result.coarse = a.coarse;
  return result;
}

Number Algebra::stored(Number a, unsigned type, double relativeError) {
  if (a.heldAs == type + 1)
    return a;
  a.heldAs = uint8_t(type + 1);
  events.types |= uint32_t(1) << type;
  if (a.kind != Number::Finite)
    return a;
  double most = type == unsigned(DType::F16)      ? 65504
                : type == unsigned(DType::BF16)   ? 0x1.fep127
                : type == unsigned(DType::F8E4M3) ? 448
                : type == unsigned(DType::F8E5M2) ? 57344
                                                  : 0;
  // Half of what lies between numbers that are too small for all bits of the type.
  double least = type == unsigned(DType::F16)      ? 0x1p-25
                 : type == unsigned(DType::BF16)   ? 0x1p-134
                 : type == unsigned(DType::F8E4M3) ? 0x1p-10
                 : type == unsigned(DType::F8E5M2) ? 0x1p-17
                                                   : 0;
  auto magnitude = double(std::fabs(a.real));
  double growth = std::max(relativeError * magnitude, std::min(least, magnitude));
  events.overflows += most > 0 && std::fabs(a.real) > most;
  a.error += growth;
  a.coarse += relativeError > unit ? growth : 0;
  a.single += relativeError == unit ? growth : 0;
  return a;
}

Number Algebra::computedInSingle(Number a) {
  bool isExact = a.heldAs != 0 || (a.numerator == 0 && a.slack == 0);
  if (a.kind == Number::Finite && !isExact)
    a.single += unit * double(std::fabs(a.real));
  return a;
}

Number Algebra::singleInteger(int64_t value) const {
  Number number = integer(value);
  if (Real(float(value)) != Real(value))
    number.single = unit * std::fabs(double(value));
  return number;
}
