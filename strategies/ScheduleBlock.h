//===- ScheduleBlock.h - The kernel's `schedule` block ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `schedule { tile i=128, j=64; split k=4; warps 8; stages 3; raster 4; persistent; cluster 2 }`
// replaces parts of what the model would choose. What a setting says depends on the strategy of the
// statement (docs/schedules.md), which is asked (Strategy::valueIn). Among the tiles that a
// statement can have, those that agree are ranked; what none agrees with is refused when all is
// scheduled, or, of clusters of blocks that share a row, when code has been made
// (codegen/simt/RowCache.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SCHEDULEBLOCK_H
#define TEGULA_STRATEGIES_SCHEDULEBLOCK_H

#include "ir/tgl/Tgl.h"
#include "target/TargetInfo.h"
#include <optional>
#include <string>

namespace tegula {
class StatementMatches;

struct ScheduleSetting {
  std::string keyword, axis; ///< axis empty where the setting has none
  int64_t value = 1;

  std::string text() const;
};

/// The settings of the kernel, in order.
llvm::SmallVector<ScheduleSetting> scheduleSettings(tgl::KernelOp kernel);

/// The value of the setting with this keyword; nothing if there is none.
std::optional<int64_t> settingOf(llvm::ArrayRef<ScheduleSetting> settings, llvm::StringRef keyword);

/// How far a shape is from the settings, of which `valueIn` has the shape's values: 0 where it
/// agrees.
double distance(llvm::ArrayRef<ScheduleSetting> settings,
                llvm::function_ref<std::optional<int64_t>(const ScheduleSetting &)> valueIn);

/// A shape that a statement can have, instead of one that was asked for.
struct NearestShape {
  std::string kind; ///< "tile that this product can have"
  std::string text; ///< with what it takes, and why not what was asked for
};

/// Why a setting does not hold in the scheduled kernel, with what would; empty where it holds,
/// where sizes are not known and the tile is one for all of them, or where code generation has to
/// find out.
struct Refusal {
  std::string message, note;
};
std::optional<Refusal> whyRefused(tgl::KernelOp scheduled, const ScheduleSetting &setting,
                                  const TargetInfo &target, StatementMatches &matches);

/// For a setting that concerns no statement: which strategies the kernel has, and what settings
/// they take. Empty where sizes are not known.
std::optional<Refusal> refuseEverywhere(tgl::KernelOp scheduled, const ScheduleSetting &setting);

/// Whether code generation has to find out.
bool isOfRowClusters(tgl::KernelOp scheduled, const ScheduleSetting &setting,
                     const TargetInfo &target, StatementMatches &matches);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SCHEDULEBLOCK_H
