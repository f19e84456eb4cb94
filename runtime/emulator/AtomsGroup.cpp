//===- AtomsGroup.cpp - Products of four warps --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads its operands from shared memory at some time up to the wait for its group. Here it reads them
// when it is issued, and at the wait it is checked again that nobody has changed them meanwhile. Each warp
// computes its own 16 of the 64 rows.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"
#include <bit>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {
/// An operand in shared memory, of lines of 128 bytes in the swizzle of 128 bytes, or, where lines are along the sum,
/// of core matrices without a swizzle (PTX ISA, "Matrix Descriptor Format" and "Asynchronous Warpgroup Level Matrix
/// Shared Memory Layout").
struct GroupOperand {
  char *arena;
  uint64_t descriptor;
  bool alongRows; // a line is a point of the sum

  /// The first byte of the eight neighbours that hold row (or column) `x` at point `k` of the sum.
  const char *chunk(AtomCall &call, unsigned x, unsigned k) const {
    auto field = [&](unsigned shift) { return uint32_t(descriptor >> shift & 0x3fff) << 4; };
    unsigned swizzle = descriptor >> 62;
    if (swizzle > 1 || (descriptor >> 49 & 7) || (swizzle == 0 && alongRows))
      call.fail("a product's operand that is neither in the swizzle of 128 bytes nor along the sum without one");
    constexpr uint32_t window = 0x3ffff;
    uint32_t start = (field(0) - uint32_t(reinterpret_cast<uintptr_t>(arena))) & window;
    uint32_t leading = field(16), stride = field(32);
    if (swizzle == 0)
      return arena + start + x / 8 * stride + x % 8 * 16 + k / 8 * leading;
    uint32_t byte = alongRows ? start + x / 64 * leading + k / 8 * stride + k % 8 * 128 + x % 64 * 2
                              : start + x / 8 * stride + x % 8 * 128 + k * 2;
    byte ^= (byte >> 7 & 7) << 4;
    return arena + (byte & ~15u);
  }
  unsigned within(unsigned x, unsigned k) const { return (alongRows ? x : k) % 8; }
};
} // namespace

/// Operands: descriptors of rows and columns, whether sums are added to, whether lines are points of the sum
/// (rows, columns), the sums. Instead of the rows' descriptor four words of each lane, and then nothing of their
/// lines: rows g and g + 8 at points 2t and 2t + 1, with g = lane / 4 and t = lane % 4, and the same 8 points further.
template <float (*element)(uint16_t bits)> static void multiplyGroup(AtomCall &own) {
  own.thread.meet(~uint32_t(0), own, [](LaneCalls &calls) {
    AtomCall &first = *calls[0];
    unsigned columns = first.numResults() * 2;
    constexpr unsigned depth = 16, warpRows = 16;
    bool inRegisters = first.operandBytes(0) == 4;
    unsigned next = inRegisters ? 4 : 1; // operand after the rows
    GroupOperand rows{first.thread.block.shared, inRegisters ? 0 : first.operand<uint64_t>(0),
                      !inRegisters && first.operand<uint32_t>(3) != 0};
    GroupOperand cols{first.thread.block.shared, first.operand<uint64_t>(next),
                      first.operand<uint32_t>(inRegisters ? next + 2 : next + 3) != 0};
    bool adds = first.operand<uint32_t>(next + 1) != 0;
    unsigned firstSum = inRegisters ? next + 3 : next + 4;
    for (AtomCall *call : calls)
      if ((!inRegisters && call->operand<uint64_t>(0) != rows.descriptor) ||
          call->operand<uint64_t>(next) != cols.descriptor)
        call->fail("descriptors that differ between the lanes of a warp");
    unsigned warp = first.thread.warp() % 4, numReads = 0;
    auto read = [&](const GroupOperand &operand, unsigned x, unsigned k) {
      const char *from = operand.chunk(first, x, k);
      // The lanes share the checks, and the warps those of the columns.
      Thread &thread = calls[numReads++ % warpThreads]->thread;
      thread.grid.memory.check(thread, from, 16, first.site.read);
      thread.products.open.push_back({from, 16, first.site.read});
    };
    auto valueOf = [&](const GroupOperand &operand, unsigned x, unsigned k) {
      uint16_t bits;
      std::memcpy(&bits, operand.chunk(first, x, k) + 2 * operand.within(x, k), 2);
      return element(bits);
    };
    for (unsigned x = 0; x < warpRows && !inRegisters; x += rows.alongRows ? 8 : 1)
      for (unsigned k = 0; k < depth; k += rows.alongRows ? 1 : 8)
        read(rows, 16 * warp + x, k);
    unsigned number = 0;
    for (unsigned x = 0; x < columns; x += cols.alongRows ? 8 : 1)
      for (unsigned k = 0; k < depth; k += cols.alongRows ? 1 : 8)
        if (number++ % 4 == warp)
          read(cols, x, k);
    double a[warpRows][depth];
    std::vector<std::array<double, depth>> b(columns);
    for (unsigned k = 0; k < depth; ++k) {
      for (unsigned x = 0; x < warpRows; ++x) {
        if (!inRegisters) {
          a[x][k] = valueOf(rows, 16 * warp + x, k);
          continue;
        }
        uint32_t word = calls[x % 8 * 4 + k % 8 / 2]->operand<uint32_t>(x / 8 + k / 8 * 2);
        a[x][k] = element(uint16_t(word >> (k % 2 * 16)));
      }
      for (unsigned x = 0; x < columns; ++x)
        b[x][k] = valueOf(cols, x, k);
    }
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      for (unsigned sum = 0; sum < calls[lane]->numResults(); ++sum) {
        unsigned row = lane / 4 + sum / 2 % 2 * 8, column = sum / 4 * 8 + lane % 4 * 2 + sum % 2;
        double products[depth];
        for (unsigned k = 0; k < depth; ++k)
          products[k] = a[row][k] * b[column][k];
        float before = adds ? calls[lane]->operand<float>(firstSum + sum) : 0;
        calls[lane]->result<float>(sum, atoms::addProducts(products, before));
      }
  });
}

static float brainToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

void atoms::multiplyGroupF16(AtomCall &call) { multiplyGroup<halfToFloat>(call); }
void atoms::multiplyGroupBF16(AtomCall &call) { multiplyGroup<brainToFloat>(call); }

void atoms::commitProducts(AtomCall &call) {
  AsyncProducts &products = call.thread.products;
  products.groups.push_back(std::exchange(products.open, {}));
}

static void waitFor(AtomCall &call, size_t groupsLeft) {
  AsyncProducts &products = call.thread.products;
  while (products.groups.size() > groupsLeft) {
    for (const AsyncProducts::Read &read : products.groups.front())
      call.thread.grid.memory.check(call.thread, read.from, read.bytes, read.access);
    products.groups.pop_front();
  }
}

void atoms::waitForProducts(AtomCall &call) { waitFor(call, call.operand<uint64_t>(0)); }

/// With the number of groups as the first operand, and sums, which it passes on.
void atoms::waitForSums(AtomCall &call) {
  waitFor(call, call.operand<uint32_t>(0));
  for (unsigned sum = 0; sum < call.numResults(); ++sum)
    call.result<float>(sum, call.operand<float>(1 + sum));
}
