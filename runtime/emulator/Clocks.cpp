//===- Clocks.cpp - What has happened before what ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Clocks.h"

#include <algorithm>

using namespace tegula::emulator;

/// The first entry that is not below `block`.
Clocks::Entry *Clocks::find(uint32_t block) {
  return std::lower_bound(blocks.begin(), blocks.end(), block,
                          [](const Entry &entry, uint32_t wanted) { return entry.first < wanted; });
}

uint32_t Clocks::of(uint32_t block, uint32_t thread) const {
  const Entry *entry = const_cast<Clocks *>(this)->find(block);
  return entry != blocks.end() && entry->first == block ? (*entry->second)[thread] : 0;
}

bool Clocks::knowsOf(uint32_t block) const {
  const Entry *entry = const_cast<Clocks *>(this)->find(block);
  return entry != blocks.end() && entry->first == block;
}

void Clocks::set(uint32_t block, uint32_t thread, uint32_t clock) {
  Entry *entry = find(block);
  if (entry == blocks.end() || entry->first != block)
    entry = blocks.insert(entry, {block, std::make_shared<Vector>(threads)});
  else if (entry->second.use_count() > 1)
    entry->second = std::make_shared<Vector>(*entry->second);
  (*entry->second)[thread] = clock;
}

void Clocks::copyToSecondHalf() {
  for (auto &[block, clocks] : blocks) {
    auto both = std::make_shared<Vector>(*clocks);
    std::copy_n(both->begin(), threads / 2, both->begin() + threads / 2);
    clocks = std::move(both);
  }
}

void Clocks::join(const Clocks &other) {
  if (!threads)
    threads = other.threads;
  for (const auto &[block, theirs] : other.blocks) {
    Entry *entry = find(block);
    if (entry == blocks.end() || entry->first != block) {
      blocks.insert(entry, {block, theirs});
      continue;
    }
    if (entry->second == theirs)
      continue;
    bool isMore = false, isLess = false; // ours, somewhere
    for (uint32_t thread = 0; thread < threads; ++thread) {
      isMore |= (*entry->second)[thread] > (*theirs)[thread];
      isLess |= (*entry->second)[thread] < (*theirs)[thread];
    }
    if (!isMore) {
      entry->second = theirs; // to go on sharing it
    } else if (isLess) {
      auto both = std::make_shared<Vector>(*entry->second);
      for (uint32_t thread = 0; thread < threads; ++thread)
        (*both)[thread] = std::max((*both)[thread], (*theirs)[thread]);
      entry->second = std::move(both);
    }
  }
}
