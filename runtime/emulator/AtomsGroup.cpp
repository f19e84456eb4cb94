//===- AtomsGroup.cpp - Products of four warps --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads its operands from shared memory at some time up to the wait for its group. Here it
// reads them when it is issued; up to the wait every change of them is a race, and the sums are
// NaN. Each warp computes its own 16 of the 64 rows.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"
#include "runtime/emulator/SumOfProducts.h"
#include <bit>
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {
/// An operand in shared memory, of lines of 128 bytes in the swizzle of 128 bytes, or, where lines
/// are along the sum, of core matrices without a swizzle (PTX ISA, "Matrix Descriptor Format" and
/// "Asynchronous Warpgroup Level Matrix Shared Memory Layout").
struct GroupOperand {
  char *arena;
  uint64_t descriptor;
  bool alongRows; // a line is a point of the sum
  unsigned elementBytes;

  /// The first byte of the 16 that hold row (or column) `x` at point `k` of the sum.
  const char *chunk(AtomCall &call, unsigned x, unsigned k) const {
    auto field = [&](unsigned shift) { return uint32_t(descriptor >> shift & 0x3fff) << 4; };
    unsigned swizzle = descriptor >> 62;
    if (swizzle > 1 || (descriptor >> 49 & 7) || (swizzle == 0 && (alongRows || elementBytes != 2)))
      call.fail("a product's operand that is neither in the swizzle of 128 bytes nor along the sum "
                "without one");
    constexpr uint32_t window = 0x3ffff;
    uint32_t start = (field(0) - uint32_t(reinterpret_cast<uintptr_t>(arena))) & window;
    uint32_t leading = field(16), stride = field(32);
    if (swizzle == 0)
      return arena + start + x / 8 * stride + x % 8 * 16 + k / 8 * leading;
    uint32_t byte = alongRows ? start + x / 64 * leading + k / 8 * stride + k % 8 * 128 + x % 64 * 2
                              : start + x / 8 * stride + x % 8 * 128 + k * elementBytes;
    byte ^= (byte >> 7 & 7) << 4;
    return arena + (byte & ~15u);
  }
  /// Elements of those 16 bytes, and which of them it is.
  unsigned neighbours() const { return 16 / elementBytes; }
  unsigned within(unsigned x, unsigned k) const { return (alongRows ? x : k) % neighbours(); }
};
} // namespace

namespace {
/// A format of elements: its bits, and their value.
struct Half {
  using Bits = uint16_t;
  static double valueOf(Bits bits) { return atoms::halfToFloat(bits); }
};
struct Brain {
  using Bits = uint16_t;
  static double valueOf(Bits bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
};
/// Exponents of f8 are those of normal numbers at least.
struct E5M2 {
  using Bits = uint8_t;
  static constexpr int minExponent = -14;
  static double valueOf(Bits bits) { return atoms::halfToFloat(uint16_t(bits << 8)); }
};
struct E4M3 {
  using Bits = uint8_t;
  static constexpr int minExponent = -6;
  static double valueOf(Bits bits) { return atoms::e4m3ToDouble(bits); }
};
struct S8 {
  using Bits = int8_t;
  static double valueOf(Bits bits) { return bits; }
};
struct U8 {
  using Bits = uint8_t;
  static double valueOf(Bits bits) { return bits; }
};
} // namespace

static int exponentOf(double value, int least) {
  return value == 0 || !std::isfinite(value) ? least : std::max(std::ilogb(value), least);
}

static uint32_t addIntegers(ArrayRef<double> products, uint32_t before) {
  for (double product : products)
    before += uint32_t(int32_t(product));
  return before;
}

/// NaN whose first bit of the fraction is 0, which arithmetic never gives.
static constexpr uint32_t underWay = 0x7f800000, numberMask = 0x003fffff;
static constexpr size_t keptSums = 4096; // more than registers hold

float AsyncProducts::begin(float sum) {
  if (sums.empty())
    sums.resize(keptSums);
  numSums = numSums == numberMask ? 1 : numSums + 1;
  sums[numSums % keptSums] = {sum, numSums, committed};
  return std::bit_cast<float>(underWay | numSums);
}

float AsyncProducts::end(float inRegister, uint64_t groups) const {
  auto bits = std::bit_cast<uint32_t>(inRegister);
  uint32_t number = bits & numberMask;
  if ((bits & ~numberMask) != underWay || sums.empty())
    return inRegister;
  const Sum &sum = sums[number % keptSums];
  return sum.number == number && sum.group < groups ? sum.value : inRegister;
}

/// Operands: descriptors of rows and columns, whether sums are added to, of 16 bits whether lines
/// are points of the sum (rows, columns), the sums. Instead of the rows' descriptor four words of
/// each lane, and then nothing of their lines: rows g and g + 8 at points 2t and 2t + 1, with g =
/// lane / 4 and t = lane % 4, and the same 8 points further.
template <typename Row, typename Column = Row> static void multiplyGroup(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    AtomCall &first = *calls[0];
    unsigned columns = first.numResults() * 2;
    constexpr unsigned elementBytes = sizeof(typename Row::Bits), depth = 32 / elementBytes,
                       warpRows = 16;
    constexpr bool areBytes = elementBytes == 1,
                   areIntegers = std::is_same_v<Row, S8> || std::is_same_v<Row, U8>;
    bool inRegisters = first.operandBytes(0) == 4;
    unsigned next = inRegisters ? 4 : 1; // operand after the rows
    GroupOperand rows{first.thread.block.shared, inRegisters ? 0 : first.operand<uint64_t>(0),
                      !areBytes && !inRegisters && first.operand<uint32_t>(3) != 0, elementBytes};
    GroupOperand cols{first.thread.block.shared, first.operand<uint64_t>(next),
                      !areBytes && first.operand<uint32_t>(inRegisters ? next + 2 : next + 3) != 0,
                      elementBytes};
    bool adds = first.operand<uint32_t>(next + 1) != 0;
    unsigned firstSum = next + (areBytes ? 2 : inRegisters ? 3 : 4);
    for (AtomCall *call : calls)
      if ((!inRegisters && call->operand<uint64_t>(0) != rows.descriptor) ||
          call->operand<uint64_t>(next) != cols.descriptor)
        call->fail("descriptors that differ between the lanes of a warp");
    unsigned warp = first.thread.warp() % 4, numReads = 0;
    auto read = [&](const GroupOperand &operand, unsigned x, unsigned k) {
      const char *from = operand.chunk(first, x, k);
      // The lanes share the checks, and the warps those of the columns.
      Thread &thread = calls[numReads++ % warpThreads]->thread;
      thread.grid.memory.check(thread, from, 16, first.site.read, AccessTime::Begins);
      thread.grid.memory.checkShown(thread, from, 16, first.site.read);
      thread.products.open.push_back({from, 16, first.site.read});
    };
    auto valueOf = [&]<typename Format>(Format, const GroupOperand &operand, unsigned x,
                                        unsigned k) {
      typename Format::Bits bits;
      std::memcpy(&bits, operand.chunk(first, x, k) + elementBytes * operand.within(x, k),
                  elementBytes);
      return Format::valueOf(bits);
    };
    unsigned apart = 16 / elementBytes; // elements that are read together
    for (unsigned x = 0; x < warpRows && !inRegisters; x += rows.alongRows ? apart : 1)
      for (unsigned k = 0; k < depth; k += rows.alongRows ? 1 : apart)
        read(rows, 16 * warp + x, k);
    unsigned number = 0;
    for (unsigned x = 0; x < columns; x += cols.alongRows ? apart : 1)
      for (unsigned k = 0; k < depth; k += cols.alongRows ? 1 : apart)
        if (number++ % 4 == warp)
          read(cols, x, k);
    double a[warpRows][depth];
    std::vector<std::array<double, depth>> b(columns);
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned x = 0; x < warpRows; ++x) {
        if (!inRegisters) {
          a[x][k] = valueOf(Row(), rows, 16 * warp + x, k);
          continue;
        }
        uint32_t word = calls[x % 8 * 4 + k % 8 / 2]->operand<uint32_t>(x / 8 + k / 8 * 2);
        a[x][k] = Row::valueOf(word >> (k % 2 * 16));
      }
      for (unsigned x = 0; x < columns; ++x)
        b[x][k] = valueOf(Column(), cols, x, k);
    }
    constexpr bool areSmall = areBytes && !areIntegers;
    std::array<std::array<int, depth>, areSmall ? warpRows : 0> rowExponents;
    std::vector<std::array<int, depth>> columnExponents(areSmall ? columns : 0);
    if constexpr (areSmall)
      for (unsigned k = 0; k < depth; ++k) {
        for (unsigned x = 0; x < warpRows; ++x)
          rowExponents[x][k] = exponentOf(a[x][k], Row::minExponent);
        for (unsigned x = 0; x < columns; ++x)
          columnExponents[x][k] = exponentOf(b[x][k], Column::minExponent);
      }
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned sum = 0; sum < calls[lane]->numResults(); ++sum) {
        unsigned row = lane / 4 + sum / 2 % 2 * 8, column = sum / 4 * 8 + lane % 4 * 2 + sum % 2;
        double terms[depth];
        for (unsigned k = 0; k < depth; ++k)
          terms[k] = a[row][k] * b[column][k];
        if constexpr (areIntegers) {
          uint32_t before = adds ? calls[lane]->operand<uint32_t>(firstSum + sum) : 0;
          calls[lane]->result<uint32_t>(sum, addIntegers(terms, before));
        } else {
          AsyncProducts &products = calls[lane]->thread.products;
          float before = adds ? calls[lane]->operand<float>(firstSum + sum) : 0, result;
          before = products.end(before, products.committed + 1);
          if constexpr (areSmall) {
            int exponent = -1000; // of 0
            for (unsigned k = 0; k < depth; ++k)
              if (terms[k] != 0)
                exponent = std::max(exponent, rowExponents[row][k] + columnExponents[column][k]);
            result = addSmallProducts(terms, exponent, before);
          } else {
            result = addProducts(terms, before);
          }
          calls[lane]->result<float>(sum, products.begin(result));
        }
      }
  });
}

void atoms::multiplyGroupF16(AtomCall &call) { multiplyGroup<Half>(call); }
void atoms::multiplyGroupBF16(AtomCall &call) { multiplyGroup<Brain>(call); }
void atoms::multiplyGroupE4M3E4M3(AtomCall &call) { multiplyGroup<E4M3>(call); }
void atoms::multiplyGroupE4M3E5M2(AtomCall &call) { multiplyGroup<E4M3, E5M2>(call); }
void atoms::multiplyGroupE5M2E4M3(AtomCall &call) { multiplyGroup<E5M2, E4M3>(call); }
void atoms::multiplyGroupE5M2E5M2(AtomCall &call) { multiplyGroup<E5M2>(call); }
void atoms::multiplyGroupS8S8(AtomCall &call) { multiplyGroup<S8>(call); }
void atoms::multiplyGroupS8U8(AtomCall &call) { multiplyGroup<S8, U8>(call); }
void atoms::multiplyGroupU8S8(AtomCall &call) { multiplyGroup<U8, S8>(call); }
void atoms::multiplyGroupU8U8(AtomCall &call) { multiplyGroup<U8>(call); }

void atoms::commitProducts(AtomCall &call) {
  AsyncProducts &products = call.thread.products;
  products.groups.push_back(std::exchange(products.open, {}));
  ++products.committed;
}

static void waitFor(AtomCall &call, size_t groupsLeft) {
  AsyncProducts &products = call.thread.products;
  while (products.groups.size() > groupsLeft) {
    for (const AsyncProducts::Read &read : products.groups.front())
      call.thread.grid.memory.check(call.thread, read.from, read.bytes, read.access,
                                    AccessTime::Ends);
    products.groups.pop_front();
  }
}

void atoms::waitForProducts(AtomCall &call) { waitFor(call, call.operand<uint64_t>(0)); }

/// fence.proxy.async: what the thread knows to be written is what products read from here on.
void atoms::showToProducts(AtomCall &call) { call.thread.showToProducts(); }

/// With the number of groups as the first operand, and sums, which it passes on.
void atoms::waitForSums(AtomCall &call) {
  waitFor(call, call.operand<uint32_t>(0));
  const AsyncProducts &products = call.thread.products;
  uint64_t ended = products.committed - products.groups.size();
  for (unsigned sum = 0; sum < call.numResults(); ++sum)
    call.result<float>(sum, products.end(call.operand<float>(1 + sum), ended));
}
