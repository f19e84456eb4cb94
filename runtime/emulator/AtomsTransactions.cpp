//===- AtomsTransactions.cpp - Barriers that count bytes ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "mbarrier", "st.async" and "cp.async.bulk": a phase of such a barrier ends when the
// threads that it counts have come and as many bytes as they expected have been stored. Bytes may
// come before who expects them. Here barriers count one thread.
//
// A copy in bulk may happen at any time up to the end of the phase. Here it happens when somebody
// waits for that, so that who reads without waiting reads what was there before; its accesses are
// checked when it is issued, when it may happen.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

static constexpr uint64_t barrierBytes = 8;

TransactionBarrier &atoms::countingBarrier(AtomCall &call, const void *address) {
  // Who uses it must know that it has been made.
  call.thread.grid.memory.check(call.thread, address, barrierBytes, call.site.read);
  auto found = call.thread.grid.transactions.find(address);
  if (found == call.thread.grid.transactions.end())
    call.fail("a barrier that nobody has initialised");
  return found->second;
}

void atoms::initBarrier(AtomCall &call) {
  auto *address = call.operand<char *>(0);
  if (uint32_t count = call.operand<uint32_t>(1); count != 1)
    call.fail("a barrier of " + Twine(count) + " threads: the emulator has those of one");
  call.thread.grid.memory.check(call.thread, address, barrierBytes, call.site.write);
  TransactionBarrier &barrier = call.thread.grid.transactions[address] = TransactionBarrier();
  barrier.open = barrier.last = Clocks(call.thread.grid.clockEntries);
  barrier.block = call.thread.block.index;
  barrier.address = address;
}

void atoms::expectBytes(AtomCall &call) {
  TransactionBarrier &barrier = atoms::countingBarrier(call, call.operand<char *>(0));
  if (barrier.hasArrived)
    call.fail("a second thread comes to a phase of a barrier for one");
  barrier.hasArrived = true;
  barrier.expected += call.operand<uint32_t>(1);
  call.result<uint64_t>(0, barrier.phase);
  call.thread.arrive(barrier, /*isStore=*/false, call.site.place);
}

/// Where to, what (one number or four), and whose barrier counts it.
void atoms::storeAsync(AtomCall &call) {
  auto *to = call.operand<char *>(0);
  unsigned count = call.numOperands() - 2;
  TransactionBarrier &barrier = atoms::countingBarrier(call, call.operand<char *>(count + 1));
  if (reinterpret_cast<uintptr_t>(to) % (count * sizeof(float)))
    call.thread.fail(EmulatorError::Misaligned, call.site.place,
                     "st.async of " + Twine(count * sizeof(float)) +
                         " bytes with an address that is no multiple of them");
  call.thread.grid.memory.check(call.thread, to, count * sizeof(float), call.site.write);
  for (unsigned number = 0; number < count; ++number) {
    float value = call.operand<float>(1 + number);
    std::memcpy(to + number * sizeof(float), &value, sizeof(value));
  }
  barrier.expected -= count * sizeof(float);
  call.thread.arrive(barrier, /*isStore=*/true, call.site.place);
}

static void completeCopies(AtomCall &call, TransactionBarrier &barrier) {
  for (const TransactionBarrier::Copy &copy : std::exchange(barrier.copies, {})) {
    if (copy.from)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
    barrier.expected -= copy.bytes;
  }
  call.thread.tryEndPhase(barrier, call.site.place);
}

/// Copies use the barrier and write as another proxy than threads do, which has to see what these
/// have written there.
void atoms::beginCopies(AtomCall &call, TransactionBarrier &barrier,
                        std::vector<TransactionBarrier::Copy> copies) {
  Memory &memory = call.thread.grid.memory;
  memory.checkShown(call.thread, barrier.address, barrierBytes, call.site.write);
  for (const TransactionBarrier::Copy &copy : copies) {
    if (copy.from)
      memory.check(call.thread, copy.from, copy.bytes, call.site.read);
    memory.checkShown(call.thread, copy.to, copy.bytes, call.site.write);
    memory.check(call.thread, copy.to, copy.bytes, call.site.write);
    barrier.copies.push_back(copy);
  }
  call.thread.arrive(barrier, /*isStore=*/true, call.site.place);
  if (!barrier.waiting.empty())
    completeCopies(call, barrier);
}

void atoms::checkBulk(AtomCall &call, const void *to, const void *from, uint32_t bytes) {
  constexpr unsigned unit = 16;
  if (reinterpret_cast<uintptr_t>(to) % unit || reinterpret_cast<uintptr_t>(from) % unit ||
      bytes % unit)
    call.thread.fail(EmulatorError::Misaligned, call.site.place,
                     "a bulk copy of " + Twine(bytes) +
                         " bytes with an address or a number that is no multiple of 16");
}

/// Where to, from where, how many bytes, and the barrier that counts them.
void atoms::copyBulk(AtomCall &call) {
  auto *to = call.sharedOperand(0);
  auto *from = call.operand<const char *>(1);
  auto bytes = call.operand<uint32_t>(2);
  checkBulk(call, to, from, bytes);
  beginCopies(call, countingBarrier(call, call.sharedOperand(3)),
              {{to, from, bytes, call.site.place}});
}

/// Until the phase of that parity has ended.
void atoms::waitForPhase(AtomCall &call) {
  TransactionBarrier &barrier = atoms::countingBarrier(call, call.operand<char *>(0));
  bool parity = call.operand<uint32_t>(1) & 1;
  if ((barrier.phase & 1) == parity)
    completeCopies(call, barrier);
  call.thread.waitFor(barrier, parity, call.site.place);
  call.result<uint8_t>(0, 1);
}
