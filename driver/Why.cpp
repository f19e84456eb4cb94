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

using report::LaunchTimes;

static std::optional<LaunchTimes> timesOf(const LaunchExplanation &launch,
                                          const report::DeviceLimits *device) {
  return device ? report::timesOf(launch, *device) : std::nullopt;
}

/// `3.1 M`, `512`.
static std::string scaled(double number) {
  static constexpr const char *prefixes[] = {"", " k", " M", " G", " T", " P"};
  unsigned step = 0;
  for (; number >= 1000 && step + 1 < std::size(prefixes); ++step)
    number /= 1000;
  return fmt::format("{:.3g}{}", number, prefixes[step]);
}

std::vector<std::string> slowRemarks(ArrayRef<LaunchExplanation> launches,
                                     const report::DeviceLimits *device) {
  constexpr double smallPart = 0.05;
  double whole = 0;
  std::vector<std::optional<LaunchTimes>> all;
  for (const LaunchExplanation &launch : launches) {
    all.push_back(timesOf(launch, device));
    whole += all.back() ? all.back()->expected.value_or(0) : 0;
  }
  std::vector<std::string> remarks(launches.size());
  for (auto [launch, times, remark] : zip_equal(launches, all, remarks)) {
    std::optional<double> share = times ? times->share() : std::nullopt;
    if (!share || *share >= report::slowShare || *times->expected < smallPart * whole)
      continue;
    remark = fmt::format("launch '{}' is expected to take {:.3g} us, {:.3g} times its bound by {}: "
                         "most of it goes to {}",
                         launch.name, *times->expected, 1 / *share,
                         times->isMemory() ? "memory" : toString(launch.unit).str(), times->reason);
    for (const StrategyMismatch &mismatch : launch.mismatches)
      if (!mismatch.isOther && !mismatch.edit.empty())
        remark +=
            fmt::format("; for {}, {} ({})", mismatch.strategy, mismatch.edit, mismatch.place);
  }
  return remarks;
}

std::string whyText(ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device) {
  std::string text;
  std::vector<std::string> remarks = slowRemarks(launches, device);
  for (const auto &[launch, remark] : zip_equal(launches, remarks)) {
    text += fmt::format("{}: launch '{}', strategy {}{}\n", launch.place, launch.name,
                        launch.strategy, launch.tile.empty() ? "" : ", " + launch.tile);
    if (!launch.bytes || !launch.operations)
      text += "  what it moves and computes depends on sizes that are not given (-d) or on data\n";
    else
      text += fmt::format("  {}B moved, {} operations by {}\n",
                          scaled(*launch.bytes) + (*launch.bytes < 1000 ? " " : ""),
                          scaled(*launch.operations), toString(launch.unit).str());
    if (std::optional<LaunchTimes> times = timesOf(launch, device)) {
      text += fmt::format("  bound by {} on {}: {:.2f} us (memory {:.2f}, {} {:.2f})\n",
                          times->isMemory() ? "memory" : toString(launch.unit).str(),
                          device->title.str(), times->bound(), times->memory,
                          toString(launch.unit).str(), times->unit);
      if (times->expected)
        text += fmt::format("  expected{}: {:.2f} us, {:.2f} of the bound; most of it by {}\n",
                            times->isEstimate ? " (data decide how much)" : "", *times->expected,
                            *times->share(), times->reason);
    }
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
    if (!remark.empty())
      text += fmt::format("{}: remark: {}\n", launch.place, remark);
  }
  return text.empty() ? "no launches: the kernel computes nothing on the device\n" : text;
}

static json::Object partsJson(const ExpectedTime &time) {
  json::Object parts;
  for (auto [name, part] : ExpectedTime::parts())
    parts[name] = time.*part;
  return parts;
}

/// What the model has counted, a statement each.
static json::Array workJson(ArrayRef<LaunchWork> works) {
  json::Array statements;
  for (const LaunchWork &work : works) {
    json::Object counts{{"strategy", work.strategy}};
    for (auto [name, count] : LaunchWork::counts())
      counts[name] = work.*count;
    if (work.clocks)
      counts["clocks"] = *work.clocks;
    statements.push_back(std::move(counts));
  }
  return statements;
}

json::Array whyJson(ArrayRef<LaunchExplanation> launches, const report::DeviceLimits *device) {
  json::Array result;
  std::vector<std::string> remarks = slowRemarks(launches, device);
  for (const auto &[launch, remark] : zip_equal(launches, remarks)) {
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
    if (std::optional<LaunchTimes> times = timesOf(launch, device)) {
      one["boundBy"] = times->isMemory() ? StringRef("memory") : toString(launch.unit);
      one["boundMicroseconds"] = times->bound();
      if (times->expected) {
        one["expectedMicroseconds"] = *times->expected;
        one["ofBound"] = *times->share();
        one["mostBy"] = times->reason;
        one["isEstimate"] = times->isEstimate;
        one["expectedParts"] = partsJson(times->parts);
        one["work"] = workJson(*launch.work);
      }
    }
    if (!remark.empty())
      one["remark"] = remark;
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
