//===- ScheduleChoice.h - Schedule decisions that replace the cost model's -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule is the compiler's, from its model of cost. A choice replaces parts of it, as `tegula
// tune` does and then keeps on disk what was faster.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_SCHEDULECHOICE_H
#define TEGULA_COMPILER_SCHEDULECHOICE_H

#include "codegen/common/Plan.h"
#include "llvm/ADT/StringRef.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tegula {

/// A tile that a statement can have, and the clocks that the model expects it to take.
struct TileOption {
  std::string name;
  double clocks = 0;
};

struct ScheduleChoice {
  /// By statement that can have tiles (TensorTile::fullName, perhaps with settings:
  /// tegula::chooseTile); empty: the model's. Statements beyond the end are the model's too.
  std::vector<std::string> tiles;
  /// By step of the plan that launches.
  std::vector<PlanStep::Unit> units;
  /// Passes and strategies left out.
  std::vector<std::string> without;

  bool isDefault() const;
  /// `tiles=64x64/2,,128x64/1 units=,team without=tile-loop`; `default`.
  std::string text() const;
  static std::optional<ScheduleChoice> parse(llvm::StringRef text);
  /// Both; where they say something of the same, the other has it.
  ScheduleChoice with(const ScheduleChoice &other) const;
  /// As PipelineOptions::tensorTile has it.
  std::string tensorTile() const;
  /// Says in the plan what runs.
  void apply(Plan &plan) const;
};

/// Steps of a plan that launch, in the order in which ScheduleChoice::units counts them.
std::vector<PlanStep *> launchSteps(Plan &plan);

/// The key of a tuned choice.
struct TunedKey {
  std::string program; // its IR before sizes are known
  std::map<std::string, int64_t> sizes;
  std::string target; // sm_90a
  std::string device; // the driver's name for it
};

/// Kept in the folder `tuned` of the disk cache (support/DiskCache.h), with the versions of Tegula
/// and LLVM in its key: whole, or not at all.
void keepTuned(const TunedKey &key, const ScheduleChoice &choice);
std::optional<ScheduleChoice> findTuned(const TunedKey &key);

} // namespace tegula

#endif // TEGULA_COMPILER_SCHEDULECHOICE_H
