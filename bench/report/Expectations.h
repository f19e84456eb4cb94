//===- Expectations.h - What a kernel's time is held to ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two guards against compilers that get slower: `schedule { expect 0.8 }` in a program, a share of
// the bound; and a lock file beside it, `softmax.lock.json`, with the times that `tegula bench
// --lock` measured (docs/bench.md).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_EXPECTATIONS_H
#define TEGULA_BENCH_REPORT_EXPECTATIONS_H

#include "frontend/ast/AST.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace tegula::bench {

/// The share of the bound that the kernel's `schedule` expects on a machine: `h200`, `cpu`. What it
/// says by name goes before what it says of all. Nothing where it says nothing.
std::optional<double> expectedShare(const ast::Kernel &kernel, llvm::StringRef machine);

/// A time that was measured, and by what it is found again.
struct LockedTime {
  std::string kernel, text; ///< text: the case's
  std::string device;       ///< a processor's or a GPU's name
  int64_t threads = 0;      ///< of a processor
  double median = 0;        ///< seconds
  /// How far medians and quartiles of some measurements were above the least median, as a share.
  double noise = 0;

  bool isOf(const LockedTime &other) const {
    return kernel == other.kernel && text == other.text && device == other.device &&
           threads == other.threads;
  }
  /// The longest time that is no slower than this one.
  double longest() const { return median * (1 + noise); }
};

/// `softmax.lock.json` of `softmax.tgl`.
std::string lockPath(llvm::StringRef program);

/// Nothing is locked where there is no such file. An error says what is wrong with the file.
llvm::Expected<std::vector<LockedTime>> readLock(const std::string &path);

/// Puts `times` in the place of those of the same kernel, case and device, and writes the file in
/// one step.
llvm::Error writeLock(const std::string &path, llvm::ArrayRef<LockedTime> times);

llvm::json::Object toJson(const LockedTime &time);
/// Nothing where something is missing, or is no number that a time can be.
std::optional<LockedTime> lockedTime(const llvm::json::Object &object);

} // namespace tegula::bench

#endif // TEGULA_BENCH_REPORT_EXPECTATIONS_H
