//===- EmitDevice.h - Device code of a scheduled kernel ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_EMITDEVICE_H
#define TEGULA_COMPILER_EMITDEVICE_H

#include "strategies/StatementMatches.h"
#include "strategies/lower/StrategyLowering.h"
#include "llvm/Support/Error.h"

namespace tegula {

llvm::Expected<DeviceCode> emitDevice(tgl::KernelOp kernel, llvm::Module &module,
                                      const EmitterOptions &options, StatementMatches &matches);

/// Of a setting about which code generation has to find out (isOfRowClusters).
std::optional<Refusal> whyRefused(tgl::KernelOp kernel, const ScheduleSetting &setting,
                                  const TargetInfo &target, StatementMatches &matches,
                                  llvm::ArrayRef<ClusterAnswer> answers);

} // namespace tegula

#endif // TEGULA_COMPILER_EMITDEVICE_H
