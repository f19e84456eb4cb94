//===- Number.h - A value as residues and as a real number --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program over exact arithmetic is evaluated at a point: each float is a residue for each prime
// of two chains, which say whether two values are one function of the inputs, and a real number,
// which decides comparisons and shows how values differ. Inputs have residues and reals that are
// drawn apart; a formula that equals another one does so in both.
//
// exp is base^x, log its inverse where values are compared by their exponentials. tanh and its kin
// are written by exp. sin, erf and what else has no such form are opaque: hashes of equal
// arguments, odd or even where they are. What the residues cannot follow (floor, conversions to
// integers) is taken from the real number, and is then an exact integer.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_NUMBER_H
#define TEGULA_PROVE_NUMBER_H

#include "prove/Field.h"
#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace tegula::prove {

using Real = long double;

/// A denominator: its residue at the first place of each chain; zeros where there is none.
struct Line {
  std::array<uint64_t, Chains::count> residues{};

  bool isThere() const { return residues != decltype(residues)(); }
  bool operator==(const Line &other) const = default;
};

struct Number {
  enum Kind : uint8_t { Finite, Infinite, NotANumber };

  // What a product needs of its factors stands first.
  uint64_t residues[Chains::places] = {};
  Kind kind = Finite;
  bool hasExp = false;
  /// Whether it is a product of numbers, variables and inverse ones, whose inverse is one, too.
  bool isProduct = true;
  /// Whether the value is a square root, and of a non-residue, by place (a bit each).
  bool isRoot = false;
  uint8_t rootSigns = 0;
  /// Where not 0: the number is one of this storage type (DType, and 1), so that rounding to it
  /// changes nothing.
  uint8_t heldAs = 0;
  double slack = 0;  // how far `real` may be from the value
  Real real = 0;     // of `Infinite`, which has no residues, 1 or -1
  double error = 0;  // how far the value may be from what a device computes in f32, first order
  double coarse = 0; // the same of roundings to f16, bf16 and f8, and below f32's normal numbers
  double single = 0; // the same of f32, where programs compute in f64
  /// Weights of what is above and under the line, for the probability of an error: of a sum the
  /// largest one of its products, of a product the number of its variables and inverse ones.
  float numerator = 0, denominator = 0;
  /// What is under the line, so that sums find that it is the same.
  Line under;
  /// exp of the value, where `hasExp`: of logarithms and what is made of them by sums.
  uint64_t exps[Chains::exps] = {};
};

enum class Comparison { Less, Equal, Greater, Unordered };

/// What happened while a program was evaluated.
struct Events {
  /// A residue was 0 and the number is not: other primes may do.
  bool isUnlucky = false;
  /// Two numbers could not be told apart, or a real left the range of long double.
  uint64_t ambiguous = 0;
  std::string firstAmbiguous; // which function
  /// Comparisons of numbers: what was concluded holds where they come out like this.
  uint64_t comparisons = 0;
  /// Comparisons with a NaN, which decide what is chosen.
  uint64_t unordered = 0;
  /// floor, round and conversions to integers.
  uint64_t roundings = 0;
  /// Comparisons and roundings of numbers that were rounded to f16, bf16 or f8, or to f32.
  uint64_t coarseConditions = 0, singleConditions = 0;
  /// Numbers that a storage type is too small for.
  uint64_t overflows = 0;
  /// Storage types that numbers were rounded to, inexactly: bits of DType.
  uint32_t types = 0;
};

/// Arithmetic over chains of primes.
class Algebra {
public:
  explicit Algebra(uint64_t seed) : chain(seed) {}

  /// The relative error of one operation on a device: f32's.
  static constexpr double unit = 0x1p-24;
  /// What f32 loses of a number that is too small for all its bits.
  static double lostBelow(double magnitude) {
    return magnitude < 0x1p-126 ? std::min(magnitude, 0x1p-150) : 0;
  }
  /// An error that is no more than what a result's smallest normal number has is none.
  static constexpr double negligible = 0x1p-120;

  Number integer(int64_t value) const;
  /// A constant of a program. It stands for a simple fraction, the root of one, or a number such as
  /// ln 2 where it is one rounded to f32 (to f64 where `isDouble`).
  Number constant(double value, bool isDouble) const;
  /// A number that is drawn: a residue from 64 random bits, and a real.
  Number drawn(Real real, uint64_t bits) const;
  /// A function's value that has no form but its name and an integer key.
  Number opaqueConstant(uint64_t key, Real real) const;
  Number infinity(bool isNegative) const;
  Number nan() const;
  /// What is under a product of what stands over both.
  Line timesLine(const Line &a, const Line &b) const;

  Number add(const Number &a, const Number &b);
  Number sub(const Number &a, const Number &b) { return add(a, neg(b)); }
  Number mul(const Number &a, const Number &b);
  Number div(const Number &a, const Number &b);
  Number neg(const Number &a) const;
  Number exp(const Number &a);
  Number log(const Number &a);
  Number sqrt(const Number &a);
  Number pow(const Number &a, const Number &b);
  Number power(const Number &a, int64_t exponent);
  Number abs(const Number &a);
  /// `x` with the sign of `sign`.
  Number copySign(const Number &x, const Number &sign);
  enum class Opaque { Sin, Cos, Erf, Atan, Asin, Cbrt, ErfInv, LGamma, DiGamma };
  Number opaque(Opaque function, const Number &a);
  Number atan2(const Number &y, const Number &x);
  enum class Rounding { Floor, Ceil, Trunc, Nearest, Away };
  Number round(Rounding how, const Number &a);
  /// The integer that a rounding gives; nothing sensible beyond 64 bits (saturated; nan is 0).
  int64_t toInteger(Rounding how, const Number &a);
  /// Rounded to a storage type: the same number, less certain.
  Number stored(Number a, unsigned type, double relativeError);

  /// A number as f32 computes it, that f64 goes on with.
  static Number computedInSingle(Number a);
  /// An integer as f32 holds it.
  Number singleInteger(int64_t value) const;

  /// Whether the residues say that both are one function.
  bool same(const Number &a, const Number &b) const;
  /// By the reals, or by the residues where those are as good as equal.
  Comparison compare(const Number &a, const Number &b);
  bool isZero(const Number &a);

  Events events;
  const Chains chain;

private:
  /// Residues by place, of functions that take a power in the field for each.
  using Residues = std::array<uint64_t, Chains::places>;
  /// What such a function gave for arguments met lately: rows share divisors and norms.
  class Lately {
  public:
    /// The place for an argument, and whether it holds its result.
    std::pair<Residues &, bool> at(const uint64_t *argument);

  private:
    static constexpr size_t size = 256;
    std::vector<std::pair<Residues, Residues>> entries;
  };
  Residues inverseOf(const Number &a);
  static Line lineOf(const Number &a);
  Number constantAnew(double value, bool isDouble) const;

  uint64_t expAt(const Number &a, unsigned exp) const;
  uint64_t opaqueExp(uint64_t argument, unsigned place) const;
  /// exp of the value to the power of cofactors, which fractions cannot blur.
  uint64_t projected(const Number &a, unsigned exp) const;
  void require(bool isFine, const char *where);
  static void propagate(Number &result, const Number &a, double slope);
  void noteCondition(const Number &a);
  Number finish(Number result, double units = 1);
  uint64_t hash(unsigned function, unsigned place, uint64_t argument) const;
  bool setRational(Number &number, int64_t numerator, int64_t denominator) const;

  Lately inverses, roots;
  mutable std::map<std::pair<double, bool>, Number> constants; // whose fractions are looked for
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_NUMBER_H
