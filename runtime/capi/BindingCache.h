//===- BindingCache.h - What follows from the sizes used last ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch with shapes that were seen before needs no arithmetic on sizes, decides no guard and
// allocates nothing. Finding a binding costs a lock and some comparisons.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CAPI_BINDINGCACHE_H
#define TEGULA_RUNTIME_CAPI_BINDINGCACHE_H

#include "runtime/Launch.h"
#include <array>
#include <memory>
#include <mutex>
#include <thread>

namespace tegula::capi {

class BindingCache {
public:
  using Entry = std::shared_ptr<const Binding>;

  /// `dims`: the shapes of all inputs and inouts, one after another. Null: not there.
  Entry find(llvm::ArrayRef<int64_t> dims) {
    std::unique_lock<std::mutex> lock = acquire();
    if (!lock)
      return nullptr;
    for (const Slot &slot : slots)
      if (slot.binding && llvm::ArrayRef<int64_t>(slot.dims) == dims)
        return slot.binding;
    return nullptr;
  }

  /// Takes the place of the oldest.
  void insert(llvm::ArrayRef<int64_t> dims, Entry binding) {
    std::unique_lock<std::mutex> lock = acquire();
    if (!lock)
      return;
    Slot &slot = slots[next++ % slots.size()];
    slot.dims.assign(dims.begin(), dims.end());
    slot.binding = std::move(binding);
  }

private:
  /// Without the lock where it cannot be had soon: in a process that was forked while another
  /// thread held it there is nobody to release it. Who has none computes the binding anew.
  std::unique_lock<std::mutex> acquire() {
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    for (int round = 0; !lock && round < 64; ++round) {
      std::this_thread::yield();
      lock.try_lock();
    }
    return lock;
  }

  struct Slot {
    llvm::SmallVector<int64_t, 16> dims;
    Entry binding;
  };
  std::mutex mutex;
  std::array<Slot, 16> slots; // as tegula.h promises
  unsigned next = 0;
};

} // namespace tegula::capi

#endif // TEGULA_RUNTIME_CAPI_BINDINGCACHE_H
