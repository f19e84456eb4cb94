//===- ScheduleBlock.cpp - The kernel's `schedule` block ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/ScheduleBlock.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "strategies/Strategy.h"
#include "strategies/recurrence/plan/Recurrence.h"
#include "target/TargetInfo.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

/// Tiles of rows in a stretch: beyond, numbers of 32 bits do not count a stretch's tiles.
static constexpr int64_t maxRaster = 1 << 16;

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
  auto found =
      find_if(settings, [&](const ScheduleSetting &one) { return one.keyword == keyword; });
  return found == settings.end() ? std::nullopt : std::optional(found->value);
}

static AxesOp axesOf(mlir::Operation *op) { return cast<AxesOp>(op); }
static AxesOp axesOf(ParallelOp op) { return axesOf(op.getOperation()); }
static AxesOp axesOf(ReduceOp op) { return axesOf(op.getOperation()); }

static bool isAmong(AxesOp axes, ArrayRef<unsigned> some, StringRef name) {
  return any_of(some, [&](unsigned axis) { return getAxisName(axes, axis) == name; });
}

namespace {
/// A matrix product and what the settings are asked of.
struct Product {
  const ContractionPlan &plan;
  ArrayRef<ProductOperands> operands;
  const TargetInfo &machine;
};
} // namespace

/// Points of the sum that a stage holds.
static int64_t depthOf(const ProductOperands &operands, const TileMemory &memory) {
  bool isSingle = operands.type == MmaType::TF32;
  int64_t elementBytes = isSingle && memory.usesWgmma()
                             ? 2 * std::max(operands.a.terms, operands.b.terms)
                             : bytesOf(operands.type);
  return TileMemory::lineBytes / elementBytes;
}

/// The tile's value of what the setting sets; nothing where the setting does not concern this
/// statement.
static std::optional<int64_t> valueIn(const ScheduleSetting &setting, const Product &product,
                                      const TensorTile &tile) {
  const ContractionPlan &plan = product.plan;
  TileMemory memory(tile, product.operands, product.machine);
  AxesOp axes = axesOf(plan.op);
  if (setting.keyword == "warps")
    return tile.threads() / 32;
  if (setting.keyword == "stages")
    return memory.stages();
  if (setting.keyword == "raster")
    return tile.raster;
  if (setting.keyword == "persistent")
    return !tile.halo && memory.isPersistent();
  bool isTile = setting.keyword == "tile";
  if (isTile && isAmong(axes, plan.rows, setting.axis))
    return tile.rows;
  if (isTile && isAmong(axes, plan.columns, setting.axis))
    return tile.columns;
  if (isTile && isAmong(axes, plan.batch, setting.axis))
    return 1;
  if (isTile || setting.keyword == "split")
    for (auto [each, operands] : zip_equal(plan.products, product.operands)) {
      AxesOp summed = axesOf(ReduceOp(each.reduce));
      if (isAmong(summed, to_vector(seq<unsigned>(0, summed.getAxes().size())), setting.axis))
        return isTile ? depthOf(operands, memory) : tile.splits;
    }
  return std::nullopt;
}

/// How far what is there is from what is asked: 0 where it agrees.
static double distance(int64_t value, int64_t asked) {
  constexpr double ofNothing = 8; // that a block does not stay is worse than any size
  return value ? std::abs(std::log2(double(value) / double(asked))) : ofNothing;
}

/// With what settings say that any tile of such a shape can have, as far as it fits.
static TensorTile withSettings(TensorTile tile, ArrayRef<ScheduleSetting> settings,
                               const Product &product) {
  if (std::optional<int64_t> stages = settingOf(settings, "stages")) {
    auto [least, most] = TileMemory(tile, product.operands, product.machine).stageLimits();
    tile.stages = std::clamp<int64_t>(*stages, least, most);
  }
  if (std::optional<int64_t> raster = settingOf(settings, "raster"))
    tile.raster = std::min(*raster, maxRaster);
  return tile;
}

/// The settings that follow a tile in its name: `128x128/1:stages=3:raster=4`.
static SmallVector<ScheduleSetting> settingsIn(StringRef text) {
  SmallVector<ScheduleSetting> settings;
  while (!text.empty()) {
    StringRef one;
    std::tie(one, text) = text.split(':');
    auto [keyword, number] = one.split('=');
    int64_t value;
    if (!number.getAsInteger(10, value))
      settings.push_back({keyword.str(), "", value});
  }
  return settings;
}

Matched<TensorTile> tegula::chooseTile(ParallelOp op, ArrayRef<ScheduleSetting> settings,
                                       const TargetInfo &machine, StringRef wanted) {
  StringRef more;
  std::tie(wanted, more) = wanted.split(':');
  SmallVector<ScheduleSetting> own = settingsIn(more);
  Matched<TensorProduct> match = matchTensorProduct(op);
  if (!match)
    return match.mismatch();
  auto &[plan, operands] = *match;
  Product product{plan, operands, machine};
  std::optional<TensorTile> best;
  std::pair<double, bool> least;
  Mismatch why{"no tile's operands fit into the shared memory of the target", "", op};
  for (const RankedTile &one : rankTiles(plan, operands, &why)) {
    TensorTile tile = withSettings(one.tile, settings, product);
    // Tiles are ranked for sm_90a; with less shared memory a launch would be refused.
    if (!machine.hasWgmma &&
        TileMemory(tile, operands, machine).sharedBytes() > machine.sharedBytes)
      continue;
    double far = 0;
    for (const ScheduleSetting &setting : settings)
      if (std::optional<int64_t> value = valueIn(setting, product, tile))
        far += distance(*value, setting.value);
    std::pair<double, bool> order(far, !tile.isNamed(wanted)); // then by rank
    if (!best || order < least)
      best = tile, least = order;
  }
  if (!best)
    return why;
  return withSettings(*best, own, product);
}

/// The shared memory, registers and stages of the tile, for people.
static std::string costOf(const TensorTile &tile, const Product &product) {
  TileMemory memory(tile, product.operands, product.machine);
  std::string text;
  raw_string_ostream os(text);
  os << tile.rows << " x " << tile.columns;
  if (tile.splits > 1)
    os << ", " << tile.splits << " blocks for a sum";
  os << ", " << tile.threads() / 32 << " warps: " << tile.rows * tile.columns / tile.threads()
     << " registers of each of " << tile.threads() << " threads for sums, ";
  if (tile.halo && memory.isPrepacked()) {
    os << "a copy of the image and " << memory.stages()
       << " stages of the other operand in shared memory";
    return text;
  }
  os << memory.sharedBytes() << " bytes of shared memory of " << product.machine.sharedBytes
     << ", of them " << memory.stages() << " stages of " << memory.stageBytes();
  return text;
}

/// Why the tile cannot have what the setting asks, for people; empty where only the shapes that
/// tiles come in are in the way.
static std::string whyNot(const ScheduleSetting &setting, const TensorTile &tile,
                          const Product &product) {
  TileMemory memory(tile, product.operands, product.machine);
  if (setting.keyword == "stages") {
    auto [least, most] = memory.stageLimits();
    if (least == most)
      return "; such a tile has " + std::to_string(least) + " stages";
    return "; such a tile has from " + std::to_string(least) + " to " + std::to_string(most) +
           " stages";
  }
  if (setting.keyword == "raster")
    return "; a raster is of up to " + std::to_string(maxRaster) + " tiles of rows";
  if (setting.keyword != "persistent")
    return "";
  if (!memory.isWarpSpecialized())
    return "; a block stays where some of its warps only bring operands, which this product's "
           "operands do not need";
  if (tile.halo)
    return "; whether it stays follows from the copy of the image";
  if (tile.splits > 1 || product.operands.size() > 1)
    return "; a block stays for tiles of one product whose sums it does not share";
  return "; a block stays where its sums, " + std::to_string(memory.accumulatorsBytes()) +
         " bytes, have a place beside the stages";
}

//===----------------------------------------------------------------------===//
// Rows that walk a tile loop
//===----------------------------------------------------------------------===//

static constexpr int64_t stagesOfRowTiles =
    2; // of each right factor (strategies/tile_loop/lower/TileLoopProducts.cpp)

/// The row tile's value of what the setting sets, as above for a product.
static std::optional<int64_t> valueIn(const ScheduleSetting &setting, const TileLoopPlan &plan,
                                      const TileLoopShape &tile) {
  AxesOp axes = axesOf(ParallelOp(plan.op));
  if (setting.keyword == "warps")
    return 4 * tile.warpgroups;
  if (setting.keyword == "stages")
    return stagesOfRowTiles;
  if (setting.keyword == "persistent")
    return isWarpSpecialized(plan, tile) && rowStagesOf(plan, tile) == 2;
  if (setting.keyword != "tile")
    return std::nullopt;
  if (setting.axis == getAxisName(axes, plan.row))
    return tile.rows();
  if (isAmong(axes, plan.batch, setting.axis))
    return 1;
  bool isTileAxis = any_of(plan.products, [&](const TileLoopProduct &product) {
    AxesOp columns =
        product.reducesTile ? axesOf(ReduceOp(product.reduce)) : axesOf(ParallelOp(product.nest));
    return getAxisName(columns, 0) == setting.axis;
  });
  return isTileAxis ? std::optional(tile.columns) : std::nullopt;
}

Matched<TileLoopShape> tegula::chooseTileLoopShape(const TileLoopPlan &plan,
                                                   ArrayRef<ScheduleSetting> settings) {
  std::optional<TileLoopShape> best;
  double least = 0;
  Mismatch why;
  for (const TileLoopShape &tile : rankTileLoopShapes(plan, &why)) {
    double far = 0;
    for (const ScheduleSetting &setting : settings)
      if (std::optional<int64_t> value = valueIn(setting, plan, tile))
        far += distance(*value, setting.value);
    if (!best || far < least)
      best = tile, least = far;
  }
  return best ? Matched<TileLoopShape>(*best) : Matched<TileLoopShape>(std::move(why));
}

static std::string costOf(const TileLoopPlan &plan, const TileLoopShape &tile) {
  return std::to_string(tile.rows()) + " rows, " + std::to_string(tile.columns) +
         " points of the loop, " + std::to_string(4 * tile.warpgroups) +
         " warps: " + std::to_string(sharedBytesOf(plan, tile)) + " bytes of shared memory of " +
         std::to_string(TargetInfo::gpu(90, true).sharedBytes) + ", with " +
         std::to_string(stagesOfRowTiles) + " stages of each factor that the loop walks" +
         (tile.clusterBlocks > 1
              ? ", in each of " + std::to_string(tile.clusterBlocks) + " blocks that share columns"
              : "");
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// The settings that concern statements of a strategy.
static StringRef settingsOf(StringRef strategy) {
  return StringSwitch<StringRef>(strategy)
      .Case("contraction", "tile, split, warps, stages, persistent and raster")
      .Case("tile-loop", "tile, warps, stages and persistent")
      .Case("recurrence", "cluster")
      .Case("product-reduction", "nothing")
      .Default("cluster, where several nests read a row that shared memory keeps");
}

std::optional<Refusal> tegula::refuseEverywhere(KernelOp scheduled,
                                                const ScheduleSetting &setting) {
  bool isKnown = true;
  scheduled.walk([&](AxesOp op) { isKnown &= knownPoints(op).has_value(); });
  if (!isKnown)
    return std::nullopt;
  SetVector<StringRef> strategies;
  scheduled.walk(
      [&](LaunchOp launch) { strategies.insert(launch.getStrategy().value_or("general")); });
  std::string names, note;
  for (StringRef name : strategies) {
    names += (names.empty() ? "'" : ", '") + name.str() + "'";
    note += (note.empty() ? "'" : "; '") + name.str() + "' takes " + settingsOf(name).str();
  }
  return Refusal{"'" + setting.text() + "' says nothing of this kernel, which is run by " +
                     (names.empty() ? "nothing" : names),
                 note};
}

bool tegula::isOfRowClusters(KernelOp scheduled, const ScheduleSetting &setting) {
  bool isGeneral = false, isRecurrence = false;
  scheduled.walk([&](ParallelOp op) {
    if (!isa<LaunchOp>(op->getParentOp()))
      return;
    isRecurrence |= recurrenceStrategy().computes(op);
    isGeneral |= !strategyOf(op);
  });
  return setting.keyword == "cluster" && isGeneral && !isRecurrence;
}

std::optional<Refusal> tegula::whyRefused(KernelOp scheduled, const ScheduleSetting &setting,
                                          const TargetInfo &machine) {
  if (isOfRowClusters(scheduled, setting))
    return std::nullopt;
  bool isSaid = false;
  std::optional<Refusal> refusal;
  auto refuse = [&](StringRef what, const std::string &nearest) {
    refusal = Refusal{"no " + what.str() + " has '" + setting.text() + "'",
                      "the nearest that fits is " + nearest};
  };
  scheduled.walk([&](ParallelOp op) {
    if (std::optional<RecurrenceShape> shape = RecurrenceShape::of(op);
        shape && setting.keyword == "cluster") {
      isSaid = true;
      if (shape->cluster != setting.value)
        refuse("recurrence that this loop can be",
               "a cluster of " + std::to_string(shape->cluster) + " blocks of " +
                   std::to_string(shape->threads) +
                   " threads: registers and shared memory keep all weights there");
      return;
    }
    if (std::optional<TileLoopShape> tile = TileLoopShape::of(op)) {
      std::optional<TileLoopPlan> plan = planTileLoop(op);
      std::optional<int64_t> value = plan ? valueIn(setting, *plan, *tile) : std::nullopt;
      isSaid |= value.has_value();
      if (value && *value != setting.value)
        refuse("block of rows that walk this tile loop", costOf(*plan, *tile));
      return;
    }
    std::optional<TensorTile> tile = TensorTile::of(op);
    std::optional<TensorProduct> match;
    if (tile)
      match = matchTensorProduct(op);
    if (!match)
      return;
    Product product{match->plan, match->operands, machine};
    std::optional<int64_t> value = valueIn(setting, product, *tile);
    isSaid |= value.has_value();
    if (value && *value != setting.value && knownPoints(axesOf(op)))
      refuse("tile that this product can have",
             costOf(*tile, product) + whyNot(setting, *tile, product));
  });
  return isSaid ? refusal : refuseEverywhere(scheduled, setting);
}
