//===- AllocateShared.cpp - Places of tiles in shared memory ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/TilePasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

using namespace mlir;
using namespace tegula;

namespace tegula {
#define GEN_PASS_DEF_ALLOCATESHAREDPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
/// The ops of the kernel's block between which an allocation holds something.
struct Lifetime {
  tile::AllocOp alloc;
  Operation *first = nullptr, *last = nullptr;
  /// Those of one block inside, a turn of a loop, where that is all: it begins with all of the tile
  /// being written.
  Operation *firstInTurn = nullptr, *lastInTurn = nullptr;
  int64_t offset = 0;

  int64_t end() const { return offset + tile::AllocOp(alloc).getBytes(); }
};
} // namespace

/// All banks, or the period of what is exchanged.
static int64_t alignmentOf(tile::AllocOp alloc) {
  constexpr int64_t banks = 128;
  return isa<tile::ScratchType, tile::PipeType>(alloc.getType()) ? banks
                                                                 : tile::SharedType::alignment;
}

/// The first and the last of an allocation's users, if these are products of one block and, first,
/// what unpacks all of it.
static std::pair<Operation *, Operation *> placesInTurn(ArrayRef<Operation *> users) {
  SmallVector<Operation *> ordered(users);
  if (ordered.empty() || !llvm::all_of(ordered, [&](Operation *user) {
        return user->getBlock() == ordered[0]->getBlock() && isa<tile::UnpackOp, tile::MmaOp>(user);
      }))
    return {};
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  bool isOnce = isa<tile::UnpackOp>(ordered[0]) &&
                llvm::all_of(ArrayRef(ordered).drop_front(), llvm::IsaPred<tile::MmaOp>);
  return isOnce ? std::pair(ordered.front(), ordered.back())
                : std::pair<Operation *, Operation *>();
}

static SmallVector<Lifetime> lifetimes(tile::KernelOp kernel) {
  Block &block = kernel.getBody().front();
  SmallVector<Lifetime> all;
  kernel.getBody().walk([&](tile::AllocOp alloc) {
    Lifetime one{alloc};
    llvm::SetVector<Operation *> users(alloc->user_begin(), alloc->user_end());
    for (unsigned next = 0; next < users.size(); ++next)
      if (isa<tile::StageOp>(users[next]))
        users.insert(users[next]->user_begin(), users[next]->user_end());
    std::tie(one.firstInTurn, one.lastInTurn) = placesInTurn(users.getArrayRef());
    for (Operation *user : users) {
      Operation *place = block.findAncestorOpInBlock(*user);
      if (!one.first || place->isBeforeInBlock(one.first))
        one.first = place;
      if (!one.last || one.last->isBeforeInBlock(place))
        one.last = place;
    }
    all.push_back(one);
  });
  return all;
}

/// Whether both hold something at one time.
static bool overlap(const Lifetime &one, const Lifetime &other) {
  if (one.firstInTurn && other.firstInTurn &&
      one.firstInTurn->getBlock() == other.firstInTurn->getBlock())
    return !one.lastInTurn->isBeforeInBlock(other.firstInTurn) &&
           !other.lastInTurn->isBeforeInBlock(one.firstInTurn);
  return one.first && other.first && !one.last->isBeforeInBlock(other.first) &&
         !other.last->isBeforeInBlock(one.first);
}

/// Gives each the first place that none has at the same time; the bytes of all. Who takes memory
/// that another had before takes it behind a barrier: all warps have left it.
static int64_t allocate(MutableArrayRef<Lifetime> all) {
  int64_t bytes = 0;
  llvm::SetVector<Operation *> barriers;
  for (auto [number, one] : llvm::enumerate(all)) {
    auto before = all.take_front(number);
    auto meets = [&](const Lifetime &other) {
      return one.offset < other.end() && other.offset < one.end();
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (const Lifetime &other : before)
        if (overlap(one, other) && meets(other)) {
          one.offset = llvm::alignTo(other.end(), alignmentOf(one.alloc));
          moved = true;
        }
    }
    for (const Lifetime &other : before) {
      if (!one.first || !other.first || !meets(other))
        continue;
      bool isInTurn = one.firstInTurn && other.firstInTurn &&
                      one.firstInTurn->getBlock() == other.firstInTurn->getBlock();
      Operation *own = isInTurn ? one.firstInTurn : one.first,
                *others = isInTurn ? other.firstInTurn : other.first;
      barriers.insert(own->isBeforeInBlock(others) ? others : own);
    }
    one.alloc.setOffset(one.offset);
    bytes = std::max<int64_t>(bytes, llvm::alignTo(one.end(), alignmentOf(one.alloc)));
  }
  for (Operation *op : barriers) {
    OpBuilder builder(op);
    tile::BarrierOp::create(builder, op->getLoc());
  }
  return bytes;
}

namespace {
struct AllocateSharedPass : Counted<tegula::impl::AllocateSharedPassBase<AllocateSharedPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    int64_t bytes = 0;
    getOperation().walk([&](tile::KernelOp kernel) {
      if (!kernel.isPlaced())
        return;
      SmallVector<Lifetime> all = lifetimes(kernel);
      int64_t own = allocate(all);
      kernel.setSharedBytes(own);
      bytes += own;
    });
    count("bytes of shared memory", bytes);
  }
};
} // namespace
