//===- Clocks.h - What has happened before what ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks (Fidge 1988, Mattern 1988). Every thread counts what it has made known to others; a
// set of clocks says for each thread up to which count its deeds are known. Threads of a block
// mostly know the same, so they share what they know.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_CLOCKS_H
#define TEGULA_RUNTIME_EMULATOR_CLOCKS_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <memory>
#include <vector>

namespace tegula::emulator {

class Clocks {
public:
  explicit Clocks(uint32_t threadsPerBlock = 0) : threads(threadsPerBlock) {}
  uint32_t of(uint32_t block, uint32_t thread) const;
  /// Whether a deed of a thread of the block is known, which has begun then.
  bool knowsOf(uint32_t block) const;
  void set(uint32_t block, uint32_t thread, uint32_t clock);
  /// Knows afterwards what `other` knows too.
  void join(const Clocks &other);
  /// The second half of a block's entries becomes the first.
  void copyToSecondHalf();
  /// Quick; may miss it.
  bool isSame(const Clocks &other) const { return blocks == other.blocks; }
  bool empty() const { return blocks.empty(); }

private:
  using Vector = std::vector<uint32_t>; // by thread
  using Entry = std::pair<uint32_t, std::shared_ptr<Vector>>;
  Entry *find(uint32_t block);
  llvm::SmallVector<Entry, 1> blocks; // by number
  uint32_t threads;
};

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_CLOCKS_H
