//===- Bisect.h - The pass after which something goes wrong ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compilation makes runs of passes that can be left out, in an order that does not change. With
// the first n of them alone there is code for each n: at 0 that of the passes that are needed.
// Where the results of all are not those of none, some run is the first with which they are not.
//
// What is compiled may crash or hang: each answer is meant to be found in a process of its own
// (Child.h).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_BISECT_H
#define TEGULA_BENCH_BISECT_H

#include "bench/Study.h"

namespace tegula::bench {

/// The passes without which there is no code for the selected case, each by itself.
llvm::Expected<std::vector<std::string>> findNeeded(const Study &study);

/// What is known of the code that the first `count` runs make.
struct Prefix {
  enum State {
    Unknown,
    Good,
    Bad, // with a reason
    None // there is no code
  } state = Unknown;
  std::string reason;
};

/// Holds the results of the first `count` runs against those of no run. `runs`: takes the runs that
/// were made.
llvm::Expected<Prefix> judge(const Study &study, const std::vector<std::string> &needed,
                             uint64_t count, bool exact, std::vector<PassRuns::Run> &runs);

/// The first run with which a prefix is bad: prefix `result - 1` is good, or the nearest before it
/// that has code. `good` and `bad` are known to be so; `ask` says what a prefix in between is.
struct Culprit {
  uint64_t good, bad;
};
Culprit bisect(uint64_t good, uint64_t bad, llvm::function_ref<Prefix::State(uint64_t count)> ask);

/// Times the code of each prefix against that of the one before it. `step(count, ratio)`: how many
/// times as long it takes with run number `count`, from 1; called for runs that change the code.
/// `from`, `to`: of these runs alone.
llvm::Error timeSteps(
    const Study &study, const std::vector<std::string> &needed, uint64_t from, uint64_t to,
    llvm::function_ref<void(uint64_t count, const PassRuns::Run &run, double ratio, double seconds)>
        step);

} // namespace tegula::bench

#endif // TEGULA_BENCH_BISECT_H
