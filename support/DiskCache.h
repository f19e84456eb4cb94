//===- DiskCache.h - A cache on disk ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A folder with a file for each entry, named by the hash of its key. Any number of processes may
// use it at once, be killed at any moment and meet a full disk: an entry is written to a file of
// its own, synced and renamed, and read back only if its length and hash are what they were.
// Whatever goes wrong is as if the entry were not there.
//
// llvm/Support/Caching.h neither syncs nor checks what it reads, and keeps its entries mapped while
// they are used, which its own removal then has to respect: for files of some kilobytes this is
// less.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_DISKCACHE_H
#define TEGULA_SUPPORT_DISKCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace tegula {

class DiskCache {
public:
  static constexpr uint64_t defaultBytes = uint64_t(1) << 30;

  /// An empty folder: nothing is kept. It is made when first needed.
  explicit DiskCache(std::string folder, uint64_t maxBytes = defaultBytes)
      : folder(std::move(folder)), maxBytes(maxBytes) {}
  /// In $TEGULA_CACHE_DIR, which is empty to have none; else in `tegula` below $XDG_CACHE_HOME or
  /// ~/.cache. Of $TEGULA_CACHE_BYTES at most.
  static DiskCache fromEnvironment();

  /// A cache of its own in a folder below this one's, which this one does not count; off where this
  /// one is.
  DiskCache below(llvm::StringRef name, uint64_t maxBytes) const;

  bool isOff() const { return folder.empty() || maxBytes == 0; }
  /// The entry, which becomes the one used last.
  std::optional<std::string> find(llvm::ArrayRef<llvm::StringRef> key) const;
  /// Keeps an entry, and removes those used longest ago where there are too many bytes.
  void insert(llvm::ArrayRef<llvm::StringRef> key, llvm::StringRef entry) const;

private:
  std::string pathOf(llvm::StringRef hash) const;
  void makeRoom() const;
  std::string folder;
  uint64_t maxBytes;
};

} // namespace tegula

#endif // TEGULA_SUPPORT_DISKCACHE_H
