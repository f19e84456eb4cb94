//===- Why.cpp - What bounds each launch, for people and programs -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Why.h"

#include <fmt/format.h>

using namespace llvm;

namespace tegula {

/// Operations of the unit per second, dense: data sheets (bench/report/Occupancy.h); half of f32's
/// for f64 and twice of 16 bits' for 8 (the same data sheets).
static double rateOf(LaunchUnit unit, const report::DeviceLimits &device) {
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

namespace {
/// The least time of a launch, by memory and by its unit, in microseconds.
struct Bound {
  double memory, unit;
  bool isMemory() const { return memory >= unit; }
  double least() const { return std::max(memory, unit); }

  static std::optional<Bound> of(const LaunchExplanation &launch,
                                 const report::DeviceLimits *device) {
    if (!device || !launch.bytes || !launch.operations)
      return std::nullopt;
    return Bound{*launch.bytes / device->bytesPerSecond * 1e6,
                 *launch.operations / rateOf(launch.unit, *device) * 1e6};
  }
};
} // namespace

/// `3.1 M`, `512`.
static std::string scaled(double number) {
  static constexpr const char *prefixes[] = {"", " k", " M", " G", " T", " P"};
  unsigned step = 0;
  for (; number >= 1000 && step + 1 < std::size(prefixes); ++step)
    number /= 1000;
  return fmt::format("{:.3g}{}", number, prefixes[step]);
}

std::string whyText(ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device) {
  std::string text;
  for (const LaunchExplanation &launch : launches) {
    text += fmt::format("{}: launch '{}', strategy {}{}\n", launch.place, launch.name,
                        launch.strategy, launch.tile.empty() ? "" : ", " + launch.tile);
    if (!launch.bytes || !launch.operations)
      text += "  what it moves and computes depends on sizes that are not given (-d) or on data\n";
    else
      text += fmt::format("  {}B moved, {} operations by {}\n",
                          scaled(*launch.bytes) + (*launch.bytes < 1000 ? " " : ""),
                          scaled(*launch.operations), toString(launch.unit).str());
    if (std::optional<Bound> bound = Bound::of(launch, device))
      text += fmt::format("  bound by {} on {}: {:.2f} us (memory {:.2f}, {} {:.2f})\n",
                          bound->isMemory() ? "memory" : toString(launch.unit).str(),
                          device->title.str(), bound->least(), bound->memory,
                          toString(launch.unit).str(), bound->unit);
    std::string others;
    for (const StrategyMismatch &mismatch : launch.mismatches) {
      if (mismatch.isOther) {
        others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", mismatch.strategy,
                              mismatch.reason);
        continue;
      }
      text +=
          fmt::format("  not {}: {} ({})\n", mismatch.strategy, mismatch.reason, mismatch.place);
      if (!mismatch.edit.empty())
        text += fmt::format("    try: {}\n", mismatch.edit);
    }
    if (!others.empty())
      text += fmt::format("  nothing here for {}\n", others);
  }
  return text.empty() ? "no launches: the kernel computes nothing on the device\n" : text;
}

json::Array whyJson(ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device) {
  json::Array result;
  for (const LaunchExplanation &launch : launches) {
    json::Object one{{"name", launch.name},
                     {"place", launch.place},
                     {"strategy", launch.strategy},
                     {"unit", toString(launch.unit)}};
    if (!launch.tile.empty())
      one["tile"] = launch.tile;
    if (launch.bytes)
      one["bytes"] = *launch.bytes;
    if (launch.operations)
      one["operations"] = *launch.operations;
    if (std::optional<Bound> bound = Bound::of(launch, device)) {
      one["boundBy"] = bound->isMemory() ? StringRef("memory") : toString(launch.unit);
      one["boundMicroseconds"] = bound->least();
    }
    json::Array mismatches;
    for (const StrategyMismatch &mismatch : launch.mismatches) {
      json::Object why{{"strategy", mismatch.strategy},
                       {"reason", mismatch.reason},
                       {"place", mismatch.place},
                       {"nothingHere", mismatch.isOther}};
      if (!mismatch.edit.empty())
        why["edit"] = mismatch.edit;
      mismatches.push_back(std::move(why));
    }
    one["mismatches"] = std::move(mismatches);
    result.push_back(std::move(one));
  }
  return result;
}

bool findMachine(StringRef name, StringRef target, const report::DeviceLimits *&machine) {
  machine = nullptr;
  if (name.empty() && target == "sm_90a")
    machine = report::deviceLimits("h200");
  if (name.empty())
    return true;
  if (target == "cpu") {
    errs() << "tegula: --machine is for device targets: --target=sm_90a\n";
    return false;
  }
  machine = report::deviceLimits(name);
  if (machine)
    return true;
  errs() << "tegula: --machine takes ";
  interleaveComma(report::deviceLimits(), errs(),
                  [](const report::DeviceLimits &each) { errs() << each.name; });
  errs() << ", not '" << name << "'\n";
  return false;
}

} // namespace tegula
