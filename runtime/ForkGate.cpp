//===- ForkGate.cpp - Forks that wait for the compiler ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/ForkGate.h"

#include <pthread.h>

using namespace tegula;

namespace {
/// How many this thread holds.
thread_local unsigned depth = 0;

struct Gate {
  pthread_rwlock_t lock; // compilers read, a fork writes

  static Gate &get() {
    static Gate *gate = new Gate; // static objects may compile until the process ends
    return *gate;
  }

  Gate() {
    initialize();
    pthread_atfork([] { get().prepare(); }, [] { get().parent(); }, [] { get().child(); });
  }

  /// A fork is not kept waiting by threads that begin to compile one after another.
  void initialize() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }

  void prepare() {
    if (!depth)
      pthread_rwlock_wrlock(&lock);
  }

  void parent() {
    if (!depth)
      pthread_rwlock_unlock(&lock);
  }

  void child() {
    // A lock knows its owner by the thread's number, which is another one in the child.
    initialize();
    if (depth)
      pthread_rwlock_rdlock(&lock);
  }
};
} // namespace

ForkGate::ForkGate() {
  Gate &gate = Gate::get();
  if (depth++ == 0)
    pthread_rwlock_rdlock(&gate.lock);
}

ForkGate::~ForkGate() {
  if (--depth == 0)
    pthread_rwlock_unlock(&Gate::get().lock);
}
