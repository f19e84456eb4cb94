//===- AllocateShared.cpp - Places of tiles in shared memory ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/TilePasses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;

namespace tegula {
#define GEN_PASS_DEF_ALLOCATESHAREDPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
struct AllocateSharedPass : Counted<tegula::impl::AllocateSharedPassBase<AllocateSharedPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    constexpr int64_t alignment = 128; // all banks
    int64_t bytes = 0;
    getOperation().walk([&](tile::KernelOp kernel) {
      if (!kernel.isPlaced())
        return;
      int64_t offset = 0;
      kernel.getBody().walk([&](tile::AllocOp alloc) {
        alloc.setOffset(offset);
        offset = llvm::alignTo(offset + alloc.getType().getBytes(), alignment);
      });
      kernel.setSharedBytes(offset);
      bytes += offset;
    });
    count("bytes of shared memory", bytes);
  }
};
} // namespace
