//===- PlanMemory.cpp - Where a plan's temporaries lie ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/PlanMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tegula;

static void extend(std::optional<Lifetime> &life, unsigned step) {
  if (!life)
    life = Lifetime{step, step};
  life->last = step;
}

static void addUses(const PlanStep &step, unsigned position,
                    std::vector<std::optional<Lifetime>> &lives) {
  switch (step.kind) {
  case PlanStep::Launch:
    for (const PlanArgument &argument : step.arguments)
      if (argument.kind == PlanArgument::Buffer)
        extend(lives[argument.index], position);
    return;
  case PlanStep::Zero:
    return extend(lives[step.buffer], position);
  case PlanStep::Loop:
    for (const PlanStep &inner : step.body)
      addUses(inner, position, lives);
    return;
  }
}

std::vector<std::optional<Lifetime>> tegula::lifetimesOf(const Plan &plan) {
  std::vector<std::optional<Lifetime>> lives(plan.buffers.size());
  for (auto [position, step] : enumerate(plan.steps))
    addUses(step, position, lives);
  return lives;
}

std::optional<MemoryLayout> tegula::layOut(ArrayRef<MemoryRequest> requests) {
  MemoryLayout layout;
  layout.offsets.resize(requests.size());
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, requests.size()));
  llvm::sort(order, [&](unsigned lhs, unsigned rhs) {
    int64_t left = requests[lhs].bytes, right = requests[rhs].bytes;
    return left != right ? left > right : lhs < rhs;
  });
  SmallVector<unsigned> placed; // by offset
  for (unsigned index : order) {
    const MemoryRequest &request = requests[index];
    if (request.bytes > INT64_MAX - memoryAlignment)
      return std::nullopt;
    int64_t bytes = alignTo(request.bytes, memoryAlignment);
    // The first gap between those that live at the same time.
    int64_t offset = 0;
    for (unsigned other : placed) {
      if (!requests[other].life.overlaps(request.life))
        continue;
      if (layout.offsets[other] - offset >= bytes)
        break;
      offset = std::max<int64_t>(offset, layout.offsets[other] +
                                             alignTo(requests[other].bytes, memoryAlignment));
    }
    int64_t end;
    if (AddOverflow(offset, bytes, end))
      return std::nullopt;
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, end);
    placed.insert(upper_bound(placed, index,
                              [&](unsigned lhs, unsigned rhs) {
                                return layout.offsets[lhs] < layout.offsets[rhs];
                              }),
                  index);
  }
  return layout;
}
