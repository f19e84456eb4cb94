//===- LaunchTimes.cpp - The least and the expected time of a launch ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/LaunchTimes.h"

using namespace llvm;

namespace tegula::report {

/// Operations of the unit per second, dense: data sheets (Occupancy.h); half of f32's for f64 and
/// twice of 16 bits' for 8 (the same data sheets).
static double rateOf(LaunchUnit unit, const DeviceLimits &device) {
  switch (unit) {
  case LaunchUnit::Lanes32:
    return device.flops32;
  case LaunchUnit::Lanes64:
    return device.flops32 / 2;
  case LaunchUnit::TensorHalf:
    return device.flopsTensor16;
  case LaunchUnit::TensorSingle:
    return device.flopsTensor32;
  case LaunchUnit::TensorBytes:
    return device.flopsTensor16 * 2;
  }
  llvm_unreachable("all units are listed");
}

std::optional<LaunchTimes> timesOf(const LaunchExplanation &launch, const DeviceLimits &device) {
  if (!launch.bytes || !launch.operations)
    return std::nullopt;
  constexpr double microseconds = 1e6;
  LaunchTimes times;
  double runs = launch.work && !launch.work->empty() ? launch.work->front().runs : 1;
  times.memory = runs * *launch.bytes / device.bytesPerSecond * microseconds;
  times.unit = runs * *launch.operations / rateOf(launch.unit, device) * microseconds;
  const Card *card = cardNamed(device.name);
  if (!card || !launch.work)
    return times;
  for (const LaunchWork &work : *launch.work) {
    times.parts += expectedTime(work, *card);
    times.isEstimate |= work.isEstimate;
  }
  times.expected = times.parts.total;
  times.reason = times.parts.largest().str();
  return times;
}

} // namespace tegula::report
