//===- Phases.h - Which phase of a barrier an arrival counts for -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A barrier counts whoever comes, so in another order of execution an arrival may end a phase that
// it was not meant for. It cannot if each phase's arrivals happen after those of the phase before,
// and if who waits for a phase by its parity does so after the phase before has ended and before
// the next one ends. Then, phase by phase, every order has the same arrivals at each, and accesses
// are ordered alike: one order tells of all.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_PHASES_H
#define TEGULA_RUNTIME_EMULATOR_PHASES_H

#include "runtime/emulator/Clocks.h"

namespace tegula::emulator {

class Thread;

/// Deeds of threads, each with its thread's clock then.
class Deeds {
public:
  struct Deed {
    uint32_t block, thread, clock;
  };
  void add(const Thread &thread);
  /// One that did not happen before what the thread does next; null where all did.
  const Deed *findUnordered(const Thread &thread) const;
  /// One that `clocks` do not know.
  const Deed *findUnknown(const Clocks &clocks) const;
  /// Whether one happened before what the thread does next.
  bool isAnyOrdered(const Thread &thread) const;

private:
  std::vector<Deed> deeds;
};

/// A phase of a barrier that counts bytes.
struct TransactionPhase {
  Deeds arrivals, waits;
  bool countsStores = false; // which come some time after the thread that starts them
};

/// A barrier that counts bytes: its phase now, and what those know who have come to it.
struct TransactionBarrier {
  uint64_t phase = 0;
  bool hasArrived = false;
  int64_t expected = 0; // bytes; below 0: they have come before who expects them
  Clocks open, last;    // of this phase and of the one before
  std::vector<Thread *> waiting;
  /// In bulk, whose bytes it counts, under way.
  struct Copy {
    char *to;
    const char *from; // null: zeros
    uint32_t bytes, place;
  };
  std::vector<Copy> copies;
  uint32_t block = 0; // whose shared memory it is in
  const void *address = nullptr;
  TransactionPhase now, before, twoBefore;
};

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_PHASES_H
