//===- Shadow.cpp - Who touched a buffer last -------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Shadow.h"

#include "runtime/emulator/Grid.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

std::optional<uint64_t> Shadow::findUndefined(uint64_t offset, uint64_t count) const {
  if (defined.empty())
    return std::nullopt;
  const void *found = std::memchr(&defined[offset], 0, count);
  if (!found)
    return std::nullopt;
  return static_cast<const uint8_t *>(found) - defined.data();
}

void Shadow::define(uint64_t offset, uint64_t count) {
  if (!defined.empty())
    std::memset(&defined[offset], 1, count);
}

void Shadow::forgetAccesses() {
  pages.clear();
  lists.clear();
}

/// Cells small enough that the range is a number of whole ones. What touched the larger touched its
/// parts.
void Shadow::refine(Page &page, uint64_t begin, uint64_t end) {
  uint64_t finer = page.granule;
  while ((begin | end) % finer)
    finer /= 2;
  if (finer == page.granule && !page.cells.empty())
    return;
  std::vector<Cell> old = std::move(page.cells);
  uint64_t times = page.granule / finer;
  page.granule = finer;
  page.cells.assign(pageBytes / finer, Cell());
  for (size_t i = 0; !old.empty() && i < page.cells.size(); ++i) {
    page.cells[i] = old[i / times];
    if (i % times == 0)
      continue; // the first part keeps the lists, the others get copies
    for (Record *set : {&page.cells[i].write, &page.cells[i].read})
      if (set->thread == Record::several) {
        lists.push_back(lists[set->clock]);
        set->clock = lists.size() - 1;
      }
  }
}

bool Shadow::isOrdered(const Thread &thread, const Record &earlier) const {
  uint32_t perBlock = thread.grid.numThreads;
  uint32_t block = earlier.thread / perBlock, index = earlier.thread % perBlock;
  if (block == thread.block.index && index == thread.index)
    return earlier.clock != Record::underWay;
  return thread.known.of(block, index) >= earlier.clock;
}

std::optional<Shadow::Conflict> Shadow::findHidden(const Thread &thread, uint64_t offset,
                                                   uint64_t count) const {
  uint32_t perBlock = thread.grid.numThreads;
  auto isHidden = [&](const Record &one) {
    return !code.accesses[one.access].isBulk &&
           thread.known.of(one.thread / perBlock, perBlock + one.thread % perBlock) < one.clock;
  };
  for (uint64_t number = offset / pageBytes,
                last = std::min<uint64_t>(divideCeil(offset + count, pageBytes), pages.size());
       number < last; ++number) {
    const Page &page = pages[number];
    uint64_t base = number * pageBytes, begin = std::max(offset, base) - base;
    uint64_t end = std::min(offset + count - base, page.cells.size() * page.granule);
    for (uint64_t i = begin / page.granule; i * page.granule < end; ++i) {
      const Record &set = page.cells[i].write;
      if (set.thread == Record::several) {
        for (const Record &one : lists[set.clock].records)
          if (isHidden(one))
            return Conflict{one, base + i * page.granule};
      } else if (set.thread != Record::none && isHidden(set)) {
        return Conflict{set, base + i * page.granule};
      }
    }
  }
  return std::nullopt;
}

/// Of the accesses in the set, one that the thread's next races with.
const Shadow::Record *Shadow::findRace(const Thread &thread, const Record &set,
                                       const EmulatedAccess &access) const {
  auto races = [&](const Record &earlier) {
    if (isOrdered(thread, earlier))
      return false;
    const EmulatedAccess &other = code.accesses[earlier.access];
    if (!access.isStrong || !other.isStrong)
      return true;
    bool isOneBlock = earlier.thread / thread.grid.numThreads == thread.block.index;
    EmulatedScope scope = std::min(access.scope, other.scope);
    return scope == EmulatedScope::Thread || (scope == EmulatedScope::Block && !isOneBlock);
  };
  if (set.thread == Record::none)
    return nullptr;
  if (set.thread != Record::several)
    return races(set) ? &set : nullptr;
  for (const Record &one : lists[set.clock].records)
    if (races(one))
      return &one;
  return nullptr;
}

/// What happened before the new access goes: whoever is after that one is after them.
void Shadow::add(const Thread &thread, Record &set, const Record &record) {
  if (set.thread == Record::none || (set.thread != Record::several && isOrdered(thread, set))) {
    set = record;
    return;
  }
  if (set.thread != Record::several) {
    List list;
    list.records = {set, record};
    lists.push_back(std::move(list));
    set = {Record::several, uint32_t(lists.size() - 1), 0};
    return;
  }
  List &list = lists[set.clock];
  // The last are often the thread's own. Of long lists (all blocks read one byte) the rest is
  // looked at now and then.
  while (!list.records.empty() && isOrdered(thread, list.records.back()))
    list.records.pop_back();
  if (list.records.size() >= list.pruneAt)
    prune(thread, list);
  list.records.push_back(record);
}

void Shadow::prune(const Thread &thread, List &list) {
  llvm::erase_if(list.records, [&](const Record &one) { return isOrdered(thread, one); });
  list.pruneAt = std::max<size_t>(8, 2 * list.records.size());
}

/// What the thread had under way is what is entered next.
void Shadow::endOwn(Record &set, uint32_t thread) {
  auto isIt = [&](const Record &one) {
    return one.thread == thread && one.clock == Record::underWay;
  };
  if (isIt(set)) {
    set = Record();
  } else if (set.thread == Record::several) { // it is the only one
    std::vector<Record> &records = lists[set.clock].records;
    if (auto found = llvm::find_if(records, isIt); found != records.end())
      records.erase(found);
  }
}

std::optional<Shadow::Conflict> Shadow::enter(const Thread &thread, uint64_t offset, uint64_t count,
                                              uint32_t number, AccessTime time) {
  if (pages.empty())
    pages.resize(divideCeil(bytes, pageBytes));
  Record record;
  record.thread = thread.block.index * thread.grid.numThreads + thread.index;
  record.clock = time == AccessTime::Begins ? Record::underWay : thread.clock;
  record.access = number;
  for (uint64_t begin = offset, end = offset + count, next; begin < end; begin = next) {
    next = std::min(end, alignDown(begin, pageBytes) + pageBytes);
    if (std::optional<Conflict> conflict =
            enterPage(thread, begin / pageBytes, begin % pageBytes,
                      begin % pageBytes + (next - begin), record, time))
      return conflict;
  }
  return std::nullopt;
}

/// The part of an access from byte `begin` of a page on.
std::optional<Shadow::Conflict> Shadow::enterPage(const Thread &thread, uint64_t number,
                                                  uint64_t begin, uint64_t end,
                                                  const Record &record, AccessTime time) {
  Page &page = pages[number];
  if ((begin | end) % page.granule || page.cells.empty())
    refine(page, begin, end);
  const EmulatedAccess &access = code.accesses[record.access];
  for (uint64_t i = begin / page.granule; i < end / page.granule; ++i) {
    Cell &cell = page.cells[i];
    // A thread may read twice what it has under way, and has the two as one.
    if (time == AccessTime::Ends || (time == AccessTime::Begins && !access.writes))
      endOwn(access.writes ? cell.write : cell.read, record.thread);
    const Record *race = findRace(thread, cell.write, access);
    if (!race && access.writes)
      race = findRace(thread, cell.read, access);
    if (race)
      return Conflict{*race, number * pageBytes + i * page.granule};
    add(thread, access.writes ? cell.write : cell.read, record);
    if (!access.writes)
      continue;
    if (cell.read.thread == Record::several)
      prune(thread, lists[cell.read.clock]);
    else if (cell.read.thread != Record::none && isOrdered(thread, cell.read))
      cell.read = Record();
  }
  return std::nullopt;
}
