//===- Phases.cpp - Which phase of a barrier an arrival counts for ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Phases.h"

#include "runtime/emulator/Grid.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

//===----------------------------------------------------------------------===//
// Deeds
//===----------------------------------------------------------------------===//

static bool isOrdered(const Thread &thread, const Deeds::Deed &deed) {
  bool isOwn = deed.block == thread.block.index && deed.thread == thread.index;
  return isOwn || thread.known.of(deed.block, deed.thread) >= deed.clock;
}

void Deeds::add(const Thread &thread) {
  deeds.push_back({thread.block.index, thread.index, thread.clock});
}

const Deeds::Deed *Deeds::findUnordered(const Thread &thread) const {
  for (const Deed &deed : deeds)
    if (!isOrdered(thread, deed))
      return &deed;
  return nullptr;
}

const Deeds::Deed *Deeds::findUnknown(const Clocks &clocks) const {
  for (const Deed &deed : deeds)
    if (clocks.of(deed.block, deed.thread) < deed.clock)
      return &deed;
  return nullptr;
}

bool Deeds::isAnyOrdered(const Thread &thread) const {
  for (const Deed &deed : deeds)
    if (isOrdered(thread, deed))
      return true;
  return false;
}

static std::string nameOf(const Deeds::Deed &deed, const Thread &thread) {
  std::string name = "thread " + std::to_string(deed.thread);
  return deed.block == thread.block.index ? name : name + " of block " + std::to_string(deed.block);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void Thread::checkPhase(uint32_t id, uint32_t place) {
  const Block::Barrier &barrier = block.barriers[id];
  if (waitedFor[id] == barrier.phase) // for the phase before
    return;
  if (const Deeds::Deed *other = barrier.before.findUnordered(*this))
    fail(EmulatorError::UnorderedPhase, place,
         "comes to phase " + Twine(barrier.phase) + " of barrier " + Twine(id) +
             ", in another order of execution to the phase before: " + nameOf(*other, *this) +
             " comes to that one in no order with it");
}

/// That a phase has ended tells a wait for it, or, where no stores are counted, that all who come
/// have come.
void Thread::checkAfter(const TransactionBarrier &barrier, const TransactionPhase &phase,
                        uint64_t number, uint32_t place) {
  if (phase.waits.isAnyOrdered(*this) ||
      (!phase.countsStores && !phase.arrivals.findUnordered(*this)))
    return;
  fail(EmulatorError::UnorderedPhase, place,
       "is at phase " + Twine(number + 1) + " of the barrier at " +
           grid.memory.nameOf(barrier.address) + ", in another order of execution at phase " +
           Twine(number) + ": nothing that happened before says that this one has ended");
}

void Thread::arrive(TransactionBarrier &barrier, bool isStore, uint32_t place) {
  if (barrier.phase)
    checkAfter(barrier, barrier.before, barrier.phase - 1, place);
  barrier.now.arrivals.add(*this);
  barrier.now.countsStores |= isStore;
  barrier.open.join(knowledge());
  ++clock;
  tryEndPhase(barrier, place);
}

void Thread::tryEndPhase(TransactionBarrier &barrier, uint32_t place) {
  if (!barrier.hasArrived || barrier.expected != 0)
    return;
  if (const Deeds::Deed *other = barrier.before.waits.findUnknown(barrier.open))
    fail(EmulatorError::UnorderedPhase, place,
         "ends phase " + Twine(barrier.phase) + " of the barrier at " +
             grid.memory.nameOf(barrier.address) + " while " + nameOf(*other, *this) +
             " may still wait for the phase before");
  grid.endPhase(barrier);
}

void Thread::waitFor(TransactionBarrier &barrier, bool parity, uint32_t place) {
  bool isOpen = (barrier.phase & 1) == parity;
  if (barrier.phase > !isOpen)
    checkAfter(barrier, isOpen ? barrier.before : barrier.twoBefore, barrier.phase - 1 - !isOpen,
               place);
  (isOpen ? barrier.now : barrier.before).waits.add(*this);
  while ((barrier.phase & 1) == parity) {
    barrier.waiting.push_back(this);
    waiting.place = place;
    waiting.call = nullptr;
    wait();
  }
  known.join(barrier.last);
}

void Grid::endPhase(TransactionBarrier &barrier) {
  barrier.hasArrived = false;
  ++barrier.phase;
  barrier.last.join(barrier.open);
  barrier.open = Clocks(clockEntries);
  barrier.twoBefore = std::exchange(barrier.before, std::exchange(barrier.now, {}));
  std::vector<Thread *> others = std::exchange(barrier.waiting, {});
  for (Thread *other : others)
    other->waiting.waits = false;
  ++progress;
  makeReady(others);
}
