//===- Grid.cpp - The threads of one launch, as fibres ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Grid.h"

#include "runtime/emulator/Atoms.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

char EmulatorError::ID = 0;

static thread_local Thread *runningThread = nullptr;

Thread &Grid::running() { return *runningThread; }

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void Thread::fail(EmulatorError::Kind kind, uint32_t place, const Twine &what) {
  std::string where = grid.code.places[place].function + ", block " + std::to_string(block.index) +
                      ", thread " + std::to_string(index);
  grid.finding = std::make_unique<EmulatorError>(
      kind, (grid.code.places[place].text + ": " + what + " (" + where + ")").str());
  grid.running().fibre.suspend(); // for good: the launch ends
  llvm_unreachable("a thread that has found something does not run again");
}

Thread::Thread(Grid &grid, Block &block, uint32_t index)
    : grid(grid), block(block), index(index), known(grid.clockEntries) {}

void Thread::wait() {
  waiting.waits = true;
  while (waiting.waits)
    fibre.suspend();
}

void Thread::yield() {
  looks = 0;
  grid.makeReady(*this);
  fibre.suspend();
}

void Thread::meet(uint32_t mask, AtomCall &call, Together together) {
  uint32_t place = call.site.place;
  if (!(mask >> lane() & 1))
    fail(EmulatorError::WrongOperand, place,
         "lane " + Twine(lane()) + " is not in the mask 0x" + utohexstr(mask) +
             " of its own operation");
  waiting.place = place;
  waiting.mask = mask;
  waiting.call = &call;
  waiting.together = together;
  waiting.waits = true;
  block.tryMeeting(warp(), mask, together);
  while (waiting.waits)
    fibre.suspend();
}

void Thread::barrier(uint32_t id, uint32_t count, bool isAligned, bool waits, uint32_t place) {
  if (id >= block.barriers.size())
    fail(EmulatorError::WrongOperand, place, "there is no barrier " + Twine(id));
  Block::Barrier &barrier = block.barriers[id];
  uint32_t expected = count ? count : grid.numThreads;
  if (count % warpThreads || expected > alignTo(grid.numThreads, warpThreads))
    fail(EmulatorError::WrongOperand, place,
         "a barrier of " + Twine(count) + " threads in a block of " + Twine(grid.numThreads));
  if (barrier.arrived && barrier.expected != expected)
    fail(EmulatorError::DivergentBarrier, place,
         "comes to barrier " + Twine(id) + " with " + Twine(expected) + " threads, others with " +
             Twine(barrier.expected));
  if (!count && block.live < grid.numThreads)
    fail(EmulatorError::DivergentBarrier, place,
         "waits for all threads of the block, of which " + Twine(grid.numThreads - block.live) +
             " have ended");
  checkPhase(id, place);
  barrier.expected = expected;
  barrier.places.resize(divideCeil(grid.numThreads, warpThreads));
  uint32_t &placeOfWarp = barrier.places[warp()];
  if (isAligned && placeOfWarp && placeOfWarp != place + 1)
    fail(EmulatorError::DivergentBarrier, place,
         "threads of one warp come to an aligned barrier in two places; the other is " +
             grid.placeText(placeOfWarp - 1));
  placeOfWarp = place + 1;
  if (barrier.arrived == 0)
    barrier.first = barrier.clocks = known;
  else if (!known.isSame(barrier.first))
    barrier.clocks.join(known);
  barrier.now.add(*this);
  barrier.clocks.set(block.index, index, clock++);
  if (++barrier.arrived < expected) {
    if (!waits)
      return;
    barrier.waiting.push_back(this);
    waiting.place = place;
    waiting.barrier = id;
    waiting.call = nullptr;
    return wait();
  }
  std::vector<Thread *> others = std::move(barrier.waiting);
  auto learn = [&](Thread &thread) {
    thread.waitedFor[id] = barrier.phase + 1;
    if (thread.known.isSame(barrier.first))
      thread.known = barrier.clocks;
    else
      thread.known.join(barrier.clocks);
  };
  if (waits)
    learn(*this);
  for (Thread *other : others) {
    other->waiting.waits = false;
    learn(*other);
  }
  barrier.arrived = 0;
  barrier.places.clear();
  barrier.before = std::exchange(barrier.now, {});
  ++barrier.phase;
  ++grid.progress;
  grid.makeReady(others);
}

void Thread::showBarriers() {
  shownBarriers = knowledge();
  ++clock;
}

void Thread::arriveAtCluster(bool isRelaxed, uint32_t place) {
  if (clusterPhase)
    fail(EmulatorError::DivergentBarrier, place,
         "arrives at the barrier of its cluster, for which it has yet to wait");
  std::shared_ptr<ClusterPhase> &phase = grid.clusterPhases[block.index / grid.clusterSize()];
  if (!phase) {
    phase = std::make_shared<ClusterPhase>();
    phase->clocks = Clocks(grid.clockEntries);
  }
  phase->clocks.join(isRelaxed ? shownBarriers : known);
  if (!isRelaxed)
    phase->clocks.set(block.index, index, clock++);
  clusterPhase = phase;
  ++phase->arrived;
  grid.tryClusterPhase(block.index / grid.clusterSize());
}

void Thread::waitForCluster(uint32_t place) {
  if (!clusterPhase)
    fail(EmulatorError::DivergentBarrier, place,
         "waits for the barrier of its cluster, at which it has not arrived");
  if (!clusterPhase->isOver) {
    clusterPhase->waiting.push_back(this);
    waiting.place = place;
    waiting.call = nullptr;
    wait();
  }
  known.join(clusterPhase->clocks);
  clusterPhase.reset();
}

void Grid::tryClusterPhase(uint32_t cluster) {
  auto it = clusterPhases.find(cluster);
  if (it == clusterPhases.end() || !it->second)
    return;
  uint32_t live = 0;
  for (const std::unique_ptr<Block> &one : resident)
    if (one->index / clusterSize() == cluster)
      live += one->live;
  if (it->second->arrived < live)
    return;
  ClusterPhase &phase = *it->second;
  phase.isOver = true;
  std::vector<Thread *> others = std::move(phase.waiting);
  for (Thread *other : others)
    other->waiting.waits = false;
  it->second.reset(); // the next arrival is at the next use
  ++progress;
  makeReady(others);
}

void Grid::endBarriers(const Block &block) {
  for (auto it = transactions.begin(); it != transactions.end();) {
    const TransactionBarrier &barrier = it->second;
    if (barrier.block != block.index) {
      ++it;
      continue;
    }
    if (!barrier.copies.empty() && !finding)
      finding = std::make_unique<EmulatorError>(
          EmulatorError::WrongOperand,
          placeText(barrier.copies.front().place) +
              ": a bulk copy is under way when its block ends (block " +
              std::to_string(block.index) + ")");
    it = transactions.erase(it);
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static void runThread(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  thread.grid.function(thread.grid.arguments);
}

Block::Block(Grid &grid, uint32_t index) : grid(grid), index(index), live(grid.numThreads) {
  shared = grid.memory.enterBlock(*this);
  for (uint32_t thread = 0; thread < grid.numThreads; ++thread)
    threads.emplace_back(grid, *this, thread);
}

Block::~Block() { grid.memory.leaveBlock(shared); }

void Block::tryMeeting(unsigned warp, uint32_t mask, Together together) {
  LaneCalls calls;
  calls.fill(nullptr);
  unsigned first = warp * warpThreads;
  for (unsigned lane = warpThreads; lane-- > 0;) { // the last mostly come last
    if (!(mask >> lane & 1) || first + lane >= threads.size() ||
        threads[first + lane].fibre.hasEnded())
      continue;
    Thread &thread = threads[first + lane];
    if (!thread.waiting.waits || !thread.waiting.call || thread.waiting.mask != mask ||
        thread.waiting.together != together)
      return;
    calls[lane] = thread.waiting.call;
  }
  together(calls);
  SmallVector<Thread *, warpThreads> others;
  for (AtomCall *call : calls) {
    if (!call)
      continue;
    call->thread.waiting.waits = false;
    if (&call->thread != runningThread)
      others.push_back(&call->thread);
  }
  ++grid.progress;
  grid.makeReady(others);
}

/// Lanes do not wait for those that have ended, barriers do.
void Block::ended(Thread &thread) {
  --live;
  ++grid.progress;
  if (thread.clusterPhase && !thread.clusterPhase->isOver)
    --thread.clusterPhase->arrived;
  unsigned first = thread.warp() * warpThreads;
  for (unsigned lane = 0; lane < warpThreads && first + lane < threads.size(); ++lane) {
    Thread &other = threads[first + lane];
    if (other.waiting.waits && other.waiting.call)
      tryMeeting(thread.warp(), other.waiting.mask, other.waiting.together);
  }
}

static std::string nameInBlock(StringRef object, uint32_t block) {
  return "an access to '" + object.str() + "' of block " + std::to_string(block);
}

void Block::visit(Thread &visitor, uint32_t place, StringRef object) {
  if (!live)
    visitor.fail(EmulatorError::BlockLifetime, place,
                 nameInBlock(object, index) + ", which has ended");
  if (!visitor.known.knowsOf(index))
    visitor.fail(EmulatorError::BlockLifetime, place,
                 nameInBlock(object, index) + ", in another order of execution before it begins: "
                                              "nothing that happened before says that it has");
  visits[{visitor.block.index, visitor.index}] = {visitor.clock, place, object};
}

const Block::Visit *Block::findUnknownVisit() const {
  for (const auto &[who, visit] : visits)
    if (none_of(threads, [&](const Thread &one) {
          return one.known.of(who.first, who.second) >= visit.clock;
        }))
      return &visit;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

static bool hasGroupProducts(const EmulatedCode &code) {
  return llvm::any_of(code.calls, [](const EmulatedCall &call) {
    return atomName(call.atom).contains("mma_async");
  });
}

Grid::Grid(const EmulatedCode &code, EmulatedFunction function, const void *const *arguments,
           uint32_t blocks, uint32_t threads, Memory &memory, Stacks &stacks,
           const GridOptions &options)
    : code(code), function(function), arguments(arguments), numBlocks(blocks), numThreads(threads),
      memory(memory), stacks(stacks), clockEntries(hasGroupProducts(code) ? 2 * threads : threads),
      order(blocks), options(options), state(options.seed * 0x9E3779B97F4A7C15ull + 1) {
  std::iota(order.begin(), order.end(), 0);
  uint32_t each = options.cluster; // blocks of a cluster stay neighbours
  if (options.seed)
    for (uint32_t i = blocks / each; i > 1; --i)
      std::swap_ranges(order.begin() + (i - 1) * each, order.begin() + i * each,
                       order.begin() + random() % i * each);
}

uint64_t Grid::random() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

void Grid::makeReady(MutableArrayRef<Thread *> threads) {
  if (options.seed)
    for (size_t i = threads.size(); i > 1; --i)
      std::swap(threads[i - 1], threads[random() % i]);
  ready.insert(ready.end(), threads.begin(), threads.end());
}

std::string Grid::placeText(uint32_t place) const { return code.places[place].text; }

Block &Grid::findBlock(uint32_t index) {
  return **llvm::find_if(resident, [&](const auto &block) { return block->index == index; });
}

bool Grid::startBlock() {
  auto block = std::make_unique<Block>(*this, order[started++]);
  if (!block->shared)
    return false;
  std::vector<Thread *> threads;
  for (Thread &thread : block->threads) {
    char *stack = stacks.take();
    if (!stack)
      return false;
    thread.fibre.start(stack, runThread, &thread);
    threads.push_back(&thread);
  }
  makeReady(threads);
  resident.push_back(std::move(block));
  return true;
}

Error Grid::run() {
  uint64_t lastProgress = 0, yields = 0;
  while (!finding) {
    while (started < numBlocks &&
           (resident.empty() || resident.size() + options.cluster <= options.residentBlocks))
      for (unsigned block = 0; block < options.cluster; ++block)
        if (!startBlock())
          return createStringError("no memory for the threads of an emulated block");
    if (ready.empty()) {
      if (resident.empty())
        return Error::success();
      lookForDeadlock();
      break;
    }
    Thread *thread = ready.front();
    ready.pop_front();
    runningThread = thread;
    thread->fibre.resume();
    runningThread = nullptr;
    if (finding)
      break;
    if (thread->fibre.hasEnded()) {
      Block &block = thread->block;
      stacks.giveBack(thread->fibre.stackMemory());
      if (std::optional<uint32_t> place = thread->stores.end(); place && !finding)
        finding = std::make_unique<EmulatorError>(
            EmulatorError::WrongOperand,
            placeText(*place) + ": a thread ends while shared memory is read by its bulk copy");
      block.ended(*thread);
      tryClusterPhase(block.index / clusterSize());
      if (!block.live)
        endBlock(block);
    }
    yields = progress == lastProgress ? yields + 1 : 0;
    lastProgress = progress;
    if (yields > 4096 * (ready.size() + 1)) {
      lookForDeadlock();
      break;
    }
  }
  for (std::unique_ptr<Block> &block : resident)
    for (Thread &thread : block->threads)
      if (!thread.fibre.hasEnded())
        stacks.giveBack(thread.fibre.stackMemory());
  return make_error<EmulatorError>(finding->kind, std::move(finding->message));
}

void Grid::endBlock(const Block &block) {
  endBarriers(block);
  if (const Block::Visit *visit = block.findUnknownVisit(); visit && !finding)
    finding = std::make_unique<EmulatorError>(EmulatorError::BlockLifetime,
                                              placeText(visit->place) + ": " +
                                                  nameInBlock(visit->object, block.index) +
                                                  ", in another order of execution after it has "
                                                  "ended: none of its threads waits for that");
  uint32_t cluster = block.index / clusterSize();
  auto isOfIt = [&](const std::unique_ptr<Block> &one) {
    return one->index / clusterSize() == cluster;
  };
  if (none_of(resident, [&](const auto &one) { return isOfIt(one) && one->live; }))
    llvm::erase_if(resident, isOfIt);
}

/// Says who waits for whom, of the first block where nobody goes on.
void Grid::lookForDeadlock() {
  Block &block = **find_if(resident, [](const auto &one) { return one->live > 0; });
  std::map<std::pair<uint32_t, bool>, std::vector<const Thread *>>
      places; // and whether at a barrier
  unsigned looking = 0;
  for (Thread &thread : block.threads) {
    if (thread.fibre.hasEnded())
      continue;
    if (thread.waiting.waits)
      places[{thread.waiting.place, !thread.waiting.call}].push_back(&thread);
    else
      ++looking;
  }
  std::string text;
  bool isBarrier = false;
  for (const auto &[where, threads] : places) {
    text += (text.empty() ? "" : "; ") + std::to_string(threads.size()) +
            " threads (the first is " + std::to_string(threads.front()->index) + ") wait at " +
            (where.second ? "a barrier at " : "an operation of their warp at ") +
            placeText(where.first);
    isBarrier |= where.second;
  }
  if (looking)
    text += (text.empty() ? "" : "; ") + std::to_string(looking) +
            " threads look for a value that nobody writes";
  unsigned gone = numThreads - block.live;
  if (gone)
    text += "; " + std::to_string(gone) + " have ended";
  bool isDivergent = isBarrier && !looking;
  std::string at =
      places.empty() ? code.places.front().function : placeText(places.begin()->first.first);
  finding = std::make_unique<EmulatorError>(
      isDivergent ? EmulatorError::DivergentBarrier : EmulatorError::Deadlock,
      at + ": " + (isDivergent ? "divergent barrier: " : "deadlock: ") + text + " (block " +
          std::to_string(block.index) + " of " + std::to_string(numBlocks) + ")");
}
