//===- Why.h - What bounds each launch, for people and programs -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_WHY_H
#define TEGULA_DRIVER_WHY_H

#include "bench/report/LaunchTimes.h"
#include "llvm/Support/JSON.h"

namespace tegula {

/// Launch by launch: strategy, tile, what bounds it, the time that the bound takes on the device,
/// and why other strategies do not compute it. The device may be null: no times.
std::string whyText(llvm::ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device);

/// The same: an array of objects with `name`, `place`, `strategy`, `tile`, `unit`, `bytes`,
/// `operations`, `boundBy` (`memory` or the unit), `boundMicroseconds`, and `mismatches` of
/// `strategy`, `reason`, `edit`, `place`, `nothingHere` (the launch has nothing of what the
/// strategy computes); with a model of the device also `expectedMicroseconds`, `ofBound` (the share
/// of the bound that this is), `mostBy` (what takes most of it), `isEstimate` (data decide how much
/// there is to do), `expectedParts` and `work` (the parts of the time, and the counts that they
/// come from) and, of slow launches, `remark`. What is not known is left out.
llvm::json::Array whyJson(llvm::ArrayRef<LaunchExplanation> launches,
                          const report::DeviceLimits *device);

/// A line for each launch that is expected to take more than twice its bound, unless it is a small
/// part of the kernel's time: what takes the time, why faster strategies do not compute it, and the
/// edit with which one would. By launch; empty where there is nothing to say.
std::vector<std::string> slowRemarks(llvm::ArrayRef<LaunchExplanation> launches,
                                     const report::DeviceLimits *device);

/// The card whose figures bound launches: the one named, or an H200 where `target` is sm_90a and
/// none is. Null where the target has none. False, with the reason on standard error, where there
/// is no such card.
bool findMachine(llvm::StringRef name, llvm::StringRef target,
                 const report::DeviceLimits *&machine);

} // namespace tegula

#endif // TEGULA_DRIVER_WHY_H
