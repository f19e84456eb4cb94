//===- Shadow.h - Who touched a buffer last ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each few bytes of a buffer, the accesses of one launch that a later one may race with: writes
// and reads that did not happen before one another. (FastTrack, Flanagan and Freund 2009, keeps one
// write; atomic operations make several.) And which bytes have been written at all. How few bytes
// are told apart depends on the accesses of each page: of a ring of tiles all are of 16 bytes, of
// the barriers beside it they are not.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_SHADOW_H
#define TEGULA_RUNTIME_EMULATOR_SHADOW_H

#include "codegen/emulate/Emulate.h"
#include <optional>

namespace tegula::emulator {

class Thread;

/// When an access happens: now; at some time up to a wait that follows, so that no other is before
/// or after it; or up to now, one that has begun.
enum class AccessTime { Now, Begins, Ends };

class Shadow {
public:
  /// An access: by whom, when, and its number in the code.
  struct Record {
    uint32_t thread = none; // number in the grid
    uint32_t clock = 0, access = 0;
    static constexpr uint32_t none = ~uint32_t(0), several = none - 1; // several: `clock` is a list
    static constexpr uint32_t underWay = ~uint32_t(0);                 // as a clock: it has begun
  };
  struct Conflict {
    Record earlier;
    uint64_t offset;
  };

  Shadow(const EmulatedCode &code, uint64_t bytes, bool isDefined)
      : code(code), bytes(bytes), defined(isDefined ? 0 : bytes) {}

  /// Enters an access of the thread; returns an earlier one that it races with.
  std::optional<Conflict> enter(const Thread &thread, uint64_t offset, uint64_t count,
                                uint32_t access, AccessTime time = AccessTime::Now);
  /// A write in a range that nothing known to the thread has shown to products.
  std::optional<Conflict> findHidden(const Thread &thread, uint64_t offset, uint64_t count) const;
  /// The first byte of a range that nobody has written.
  std::optional<uint64_t> findUndefined(uint64_t offset, uint64_t count) const;
  void define(uint64_t offset, uint64_t count);
  /// All accesses so far happened before all that follow: a launch has ended.
  void forgetAccesses();

private:
  struct Cell {
    Record write, read;
  };
  struct List {
    std::vector<Record> records;
    size_t pruneAt = 8;
  };
  struct Page {
    uint64_t granule = 16;   // bytes of a cell
    std::vector<Cell> cells; // empty: no accesses yet
  };
  static constexpr uint64_t pageBytes = 1024;
  void refine(Page &page, uint64_t begin, uint64_t end);
  std::optional<Conflict> enterPage(const Thread &thread, uint64_t number, uint64_t begin,
                                    uint64_t end, const Record &record, AccessTime time);
  const Record *findRace(const Thread &thread, const Record &set,
                         const EmulatedAccess &access) const;
  bool isOrdered(const Thread &thread, const Record &earlier) const;
  void add(const Thread &thread, Record &set, const Record &record);
  void endOwn(Record &set, uint32_t thread);
  void prune(const Thread &thread, List &list);

  const EmulatedCode &code;
  uint64_t bytes;
  std::vector<Page> pages;      // empty: no accesses yet
  std::vector<List> lists;      // of cells with several records
  std::vector<uint8_t> defined; // by byte; empty: all are
};

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_SHADOW_H
