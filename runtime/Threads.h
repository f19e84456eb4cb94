//===- Threads.h - Worker threads for host code -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_THREADS_H
#define TEGULA_RUNTIME_THREADS_H

#include "codegen/HostAbi.h"
#include <memory>

namespace tegula {

/// Threads that wait for parallel statements. One statement runs at a time; a second caller meanwhile
/// runs its statement alone, so concurrent launches never wait for each other.
class ThreadPool {
public:
  /// `numThreads` counts the caller; 0: $TEGULA_NUM_THREADS, else as many as the process may use. At most 1024.
  explicit ThreadPool(unsigned numThreads = 0);
  ~ThreadPool();
  /// The pool that launches share unless told otherwise; its threads start with the first statement.
  static ThreadPool &shared();

  unsigned size() const;
  /// HostRun::parallelFor. Which thread takes which points has no influence on results: points are
  /// independent.
  void run(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t cost);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// A HostRun that uses the pool, and this thread's scratch memory.
HostRun makeHostRun(ThreadPool &pool);

} // namespace tegula

#endif // TEGULA_RUNTIME_THREADS_H
