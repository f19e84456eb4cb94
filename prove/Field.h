//===- Field.h - Residues modulo a chain of primes ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three primes m0, m1, m2, each of which divides the one before less one: m0 = k0*m1 + 1. Modulo m0
// there is an element of order m1, so that exp(x) = base^x needs x modulo m1 alone, and
// exp(a + b) = exp(a)*exp(b) holds exactly. All primes are 3 modulo 4, which makes a square root a
// power. Residues are kept in Montgomery's form.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_FIELD_H
#define TEGULA_PROVE_FIELD_H

#include <array>
#include <cstdint>
#include <vector>

namespace tegula::prove {

/// A generator of numbers that nothing else in the process shares (splitmix64).
class Draws {
public:
  explicit Draws(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// Uniform enough in 0 <= v < bound; bound > 0.
  uint64_t below(uint64_t bound) { return next() % bound; }

private:
  uint64_t state;
};

/// Mixes words to one that looks random.
uint64_t mix(uint64_t a, uint64_t b);

bool isPrime(uint64_t n);

/// Integers modulo an odd prime below 2^62.
class Modulus {
public:
  Modulus() = default;
  explicit Modulus(uint64_t prime);

  uint64_t prime() const { return m; }
  uint64_t one() const { return unit; }
  /// The residue of an integer, and back to 0 <= r < prime.
  uint64_t from(int64_t value) const;
  uint64_t plain(uint64_t a) const { return reduce(a); }

  uint64_t add(uint64_t a, uint64_t b) const {
    uint64_t sum = a + b;
    return sum >= m ? sum - m : sum;
  }
  uint64_t sub(uint64_t a, uint64_t b) const { return a >= b ? a - b : a + m - b; }
  uint64_t neg(uint64_t a) const { return a ? m - a : 0; }
  uint64_t mul(uint64_t a, uint64_t b) const { return reduce((unsigned __int128)a * b); }
  /// `a` to a power that is a plain number.
  uint64_t pow(uint64_t a, uint64_t exponent) const;
  /// Of a residue that is not 0.
  uint64_t inverse(uint64_t a) const { return pow(a, m - 2); }
  /// Of a sum of products of residues that is below the prime times 2^64.
  uint64_t reduced(unsigned __int128 sum) const { return reduce(sum); }
  /// A residue from 64 bits that look random.
  uint64_t fromBits(uint64_t bits) const { return uint64_t(((unsigned __int128)bits * m) >> 64); }

private:
  uint64_t reduce(unsigned __int128 t) const {
    uint64_t q = uint64_t(t) * negativeInverse;
    auto r = uint64_t((t + (unsigned __int128)q * m) >> 64);
    return r >= m ? r - m : r;
  }

  uint64_t m = 3, negativeInverse = 0, unit = 0, square = 0; // 2^64 and 2^128 modulo m
};

/// The primes of one evaluation. Fresh ones are drawn for every seed.
class Chain {
public:
  static constexpr unsigned levels = 3;
  explicit Chain(uint64_t seed);

  const Modulus &operator[](unsigned level) const { return moduli[level]; }
  /// (m[level] - 1) / m[level + 1].
  uint64_t cofactor(unsigned level) const { return cofactors[level]; }
  /// Of order m[level + 1] modulo m[level].
  uint64_t base(unsigned level) const { return bases[level]; }
  /// The base to a power that is a plain number, from powers that are kept.
  uint64_t powerOfBase(unsigned level, uint64_t exponent) const;
  uint64_t salt() const { return saltBits; }

private:
  bool extend(unsigned level, Draws &draws);

  std::array<Modulus, levels> moduli;
  std::array<uint64_t, levels - 1> cofactors{}, bases{};
  uint64_t saltBits = 0;
  static constexpr unsigned windowBits = 6;
  /// By level, for each window of an exponent: the base to all that the window may say.
  mutable std::array<std::vector<uint64_t>, levels - 1> powers;
};

/// Chains that an evaluation follows at once: what is no residue is computed once for all. A place
/// is a prime of one of them.
class Chains {
public:
  static constexpr unsigned count = 2, places = count * Chain::levels;
  /// Places whose prime has a next one in its chain, so that exp is followed there.
  static constexpr unsigned exps = count * (Chain::levels - 1);
  explicit Chains(uint64_t seed);

  const Modulus &operator[](unsigned place) const { return moduli[place]; }
  /// The place of an exp, of 0 <= exp < exps; the next prime of its chain is at the next place.
  static constexpr unsigned placeOf(unsigned exp) {
    return exp / (Chain::levels - 1) * Chain::levels + exp % (Chain::levels - 1);
  }
  static constexpr bool isLast(unsigned place) {
    return place % Chain::levels == Chain::levels - 1;
  }
  uint64_t cofactor(unsigned exp) const { return chainOf(exp).cofactor(levelOf(exp)); }
  uint64_t powerOfBase(unsigned exp, uint64_t exponent) const {
    return chainOf(exp).powerOfBase(levelOf(exp), exponent);
  }
  uint64_t salt() const { return chains[0].salt(); }

private:
  const Chain &chainOf(unsigned exp) const { return chains[exp / (Chain::levels - 1)]; }
  static unsigned levelOf(unsigned exp) { return exp % (Chain::levels - 1); }

  std::array<Chain, count> chains;
  std::array<Modulus, places> moduli;
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_FIELD_H
