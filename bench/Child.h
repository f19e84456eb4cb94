//===- Child.h - Work done in a process of its own --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel under test may hang or reach where it must not: it runs in a child, and only the child
// dies.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_CHILD_H
#define TEGULA_BENCH_CHILD_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tegula::bench {

/// How a child ended.
struct ChildEnd {
  enum Kind { Exited, Signalled, TimedOut, Failed } kind = Exited;
  int code = 0; // exit code, or the signal's number
  /// `ended by signal 11 (Segmentation fault)`; empty where it exited with 0.
  std::string text;
  bool ok() const { return kind == Exited && code == 0; }
};

/// Runs `work` in a forked process, which exits with what it returns; each line that it passes to
/// `send` arrives here at `receive`. When no line has come for `seconds` the child is killed. The
/// calling process must have a single thread.
ChildEnd runInChild(llvm::function_ref<int(llvm::function_ref<void(llvm::StringRef)> send)> work,
                    llvm::function_ref<void(llvm::StringRef line)> receive, double seconds);

} // namespace tegula::bench

#endif // TEGULA_BENCH_CHILD_H
