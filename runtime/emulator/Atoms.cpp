//===- Atoms.cpp - What atoms do, on the host --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Atoms.h"

#include "runtime/emulator/AtomsMath.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

void threadIndex(AtomCall &call) { call.result<uint32_t>(0, call.thread.index); }
void blockIndex(AtomCall &call) { call.result<uint32_t>(0, call.thread.block.index); }
void blockSize(AtomCall &call) { call.result<uint32_t>(0, call.thread.grid.numThreads); }
void gridSize(AtomCall &call) { call.result<uint32_t>(0, call.thread.grid.numBlocks); }
void laneIndex(AtomCall &call) { call.result<uint32_t>(0, call.thread.lane()); }
void warpIndex(AtomCall &call) { call.result<uint32_t>(0, call.thread.warp()); }
void warpSize(AtomCall &call) { call.result<uint32_t>(0, warpThreads); }
void multiprocessor(AtomCall &call) {
  call.result<uint32_t>(0, call.thread.grid.multiprocessorOf(call.thread.block.index));
}
void readClock(AtomCall &call) { call.result<uint64_t>(0, call.thread.grid.memory.readClock()); }
void zero(AtomCall &call) { call.result<uint32_t>(0, 0); }
void one(AtomCall &call) { call.result<uint32_t>(0, 1); }

uint32_t bitOf(AtomCall &call) { return uint32_t(1) << call.thread.lane(); }
void laneBit(AtomCall &call) { call.result<uint32_t>(0, bitOf(call)); }
void lanesBelow(AtomCall &call) { call.result<uint32_t>(0, bitOf(call) - 1); }
void lanesUpTo(AtomCall &call) { call.result<uint32_t>(0, bitOf(call) * 2 - 1); }
void lanesFrom(AtomCall &call) { call.result<uint32_t>(0, ~(bitOf(call) - 1)); }
void lanesAbove(AtomCall &call) { call.result<uint32_t>(0, ~(bitOf(call) * 2 - 1)); }

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

template <bool isAligned, bool waits> void blockBarrier(AtomCall &call) {
  bool isOfAll = call.site.operandBytes.size() == 1;
  uint32_t count = isOfAll ? 0 : call.operand<uint32_t>(1);
  if (!isOfAll && !count)
    call.fail("a barrier of no threads");
  call.thread.barrier(call.operand<uint32_t>(0), count, isAligned, waits, call.site.place);
}
void alignedBarrierOfAll(AtomCall &call) { blockBarrier<true, true>(call); }
void alignedBarrierOfSome(AtomCall &call) { blockBarrier<true, true>(call); }
void barrierOfAll(AtomCall &call) { blockBarrier<false, true>(call); }
void barrierOfSome(AtomCall &call) { blockBarrier<false, true>(call); }
void alignedArrival(AtomCall &call) { blockBarrier<true, false>(call); }
void arrival(AtomCall &call) { blockBarrier<false, false>(call); }

/// The threads' bits come together by the number of their barrier: a thread may be at the next one
/// before another has its result of this.
void alignedBarrierOr(AtomCall &call) {
  Thread &thread = call.thread;
  std::vector<bool> &bits = thread.block.anyAtBarrier;
  unsigned number = thread.reducingBarriers++;
  if (bits.size() <= number)
    bits.resize(number + 1);
  bool isCounted = call.numOperands() > 2;
  bits[number] = bits[number] || call.operand<uint8_t>(isCounted ? 2 : 1);
  uint32_t count = isCounted ? call.operand<uint32_t>(1) : 0;
  thread.barrier(call.operand<uint32_t>(0), count, /*isAligned=*/true, /*waits=*/true,
                 call.site.place);
  call.result<uint8_t>(0, bits[number]);
}

void clusterArrival(AtomCall &call) {
  call.thread.arriveAtCluster(/*isRelaxed=*/false, call.site.place);
}
void relaxedClusterArrival(AtomCall &call) {
  call.thread.arriveAtCluster(/*isRelaxed=*/true, call.site.place);
}
void barriersFence(AtomCall &call) { call.thread.showBarriers(); }
void clusterWait(AtomCall &call) { call.thread.waitForCluster(call.site.place); }

/// The place in another block's shared memory that is there what the address is here.
void sharedOfBlock(AtomCall &call) {
  auto *address = call.operand<char *>(0);
  uint32_t rank = call.operand<uint32_t>(1);
  Block &own = call.thread.block;
  Grid &grid = call.thread.grid;
  if (rank >= grid.clusterSize())
    call.fail("block " + Twine(rank) + " of a cluster of " + Twine(grid.clusterSize()));
  Block &other = grid.findBlock(own.index - own.index % grid.clusterSize() + rank);
  call.result<char *>(0, other.shared + (address - own.shared));
}

void warpBarrier(AtomCall &call) {
  call.thread.meet(call.operand<uint32_t>(0), call, [](LaneCalls &calls) {
    Clocks all;
    for (AtomCall *one : calls)
      if (one)
        all.join(one->thread.knowledge());
    for (AtomCall *one : calls)
      if (one) {
        one->thread.known.join(all);
        ++one->thread.clock;
      }
  });
}

//===----------------------------------------------------------------------===//
// Shuffles and votes
//===----------------------------------------------------------------------===//

enum class Shuffle { Up, Down, Butterfly, Index };

/// PTX ISA, "shfl.sync": operands are mask, value, lane and clamp; bits 8 to 12 of the clamp say
/// which lane bits stay as they are. Without a source in range a lane keeps its own value.
template <Shuffle kind> void shuffle(AtomCall &own) {
  own.thread.meet(own.operand<uint32_t>(0), own, [](LaneCalls &calls) {
    for (unsigned lane = 0; lane < warpThreads; ++lane) {
      if (!calls[lane])
        continue;
      AtomCall &call = *calls[lane];
      uint32_t by = call.operand<uint32_t>(2) & 31, packed = call.operand<uint32_t>(3);
      uint32_t clamp = packed & 31, segment = packed >> 8 & 31;
      int32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
      int32_t from = 0;
      bool isInRange = false;
      switch (kind) {
      case Shuffle::Up:
        from = int32_t(lane) - int32_t(by);
        isInRange = from >= most;
        break;
      case Shuffle::Down:
        from = lane + by;
        isInRange = from <= most;
        break;
      case Shuffle::Butterfly:
        from = lane ^ by;
        isInRange = from <= most;
        break;
      case Shuffle::Index:
        from = least | (by & ~segment);
        isInRange = from <= most;
        break;
      }
      if (!isInRange)
        from = lane;
      if (!calls[from])
        call.fail("a shuffle takes the value of lane " + Twine(from) +
                  ", which does not take part");
      call.result<uint32_t>(0, calls[from]->operand<uint32_t>(1));
      if (call.numResults() > 1)
        call.result<uint8_t>(1, isInRange);
    }
  });
}

enum class Vote { All, Any, Uniform, Ballot };

template <Vote kind> void vote(AtomCall &own) {
  own.thread.meet(own.operand<uint32_t>(0), own, [](LaneCalls &calls) {
    uint32_t there = 0, yes = 0;
    for (unsigned lane = 0; lane < warpThreads; ++lane)
      if (calls[lane]) {
        there |= uint32_t(1) << lane;
        yes |= uint32_t(calls[lane]->template operand<uint8_t>(1) & 1) << lane;
      }
    for (AtomCall *call : calls) {
      if (!call)
        continue;
      if (kind == Vote::Ballot)
        call->result<uint32_t>(0, yes);
      else
        call->result<uint8_t>(0, kind == Vote::All   ? yes == there
                                 : kind == Vote::Any ? yes != 0
                                                     : yes == 0 || yes == there);
    }
  });
}

template <typename T> void match(AtomCall &own) {
  own.thread.meet(own.operand<uint32_t>(0), own, [](LaneCalls &calls) {
    for (AtomCall *call : calls) {
      if (!call)
        continue;
      uint32_t equal = 0;
      for (unsigned lane = 0; lane < warpThreads; ++lane)
        if (calls[lane] && calls[lane]->template operand<T>(1) == call->operand<T>(1))
          equal |= uint32_t(1) << lane;
      call->result<uint32_t>(0, equal);
    }
  });
}

enum class Redux { Add, Min, Max, UMin, UMax, And, Or, Xor };

/// Operands are value and mask.
template <Redux kind> void reduceLanes(AtomCall &own) {
  own.thread.meet(own.operand<uint32_t>(1), own, [](LaneCalls &calls) {
    std::optional<uint32_t> all;
    for (AtomCall *call : calls) {
      if (!call)
        continue;
      uint32_t value = call->operand<uint32_t>(0);
      if (!all) {
        all = value;
        continue;
      }
      switch (kind) {
      case Redux::Add:
        all = *all + value;
        break;
      case Redux::Min:
        all = std::min(int32_t(*all), int32_t(value));
        break;
      case Redux::Max:
        all = std::max(int32_t(*all), int32_t(value));
        break;
      case Redux::UMin:
        all = std::min(*all, value);
        break;
      case Redux::UMax:
        all = std::max(*all, value);
        break;
      case Redux::And:
        all = *all & value;
        break;
      case Redux::Or:
        all = *all | value;
        break;
      case Redux::Xor:
        all = *all ^ value;
        break;
      }
    }
    for (AtomCall *call : calls)
      if (call)
        call->result<uint32_t>(0, *all);
  });
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

/// Each of four digits names a byte of eight, the first word's before the second's; with bit 3 it
/// is the byte's sign.
void selectBytes(AtomCall &call) {
  uint64_t bytes = uint64_t(call.operand<uint32_t>(1)) << 32 | call.operand<uint32_t>(0);
  uint32_t digits = call.operand<uint32_t>(2), result = 0;
  for (unsigned place = 0; place < 4; ++place) {
    uint32_t digit = digits >> 4 * place & 15, byte = bytes >> 8 * (digit & 7) & 0xff;
    if (digit & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * place;
  }
  call.result<uint32_t>(0, result);
}

void sameValue(AtomCall &call) { call.result<uint32_t>(0, call.operand<uint32_t>(0)); }
void fenceOfBlock(AtomCall &call) { call.thread.fence(true, true, EmulatedScope::Block); }
void fenceOfDevice(AtomCall &call) { call.thread.fence(true, true, EmulatedScope::Device); }
void nanosleep(AtomCall &call) { call.thread.yield(); }
void nothing(AtomCall &) {}
/// Launches of a plan follow each other here, but what a thread does before this is not known to
/// come after the one before.
void waitForLaunch(AtomCall &call) { call.thread.hasWaited = true; }
/// Threads take turns: only the one that asks is at this instruction.
void activeLanes(AtomCall &call) { call.result<uint32_t>(0, bitOf(call)); }

constexpr AtomFunction functions[] = {
#define TEGULA_ATOM(name, ...) __VA_ARGS__,
#include "codegen/nvgpu/Atoms.def"
};

} // namespace

AtomFunction tegula::emulator::atomFunction(unsigned atom) { return functions[atom]; }

//===----------------------------------------------------------------------===//
// What emulated code calls
//===----------------------------------------------------------------------===//

/// A thread that looks again and again at what others write lets them run.
static constexpr unsigned looksPerTurn = 16;

static void access(const void *address, uint32_t number) {
  Thread &thread = Grid::running();
  const EmulatedAccess &access = thread.grid.code.accesses[number];
  if (access.writes)
    ++thread.grid.progress;
  if (access.isStrong && access.reads && ++thread.looks >= looksPerTurn)
    thread.yield();
  thread.grid.memory.check(thread, address, access.bytes, number);
  if (access.isStrong)
    thread.synchronize(address, access);
}

static void range(const void *address, uint64_t bytes, uint32_t number) {
  Thread &thread = Grid::running();
  ++thread.grid.progress;
  thread.grid.memory.check(thread, address, bytes, number);
}

static void local(const void *object, uint64_t size, const void *address, uint32_t number) {
  Thread &thread = Grid::running();
  thread.grid.memory.checkLocal(thread, object, size, address, number);
}

static void atom(uint32_t number, void *const *results, const void *const *operands) {
  Thread &thread = Grid::running();
  AtomCall call(thread, thread.grid.code.calls[number], results, operands);
  atomFunction(call.site.atom)(call);
}

static void fence(uint32_t number) {
  Thread &thread = Grid::running();
  const EmulatedAccess &access = thread.grid.code.accesses[number];
  thread.fence(access.acquires, access.releases, access.scope);
}

static char *shared() { return Grid::running().block.shared; }

const EmulatorHooks &tegula::emulator::hooks() {
  static const EmulatorHooks hooks = {access, range, local, atom, fence, shared};
  return hooks;
}
