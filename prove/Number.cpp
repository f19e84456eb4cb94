//===- Number.cpp - Arithmetic, exp, log and powers ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Number.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

using namespace tegula::prove;

static constexpr unsigned places = Chains::places, exps = Chains::exps;
static constexpr Real realUnit = std::numeric_limits<Real>::epsilon();
/// Hashes of functions in Number.cpp; those of Opaque follow.
enum : unsigned { hashExp = 1, hashLog, hashPower, hashAtan2, hashConstant, hashOpaque };

uint64_t Algebra::hash(unsigned function, unsigned place, uint64_t argument) const {
  return chain[place].fromBits(
      mix(mix(chain.salt(), function * places + place), argument ^ 0x6f70617175650000));
}

void Algebra::require(bool isFine, const char *where) {
  if (isFine)
    return;
  if (!events.ambiguous++)
    events.firstAmbiguous = where;
}

/// What an operand's errors do to the result's, by the derivative.
void Algebra::propagate(Number &result, const Number &a, double slope) {
  slope = std::fabs(slope);
  result.slack += slope * a.slack;
  result.error += slope * a.error;
  result.coarse += slope * a.coarse;
  result.single += slope * a.single;
}

void Algebra::noteCondition(const Number &a) {
  events.coarseConditions += a.coarse > negligible;
  events.singleConditions += a.single > 0;
}

/// What every operation that rounds does to errors.
Number Algebra::finish(Number result, double units) {
  auto magnitude = double(std::fabs(result.real));
  result.slack += 2 * double(realUnit) * magnitude;
  result.error += units * unit * magnitude + lostBelow(magnitude);
  result.coarse += lostBelow(magnitude);
  if (std::isnan(result.real))
    return nan();
  require(!std::isinf(result.real), "number beyond long double");
  return std::isinf(result.real) ? infinity(result.real < 0) : result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

bool Algebra::setRational(Number &number, int64_t numerator, int64_t denominator) const {
  for (unsigned k = 0; k < places; ++k) {
    uint64_t below = chain[k].from(denominator);
    if (!below)
      return false;
    number.residues[k] = chain[k].mul(chain[k].from(numerator), chain[k].inverse(below));
  }
  number.real = Real(numerator) / Real(denominator);
  number.slack = double(realUnit * std::fabs(number.real));
  return true;
}

Number Algebra::integer(int64_t value) const {
  Number number;
  for (unsigned k = 0; k < places; ++k)
    number.residues[k] = chain[k].from(value);
  number.real = Real(value);
  return number;
}

Number Algebra::infinity(bool isNegative) const {
  Number number;
  number.kind = Number::Infinite;
  number.real = isNegative ? -1 : 1;
  return number;
}

Number Algebra::nan() const {
  Number number;
  number.kind = Number::NotANumber;
  return number;
}

Number Algebra::drawn(Real real, uint64_t bits) const {
  Number number;
  Draws own(mix(bits, chain.salt()));
  for (unsigned k = 0; k < places; ++k)
    number.residues[k] = chain[k].fromBits(own.next());
  number.real = real;
  number.numerator = 1;
  return number;
}

Number Algebra::opaqueConstant(uint64_t key, Real real) const {
  Number number;
  for (unsigned k = 0; k < places; ++k)
    number.residues[k] = hash(hashConstant, k, key);
  number.real = real;
  number.slack = double(realUnit * std::fabs(real));
  return number;
}

using Fraction = std::pair<int64_t, int64_t>;

/// The fraction with the least denominator, up to 1000, that is as good as the value.
static std::optional<Fraction> searchFraction(Real value, Real tolerance) {
  if (!(std::fabs(value) < 0x1p40L))
    return std::nullopt;
  for (int64_t denominator = 1; denominator <= 1000; ++denominator) {
    Real scaled = value * Real(denominator);
    int64_t numerator = std::llround(scaled);
    if (std::fabs(scaled - Real(numerator)) <= tolerance * std::fabs(scaled))
      return Fraction(numerator, denominator);
  }
  // Small numbers such as 1e-5, and powers of ten.
  for (Real power = 1e4L; power <= 1e15L; power *= 10) {
    Real scaled = value * power;
    int64_t numerator = std::llround(scaled);
    if (numerator && std::fabs(numerator) < 1000 &&
        std::fabs(scaled - Real(numerator)) <= tolerance * std::fabs(scaled))
      return Fraction(numerator, std::llround(power));
  }
  return std::nullopt;
}

/// Remembers what was searched: each evaluation has an algebra of its own, and meets the same
/// constants.
static bool findFraction(Real value, Real tolerance, int64_t &numerator, int64_t &denominator) {
  constexpr size_t most = 100'000;
  thread_local std::map<std::pair<Real, Real>, std::optional<Fraction>> known;
  if (known.size() > most)
    known.clear();
  auto [found, isNew] = known.try_emplace({value, tolerance});
  if (isNew)
    found->second = searchFraction(value, tolerance);
  if (found->second)
    std::tie(numerator, denominator) = *found->second;
  return found->second.has_value();
}

Number Algebra::constant(double value, bool isDouble) const {
  if (std::isnan(value))
    return nan();
  if (std::isinf(value))
    return infinity(value < 0);
  auto found = constants.find({value, isDouble});
  if (found == constants.end())
    found = constants.emplace(std::pair(value, isDouble), constantAnew(value, isDouble)).first;
  return found->second;
}

Number Algebra::constantAnew(double value, bool isDouble) const {
  Number number;
  Real tolerance = isDouble ? 0x1p-51L : 0x1p-24L;
  int64_t numerator, denominator;
  if (findFraction(value, tolerance, numerator, denominator) &&
      setRational(number, numerator, denominator))
    return number;
  // Numbers with a name, times a small fraction.
  struct Named {
    Real value;
    unsigned key;
    bool isInverse;
  };
  static const Named named[] = {{M_PIl, 1, false},
                                {M_LN2l, 2, false},
                                {M_LOG2El, 2, true},
                                {M_LN10l, 3, false},
                                {M_LOG10El, 3, true}};
  for (const Named &one : named) {
    if (!findFraction(Real(value) / one.value, tolerance, numerator, denominator) ||
        denominator > 64 || !setRational(number, numerator, denominator))
      continue;
    for (unsigned k = 0; k < places; ++k) {
      uint64_t residue = hash(hashConstant, k, one.key);
      number.residues[k] =
          chain[k].mul(number.residues[k], one.isInverse ? chain[k].inverse(residue) : residue);
    }
    number.real *= one.value;
    number.slack *= 2;
    return number;
  }
  // A root of a fraction, as by sqrt of that fraction.
  for (bool hasPi : {false, true}) {
    Real square = Real(value) * Real(value) / (hasPi ? M_PIl : 1);
    if (!findFraction(square, 2 * tolerance, numerator, denominator))
      continue;
    Algebra scratch(*this);
    Number under;
    if (!setRational(under, numerator, denominator))
      continue;
    if (hasPi)
      under = scratch.mul(under, scratch.constant(M_PI, true));
    Number root = scratch.sqrt(under);
    root.error = 0;
    return value < 0 ? neg(root) : root;
  }
  // As it stands: a fraction over a power of two.
  int exponent;
  auto mantissa = int64_t(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  for (unsigned k = 0; k < places; ++k) {
    const Modulus &m = chain[k];
    uint64_t two = m.from(2), power = m.pow(two, uint64_t(std::abs(exponent)));
    number.residues[k] = m.mul(m.from(mantissa), exponent < 0 ? m.inverse(power) : power);
  }
  number.real = value;
  number.slack = double(tolerance * std::fabs(Real(value)));
  return number;
}

//===----------------------------------------------------------------------===//
// Equality and order
//===----------------------------------------------------------------------===//

uint64_t Algebra::expAt(const Number &a, unsigned exp) const {
  if (a.hasExp)
    return a.exps[exp];
  unsigned next = Chains::placeOf(exp) + 1;
  return chain.powerOfBase(exp, chain[next].plain(a.residues[next]));
}

uint64_t Algebra::projected(const Number &a, unsigned exp) const {
  return chain[Chains::placeOf(exp)].pow(expAt(a, exp), chain.cofactor(exp));
}

bool Algebra::same(const Number &a, const Number &b) const {
  if (a.kind != b.kind)
    return false;
  if (a.kind == Number::Infinite)
    return a.real == b.real;
  if (a.kind == Number::NotANumber)
    return true;
  // By each chain, at one of its levels.
  for (unsigned chained = 0; chained < Chains::count; ++chained) {
    const uint64_t *mine = a.residues + chained * Chain::levels,
                   *theirs = b.residues + chained * Chain::levels;
    bool isSame = false;
    for (unsigned level = 0; level < Chain::levels; ++level)
      isSame |= mine[level] == theirs[level];
    constexpr unsigned own = Chain::levels - 1; // exps of a chain
    for (unsigned exp = chained * own; exp < (chained + 1) * own && !isSame; ++exp)
      isSame = (a.hasExp || b.hasExp) && projected(a, exp) == projected(b, exp);
    if (!isSame)
      return false;
  }
  return true;
}

Comparison Algebra::compare(const Number &a, const Number &b) {
  if (a.kind == Number::NotANumber || b.kind == Number::NotANumber) {
    ++events.unordered;
    return Comparison::Unordered;
  }
  auto order = [](Real x, Real y) {
    return x < y ? Comparison::Less : x > y ? Comparison::Greater : Comparison::Equal;
  };
  if (a.kind == Number::Infinite || b.kind == Number::Infinite)
    return order(a.kind == Number::Infinite ? a.real : 0, b.kind == Number::Infinite ? b.real : 0);
  ++events.comparisons;
  noteCondition(a);
  noteCondition(b);
  Real difference = a.real - b.real;
  if (std::fabs(difference) > 4 * (Real(a.slack) + Real(b.slack)))
    return order(difference, 0);
  if (same(a, b))
    return Comparison::Equal;
  // Two numbers that are close and not one function: exact reals, such as drawn ones, may be equal.
  if (difference == 0 && a.slack == 0 && b.slack == 0)
    return Comparison::Equal;
  require(false, "comparison");
  return order(difference, 0);
}

bool Algebra::isZero(const Number &a) {
  if (a.kind != Number::Finite)
    return false;
  if (std::fabs(a.real) > 4 * Real(a.slack))
    return false;
  if (a.real == 0 && a.slack == 0)
    return true;
  bool isZero = std::all_of(a.residues, a.residues + places, [](uint64_t r) { return r == 0; });
  require(isZero, "zero");
  return isZero;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Line Algebra::timesLine(const Line &a, const Line &b) const {
  if (!a.isThere() || !b.isThere())
    return a.isThere() ? a : b;
  Line line;
  for (unsigned k = 0; k < Chains::count; ++k)
    line.residues[k] = chain[k * Chain::levels].mul(a.residues[k], b.residues[k]);
  return line;
}

/// What is above the line, where it comes under one.
Line Algebra::lineOf(const Number &a) {
  Line line;
  for (unsigned k = 0; k < Chains::count; ++k)
    line.residues[k] = a.residues[k * Chain::levels];
  return line;
}

Number Algebra::neg(const Number &a) const {
  Number result = a;
  result.isRoot = false;
  result.heldAs = 0;
  result.real = -a.real;
  for (unsigned k = 0; k < places; ++k)
    result.residues[k] = chain[k].neg(a.residues[k]);
  if (a.hasExp)
    for (unsigned k = 0; k < exps; ++k)
      result.exps[k] = chain[Chains::placeOf(k)].inverse(a.exps[k]);
  return result;
}

Number Algebra::add(const Number &a, const Number &b) {
  if (a.kind != Number::Finite || b.kind != Number::Finite) {
    if (a.kind == Number::NotANumber || b.kind == Number::NotANumber)
      return nan();
    if (a.kind == b.kind && a.real != b.real)
      return nan();
    return a.kind == Number::Infinite ? a : b;
  }
  Number result;
  for (unsigned k = 0; k < places; ++k)
    result.residues[k] = chain[k].add(a.residues[k], b.residues[k]);
  if (a.hasExp || b.hasExp) {
    result.hasExp = true;
    for (unsigned k = 0; k < exps; ++k)
      result.exps[k] = chain[Chains::placeOf(k)].mul(expAt(a, k), expAt(b, k));
  }
  result.real = a.real + b.real;
  propagate(result, a, 1);
  propagate(result, b, 1);
  auto isNothing = [](const Number &n) { return n.real == 0 && n.slack == 0 && n.numerator == 0; };
  result.isProduct = isNothing(a) ? b.isProduct : isNothing(b) && a.isProduct;
  if (a.under == b.under) {
    result.under = a.under;
    result.denominator = std::max(a.denominator, b.denominator);
    result.numerator = std::max(a.numerator, b.numerator);
  } else {
    result.under = timesLine(a.under, b.under);
    result.denominator = a.denominator + b.denominator;
    result.numerator = std::max(a.numerator + b.denominator, b.numerator + a.denominator);
  }
  return finish(result);
}

Number Algebra::mul(const Number &a, const Number &b) {
  if (a.kind != Number::Finite || b.kind != Number::Finite) {
    if (a.kind == Number::NotANumber || b.kind == Number::NotANumber || isZero(a) || isZero(b))
      return nan();
    return infinity((a.real < 0) != (b.real < 0));
  }
  Number result;
  for (unsigned k = 0; k < places; ++k) {
    result.residues[k] = chain[k].mul(a.residues[k], b.residues[k]);
    // The square of a root is what is under it.
    if (a.isRoot && b.isRoot && a.residues[k] == b.residues[k] && (a.rootSigns >> k & 1))
      result.residues[k] = chain[k].neg(result.residues[k]);
  }
  if (a.hasExp != b.hasExp) {
    // exp(c*v) = exp(v)^c, but for roots of unity, which `same` does not look at.
    const Number &v = a.hasExp ? a : b, &c = a.hasExp ? b : a;
    result.hasExp = true;
    for (unsigned k = 0; k < exps; ++k) {
      unsigned place = Chains::placeOf(k);
      const Modulus &above = chain[place], &below = chain[place + 1];
      bool isSmall = c.real == std::floor(c.real) && std::fabs(c.real) <= 64 && c.slack == 0 &&
                     c.residues[place + 1] == below.from(int64_t(c.real));
      if (isSmall) {
        uint64_t power = above.pow(v.exps[k], uint64_t(std::fabs(c.real)));
        result.exps[k] = c.real < 0 ? above.inverse(power) : power;
        continue;
      }
      uint64_t share =
          below.mul(c.residues[place + 1], below.inverse(below.from(int64_t(chain.cofactor(k)))));
      result.exps[k] = above.pow(projected(v, k), below.plain(share));
    }
  }
  result.real = a.real * b.real;
  propagate(result, a, double(b.real));
  propagate(result, b, double(a.real));
  result.slack += a.slack * b.slack;
  result.numerator = a.numerator + b.numerator;
  result.denominator = a.denominator + b.denominator;
  result.under = timesLine(a.under, b.under);
  result.isProduct = a.isProduct && b.isProduct;
  return finish(result);
}

std::pair<Algebra::Residues &, bool> Algebra::Lately::at(const uint64_t *argument) {
  if (entries.empty())
    entries.resize(size);
  auto &[key, result] = entries[argument[0] % size];
  bool isThere = std::equal(key.begin(), key.end(), argument);
  std::copy(argument, argument + places, key.begin());
  return {result, isThere};
}

Algebra::Residues Algebra::inverseOf(const Number &a) {
  auto [result, isThere] = inverses.at(a.residues);
  for (unsigned k = 0; k < places && !isThere; ++k)
    result[k] = chain[k].inverse(a.residues[k]);
  return result;
}

Number Algebra::div(const Number &a, const Number &b) {
  if (a.kind == Number::NotANumber || b.kind == Number::NotANumber)
    return nan();
  if (b.kind == Number::Infinite)
    return a.kind == Number::Infinite ? nan() : integer(0);
  if (isZero(b)) {
    // The sign of a zero is not followed: 1/0 is taken for inf.
    if (a.kind == Number::Finite && isZero(a))
      return nan();
    require(false, "division by zero");
    return infinity(a.real < 0);
  }
  if (a.kind == Number::Infinite)
    return infinity((a.real < 0) != (b.real < 0));
  Number inverse;
  Residues residues = inverseOf(b);
  for (unsigned k = 0; k < places; ++k) {
    events.isUnlucky |= b.residues[k] == 0;
    inverse.residues[k] = residues[k];
  }
  inverse.isRoot = b.isRoot;
  inverse.rootSigns = b.rootSigns;
  inverse.real = 1 / b.real;
  propagate(inverse, b, double(inverse.real * inverse.real));
  inverse.slack += double(realUnit * std::fabs(inverse.real));
  inverse.isProduct = b.isProduct;
  if (b.isProduct && !b.under.isThere()) {
    inverse.numerator = b.numerator;
  } else {
    inverse.numerator = b.denominator;
    inverse.denominator = b.numerator;
    inverse.under = timesLine(lineOf(b), b.under);
  }
  bool isOne = a.real == 1 && a.slack == 0 && a.residues[0] == chain[0].one();
  Number result = isOne ? finish(inverse) : mul(a, inverse);
  if (!isOne && !a.hasExp)
    result.hasExp = false;
  return result;
}

Number Algebra::power(const Number &a, int64_t exponent) {
  Number result = integer(1), factor = a;
  for (uint64_t e = exponent < 0 ? 0 - uint64_t(exponent) : uint64_t(exponent); e; e >>= 1) {
    if (e & 1)
      result = result.real == 1 && result.numerator == 0 ? factor : mul(result, factor);
    if (e > 1)
      factor = mul(factor, factor);
  }
  return exponent < 0 ? div(integer(1), result) : result;
}

//===----------------------------------------------------------------------===//
// Exponentials, logarithms, roots
//===----------------------------------------------------------------------===//

/// At the last level exp is a hash but for one identity: exp(-x) is 1/exp(x), as both sides of a
/// sigmoid have it.
uint64_t Algebra::opaqueExp(uint64_t argument, unsigned place) const {
  const Modulus &m = chain[place];
  uint64_t opposite = m.neg(argument);
  if (argument == opposite) // 0
    return m.one();
  uint64_t power = hash(hashExp, place, std::min(argument, opposite));
  return argument < opposite ? power : m.inverse(power);
}

Number Algebra::exp(const Number &a) {
  if (a.kind == Number::NotANumber)
    return a;
  if (a.kind == Number::Infinite)
    return a.real < 0 ? integer(0) : a;
  Number result;
  for (unsigned k = 0; k < exps; ++k)
    result.residues[Chains::placeOf(k)] = expAt(a, k);
  for (unsigned k = 0; k < places; ++k)
    if (Chains::isLast(k))
      result.residues[k] = opaqueExp(a.residues[k], k);
  result.real = std::exp(a.real);
  if (result.real == 0)
    result.slack = 1e-300; // it is not 0, and as good as that in a sum
  propagate(result, a, double(result.real));
  result.numerator = 1;
  // A device's functions are right to a few units (docs/math.md).
  return finish(result, 4);
}

Number Algebra::log(const Number &a) {
  if (a.kind == Number::NotANumber)
    return a;
  if (a.kind == Number::Infinite)
    return a.real < 0 ? nan() : a;
  if (isZero(a))
    return infinity(true);
  if (a.real < 0)
    return nan();
  Number result;
  for (unsigned k = 0; k < places; ++k)
    result.residues[k] = a.residues[k] == chain[k].one() ? 0 : hash(hashLog, k, a.residues[k]);
  result.hasExp = true;
  for (unsigned k = 0; k < exps; ++k) {
    uint64_t residue = a.residues[Chains::placeOf(k)];
    events.isUnlucky |= residue == 0;
    result.exps[k] = residue;
  }
  result.real = std::log(a.real);
  propagate(result, a, 1 / double(a.real));
  result.slack += double(realUnit);
  result.numerator = 1;
  return finish(result, 4);
}

Number Algebra::sqrt(const Number &a) {
  if (a.kind == Number::NotANumber)
    return a;
  if (a.kind == Number::Infinite)
    return a.real < 0 ? nan() : a;
  if (isZero(a))
    return integer(0);
  if (a.real < 0)
    return nan();
  Number result;
  result.isRoot = true;
  auto [residues, isThere] = roots.at(a.residues);
  for (unsigned k = 0; k < places; ++k) {
    const Modulus &m = chain[k];
    if (!isThere)
      residues[k] = m.pow(a.residues[k], (m.prime() + 1) / 4);
    result.residues[k] = residues[k];
    if (m.mul(result.residues[k], result.residues[k]) != a.residues[k])
      result.rootSigns |= 1 << k;
  }
  result.real = std::sqrt(a.real);
  propagate(result, a, 0.5 / double(result.real));
  result.numerator = 1;
  return finish(result);
}

Number Algebra::pow(const Number &a, const Number &b) {
  if (a.kind != Number::Finite || b.kind != Number::Finite) {
    if (b.kind == Number::Finite && isZero(b))
      return integer(1);
    if (a.kind == Number::NotANumber || b.kind == Number::NotANumber)
      return nan();
    bool isWhole = b.kind == Number::Finite && b.numerator == 0 && b.real == std::floor(b.real);
    if (b.kind == Number::Finite && (isWhole || a.real > 0)) {
      if (b.real < 0)
        return integer(0);
      return infinity(a.real < 0 && std::fmod(b.real, 2) != 0);
    }
    require(false, "power of an infinity");
    return nan();
  }
  Real exponent = b.real;
  bool isConstant = b.numerator == 0 && b.slack <= double(2 * realUnit * std::fabs(exponent));
  if (isConstant && exponent == std::floor(exponent) && std::fabs(exponent) <= 1024)
    return power(a, int64_t(exponent));
  if (isConstant && std::fabs(exponent) <= 512 && 2 * exponent == std::floor(2 * exponent)) {
    Number root = sqrt(a);
    auto twice = int64_t(2 * exponent);
    int64_t whole = (twice - (twice < 0 ? -1 : 1)) / 2;
    Number rest = twice < 0 ? div(integer(1), root) : root;
    return whole ? mul(power(a, whole), rest) : rest;
  }
  if (isZero(a)) {
    require(exponent > 0, "power of zero");
    return integer(0);
  }
  if (a.real < 0) {
    require(isConstant, "power of a negative number");
    return nan();
  }
  return exp(mul(log(a), b));
}
