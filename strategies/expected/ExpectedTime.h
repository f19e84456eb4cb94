//===- ExpectedTime.h - How long a launch should take -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch takes its start, and then what the busiest of the card's parts takes; parts that are
// nearly as busy get in its way. docs/design/expected-times.md says how good that is.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_EXPECTEDTIME_H
#define TEGULA_STRATEGIES_EXPECTED_EXPECTEDTIME_H

#include "strategies/expected/LaunchWork.h"
#include "target/Card.h"

namespace tegula {

/// Microseconds of all runs of a launch, by what takes them.
struct ExpectedTime {
  double start = 0;   ///< of launches
  double memory = 0;  ///< bytes from and to memory
  double cache = 0;   ///< sectors that threads ask the caches for
  double lanes = 0;   ///< instructions of lanes
  double tensor = 0;  ///< products on tensor cores
  double chain = 0;   ///< instructions that wait for each other
  double atomics = 0; ///< additions to places that others add to
  double sort = 0;    ///< keys that move, digit by digit

  double total = 0; ///< with what parts that are nearly as busy cost each other

  ExpectedTime &operator+=(const ExpectedTime &other);
  /// The parts and their names, for programs; the start first.
  static llvm::ArrayRef<std::pair<llvm::StringRef, double ExpectedTime::*>> parts();
  /// The part that takes most, for people: "memory", "a chain of instructions".
  llvm::StringRef largest() const;
};

ExpectedTime expectedTime(const LaunchWork &work, const Card &card);

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_EXPECTEDTIME_H
