//===- LaunchTimes.h - The least and the expected time of a launch -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_LAUNCHTIMES_H
#define TEGULA_BENCH_REPORT_LAUNCHTIMES_H

#include "bench/report/Occupancy.h"
#include "compiler/Explain.h"
#include "strategies/expected/ExpectedTime.h"
#include <optional>

namespace tegula::report {

/// Microseconds of all runs of a launch.
struct LaunchTimes {
  /// The least, by the data sheet: of what it moves, and of what its unit computes.
  double memory = 0, unit = 0;
  /// What the model expects (docs/design/expected-times.md); nothing on a card that nobody has
  /// measured.
  std::optional<double> expected;
  ExpectedTime parts; ///< of the expected time
  std::string reason; ///< for people: what takes most of the expected time
  /// Data decide how much is moved or computed: the figures are of what sizes let one guess.
  bool isEstimate = false;

  bool isMemory() const { return memory >= unit; }
  double bound() const { return std::max(memory, unit); }
  /// Of the bound, that the expected time reaches.
  std::optional<double> share() const {
    return expected && *expected > 0 ? std::optional(bound() / *expected) : std::nullopt;
  }
};

/// Nothing where sizes are not known.
std::optional<LaunchTimes> timesOf(const LaunchExplanation &launch, const DeviceLimits &device);

/// Below this share of the bound a launch is worth a remark.
inline constexpr double slowShare = 0.5;

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_LAUNCHTIMES_H
