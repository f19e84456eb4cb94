//===- ContractionStrategy.cpp - Matrix products on tensor cores ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU statements that are matrix products (ContractionPlan.h) of f32, f16, bf16, f8 or i8.
// Each gets its tile; what is none of them in their launch is scheduled as `general` does.
//
//===----------------------------------------------------------------------===//
#include "strategies/ContractionStrategy.h"
#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/plan/JointTile.h"
#include "strategies/contraction/plan/TileMemory.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

/// Tiles of rows in a stretch: beyond, numbers of 32 bits do not count a stretch's tiles.
static constexpr int64_t maxRaster = 1 << 16;

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
  int64_t elementBytes = memory.usesBF16Terms() ? 2
                         : isSingle && memory.usesWgmma()
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
    return tile.statementColumns();
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

//===----------------------------------------------------------------------===//
// The match
//===----------------------------------------------------------------------===//

using ContractionMatched = Matched<std::unique_ptr<ContractionMatch>>;

static ContractionMatched matchProducts(ParallelOp op, Mismatch &why) {
  Matched<TensorProduct> product = matchTensorProduct(op);
  if (!product)
    return product.mismatch();
  auto match = std::make_unique<ContractionMatch>(op, std::move(*product));
  match->ranked = rankTilesOfClass(match->product, &why);
  return match;
}

static ContractionMatched matchTile(ParallelOp op, ArrayRef<ScheduleSetting> settings,
                                    const TargetInfo &machine, StringRef wanted) {
  StringRef more;
  std::tie(wanted, more) = wanted.split(':');
  Mismatch why{"no tile's operands fit into the shared memory of the target", "", op};
  ContractionMatched match = matchProducts(op, why);
  if (!match)
    return match;
  ArrayRef<ProductOperands> operands = (*match)->product.operands;
  Product product{(*match)->product.plan, operands, machine};
  std::optional<TensorTile> best;
  std::pair<double, bool> least;
  for (const RankedTile &one : (*match)->ranked) {
    TensorTile tile = withSettings(one.tile, settings, product);
    if (tile.hasOneMainloop() &&
        !(machine.jointTiles && TileMemory(tile, operands, machine).usesTma() &&
          separateTileOf(tile, operands, machine)))
      continue; // one mainloop is that of blocks that stay
    // Tiles are ranked for sm_90a; with less shared memory a launch would be refused.
    if (!machine.hasWgmma &&
        (tile.terms || TileMemory(tile, operands, machine).sharedBytes() > machine.sharedBytes))
      continue;
    double far = distance(
        settings, [&](const ScheduleSetting &setting) { return valueIn(setting, product, tile); });
    std::pair<double, bool> order(far, !tile.isNamed(wanted)); // then by rank
    if (!best || order < least)
      best = tile, least = order;
  }
  if (!best)
    return why;
  (*match)->tile = withSettings(*best, settingsIn(more), product);
  return match;
}

Matched<TensorTile> tegula::chooseTile(ParallelOp op, ArrayRef<ScheduleSetting> settings,
                                       const TargetInfo &machine, StringRef wanted) {
  ContractionMatched match = matchTile(op, settings, machine, wanted);
  if (!match)
    return match.mismatch();
  return (*match)->tile;
}

//===----------------------------------------------------------------------===//
// What people are told
//===----------------------------------------------------------------------===//

/// The shared memory, registers and stages of the tile, for people.
static std::string costOf(const TensorTile &tile, const Product &product) {
  TileMemory memory(tile, product.operands, product.machine);
  std::string text;
  raw_string_ostream os(text);
  os << tile.rows << " x " << tile.statementColumns();
  if (tile.joint > 1)
    os << " of " << tile.joint << " products";
  if (tile.accumulated)
    os << " of " << product.operands.size() << " products that are added";
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
    return "; a block stays for tiles of one product, or of products that share a mainloop, whose "
           "sums "
           "no other block has";
  return "; a block stays where its sums, " + std::to_string(memory.accumulatorsBytes()) +
         " bytes, have a place beside the stages";
}

static LaunchUnit unitOf(MmaType type) {
  return type == MmaType::TF32 ? LaunchUnit::TensorSingle
         : isBytes(type)       ? LaunchUnit::TensorBytes
                               : LaunchUnit::TensorHalf;
}

//===----------------------------------------------------------------------===//
// The strategy
//===----------------------------------------------------------------------===//

namespace {
class ContractionStrategy final : public Strategy {
public:
  StringRef name() const override { return "contraction"; }
  StringRef attributeName() const override { return TensorTile::attributeName; }
  SmallVector<StringRef> preparations(const TargetInfo &target) const override {
    return isFor(target) ? SmallVector<StringRef>{"tgl-reduce-in-tiles"} : SmallVector<StringRef>();
  }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    return asMatch(matchTile(op, request.settings, request.target,
                             wantedTile(request.tensorTile, request.tiledBefore)));
  }
  Match restore(ParallelOp op) const override {
    std::optional<TensorTile> tile = TensorTile::of(op);
    if (!tile)
      return Mismatch{"the attribute describes no tile", "", op};
    Mismatch unheard;
    ContractionMatched match = matchProducts(op, unheard);
    if (match)
      (*match)->tile = *tile;
    return asMatch(std::move(match));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const auto &contraction = cast<ContractionMatch>(match);
    MmaType type =
        contraction.tile.terms ? MmaType::BF16 : contraction.product.operands.front().type;
    StatementCost cost{contraction.tile.fullName(), unitOf(type), {}};
    for (const RankedTile &one : contraction.ranked)
      cost.choices.push_back({one.tile.fullName(), one.clocks});
    return cost;
  }

  StringRef settings() const override {
    return "tile, split, warps, stages, persistent and raster";
  }
  std::optional<int64_t> valueIn(const ScheduleSetting &setting, const StatementMatch &match,
                                 const TargetInfo &target) const override {
    const auto &contraction = cast<ContractionMatch>(match);
    return ::valueIn(setting, productOf(contraction, target), contraction.tile);
  }
  std::optional<NearestShape> nearestTo(const ScheduleSetting &setting, const StatementMatch &match,
                                        const TargetInfo &target) const override {
    const auto &contraction = cast<ContractionMatch>(match);
    if (!knownPoints(axesOf(ParallelOp(match.op))))
      return std::nullopt;
    Product product = productOf(contraction, target);
    return NearestShape{"tile that this product can have",
                        costOf(contraction.tile, product) +
                            whyNot(setting, contraction.tile, product)};
  }

private:
  static Match asMatch(ContractionMatched match) {
    if (!match)
      return match.mismatch();
    return std::unique_ptr<StatementMatch>(std::move(*match));
  }
  static Product productOf(const ContractionMatch &match, const TargetInfo &target) {
    return {match.product.plan, match.product.operands, target};
  }
};
} // namespace

const Strategy &tegula::contractionStrategy() {
  static const ContractionStrategy instance;
  return instance;
}
