//===- TileLoopStrategy.cpp - Strategy `tile-loop`: fused tile loops on tensor cores ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with a nest whose rows go through a tile loop together (TileLoop.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/TileLoopStrategy.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

static AxesOp axesOf(mlir::Operation *op) { return cast<AxesOp>(op); }
static AxesOp axesOf(ParallelOp op) { return axesOf(op.getOperation()); }
static AxesOp axesOf(ReduceOp op) { return axesOf(op.getOperation()); }

static bool isAmong(AxesOp axes, ArrayRef<unsigned> some, StringRef name) {
  return any_of(some, [&](unsigned axis) { return getAxisName(axes, axis) == name; });
}

static constexpr int64_t stagesOfRowTiles =
    2; // of each right factor (strategies/tile_loop/lower/TileLoopProducts.cpp)

/// The row tile's value of what the setting sets; nothing where the setting does not concern this
/// statement.
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

/// The shape that agrees with the settings; where none does the nearest.
static Matched<TileLoopShape> chooseShape(const TileLoopPlan &plan,
                                          ArrayRef<ScheduleSetting> settings) {
  std::optional<TileLoopShape> best;
  double least = 0;
  Mismatch why;
  for (const TileLoopShape &tile : rankTileLoopShapes(plan, &why)) {
    double far = distance(
        settings, [&](const ScheduleSetting &setting) { return valueIn(setting, plan, tile); });
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

namespace {
class TileLoopStrategy final : public Strategy {
public:
  StringRef name() const override { return "tile-loop"; }
  StringRef attributeName() const override { return TileLoopShape::attributeName; }
  SmallVector<StringRef> preparations(const TargetInfo &target) const override {
    return target.hasWgmma ? SmallVector<StringRef>{"tgl-recompute-products", "tgl-online-softmax"}
                           : SmallVector<StringRef>();
  }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    return TileLoopMatch::make(op, planTileLoop(op), [&](const TileLoopPlan &plan) {
      return chooseShape(plan, request.settings);
    });
  }
  Match restore(ParallelOp op) const override {
    return TileLoopMatch::restore(op, planTileLoop(op), TileLoopShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const TileLoopShape &tile = cast<TileLoopMatch>(match).shape;
    return {std::to_string(tile.rows()) + " rows, " + std::to_string(tile.columns) +
                " points of the loop",
            LaunchUnit::TensorHalf,
            {}};
  }

  StringRef settings() const override { return "tile, warps, stages and persistent"; }
  std::optional<int64_t> valueIn(const ScheduleSetting &setting, const StatementMatch &match,
                                 const TargetInfo &) const override {
    const auto &loop = cast<TileLoopMatch>(match);
    return ::valueIn(setting, loop.plan, loop.shape);
  }
  std::optional<NearestShape> nearestTo(const ScheduleSetting &, const StatementMatch &match,
                                        const TargetInfo &) const override {
    const auto &loop = cast<TileLoopMatch>(match);
    return NearestShape{"block of rows that walk this tile loop", costOf(loop.plan, loop.shape)};
  }
};
} // namespace

const Strategy &tegula::tileLoopStrategy() {
  static const TileLoopStrategy instance;
  return instance;
}
