//===- ScheduleChoice.cpp - Schedule decisions that replace the cost model's ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/ScheduleChoice.h"
#include "support/Switches.h"

#include "support/DiskCache.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

using namespace llvm;
using namespace tegula;

static constexpr StringRef unitNames[] = {"", "thread", "team"};

template <typename Values> static bool isEmpty(const Values &values) {
  return all_of(values, [](const auto &value) { return value == std::decay_t<decltype(value)>(); });
}

bool ScheduleChoice::isDefault() const {
  return isEmpty(tiles) && isEmpty(units) && without.empty();
}

std::string ScheduleChoice::tensorTile() const {
  // A single name would be for all statements.
  return isEmpty(tiles) ? "" : join(tiles, ",") + ",";
}

std::string ScheduleChoice::text() const {
  SmallVector<std::string> parts;
  if (!isEmpty(tiles))
    parts.push_back("tiles=" + join(tiles, ","));
  if (!isEmpty(units))
    parts.push_back(
        "units=" +
        join(map_range(units, [](PlanStep::Unit unit) { return unitNames[unit]; }), ","));
  if (!without.empty())
    parts.push_back("without=" + join(without, ","));
  return parts.empty() ? "default" : join(parts, " ");
}

std::optional<ScheduleChoice> ScheduleChoice::parse(StringRef text) {
  ScheduleChoice choice;
  if (text == "default")
    return choice;
  SmallVector<StringRef> parts;
  text.split(parts, ' ');
  for (StringRef part : parts) {
    auto [what, list] = part.split('=');
    SmallVector<StringRef> values;
    list.split(values, ',');
    for (StringRef value : values) {
      if (what == "tiles") {
        choice.tiles.push_back(value.str());
      } else if (what == "without") {
        choice.without.push_back(currentName(value).str());
      } else if (auto *unit = find(unitNames, value);
                 what == "units" && unit != std::end(unitNames)) {
        choice.units.push_back(PlanStep::Unit(unit - unitNames));
      } else {
        return std::nullopt;
      }
    }
  }
  return choice;
}

template <typename Value>
static void replace(std::vector<Value> &values, const std::vector<Value> &others) {
  values.resize(std::max(values.size(), others.size()));
  for (auto [value, other] : zip(values, others))
    if (other != Value())
      value = other;
}

ScheduleChoice ScheduleChoice::with(const ScheduleChoice &other) const {
  ScheduleChoice both = *this;
  replace(both.tiles, other.tiles);
  replace(both.units, other.units);
  for (const std::string &name : other.without)
    if (!is_contained(both.without, name))
      both.without.push_back(name);
  return both;
}

static void addSteps(std::vector<PlanStep> &steps, std::vector<PlanStep *> &found) {
  for (PlanStep &step : steps) {
    if (step.kind == PlanStep::Launch)
      found.push_back(&step);
    addSteps(step.body, found);
  }
}

std::vector<PlanStep *> tegula::launchSteps(Plan &plan) {
  std::vector<PlanStep *> found;
  addSteps(plan.steps, found);
  return found;
}

void ScheduleChoice::apply(Plan &plan) const {
  for (auto [step, unit] : zip(launchSteps(plan), units))
    step->unit = unit;
}

//===----------------------------------------------------------------------===//
// On disk
//===----------------------------------------------------------------------===//

/// Beside what assemblers made, which may push out none of these.
static DiskCache folder() {
  constexpr uint64_t maxBytes = 64 << 20;
  return DiskCache::fromEnvironment().below("tuned", maxBytes);
}

static SmallVector<std::string, 6> partsOf(const TunedKey &key) {
  std::string sizes;
  for (const auto &[name, value] : key.sizes)
    sizes += name + "=" + std::to_string(value) + ",";
  return {"schedule", TEGULA_VERSION " LLVM " LLVM_VERSION_STRING, key.target, key.device, sizes,
          key.program};
}

void tegula::keepTuned(const TunedKey &key, const ScheduleChoice &choice) {
  SmallVector<std::string, 6> parts = partsOf(key);
  folder().insert(SmallVector<StringRef, 6>(parts.begin(), parts.end()), choice.text());
}

std::optional<ScheduleChoice> tegula::findTuned(const TunedKey &key) {
  SmallVector<std::string, 6> parts = partsOf(key);
  std::optional<std::string> text =
      folder().find(SmallVector<StringRef, 6>(parts.begin(), parts.end()));
  return text ? ScheduleChoice::parse(*text) : std::nullopt;
}
