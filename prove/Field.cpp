//===- Field.cpp - Residues modulo a chain of primes ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Field.h"

using namespace tegula::prove;

uint64_t Draws::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t tegula::prove::mix(uint64_t a, uint64_t b) {
  Draws first(a);
  Draws second(first.next() ^ b);
  second.next();
  return second.next();
}

/// Miller and Rabin's test with bases that decide all numbers that a modulus may be.
bool tegula::prove::isPrime(uint64_t n) {
  constexpr uint64_t bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2)
    return false;
  for (uint64_t p : bases)
    if (n % p == 0)
      return n == p;
  uint64_t odd = n - 1;
  unsigned twos = 0;
  for (; odd % 2 == 0; odd /= 2)
    ++twos;
  const Modulus m(n);
  const uint64_t one = m.one(), minusOne = m.neg(one);
  for (uint64_t base : bases) {
    uint64_t x = m.pow(m.from(int64_t(base)), odd);
    if (x == one || x == minusOne)
      continue;
    bool isWitness = true;
    for (unsigned k = 1; k < twos && isWitness; ++k) {
      x = m.mul(x, x);
      isWitness = x != minusOne;
    }
    if (isWitness)
      return false;
  }
  return true;
}

Modulus::Modulus(uint64_t prime) : m(prime) {
  uint64_t inverse = prime; // Newton's iteration doubles the bits that are right, three at first
  for (int step = 0; step < 5; ++step)
    inverse *= 2 - prime * inverse;
  negativeInverse = 0 - inverse;
  unit = uint64_t(((unsigned __int128)1 << 64) % prime);
  square = uint64_t((unsigned __int128)unit * unit % prime);
}

uint64_t Modulus::from(int64_t value) const {
  bool isNegative = value < 0;
  uint64_t magnitude = isNegative ? 0 - uint64_t(value) : uint64_t(value);
  uint64_t residue = mul(magnitude % m, square);
  return isNegative ? neg(residue) : residue;
}

uint64_t Modulus::pow(uint64_t a, uint64_t exponent) const {
  uint64_t result = unit;
  for (; exponent; exponent >>= 1, a = mul(a, a))
    if (exponent & 1)
      result = mul(result, a);
  return result;
}

uint64_t Chain::powerOfBase(unsigned level, uint64_t exponent) const {
  constexpr unsigned windows = (64 + windowBits - 1) / windowBits, choices = 1 << windowBits;
  const Modulus &m = moduli[level];
  std::vector<uint64_t> &kept = powers[level];
  if (kept.empty()) {
    uint64_t step = bases[level]; // base^(choices^window)
    for (unsigned window = 0; window < windows; ++window) {
      kept.push_back(m.one());
      for (unsigned k = 1; k < choices; ++k)
        kept.push_back(m.mul(kept.back(), step));
      step = m.mul(kept.back(), step);
    }
  }
  uint64_t result = kept[exponent % choices];
  for (unsigned window = 1; exponent >>= windowBits; ++window)
    if (uint64_t digit = exponent % choices)
      result = m.mul(result, kept[window * choices + digit]);
  return result;
}

/// Finds the prime of `level` above that of the next one.
bool Chain::extend(unsigned level, Draws &draws) {
  uint64_t below = moduli[level + 1].prime();
  for (uint64_t k = 2; k <= 30; k += 4) { // 2 modulo 4 keeps the prime 3 modulo 4
    if (below > ((uint64_t(1) << 62) - 2) / k || !isPrime(k * below + 1))
      continue;
    moduli[level] = Modulus(k * below + 1);
    cofactors[level] = k;
    do
      bases[level] = moduli[level].pow(
          moduli[level].from(2 + int64_t(draws.below(moduli[level].prime() - 3))), k);
    while (bases[level] == moduli[level].one());
    return true;
  }
  return false;
}

Chain::Chain(uint64_t seed) {
  Draws draws(mix(seed, 0x7465677570726f76));
  saltBits = draws.next();
  do {
    uint64_t candidate;
    do
      candidate = (uint64_t(1) << 53) + draws.below(uint64_t(1) << 53) / 4 * 4 + 3;
    while (!isPrime(candidate));
    moduli[levels - 1] = Modulus(candidate);
  } while (!extend(1, draws) || !extend(0, draws));
}

Chains::Chains(uint64_t seed) : chains{Chain(seed), Chain(mix(seed, 1))} {
  for (unsigned place = 0; place < places; ++place)
    moduli[place] = chains[place / Chain::levels][place % Chain::levels];
}
