//===- PlanMemory.h - Where a plan's temporaries lie --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All temporaries of a call share one allocation. A temporary lives from the first step of the plan
// that names it to the last; those whose lives are disjoint may have the same memory, since the
// launches of a call follow each other on one stream. Lives are known from the plan, offsets once
// there are sizes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_PLANMEMORY_H
#define TEGULA_RUNTIME_PLANMEMORY_H

#include "codegen/common/Plan.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tegula {

/// Steps of the plan, counted at its top level, both inclusive. What a loop names lives for the
/// whole loop: an iteration may read what one before it left.
struct Lifetime {
  unsigned first = 0, last = 0;
  bool overlaps(const Lifetime &other) const { return first <= other.last && other.first <= last; }
};

/// By buffer of the plan; nothing for buffers that no step names.
std::vector<std::optional<Lifetime>> lifetimesOf(const Plan &plan);

struct MemoryRequest {
  int64_t bytes = 0;
  Lifetime life;
};

struct MemoryLayout {
  llvm::SmallVector<int64_t> offsets; // by request, multiples of memoryAlignment
  int64_t bytes = 0;                  // of all
};

/// What the driver's own allocations have.
constexpr int64_t memoryAlignment = 256;

/// Lays the largest first, each at the lowest offset that is free while it lives. Nothing where the
/// total does not fit in 64 bits.
std::optional<MemoryLayout> layOut(llvm::ArrayRef<MemoryRequest> requests);

} // namespace tegula

#endif // TEGULA_RUNTIME_PLANMEMORY_H
