//===- Grid.h - The threads of one launch, as fibres -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the blocks of a launch, a few at a time as a device would, their threads in turn on one host
// thread. A thread runs until it waits for others or has looked at a flag often enough; so runs
// repeat exactly, and another seed is another order.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_GRID_H
#define TEGULA_RUNTIME_EMULATOR_GRID_H

#include "codegen/emulate/Emulate.h"
#include "runtime/emulator/Clocks.h"
#include "runtime/emulator/Fibre.h"
#include "runtime/emulator/Finding.h"
#include "runtime/emulator/Memory.h"
#include "runtime/emulator/Phases.h"
#include "llvm/ADT/Twine.h"
#include <array>
#include <deque>
#include <list>
#include <map>
#include <unordered_map>

namespace tegula::emulator {

class AtomCall;
class Block;
class Grid;
class Thread;

constexpr unsigned warpThreads = 32;

/// Calls of the lanes of a warp that have met, by lane; null where a lane does not take part.
using LaneCalls = std::array<AtomCall *, warpThreads>;
using Together = void (*)(LaneCalls &calls);

/// What an atomic or volatile write left at an address for those who read it.
struct Flag {
  Clocks clocks;
  EmulatedScope scope = EmulatedScope::Thread;
  uint32_t block = 0; // of the writer
};

/// Copies of a thread that it has not waited for.
struct AsyncCopies {
  struct Copy {
    char *to;
    const char *from;
    uint32_t bytes, sourceBytes; // what is not copied becomes zeros
    uint32_t read, write;        // accesses
  };
  std::vector<Copy> open; // in no group yet
  std::list<std::vector<Copy>> groups;
};

/// Copies in bulk from shared memory that a thread has not waited for.
struct BulkStores {
  struct Store {
    char *to;
    const char *from;
    std::vector<char> bytes; // once they have been read
    uint32_t place;
  };
  using Group = std::vector<Store>;
  Group open; // in no group yet
  std::list<Group> unread, unwritten;
  /// The thread ends: writes what has been read; the place of a copy that was not.
  std::optional<uint32_t> end();
};

/// One use of the barrier of a cluster: threads come to it, and wait for the others later.
struct ClusterPhase {
  uint32_t arrived = 0; // of those that have not ended
  bool isOver = false;  // all have come who had not ended
  Clocks clocks;        // of those who have come
  std::vector<Thread *> waiting;
};

/// Products of four warps, under way until they are waited for: what they read of shared memory,
/// and their sums. Up to the wait a sum's register has a NaN with a number, by which products that
/// add to it and the wait know it.
struct AsyncProducts {
  struct Read {
    const char *from;
    uint32_t bytes, access;
  };
  struct Sum {
    float value = 0;
    uint32_t number = 0;
    uint64_t group = 0;
  };
  std::vector<Read> open; // in no group yet
  std::list<std::vector<Read>> groups;
  uint64_t committed = 0; // groups ever
  std::vector<Sum> sums;  // the last ones, by number
  uint32_t numSums = 0;

  /// What a register has of a sum from now on.
  float begin(float sum);
  /// The sum that a register stands for, where its group is among the first `groups`; else what the
  /// register has.
  float end(float inRegister, uint64_t groups) const;
};

/// One thread of the device.
class Thread {
public:
  Thread(Grid &grid, Block &block, uint32_t index);
  unsigned lane() const { return index % warpThreads; }
  unsigned warp() const { return index / warpThreads; }

  /// Waits until all lanes of `mask` have come to the same operation; the last of them does it for
  /// all.
  void meet(uint32_t mask, AtomCall &call, Together together);
  /// Comes to barrier `id` of the block with `count` threads (0: all of the block), and waits
  /// unless it only announces itself.
  void barrier(uint32_t id, uint32_t count, bool isAligned, bool waits, uint32_t place);
  /// The barrier of the cluster, in two steps. A relaxed arrival tells others of barriers that the
  /// thread has shown alone (PTX ISA, "barrier.cluster", "fence.mbarrier_init").
  void arriveAtCluster(bool isRelaxed, uint32_t place);
  void showBarriers();
  void waitForCluster(uint32_t place);
  /// Comes to the barrier, itself or by a store that the barrier counts; the last of a phase ends
  /// it.
  void arrive(TransactionBarrier &barrier, bool isStore, uint32_t place);
  /// Ends the barrier's phase if all has come.
  void tryEndPhase(TransactionBarrier &barrier, uint32_t place);
  /// Waits for the end of the barrier's phase of that parity.
  void waitFor(TransactionBarrier &barrier, bool parity, uint32_t place);
  /// An atomic or volatile access.
  void synchronize(const void *address, const EmulatedAccess &access);
  void fence(bool acquires, bool releases, EmulatedScope scope);
  void showToProducts();
  /// Lets others run.
  void yield();
  /// Ends the launch with this finding.
  [[noreturn]] void fail(EmulatorError::Kind kind, uint32_t place, const llvm::Twine &what);

  Grid &grid;
  Block &block;
  const uint32_t index;
  Fibre fibre;
  Clocks known; // of the others; what they did up to then happened before what this one does next
  uint32_t clock = 1; // its own
  /// Everything that happened before now.
  Clocks knowledge() const;
  AsyncCopies copies;
  BulkStores stores;
  std::shared_ptr<ClusterPhase>
      clusterPhase; // at which it has arrived and for which it has not waited
  AsyncProducts products;
  unsigned reducingBarriers = 0; // that it has come to
  bool hasWaited = false;        // for the launch before, where the grid starts early
  unsigned looks = 0;            // at values that others write, since the last yield
  struct {                       // what it waits for; call: a meeting of lanes; else a barrier
    bool waits = false;
    uint32_t place = 0, mask = 0, barrier = 0;
    AtomCall *call = nullptr;
    Together together = nullptr;
  } waiting;

private:
  void wait();
  /// Ends the launch where the thread's next arrival may be at another phase.
  void checkPhase(uint32_t id, uint32_t place);
  void checkAfter(const TransactionBarrier &barrier, const TransactionPhase &phase, uint64_t number,
                  uint32_t place);
  std::array<uint64_t, 16> waitedFor =
      {};               // phases of the block's barriers up to the last that it waited for
  Clocks seen;          // through strong reads; known after the next fence
  Clocks fenced;        // what strong writes make known
  Clocks shownBarriers; // what relaxed arrivals at the cluster's barrier make known
  EmulatedScope fencedScope = EmulatedScope::Device;
};

class Block {
public:
  Block(Grid &grid, uint32_t index);
  ~Block();

  struct Barrier {
    uint32_t expected = 0, arrived = 0;
    std::vector<Thread *> waiting;
    Clocks first;                 // what the first to come knew: mostly what all know
    Clocks clocks;                // of those who have come
    std::vector<uint32_t> places; // by warp, plus one; 0: none of it has come
    uint64_t phase = 0;
    Deeds now, before; // arrivals at this phase and at the one before
  };
  /// The last access of another block's thread to the shared memory.
  struct Visit {
    uint32_t clock = 0, place = 0;
    llvm::StringRef object;
  };

  void ended(Thread &thread);
  /// A thread of another block of the cluster accesses the object of shared memory: it must know
  /// that this block has begun.
  void visit(Thread &visitor, uint32_t place, llvm::StringRef object);
  /// The block ends: a visit of which none of its threads knows might come later. That one; null
  /// where there is none.
  const Visit *findUnknownVisit() const;
  /// Lets the lanes of `warp` go on that have met.
  void tryMeeting(unsigned warp, uint32_t mask, Together together);

  Grid &grid;
  const uint32_t index;
  std::deque<Thread> threads;
  std::array<Barrier, 16> barriers;
  std::vector<bool> anyAtBarrier;                        // by number of the reducing barrier
  std::map<std::pair<uint32_t, uint32_t>, Visit> visits; // by block and thread
  uint32_t live = 0;
  char *shared = nullptr;
};

struct GridOptions {
  uint64_t seed = 0;                ///< 0: threads and blocks in order; else another order of both
  unsigned residentBlocks = 4;      ///< that run at once
  unsigned cluster = 1;             ///< blocks that start together
  bool usesDependentLaunch = false; ///< while the launch before runs: threads wait for it
};

class Grid {
public:
  Grid(const EmulatedCode &code, EmulatedFunction function, const void *const *arguments,
       uint32_t blocks, uint32_t threads, Memory &memory, Stacks &stacks,
       const GridOptions &options);
  llvm::Error run();

  const EmulatedCode &code;
  const EmulatedFunction function;
  const void *const *const arguments;
  const uint32_t numBlocks, numThreads;
  Memory &memory;
  Stacks &stacks;
  /// Of a block in a set of clocks: one for each thread, and where there are products of four warps
  /// another one, up to which they see what it has written.
  const uint32_t clockEntries;
  bool hasProducts() const { return clockEntries > numThreads; }
  std::unique_ptr<EmulatorError> finding;
  /// Counts what lets those who wait go on.
  uint64_t progress = 0;

  std::unordered_map<const void *, Flag> flags;
  std::unordered_map<uint32_t, std::shared_ptr<ClusterPhase>>
      clusterPhases;                                                 // by number of the cluster
  std::unordered_map<const void *, TransactionBarrier> transactions; // by address
  /// Lets those go on who wait for the phase.
  void endPhase(TransactionBarrier &barrier);
  /// Ends the phase of the cluster's barrier where all its threads have come that have not ended
  /// (PTX ISA, "barrier.cluster").
  void tryClusterPhase(uint32_t cluster);
  /// A block ends, and its barriers with it; copies may not be under way.
  void endBarriers(const Block &block);
  /// A block ends; its shared memory stays where it was until the others of the cluster have ended,
  /// so that accesses to it are known as such.
  void endBlock(const Block &block);
  unsigned clusterSize() const { return options.cluster; }
  /// As if each multiprocessor had one of the blocks that run at once.
  unsigned multiprocessorOf(uint32_t block) const { return block % options.residentBlocks; }
  bool usesDependentLaunch() const { return options.usesDependentLaunch; }
  /// A block of a cluster that has not ended whole.
  Block &findBlock(uint32_t index);

  void makeReady(Thread &thread) { ready.push_back(&thread); }
  void makeReady(llvm::MutableArrayRef<Thread *> threads);
  std::string placeText(uint32_t place) const;

  /// The thread that runs now on this thread of the host.
  static Thread &running();

private:
  uint64_t random();
  bool startBlock();
  void lookForDeadlock();
  std::deque<Thread *> ready;
  std::vector<std::unique_ptr<Block>> resident;
  std::vector<uint32_t> order; // of blocks
  uint32_t started = 0;
  GridOptions options;
  uint64_t state;
};

/// What emulated code calls.
const EmulatorHooks &hooks();

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_GRID_H
