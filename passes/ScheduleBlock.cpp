//===- ScheduleBlock.cpp - What a kernel's `schedule` asks for ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/ScheduleBlock.h"
#include "ir/TglUtils.h"
#include "passes/Nest.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

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
        settings.push_back({keyword.getName().str(), axis.getName().str(), number(axis.getValue())});
    }
  return settings;
}

static AxesOp axesOf(ParallelOp op) { return cast<AxesOp>(op.getOperation()); }

/// What the tile has where the setting says something; nothing where it says nothing of this statement.
static std::optional<int64_t> valueIn(const ScheduleSetting &setting, const ContractionPlan &plan,
                                      const TensorTile &tile) {
  AxesOp axes = axesOf(plan.op);
  auto isAmong = [&](ArrayRef<unsigned> some) {
    return any_of(some, [&](unsigned axis) { return getAxisName(axes, axis) == setting.axis; });
  };
  if (setting.keyword == "warps")
    return tile.threads() / 32;
  if (setting.keyword == "tile")
    return isAmong(plan.rows)      ? std::optional(tile.rows)
           : isAmong(plan.columns) ? std::optional(tile.columns)
           : isAmong(plan.batch)   ? std::optional<int64_t>(1)
                                   : std::nullopt;
  if (setting.keyword == "split")
    for (const ContractionProduct &product : plan.products) {
      auto summed = cast<AxesOp>(ReduceOp(product.reduce).getOperation());
      for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis)
        if (getAxisName(summed, axis) == setting.axis)
          return tile.splits;
    }
  return std::nullopt;
}

/// How far a tile is from all settings: 0 where it agrees.
static double distance(ArrayRef<ScheduleSetting> settings, const ContractionPlan &plan, const TensorTile &tile) {
  double sum = 0;
  for (const ScheduleSetting &setting : settings)
    if (std::optional<int64_t> value = valueIn(setting, plan, tile))
      sum += std::abs(std::log2(double(*value) / double(setting.value)));
  return sum;
}

std::optional<TensorTile> tegula::chooseTile(ParallelOp op, ArrayRef<ScheduleSetting> settings, StringRef wanted) {
  std::optional<ContractionPlan> plan = settings.empty() ? std::nullopt : planContraction(op, /*byVectors=*/false);
  if (!plan)
    return chooseTile(op, wanted);
  const RankedTile *best = nullptr;
  auto orderOf = [&](const RankedTile &one) {
    return std::pair(distance(settings, *plan, one.tile), !one.tile.isNamed(wanted)); // then by rank
  };
  SmallVector<RankedTile> ranked = rankTiles(op);
  for (const RankedTile &one : ranked)
    if (!best || orderOf(one) < orderOf(*best))
      best = &one;
  return best ? std::optional(best->tile) : std::nullopt;
}

/// Registers and bytes of a tile, for people.
static std::string costOf(const TensorTile &tile, ArrayRef<ProductOperands> products) {
  int64_t bytes = 0; // of a step of 128 bytes along the sum
  for (const ProductOperands &each : products) {
    bool isSplit = each.type == Multiplicand::TF32;
    bytes += 128 * (tile.rows * (isSplit ? each.row.parts : 1) + tile.columns * (isSplit ? each.column.parts : 1));
  }
  return std::to_string(tile.rows * tile.columns / tile.threads()) + " registers of each of " +
         std::to_string(tile.threads()) + " threads for sums, " + std::to_string(bytes) +
         " bytes of shared memory for a step of its operands";
}

std::optional<Refusal> tegula::whyRefused(KernelOp scheduled, const ScheduleSetting &setting) {
  std::string text = setting.keyword + " " + (setting.axis.empty() ? "" : setting.axis + "=") + std::to_string(setting.value);
  if (setting.keyword != "tile" && setting.keyword != "split" && setting.keyword != "warps")
    return Refusal{"'" + setting.keyword + "' is not for a program to set on this target",
                   "tile, split and warps of matrix products are; the rest follows from them"};
  bool isSaid = false;
  std::optional<Refusal> refusal;
  scheduled.walk([&](ParallelOp op) {
    std::optional<TensorTile> tile = TensorTile::of(op);
    std::optional<ContractionPlan> plan = tile ? planContraction(op, /*byVectors=*/false) : std::nullopt;
    std::optional<int64_t> value = plan ? valueIn(setting, *plan, *tile) : std::nullopt;
    if (!value)
      return;
    isSaid = true;
    if (*value == setting.value || !knownPoints(axesOf(op)))
      return;
    std::optional<SmallVector<ProductOperands>> products = describeOperands(*plan);
    refusal = Refusal{"no tile that this product can have has '" + text + "'",
                      "the nearest that fits is " + std::to_string(tile->rows) + " x " + std::to_string(tile->columns) +
                          (tile->splits > 1 ? ", " + std::to_string(tile->splits) + " blocks for a sum" : "") + ", " +
                          std::to_string(tile->threads() / 32) + " warps: " +
                          costOf(*tile, products ? ArrayRef<ProductOperands>(*products) : ArrayRef<ProductOperands>())};
  });
  if (!isSaid)
    return Refusal{"'" + text + "' is of nothing that has tiles here",
                   "tiles are of matrix products on tensor cores: 'tile' takes their rows and columns, 'split' what is "
                   "summed over"};
  return refusal;
}
