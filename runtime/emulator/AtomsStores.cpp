//===- AtomsStores.cpp - Copies in bulk, and additions, to global memory -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "cp.async.bulk" from shared to global memory: a group is read at any time up to the wait
// for its having been read, and written up to the wait for all of it or the end of the launch. Here
// that happens as late as it may: shared memory that changes too early is written as it is then. A
// thread that ends must have waited for the reading, since its block's shared memory goes with it.
// Accesses are checked when the copy is issued, when it may happen.
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

static void write(const BulkStores::Group &group) {
  for (const BulkStores::Store &store : group)
    std::memcpy(store.to, store.bytes.data(), store.bytes.size());
}

/// Reads the oldest group that was not.
static void readOne(BulkStores &stores) {
  BulkStores::Group group = std::move(stores.unread.front());
  stores.unread.pop_front();
  for (BulkStores::Store &store : group)
    std::memcpy(store.bytes.data(), store.from, store.bytes.size());
  stores.unwritten.push_back(std::move(group));
}

/// Where to, from where, how many bytes; a hint for the cache and whether there is one.
void atoms::storeBulk(AtomCall &call) {
  auto *to = call.operand<char *>(0);
  auto *from = call.operand<const char *>(1);
  auto bytes = call.operand<uint32_t>(2);
  checkBulk(call, to, from, bytes);
  call.thread.grid.memory.check(call.thread, from, bytes, call.site.read);
  call.thread.grid.memory.checkShown(call.thread, from, bytes, call.site.read);
  call.thread.grid.memory.check(call.thread, to, bytes, call.site.write);
  call.thread.stores.open.push_back({to, from, std::vector<char>(bytes), call.site.place});
}

void atoms::commitStores(AtomCall &call) {
  BulkStores &stores = call.thread.stores;
  stores.unread.push_back(std::exchange(stores.open, {}));
}

void atoms::waitForReading(AtomCall &call) {
  BulkStores &stores = call.thread.stores;
  while (stores.unread.size() > call.operand<uint32_t>(0))
    readOne(stores);
}

void atoms::waitForStores(AtomCall &call) {
  BulkStores &stores = call.thread.stores;
  while (stores.unread.size() + stores.unwritten.size() > call.operand<uint32_t>(0)) {
    if (stores.unwritten.empty())
      readOne(stores);
    write(stores.unwritten.front());
    stores.unwritten.pop_front();
  }
}

std::optional<uint32_t> BulkStores::end() {
  for (const Group &group : unwritten)
    write(group);
  unwritten.clear();
  for (const Group &group : unread)
    if (!group.empty())
      return group.front().place;
  return open.empty() ? std::nullopt : std::optional(open.front().place);
}

//===----------------------------------------------------------------------===//
// Additions
//===----------------------------------------------------------------------===//

/// Where to, and two or four numbers: each is an atomic operation of its own.
void atoms::addFloats(AtomCall &call) {
  auto *to = call.operand<float *>(0);
  unsigned count = call.numOperands() - 1;
  if (uintptr_t(to) % (count * sizeof(float)) != 0)
    call.fail("adds " + Twine(count) + " numbers at an address that is no multiple of their bytes");
  const EmulatedAccess &access = call.thread.grid.code.accesses[call.site.write];
  ++call.thread.grid.progress;
  for (unsigned number = 0; number < count; ++number) {
    call.thread.grid.memory.check(call.thread, to + number, sizeof(float), call.site.write);
    call.thread.synchronize(to + number, access);
    to[number] += call.operand<float>(number + 1);
  }
}
