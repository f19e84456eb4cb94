//===- ScheduleBlock.h - What a kernel's `schedule` asks for ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `schedule { tile i=128, j=64 split k=4 warps 8 }` says of matrix products on a GPU which rectangle a block computes,
// how many blocks share a sum, and with how many warps. Among the tiles that a statement can have, those that agree
// are ranked; what none agrees with is refused when all is scheduled.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULEBLOCK_H
#define TEGULA_PASSES_SCHEDULEBLOCK_H

#include "passes/TensorTile.h"

namespace tegula {

struct ScheduleSetting {
  std::string keyword, axis; ///< axis empty where the setting has none
  int64_t value = 1;
};

/// The settings of the kernel, in order.
llvm::SmallVector<ScheduleSetting> scheduleSettings(tgl::KernelOp kernel);

/// The statement's tile that agrees with the settings: with the name `wanted` where there is such, else the fastest by
/// the model. Where none agrees the nearest by the settings; nothing where the general strategy is to run it.
std::optional<TensorTile> chooseTile(tgl::ParallelOp op, llvm::ArrayRef<ScheduleSetting> settings,
                                     llvm::StringRef wanted);

/// Why a setting does not hold in the scheduled kernel, with what would; empty where it holds, or where sizes are not
/// known and the tile is one for all of them.
struct Refusal {
  std::string message, note;
};
std::optional<Refusal> whyRefused(tgl::KernelOp scheduled, const ScheduleSetting &setting);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULEBLOCK_H
