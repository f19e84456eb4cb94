//===- Timing.h - Times of calls ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two things are timed against each other in turns, so that whatever else the machine does meets
// both. Before each call the caches are filled with something else, and the call's own preparation
// (fresh inputs, poisoned outputs) is done outside the clock.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_TIMING_H
#define TEGULA_BENCH_TIMING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <utility>
#include <vector>

namespace tegula::bench {

struct Timing {
  double median = 0, lower = 0, upper = 0; // seconds; quartiles
  unsigned calls = 0;
  /// (upper - lower) / median
  double spread() const { return median > 0 ? (upper - lower) / median : 0; }
};

/// Bounds of the median, of 95 of 100 samples: two of the values, whatever their distribution.
std::pair<double, double> medianInterval(llvm::ArrayRef<double> values);

Timing summarize(llvm::ArrayRef<double> seconds);

/// Takes what the host's caches hold out of them.
class CacheFlush {
public:
  CacheFlush();
  void run();
  size_t bytes() const { return memory.size(); }

private:
  std::vector<char> memory;
  unsigned round = 0;
};

/// Processor time, in seconds, of the threads of this process but this one, those that have ended
/// included.
double secondsOfOtherThreads();

/// Waits until the other threads of this process sleep. Workers spin for milliseconds after their
/// work, for more of the same kind; the other side's next call would share a core with them. Gives
/// up after a while. `seconds` tells the processor time that the others have used so far.
void awaitRest(llvm::function_ref<double()> seconds = secondsOfOtherThreads);

/// What other programs do to a measurement: the processors that they keep from threads of this
/// process that are ready to run, from construction on, on average. What other processors of the
/// machine do does not count.
class OtherWork {
public:
  OtherWork();
  /// Nothing where the system does not tell.
  std::optional<double> processors() const;

private:
  std::optional<double> waited; // seconds so far
  double begin;
};

struct TimedPair {
  Timing first, second;
  /// Median over the turns of second / first: how many times as fast the first is.
  double ratio = 0;
  /// Of which the true median is between these in 95 of 100 measurements, by order statistics; 0
  /// without a second.
  double ratioLower = 0, ratioUpper = 0;
};

struct TimingLimits {
  unsigned warmup = 2, minCalls = 15, maxCalls = 200;
  double seconds = 1; // of measured calls, both together, unless minCalls needs more
};

/// `flush` empties the caches before each call. Each function makes its `turn`-th call and says how
/// long it took; nothing on failure, which ends the measurement. Without `second` only the first is
/// timed.
std::optional<TimedPair>
timeInTurns(llvm::function_ref<std::optional<double>(unsigned turn)> first,
            llvm::function_ref<std::optional<double>(unsigned turn)> second,
            const TimingLimits &limits, llvm::function_ref<void()> flush);

} // namespace tegula::bench

#endif // TEGULA_BENCH_TIMING_H
