//===- Threads.cpp - Worker threads for host code ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Threads.h"
#include "runtime/Sort.h"
#include "support/Workers.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace tegula;

/// Operations below which waking a thread costs more than it saves: some 10 us.
static constexpr int64_t smallWork = 20000;
/// Rounds that a worker looks for the next statement before it sleeps: some 500 us. Statements of
/// one kernel follow each other closely, kernels of one program mostly too, and waking takes as
/// long as a short kernel: sum_columns of 4096 x 512 has medians of 218 and 234 us, with a tenth of
/// this 255 and 287.
static constexpr int spinRounds = 20000;
static constexpr unsigned maxThreads = 1024;

static void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

/// Processors that this process may use.
static unsigned processors() {
  cpu_set_t set;
  if (!sched_getaffinity(0, sizeof(set), &set))
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

static unsigned defaultThreads() {
  if (const char *text = std::getenv("TEGULA_NUM_THREADS"))
    if (int value = std::atoi(text); value > 0)
      return value;
  return processors();
}

struct ThreadPool::State {
  explicit State(unsigned numThreads);

  unsigned numThreads;
  int spins;          // of a worker: none where it would take a processor from another
  int64_t maxWorkers; // numThreads - 1, or as many as the system gives
  std::mutex owner;   // held by the caller whose statement runs

  // The statement. `generation` grows by one for each. A worker that wakes too late finds it closed
  // and nobody waits for it: it enters (active + 1) before it looks, the owner closes before it
  // counts.
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> open{false};
  std::atomic<bool> stopping{false};
  std::atomic<int64_t> next{0};
  std::atomic<unsigned> active{0};
  ParallelBody body = nullptr;
  void *frame = nullptr;
  HostRun *run = nullptr;
  const HostLaunch *stoppable = nullptr; // null where all points are to run
  int64_t count = 0, chunk = 1;

  std::mutex sleepMutex;
  std::condition_variable wake;
  Workers workers{[this] { worker(); }}; // started late

  void work() {
    for (;;) {
      int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count || (stoppable && stoppable->isStopped()))
        return;
      body(begin, std::min(begin + chunk, count), frame, run);
    }
  }

  void worker() {
    uint64_t seen = 0;
    for (;;) {
      for (int round = 0; round < spins && generation.load(std::memory_order_acquire) == seen;
           ++round)
        relax();
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(sleepMutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
      }
      seen = generation.load(std::memory_order_acquire);
      if (stopping)
        return;
      active.fetch_add(1);
      if (open.load())
        work();
      active.fetch_sub(1);
    }
  }

  void announce() {
    {
      std::lock_guard<std::mutex> lock(sleepMutex);
      generation.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }
};

//===----------------------------------------------------------------------===//
// Forked processes
//===----------------------------------------------------------------------===//

/// All pools of this process. A forked process has none of their threads, and their locks, counts
/// and condition variables are as another thread may have left them in the middle of a statement:
/// it begins with new ones.
struct ThreadPool::All {
  std::mutex mutex;
  std::vector<ThreadPool *> pools;

  static All &get() {
    static All *all = new All; // there until the last pool is gone, static ones too
    return *all;
  }

  All() {
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] {
                     for (ThreadPool *pool : get().pools) {
                       // Nothing of the old one may be touched: a destructor would wait for threads
                       // that are not there.
                       unsigned numThreads = pool->state.release()->numThreads;
                       pool->state = std::make_unique<State>(numThreads);
                     }
                     get().mutex.unlock();
                   });
  }
};

ThreadPool::State::State(unsigned numThreads)
    : numThreads(numThreads), spins(numThreads <= processors() ? spinRounds : 0),
      maxWorkers(numThreads - 1) {}

ThreadPool::ThreadPool(unsigned numThreads)
    : state(std::make_unique<State>(
          std::min(numThreads ? numThreads : defaultThreads(), maxThreads))) {
  All &all = All::get();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.pools.push_back(this);
}

ThreadPool::~ThreadPool() {
  {
    All &all = All::get();
    std::lock_guard<std::mutex> lock(all.mutex);
    std::erase(all.pools, this);
  }
  state->stopping = true;
  state->announce();
  state->workers.join();
}

ThreadPool &ThreadPool::shared() {
  static ThreadPool pool;
  return pool;
}

unsigned ThreadPool::size() const { return state->numThreads; }

/// Points that take some 10 ms: so often a launch looks whether it is to stop.
static int64_t stoppablePoints(int64_t cost) {
  return std::max<int64_t>(1, 10000000 / std::max<int64_t>(cost, 1));
}

void ThreadPool::run(HostRun *given, ParallelBody body, void *frame, int64_t count, int64_t cost) {
  auto *run = static_cast<HostLaunch *>(given);
  if (count <= 0)
    return;
  if (!run->stop || run->isInside || !pthread_equal(run->thread, pthread_self()))
    return runStatement(run, body, frame, count, cost, /*mayStop=*/false);
  run->isInside = true;
  runStatement(run, body, frame, count, cost, /*mayStop=*/true);
  run->isInside = false;
  if (run->isStopped())
    longjmp(run->leave, 1);
}

void ThreadPool::runStatement(HostLaunch *run, ParallelBody body, void *frame, int64_t count,
                              int64_t cost, bool mayStop) {
  bool small = cost <= 0 || count <= smallWork / std::max<int64_t>(cost, 1);
  std::unique_lock<std::mutex> lock(state->owner, std::defer_lock);
  if (state->numThreads == 1 || count == 1 || small || !lock.try_lock()) {
    int64_t step = mayStop ? stoppablePoints(cost) : count;
    for (int64_t begin = 0; begin < count && !(mayStop && run->isStopped());) {
      int64_t end = step < count - begin ? begin + step : count;
      body(begin, end, frame, run);
      begin = end;
    }
    return;
  }
  if (!state->workers.start(state->maxWorkers))
    state->maxWorkers = state->workers.size();
  state->body = body;
  state->frame = frame;
  state->run = run;
  state->count = count;
  // Several chunks a thread, so that a slow one holds up little; each worth its atomic increment.
  int64_t chunks = int64_t(state->numThreads) * 8;
  int64_t least = std::max<int64_t>(1, smallWork / 8 / std::max<int64_t>(cost, 1));
  state->chunk = std::max(least, (count + chunks - 1) / chunks);
  state->stoppable = mayStop ? run : nullptr;
  if (mayStop)
    state->chunk = std::min(state->chunk, stoppablePoints(cost));
  state->next.store(0, std::memory_order_relaxed);
  state->open.store(true);
  state->announce();
  state->work();
  state->open.store(false);
  while (state->active.load())
    relax();
}

static void parallelFor(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t cost) {
  static_cast<ThreadPool *>(run->runtime)->run(run, body, frame, count, cost);
}

namespace {
/// Memory of one thread that grows and is given back when the thread ends.
struct Space {
  void *data = nullptr;
  int64_t bytes = 0;
  ~Space() { std::free(data); }
};
} // namespace

/// Null only where there is no memory: who asks for nothing, an empty temporary's, goes on as well.
static void *atLeast(Space &space, HostRun *run, int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  if (bytes > space.bytes) {
    std::free(space.data);
    space.bytes = bytes <= INT64_MAX - 4095 ? (bytes + 4095) / 4096 * 4096 : 0;
    space.data = space.bytes ? std::aligned_alloc(4096, space.bytes) : nullptr;
    if (!space.data) {
      space.bytes = 0;
      std::atomic_ref(run->errors.taken).store(ErrorRecord::OutOfMemory);
    }
  }
  return space.data;
}

static void *scratch(HostRun *run, int64_t bytes) {
  static thread_local Space space;
  return atLeast(space, run, bytes);
}

static void *panels(HostRun *run, int64_t bytes) {
  static thread_local Space space;
  return atLeast(space, run, bytes);
}

static void sort(HostRun *run, void *values, int64_t *positions, int64_t length, int64_t take,
                 int32_t type, int32_t descending) {
  auto memory = [](void *context, int64_t bytes) {
    static thread_local Space space;
    return atLeast(space, static_cast<HostRun *>(context), bytes);
  };
  sortRow(values, positions, length, take, static_cast<DType>(type), descending, memory, run);
}

HostLaunch::HostLaunch(ThreadPool &pool, const int *stop)
    : HostRun{{},       ::parallelFor, ::scratch, &pool, int64_t(pool.size()),
              ::panels, /*clock=*/1,   ::sort},
      stop(stop), thread(pthread_self()) {}

bool HostLaunch::run(KernelFunction entry, void *const *buffers, const int64_t *sizes,
                     const void *const *scalars) {
  if (stop && setjmp(leave))
    return false;
  entry(buffers, sizes, scalars, this);
  return true;
}
