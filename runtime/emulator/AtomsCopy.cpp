//===- AtomsCopy.cpp - Asynchronous copies, on the host ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// cp.async (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy"): a copy may happen
// at any time up to the wait for its group. Here it happens at the wait; up to then every other
// access to where it writes, and every change of what it reads, is a race.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"

using namespace tegula;
using namespace tegula::emulator;

static void perform(const AsyncCopies::Copy &copy, AtomCall &wait) {
  if (copy.sourceBytes)
    wait.thread.grid.memory.check(wait.thread, copy.from, copy.sourceBytes, copy.read,
                                  AccessTime::Ends);
  wait.thread.grid.memory.check(wait.thread, copy.to, copy.bytes, copy.write, AccessTime::Ends);
  std::memset(copy.to, 0, copy.bytes);
  std::memcpy(copy.to, copy.from, copy.sourceBytes);
}

static void waitFor(AtomCall &call, size_t groupsLeft) {
  AsyncCopies &copies = call.thread.copies;
  while (copies.groups.size() > groupsLeft) {
    for (const AsyncCopies::Copy &copy : copies.groups.front())
      perform(copy, call);
    copies.groups.pop_front();
  }
}

void atoms::copyAsync(AtomCall &call, uint32_t bytes) {
  AsyncCopies::Copy copy;
  copy.to = call.operand<char *>(0);
  copy.from = call.operand<const char *>(1);
  copy.bytes = copy.sourceBytes = bytes;
  if (call.numOperands() > 2)
    copy.sourceBytes = call.operand<uint32_t>(2);
  if (copy.sourceBytes > bytes)
    call.fail("a copy of " + llvm::Twine(bytes) + " bytes from " + llvm::Twine(copy.sourceBytes));
  for (const void *address :
       {static_cast<const void *>(copy.to), static_cast<const void *>(copy.from)})
    if (reinterpret_cast<uintptr_t>(address) % bytes)
      call.thread.fail(EmulatorError::Misaligned, call.site.place,
                       "an asynchronous copy of " + llvm::Twine(bytes) +
                           " bytes with an address that is no multiple of it");
  copy.read = call.site.read;
  copy.write = call.site.write;
  Memory &memory = call.thread.grid.memory;
  if (copy.sourceBytes)
    memory.check(call.thread, copy.from, copy.sourceBytes, copy.read, AccessTime::Begins);
  memory.check(call.thread, copy.to, copy.bytes, copy.write, AccessTime::Begins);
  call.thread.copies.open.push_back(copy);
}

void atoms::commitCopies(AtomCall &call) {
  AsyncCopies &copies = call.thread.copies;
  copies.groups.push_back(std::exchange(copies.open, {}));
}

void atoms::waitForCopies(AtomCall &call) { waitFor(call, call.operand<uint32_t>(0)); }

void atoms::waitForAllCopies(AtomCall &call) {
  commitCopies(call);
  waitFor(call, 0);
}
