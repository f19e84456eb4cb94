//===- Memory.cpp - What emulated code may touch --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Memory.h"

#include "runtime/emulator/Grid.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <sys/mman.h>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

/// Descriptors of shared memory hold the low bits of an address alone (PTX ISA, "Matrix
/// descriptor").
static constexpr uint64_t arenaAlignment = 256 << 10;

Memory::Memory(const EmulatedCode &code) : code(code), lastOf(code.accesses.size()) {
  for (auto [begin, bytes] : code.constants)
    addGlobal("a table of the code", begin, bytes, BufferContents::Defined);
}

Memory::~Memory() {
  for (char *arena : arenas)
    munmap(arena, arenaBytes);
}

void Memory::insert(Region region, BufferContents contents) {
  if (!region.bytes)
    return;
  region.isReadOnly = contents == BufferContents::Constant;
  region.shadow =
      std::make_unique<Shadow>(code, region.bytes, contents != BufferContents::Undefined);
  const char *begin = region.begin;
  regions[begin] = std::move(region);
}

void Memory::addGlobal(StringRef name, const void *begin, uint64_t bytes, BufferContents contents) {
  Region region;
  region.name = name.str();
  region.begin = static_cast<const char *>(begin);
  region.bytes = bytes;
  insert(std::move(region), contents);
}

void Memory::define(const void *begin) {
  auto found = regions.find(static_cast<const char *>(begin));
  if (found != regions.end())
    found->second.shadow->define(0, found->second.bytes);
}

void Memory::removeGlobal(const void *begin) {
  forgetRegions();
  regions.erase(static_cast<const char *>(begin));
}

void Memory::forgetRegions() { lastOf.assign(lastOf.size(), nullptr); }

void Memory::startLaunch(StringRef name, uint64_t dynamicSharedBytes) {
  ++launch;
  function = name.str();
  uint64_t bytes = std::max<uint64_t>(code.sharedBytes, 1) + dynamicSharedBytes;
  if (bytes > arenaBytes) {
    for (char *arena : arenas)
      munmap(arena, arenaBytes);
    arenas.clear();
    unusedArenas.clear();
    arenaBytes = alignTo(bytes, arenaAlignment);
  }
  dynamicBytes = dynamicSharedBytes;
}

/// Low addresses, so that the 32 bits that PTX has for an address in shared memory are the whole of
/// it.
static char *allocateArena(uint64_t bytes) {
  void *memory = mmap(nullptr, bytes + arenaAlignment, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_32BIT, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(memory), aligned = alignTo(begin, arenaAlignment);
  if (aligned > begin)
    munmap(memory, aligned - begin);
  if (uintptr_t end = begin + bytes + arenaAlignment; end > aligned + bytes)
    munmap(reinterpret_cast<void *>(aligned + bytes), end - aligned - bytes);
  return reinterpret_cast<char *>(aligned);
}

char *Memory::enterBlock(Block &block) {
  if (unusedArenas.empty()) {
    char *arena = allocateArena(arenaBytes);
    if (!arena)
      return nullptr;
    arenas.push_back(arena);
    unusedArenas.push_back(arena);
  }
  char *arena = unusedArenas.back();
  unusedArenas.pop_back();
  for (const EmulatedObject &object : code.shared) {
    if (!object.function.empty() && object.function != function)
      continue;
    Region region;
    region.name = object.name;
    region.begin = arena + object.offset;
    region.bytes = object.isDynamic ? dynamicBytes : object.bytes;
    region.block = &block;
    std::memset(arena + object.offset, 0xff, region.bytes);
    insert(std::move(region), BufferContents::Undefined);
  }
  return arena;
}

void Memory::leaveBlock(char *arena) {
  if (!arena)
    return;
  forgetRegions();
  regions.erase(regions.lower_bound(arena), regions.lower_bound(arena + arenaBytes));
  unusedArenas.push_back(arena);
}

/// The region that begins last at or before the address, if it does not end before it.
Region *Memory::find(const char *address) const {
  auto after = regions.upper_bound(address);
  if (after == regions.begin())
    return nullptr;
  const Region &region = std::prev(after)->second;
  return address < region.end() ? const_cast<Region *>(&region) : nullptr;
}

std::string Memory::nameOf(const void *address) const {
  const Region *region = find(static_cast<const char *>(address));
  if (!region)
    return "no buffer";
  return "byte " + std::to_string(static_cast<const char *>(address) - region->begin) + " of '" +
         region->name + "'";
}

static Twine verb(const EmulatedAccess &access) {
  return access.reads && access.writes ? "an atomic operation"
         : access.reads                ? "a read"
                                       : "a write";
}

void Memory::checkAlignment(Thread &thread, const void *address, const EmulatedAccess &access) {
  if (!(reinterpret_cast<uintptr_t>(address) & (access.alignment - 1)))
    return;
  const Region *region = find(static_cast<const char *>(address));
  std::string where;
  if (region)
    where = " at byte " + std::to_string(static_cast<const char *>(address) - region->begin) +
            " of '" + region->name + "'";
  thread.fail(EmulatorError::Misaligned, access.place,
              verb(access) + " of " + Twine(access.bytes) + " bytes" + where +
                  ", whose address is no multiple of " + Twine(access.alignment));
}

/// Names the nearest buffer: that is the one that was meant.
void Memory::failOutside(Thread &thread, const char *begin, uint64_t bytes,
                         const EmulatedAccess &access) {
  auto after = regions.upper_bound(begin);
  const Region *best = after == regions.begin() ? nullptr : &std::prev(after)->second;
  if (after != regions.end() && (!best || after->first - begin < begin - best->end()))
    best = &after->second;
  std::string near = "outside of every buffer";
  if (best)
    near = "at byte " + std::to_string(begin - best->begin) + " of '" + best->name +
           "', which has " + std::to_string(best->bytes);
  thread.fail(EmulatorError::OutOfBounds, access.place,
              "out of bounds: " + verb(access) + " of " + Twine(bytes) + " bytes " + near);
}

std::string Memory::describe(const Thread &thread, const Shadow::Record &earlier) const {
  const EmulatedAccess &access = code.accesses[earlier.access];
  uint32_t perBlock = thread.grid.numThreads, block = earlier.thread / perBlock;
  std::string who = "thread " + std::to_string(earlier.thread % perBlock);
  if (block != thread.block.index)
    who += " of block " + std::to_string(block);
  return (verb(access) + (earlier.clock == Shadow::Record::underWay ? " under way" : "") + " by " +
          who + " at " + code.places[access.place].text)
      .str();
}

/// Gives an element that nobody has written what an earlier launch may have left there: small
/// numbers, and now and then all bits, in an order that is the same in each run.
static void fillUndefined(Region &region, uint64_t offset, uint64_t bytes) {
  if (!region.shadow->findUndefined(offset, bytes))
    return;
  uint64_t hash = (offset + 1) * 0x9e3779b97f4a7c15;
  hash ^= hash >> 32;
  uint64_t value = (hash >> 8) & ((uint64_t(1) << (hash & 15)) - 1);
  if ((hash & 63) == 63)
    value = ~uint64_t(0);
  std::memcpy(const_cast<char *>(region.begin) + offset, &value,
              std::min<uint64_t>(bytes, sizeof(value)));
  region.shadow->define(offset, bytes);
}

void Memory::check(Thread &thread, const void *address, uint64_t bytes, uint32_t number,
                   AccessTime time) {
  const EmulatedAccess &access = code.accesses[number];
  checkAlignment(thread, address, access);
  if (!bytes)
    return;
  auto *begin = static_cast<const char *>(address);
  Region *&region = lastOf[number];
  if (!region || begin < region->begin || begin >= region->end()) {
    region = find(begin);
    if (!region && thread.fibre.holds(begin) && thread.fibre.holds(begin + bytes - 1))
      return;
  }
  if (!region || begin + bytes > region->end())
    failOutside(thread, begin, bytes, access);
  if (region->block && region->block != &thread.block)
    region->block->visit(thread, access.place, region->name);
  uint64_t offset = begin - region->begin;
  Shadow &shadow = *region->shadow;
  if (access.mayBeUndefined)
    fillUndefined(*region, offset, bytes);
  if (access.reads)
    if (std::optional<uint64_t> at = shadow.findUndefined(offset, bytes))
      thread.fail(EmulatorError::Undefined, access.place,
                  "undefined: " + verb(access) + " of " + Twine(bytes) + " bytes at byte " +
                      Twine(offset) + " of '" + region->name + "', of which byte " + Twine(*at) +
                      " has not been written");
  if (region->isReadOnly) {
    if (access.writes)
      thread.fail(EmulatorError::OutOfBounds, access.place,
                  verb(access) + " to '" + region->name + "', which is an input");
    return;
  }
  if (!region->block && thread.grid.usesDependentLaunch() && !thread.hasWaited)
    thread.fail(EmulatorError::Race, access.place,
                "race on '" + region->name + "': " + verb(access) +
                    " before the thread waits for the launch before");
  if (region->launch != launch)
    shadow.forgetAccesses();
  region->launch = launch;
  if (std::optional<Shadow::Conflict> conflict = shadow.enter(thread, offset, bytes, number, time))
    thread.fail(EmulatorError::Race, access.place,
                "race on '" + region->name + "' at byte " + Twine(conflict->offset) + ": " +
                    verb(access) + " here and " + describe(thread, conflict->earlier) +
                    " are in no order");
  if (access.writes && time != AccessTime::Begins)
    shadow.define(offset, bytes);
}

void Memory::checkLocal(Thread &thread, const void *object, uint64_t size, const void *address,
                        uint32_t number) {
  const EmulatedAccess &access = code.accesses[number];
  checkAlignment(thread, address, access);
  int64_t offset = static_cast<const char *>(address) - static_cast<const char *>(object);
  if (offset < 0 || uint64_t(offset) + access.bytes > size)
    thread.fail(EmulatorError::OutOfBounds, access.place,
                "out of bounds: " + verb(access) + " of " + Twine(access.bytes) +
                    " bytes at byte " + Twine(offset) + " of a thread's own " + Twine(size));
}

void Memory::checkShown(Thread &thread, const void *address, uint64_t bytes, uint32_t number) {
  if (!thread.grid.hasProducts())
    return;
  const Region *region = find(static_cast<const char *>(address));
  if (!region) // a check of the access itself follows
    return;
  uint64_t offset = static_cast<const char *>(address) - region->begin;
  if (std::optional<Shadow::Conflict> conflict = region->shadow->findHidden(thread, offset, bytes))
    thread.fail(
        EmulatorError::MissingFence, code.accesses[number].place,
        (code.accesses[number].writes ? "a bulk copy uses '" : "a product or a bulk copy reads '") +
            region->name + "' at byte " + Twine(conflict->offset) +
            ", and no fence.proxy.async is between that and " +
            describe(thread, conflict->earlier));
}
