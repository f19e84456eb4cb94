//===- Timing.cpp - Times of calls --------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Timing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cmath>
#include <ctime>
#include <unistd.h>

using namespace llvm;

namespace tegula::bench {
namespace {

/// Between the two values around it where it falls between them.
double quantile(ArrayRef<double> sorted, double part) {
  double position = part * (sorted.size() - 1);
  size_t below = static_cast<size_t>(position);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

double now(clockid_t clock) {
  timespec time;
  ::clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

} // namespace

/// Seconds that the threads of this process were ready to run and had no processor (man 5 proc,
/// schedstat).
static std::optional<double> waitedSeconds() {
  double nanoseconds = 0;
  std::error_code error;
  unsigned threads = 0;
  for (sys::fs::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    auto file = MemoryBuffer::getFileAsStream(task->path() + "/schedstat");
    if (!file)
      continue; // has ended meanwhile, or the kernel does not count
    StringRef waited = (*file)->getBuffer().split(' ').second.split(' ').first;
    uint64_t value;
    if (waited.getAsInteger(10, value))
      return std::nullopt;
    nanoseconds += value;
    ++threads;
  }
  if (error || !threads)
    return std::nullopt;
  return nanoseconds * 1e-9;
}

OtherWork::OtherWork() : waited(waitedSeconds()), begin(now(CLOCK_MONOTONIC)) {}

std::optional<double> OtherWork::processors() const {
  std::optional<double> later = waitedSeconds();
  double seconds = now(CLOCK_MONOTONIC) - begin;
  if (!waited || !later || seconds <= 0)
    return std::nullopt;
  return std::max(0.0, (*later - *waited) / seconds);
}

double secondsOfOtherThreads() {
  return now(CLOCK_PROCESS_CPUTIME_ID) - now(CLOCK_THREAD_CPUTIME_ID);
}

Timing summarize(ArrayRef<double> seconds) {
  Timing timing;
  timing.calls = seconds.size();
  if (seconds.empty())
    return timing;
  std::vector<double> sorted(seconds.begin(), seconds.end());
  llvm::sort(sorted);
  timing.lower = quantile(sorted, 0.25);
  timing.median = quantile(sorted, 0.5);
  timing.upper = quantile(sorted, 0.75);
  return timing;
}

std::pair<double, double> medianInterval(ArrayRef<double> values) {
  if (values.empty())
    return {0, 0};
  std::vector<double> sorted(values.begin(), values.end());
  llvm::sort(sorted);
  // How many values lie below the median is binomial: 1.96 deviations to either side.
  double half = 0.98 * std::sqrt(double(sorted.size()));
  int64_t below = static_cast<int64_t>(std::floor(sorted.size() / 2.0 - half)) - 1;
  size_t low = std::max<int64_t>(below, 0);
  return {sorted[low], sorted[sorted.size() - 1 - low]};
}

CacheFlush::CacheFlush() {
  long last = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Virtual machines report the cache of a whole host; what one core sees of it is less.
  size_t bytes = std::clamp<long>(2 * last, 16l << 20, 96l << 20);
  memory.resize(bytes);
}

void CacheFlush::run() {
  ++round;
  for (size_t i = 0; i < memory.size(); i += 64)
    memory[i] += static_cast<char>(round);
}

void awaitRest(function_ref<double()> seconds) {
  constexpr unsigned maxWaits = 100;
  constexpr long waitNanoseconds = 500'000;
  for (unsigned wait = 0; wait < maxWaits; ++wait) {
    double before = seconds();
    timespec pause{0, waitNanoseconds};
    ::nanosleep(&pause, nullptr);
    if (seconds() - before < waitNanoseconds * 1e-9 / 20)
      return;
  }
}

std::optional<TimedPair> timeInTurns(function_ref<std::optional<double>(unsigned)> first,
                                     function_ref<std::optional<double>(unsigned)> second,
                                     const TimingLimits &limits, function_ref<void()> flush) {
  std::vector<double> ours, theirs, ratios;
  double spent = 0;
  for (unsigned turn = 0; turn < limits.warmup + limits.maxCalls; ++turn) {
    flush();
    std::optional<double> mine = first(turn);
    if (!mine)
      return std::nullopt;
    std::optional<double> other = 0;
    if (second) {
      flush();
      other = second(turn);
      if (!other)
        return std::nullopt;
    }
    if (turn < limits.warmup)
      continue;
    ours.push_back(*mine);
    if (second) {
      theirs.push_back(*other);
      ratios.push_back(*mine > 0 ? *other / *mine : 0);
    }
    spent += *mine + *other;
    if (ours.size() >= limits.minCalls && spent >= limits.seconds)
      break;
  }
  auto [lower, upper] = medianInterval(ratios);
  return TimedPair{summarize(ours), summarize(theirs), summarize(ratios).median, lower, upper};
}

} // namespace tegula::bench
