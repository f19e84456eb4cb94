//===- Threads.h - Worker threads for host code -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_THREADS_H
#define TEGULA_RUNTIME_THREADS_H

#include "codegen/cpu/HostAbi.h"
#include <csetjmp>
#include <memory>
#include <pthread.h>

namespace tegula {

class HostLaunch;

/// Threads that wait for parallel statements. One statement runs at a time; a second caller
/// meanwhile runs its statement alone, so concurrent launches never wait for each other. A forked
/// process starts threads of its own.
class ThreadPool {
public:
  /// `numThreads` counts the caller; 0: $TEGULA_NUM_THREADS, else as many as the process may use.
  /// At most 1024.
  explicit ThreadPool(unsigned numThreads = 0);
  ~ThreadPool();
  /// The pool that launches share unless told otherwise; its threads start with the first
  /// statement.
  static ThreadPool &shared();

  unsigned size() const;
  /// HostRun::parallelFor. Which thread takes which points has no influence on results: points are
  /// independent. Does not return where the launch was stopped.
  void run(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t cost);

private:
  struct State;
  struct All;
  void runStatement(HostLaunch *run, ParallelBody body, void *frame, int64_t count, int64_t cost,
                    bool mayStop);
  std::unique_ptr<State> state;
};

/// A HostRun that uses the pool, and this thread's scratch memory.
class HostLaunch : public HostRun {
public:
  /// `stop`: null, or a number that another thread or a signal's handler sets to something other
  /// than 0 to end the launch.
  explicit HostLaunch(ThreadPool &pool, const int *stop = nullptr);
  /// False where it was stopped: between two parts of a statement, after which no other one ran.
  bool run(KernelFunction entry, void *const *buffers, const int64_t *sizes,
           const void *const *scalars);

private:
  friend class ThreadPool;
  bool isStopped() const { return stop && __atomic_load_n(stop, __ATOMIC_RELAXED); }

  const int *stop;
  pthread_t thread;      // that runs `entry`
  bool isInside = false; // a statement of `entry`; one inside of that is done as a whole
  jmp_buf leave;         // the code of `entry`, which holds nothing that must be released
};

} // namespace tegula

#endif // TEGULA_RUNTIME_THREADS_H
