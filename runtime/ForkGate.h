//===- ForkGate.h - Forks that wait for the compiler -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A forked process has one thread and the memory as all threads left it. A lock that another thread
// held at that moment is never released there: the child hangs at its next use. The compiler has
// such locks (ours around ANTLR's automata, LLVM's, MLIR's and Z3's own, which we cannot reach), so
// a fork waits until no thread compiles.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_FORKGATE_H
#define TEGULA_RUNTIME_FORKGATE_H

namespace tegula {

/// Forks of this process wait while one lives; new ones wait while a fork does. May be nested. A
/// fork by the thread that holds one goes ahead. Who holds one makes and frees no ThreadPool, whose
/// lock a fork takes as well.
class ForkGate {
public:
  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate &) = delete;
  ForkGate &operator=(const ForkGate &) = delete;
};

} // namespace tegula

#endif // TEGULA_RUNTIME_FORKGATE_H
