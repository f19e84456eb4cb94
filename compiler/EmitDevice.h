//===- EmitDevice.h - Device code of a scheduled kernel ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_EMITDEVICE_H
#define TEGULA_COMPILER_EMITDEVICE_H

#include "codegen/common/Emitter.h"
#include "codegen/common/Plan.h"
#include "codegen/nvgpu/TileLayout.h"
#include "strategies/ScheduleBlock.h"
#include "llvm/Support/Error.h"

namespace tegula {

struct DeviceCode {
  Plan plan;
  std::vector<ErrorSite> sites;
  std::vector<TileLayout> layouts;     // of functions in which a block computes a tile
  std::vector<RowLayout> rows;         // of those that keep a row in shared memory
  std::vector<ClusterAnswer> clusters; // to the kernel's schedule
};

/// Adds the kernel's device functions (for NVPTX, one or two for each parallel statement outside of
/// others) to `module` and makes the plan that launches them: the general strategy.
llvm::Expected<DeviceCode> emitDevice(tgl::KernelOp kernel, llvm::Module &module,
                                      const EmitterOptions &options);

/// Why a setting `cluster` of the kernel's schedule does not hold where code generation is to find
/// out (isOfRowClusters).
std::optional<Refusal> whyRefused(tgl::KernelOp kernel, const ScheduleSetting &setting,
                                  llvm::ArrayRef<ClusterAnswer> answers);

} // namespace tegula

#endif // TEGULA_COMPILER_EMITDEVICE_H
