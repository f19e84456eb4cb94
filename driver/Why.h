//===- Why.h - What bounds each launch, for people and programs -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_WHY_H
#define TEGULA_DRIVER_WHY_H

#include "bench/report/Occupancy.h"
#include "compiler/Explain.h"
#include "llvm/Support/JSON.h"

namespace tegula {

/// Launch by launch: strategy, tile, what bounds it, the time that the bound takes on the device,
/// and why other strategies do not compute it. The device may be null: no times.
std::string whyText(llvm::ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device);

/// The same: an array of objects with `name`, `place`, `strategy`, `tile`, `unit`, `bytes`,
/// `operations`, `boundBy` (`memory` or the unit), `boundMicroseconds`, and `mismatches` of
/// `strategy`, `reason`, `edit`, `place`. What is not known is left out.
llvm::json::Array whyJson(llvm::ArrayRef<LaunchExplanation> launches,
                          const report::DeviceLimits *device);

} // namespace tegula

#endif // TEGULA_DRIVER_WHY_H
