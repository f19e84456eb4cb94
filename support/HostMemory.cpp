//===- HostMemory.cpp - Host memory that is available ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/HostMemory.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cstdlib>
#include <optional>

using namespace llvm;

namespace tegula {

/// The first integer of a small file after `key`.
static std::optional<uint64_t> readNumber(const char *path, StringRef key = "") {
  auto buffer = MemoryBuffer::getFileAsStream(path);
  if (!buffer)
    return std::nullopt;
  StringRef text = (*buffer)->getBuffer();
  size_t at = text.find(key);
  if (at == StringRef::npos)
    return std::nullopt;
  uint64_t value;
  text = text.drop_front(at + key.size()).ltrim();
  return text.consumeInteger(10, value) ? std::nullopt : std::optional(value);
}

uint64_t availableMemory() {
  uint64_t available = UINT64_MAX;
  if (std::optional<uint64_t> kilobytes = readNumber("/proc/meminfo", "MemAvailable:"))
    available = *kilobytes * 1024;
  // Control groups, version 2, then version 1; "max" is no number. What files occupy can be given
  // up.
  struct Group {
    const char *limit, *used, *statistics, *active, *inactive;
  };
  for (const Group &group :
       {Group{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
              "/sys/fs/cgroup/memory.stat", "\nactive_file ", "\ninactive_file "},
        Group{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
              "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
              "\ntotal_active_file ", "\ntotal_inactive_file "}}) {
    std::optional<uint64_t> limit = readNumber(group.limit), used = readNumber(group.used);
    if (!limit || !used)
      continue;
    uint64_t files = readNumber(group.statistics, group.active).value_or(0) +
                     readNumber(group.statistics, group.inactive).value_or(0);
    uint64_t taken = *used - std::min(*used, files);
    available = std::min(available, *limit - std::min(*limit, taken));
  }
  return available;
}

void *allocateAligned(size_t alignment, size_t bytes) {
  // Asking costs a fraction of a millisecond; small amounts are there.
  constexpr size_t small = size_t(64) << 20;
  if (bytes > small && bytes > availableMemory())
    return nullptr;
  // Not std::aligned_alloc, which takes multiples of the alignment alone.
  void *memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}

} // namespace tegula
