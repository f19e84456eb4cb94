//===- Order.cpp - Which accesses happen before which -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The synchronisation of the PTX memory model (PTX ISA, "Memory Consistency Model") as vector
// clocks: a release makes known what the thread knows, an acquire that reads from it learns that; a
// fence makes the strong writes after it releases and the strong reads before it acquires. Barriers
// are in Grid.cpp. Tensor cores read shared memory as another proxy does: they see what threads
// have written after a fence of either side alone.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Grid.h"

using namespace tegula;
using namespace tegula::emulator;

Clocks Thread::knowledge() const {
  Clocks all = known;
  all.set(block.index, index, clock);
  return all;
}

/// Morally strong (PTX ISA): either may see the other.
static bool mayMeet(const Flag &flag, EmulatedScope scope, uint32_t block) {
  EmulatedScope both = std::min(flag.scope, scope);
  return both == EmulatedScope::Device || (both == EmulatedScope::Block && flag.block == block);
}

void Thread::synchronize(const void *address, const EmulatedAccess &access) {
  Flag &flag = grid.flags[address];
  if (access.reads && mayMeet(flag, access.scope, block.index))
    (access.acquires ? known : seen).join(flag.clocks);
  if (!access.writes)
    return;
  // A write begins a new release sequence, an atomic operation goes on with it.
  if (!access.reads || !mayMeet(flag, access.scope, block.index))
    flag.clocks = Clocks(grid.clockEntries);
  flag.scope = access.scope;
  flag.block = block.index;
  if (access.releases) {
    flag.clocks.join(knowledge());
    ++clock;
  } else if (!fenced.empty()) {
    flag.clocks.join(fenced);
    flag.scope = std::min(access.scope, fencedScope);
  }
}

void Thread::fence(bool acquires, bool releases, EmulatedScope scope) {
  if (acquires)
    known.join(seen);
  if (!releases)
    return;
  fenced = knowledge();
  fencedScope = scope;
  ++clock;
}

/// Of who has shown what, the second half of clocks tells.
void Thread::showToProducts() {
  if (!grid.hasProducts())
    return;
  known.set(block.index, index, clock++);
  known.copyToSecondHalf();
}
