//===- AtomsMatrix.cpp - Tensor cores, on the host --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"
#include "runtime/emulator/SumOfProducts.h"

#include <bit>
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

//===----------------------------------------------------------------------===//
// Fragments (PTX ISA, "ldmatrix")
//===----------------------------------------------------------------------===//

/// Lanes 8n to 8n + 7 give the rows of matrix n, of eight elements of 16 bits; lane l gets two
/// neighbours.
template <bool isTransposed> void atoms::loadMatrices(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    std::array<std::array<uint16_t, 8>, warpThreads> rows;
    for (unsigned lane = 0; lane < warpThreads; ++lane) {
      AtomCall &call = *calls[lane];
      auto *address = call.operand<const char *>(0);
      if (reinterpret_cast<uintptr_t>(address) % 16)
        call.thread.fail(EmulatorError::Misaligned, call.site.place,
                         "a row of a matrix at an address that is no multiple of 16");
      call.thread.grid.memory.check(call.thread, address, 16, call.site.read);
      std::memcpy(&rows[lane], address, 16);
    }
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned matrix = 0; matrix < calls[lane]->numResults(); ++matrix) {
        uint32_t word = 0;
        for (unsigned half = 0; half < 2; ++half) {
          unsigned row = lane / 4, column = lane % 4 * 2 + half;
          uint32_t element =
              isTransposed ? rows[8 * matrix + column][row] : rows[8 * matrix + row][column];
          word |= element << (16 * half);
        }
        calls[lane]->result<uint32_t>(matrix, word);
      }
  });
}
template void atoms::loadMatrices<false>(AtomCall &own);
template void atoms::loadMatrices<true>(AtomCall &own);

//===----------------------------------------------------------------------===//
// Products (PTX ISA, "mma")
//===----------------------------------------------------------------------===//

float atoms::halfToFloat(uint16_t bits) {
  constexpr uint32_t exponentBits = 0x7c00, smallest = 0x0400, magnitudeBits = 0x7fff;
  uint32_t magnitude = bits & magnitudeBits;
  float value = magnitude >= exponentBits ? (magnitude > exponentBits ? NAN : INFINITY)
                : magnitude < smallest
                    ? float(magnitude) * 0x1p-24f
                    : std::bit_cast<float>((magnitude << 13) + ((127 - 15) << 23));
  return bits & 0x8000 ? -value : value;
}

/// A number of f16 with fewer bits of the significand and another bias, and no infinities.
double atoms::e4m3ToDouble(uint8_t bits) {
  unsigned magnitude = bits & 0x7f;
  if (magnitude == 0x7f)
    return NAN;
  double value = magnitude < 8 ? std::ldexp(magnitude, -9)
                               : std::ldexp(8 + magnitude % 8, int(magnitude / 8) - 10);
  return bits & 0x80 ? -value : value;
}

/// Operands: four words of rows, two of columns, four sums. `elements` of a word, by `number`.
template <unsigned elements, float (*element)(uint32_t word, unsigned number)>
static void multiply(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    constexpr unsigned depth = 8 * elements;
    double a[16][depth], b[8][depth];
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned number = 0; number < elements; ++number) {
        unsigned group = lane / 4, k = lane % 4 * elements + number;
        for (unsigned word = 0; word < 4; ++word)
          a[group + word % 2 * 8][k + word / 2 * 4 * elements] =
              element(calls[lane]->operand<uint32_t>(word), number);
        for (unsigned word = 0; word < 2; ++word)
          b[group][k + word * 4 * elements] =
              element(calls[lane]->operand<uint32_t>(4 + word), number);
      }
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned sum = 0; sum < 4; ++sum) {
        unsigned row = lane / 4 + sum / 2 * 8, column = lane % 4 * 2 + sum % 2;
        double products[depth];
        for (unsigned k = 0; k < depth; ++k)
          products[k] = a[row][k] * b[column][k];
        calls[lane]->result<float>(sum,
                                   addProducts(products, calls[lane]->operand<float>(6 + sum)));
      }
  });
}

static float halfOf(uint32_t word, unsigned number) {
  return atoms::halfToFloat(word >> (16 * number));
}
static float brainOf(uint32_t word, unsigned number) {
  return std::bit_cast<float>(word >> (16 * number) << 16);
}
/// The last 13 bits do not count.
static float singleOf(uint32_t word, unsigned) { return std::bit_cast<float>(word & 0xffffe000); }

void atoms::multiplyF16(AtomCall &call) { multiply<2, halfOf>(call); }
void atoms::multiplyBF16(AtomCall &call) { multiply<2, brainOf>(call); }
void atoms::multiplyTF32(AtomCall &call) { multiply<1, singleOf>(call); }

/// The same of bytes, four of a word: sums are exact modulo 2^32.
template <typename Row, typename Column> static void multiplyBytes(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned sum = 0; sum < 4; ++sum) {
        unsigned row = lane / 4 + sum / 2 * 8, column = lane % 4 * 2 + sum % 2;
        auto total = calls[lane]->operand<uint32_t>(6 + sum);
        for (unsigned k = 0; k < 32; ++k) {
          unsigned t = k % 16 / 4, half = k / 16, shift = k % 4 * 8;
          auto a = static_cast<Row>(calls[row % 8 * 4 + t]->operand<uint32_t>(row / 8 + half * 2) >>
                                    shift);
          auto b = static_cast<Column>(calls[column * 4 + t]->operand<uint32_t>(4 + half) >> shift);
          total += uint32_t(int32_t(a) * int32_t(b));
        }
        calls[lane]->result<uint32_t>(sum, total);
      }
  });
}

void atoms::multiplyS8S8(AtomCall &call) { multiplyBytes<int8_t, int8_t>(call); }
void atoms::multiplyS8U8(AtomCall &call) { multiplyBytes<int8_t, uint8_t>(call); }
void atoms::multiplyU8S8(AtomCall &call) { multiplyBytes<uint8_t, int8_t>(call); }
void atoms::multiplyU8U8(AtomCall &call) { multiplyBytes<uint8_t, uint8_t>(call); }

static double e4m3Of(uint8_t bits) { return atoms::e4m3ToDouble(bits); }
static double e5m2Of(uint8_t bits) { return atoms::halfToFloat(uint16_t(bits << 8)); }

/// Of f8 ptxas makes two products of f16 for Hopper: first of the lower two bytes of words, then of
/// the upper two.
template <double (*rowOf)(uint8_t), double (*columnOf)(uint8_t)>
static void multiplySmall(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned sum = 0; sum < 4; ++sum) {
        unsigned row = lane / 4 + sum / 2 * 8, column = lane % 4 * 2 + sum % 2;
        auto total = calls[lane]->operand<float>(6 + sum);
        for (unsigned upper = 0; upper < 2; ++upper) {
          SmallVector<double, 16> products;
          for (unsigned t = 0; t < 4; ++t)
            for (unsigned half = 0; half < 2; ++half)
              for (unsigned byte = 2 * upper; byte < 2 * upper + 2; ++byte) {
                auto a = uint8_t(calls[row % 8 * 4 + t]->operand<uint32_t>(row / 8 + half * 2) >>
                                 (8 * byte));
                auto b = uint8_t(calls[column * 4 + t]->operand<uint32_t>(4 + half) >> (8 * byte));
                products.push_back(rowOf(a) * columnOf(b));
              }
          total = addProducts(products, total);
        }
        calls[lane]->result<float>(sum, total);
      }
  });
}

void atoms::multiplyE4M3E4M3(AtomCall &call) { multiplySmall<e4m3Of, e4m3Of>(call); }
void atoms::multiplyE4M3E5M2(AtomCall &call) { multiplySmall<e4m3Of, e5m2Of>(call); }
void atoms::multiplyE5M2E4M3(AtomCall &call) { multiplySmall<e5m2Of, e4m3Of>(call); }
void atoms::multiplyE5M2E5M2(AtomCall &call) { multiplySmall<e5m2Of, e5m2Of>(call); }

/// cvt.rna.tf32.f32: to the nearest number of 11 bits, halves away from zero.
void atoms::roundToTF32(AtomCall &call) {
  auto bits = call.operand<uint32_t>(0);
  bool isNan = (bits & 0x7fffffff) > 0x7f800000;
  call.result<uint32_t>(0, isNan ? 0x7fffffff : (bits + 0x1000) & 0xffffe000);
}

/// cvt.rn.f16x2.f32: two f32 as f16, the second in the lower half.
void atoms::roundToF16x2(AtomCall &call) {
  auto half = [&](unsigned number) {
    return uint32_t(std::bit_cast<uint16_t>(static_cast<_Float16>(call.operand<float>(number))));
  };
  call.result<uint32_t>(0, half(0) << 16 | half(1));
}

void atoms::roundToBF16x2(AtomCall &call) {
  auto brain = [&](unsigned number) {
    float value = call.operand<float>(number);
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (value != value)
      return uint32_t(0x7fff);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  };
  call.result<uint32_t>(0, brain(0) << 16 | brain(1));
}

/// A number as f8 with so many bits of fraction, as cvt.rn.satfinite does it: what is beyond the
/// largest becomes that, and all NaN 0x7f.
static uint16_t roundToSmall(float value, int fraction, int leastExponent, uint8_t largest) {
  constexpr uint8_t nan = 0x7f;
  if (std::isnan(value))
    return nan;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double size = std::fabs(double(value));
  if (size == 0)
    return sign;
  int exponent = std::isinf(size) ? 127 : std::max(std::ilogb(size), leastExponent);
  // Of a number below the normal ones the fraction alone; else what follows carries by itself.
  double steps = std::nearbyint(std::ldexp(std::min(size, 1e6), fraction - exponent));
  double bits = steps + std::ldexp(exponent - leastExponent, fraction);
  return sign | uint8_t(std::min<double>(bits, largest));
}

template <int fraction, int leastExponent, uint8_t largest> static void roundPair(AtomCall &call) {
  auto small = [&](unsigned number) {
    return roundToSmall(call.operand<float>(number), fraction, leastExponent, largest);
  };
  call.result<uint16_t>(0, uint16_t(small(0) << 8 | small(1)));
}

/// cvt.rn.satfinite.e4m3x2.f32 and .e5m2x2: two f32, the second in the lower byte.
void atoms::roundToE4M3x2(AtomCall &call) { roundPair<3, -6, 0x7e>(call); }
void atoms::roundToE5M2x2(AtomCall &call) { roundPair<2, -14, 0x7b>(call); }

template <double (*valueOf)(uint8_t)> static void widenPair(AtomCall &call) {
  constexpr uint16_t nan = 0x7fff;
  auto half = [](uint8_t bits) {
    double value = valueOf(bits);
    return uint32_t(std::isnan(value) ? nan
                                      : std::bit_cast<uint16_t>(static_cast<_Float16>(value)));
  };
  auto pair = call.operand<uint16_t>(0);
  call.result<uint32_t>(0, half(uint8_t(pair >> 8)) << 16 | half(uint8_t(pair)));
}

/// cvt.rn.f16x2.e4m3x2 and .e5m2x2, which are exact.
void atoms::widenE4M3x2(AtomCall &call) { widenPair<e4m3Of>(call); }
void atoms::widenE5M2x2(AtomCall &call) { widenPair<e5m2Of>(call); }
