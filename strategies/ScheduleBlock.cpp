//===- ScheduleBlock.cpp - The kernel's `schedule` block ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/ScheduleBlock.h"
#include "ir/tgl/TglUtils.h"
#include "strategies/StatementMatches.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

std::string ScheduleSetting::text() const {
  return keyword == "persistent"
             ? keyword
             : keyword + " " + (axis.empty() ? "" : axis + "=") + std::to_string(value);
}

SmallVector<ScheduleSetting> tegula::scheduleSettings(KernelOp kernel) {
  SmallVector<ScheduleSetting> settings;
  auto number = [](mlir::Attribute value) {
    auto integer = dyn_cast<mlir::IntegerAttr>(value);
    return integer ? integer.getInt() : 1;
  };
  if (mlir::DictionaryAttr asked = kernel.getScheduleAttr())
    for (mlir::NamedAttribute keyword : asked) {
      auto axes = dyn_cast<mlir::DictionaryAttr>(keyword.getValue());
      if (!axes) {
        settings.push_back({keyword.getName().str(), "", number(keyword.getValue())});
        continue;
      }
      for (mlir::NamedAttribute axis : axes)
        settings.push_back(
            {keyword.getName().str(), axis.getName().str(), number(axis.getValue())});
    }
  return settings;
}

std::optional<int64_t> tegula::settingOf(ArrayRef<ScheduleSetting> settings, StringRef keyword) {
  const auto *found =
      find_if(settings, [&](const ScheduleSetting &one) { return one.keyword == keyword; });
  return found == settings.end() ? std::nullopt : std::optional(found->value);
}

/// How far what is there is from what is asked: 0 where it agrees.
static double distance(int64_t value, int64_t asked) {
  constexpr double ofNothing = 8; // that a block does not stay is worse than any size
  return value ? std::abs(std::log2(double(value) / double(asked))) : ofNothing;
}

double tegula::distance(ArrayRef<ScheduleSetting> settings,
                        function_ref<std::optional<int64_t>(const ScheduleSetting &)> valueIn) {
  double far = 0;
  for (const ScheduleSetting &setting : settings)
    if (std::optional<int64_t> value = valueIn(setting))
      far += ::distance(*value, setting.value);
  return far;
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

std::optional<Refusal> tegula::refuseEverywhere(KernelOp scheduled,
                                                const ScheduleSetting &setting) {
  bool isKnown = true;
  scheduled.walk([&](AxesOp op) { isKnown &= knownPoints(op).has_value(); });
  if (!isKnown)
    return std::nullopt;
  SetVector<StringRef> names;
  scheduled.walk([&](LaunchOp launch) {
    names.insert(launch.getStrategy().value_or(generalStrategy().name()));
  });
  std::string list, note;
  for (StringRef name : names) {
    list += (list.empty() ? "'" : ", '") + name.str() + "'";
    note += (note.empty() ? "'" : "; '") + name.str() + "' takes " +
            strategyNamed(name)->settings().str();
  }
  return Refusal{"'" + setting.text() + "' says nothing of this kernel, which is run by " +
                     (list.empty() ? "nothing" : list),
                 note};
}

bool tegula::isOfRowClusters(KernelOp scheduled, const ScheduleSetting &setting,
                             const TargetInfo &target, StatementMatches &matches) {
  bool isGeneral = false, isOther = false;
  scheduled.walk([&](ParallelOp op) {
    if (!isa<LaunchOp>(op->getParentOp()))
      return;
    const StatementMatch *match = matches.find(op);
    isGeneral |= !match || !match->strategy.isOptional();
    isOther |= match && match->strategy.valueIn(setting, *match, target);
  });
  return setting.keyword == "cluster" && isGeneral && !isOther;
}

std::optional<Refusal> tegula::whyRefused(KernelOp scheduled, const ScheduleSetting &setting,
                                          const TargetInfo &target, StatementMatches &matches) {
  if (isOfRowClusters(scheduled, setting, target, matches))
    return std::nullopt;
  bool isSaid = false;
  std::optional<Refusal> refusal;
  scheduled.walk([&](ParallelOp op) {
    const StatementMatch *match = matches.find(op);
    if (!match)
      return;
    std::optional<int64_t> value = match->strategy.valueIn(setting, *match, target);
    isSaid |= value.has_value();
    if (!value || *value == setting.value)
      return;
    if (std::optional<NearestShape> nearest = match->strategy.nearestTo(setting, *match, target))
      refusal = Refusal{"no " + nearest->kind + " has '" + setting.text() + "'",
                        "the nearest that fits is " + nearest->text};
  });
  return isSaid ? refusal : refuseEverywhere(scheduled, setting);
}
