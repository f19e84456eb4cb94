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
// statement (docs/schedules.md). Among the tiles that a statement can have, those that agree are
// ranked; what none agrees with is refused when all is scheduled, or, of clusters of blocks that
// share a row, when code has been made (codegen/simt/DeviceRows.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SCHEDULEBLOCK_H
#define TEGULA_STRATEGIES_SCHEDULEBLOCK_H

#include "strategies/contraction/plan/TileMemory.h"
#include "strategies/tile_loop/plan/TileLoop.h"

namespace tegula {

struct ScheduleSetting {
  std::string keyword, axis; ///< axis empty where the setting has none
  int64_t value = 1;

  std::string text() const;
};

/// The settings of the kernel, in order.
llvm::SmallVector<ScheduleSetting> scheduleSettings(tgl::KernelOp kernel);

/// The value of the setting with this keyword; nothing if there is none.
std::optional<int64_t> settingOf(llvm::ArrayRef<ScheduleSetting> settings, llvm::StringRef keyword);

/// The statement's tile that agrees with the settings: with the name `wanted` where there is such
/// (and what it says after colons of stages and raster, `128x128/1:stages=3`, as far as that fits),
/// else the fastest by the model. Where none agrees the nearest by the settings; nothing where the
/// general strategy is to run it.
Matched<TensorTile> chooseTile(tgl::ParallelOp op, llvm::ArrayRef<ScheduleSetting> settings,
                               const TargetInfo &machine, llvm::StringRef wanted);

/// The shape of a fused tile loop that agrees with the settings, chosen in the same way.
Matched<TileLoopShape> chooseTileLoopShape(const TileLoopPlan &plan,
                                           llvm::ArrayRef<ScheduleSetting> settings);

/// Why a setting does not hold in the scheduled kernel, with what would; empty where it holds,
/// where sizes are not known and the tile is one for all of them, or where code generation has to
/// find out.
struct Refusal {
  std::string message, note;
};
std::optional<Refusal> whyRefused(tgl::KernelOp scheduled, const ScheduleSetting &setting,
                                  const TargetInfo &machine);

/// For a setting that concerns no statement: which strategies the kernel has, and what settings
/// they take. Empty where sizes are not known.
std::optional<Refusal> refuseEverywhere(tgl::KernelOp scheduled, const ScheduleSetting &setting);

/// Whether code generation has to find out.
bool isOfRowClusters(tgl::KernelOp scheduled, const ScheduleSetting &setting);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SCHEDULEBLOCK_H
