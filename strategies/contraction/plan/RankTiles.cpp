//===- RankTiles.cpp - Tiles of a contraction, ranked by what they take ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/TensorTile.h"

#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/JointTile.h"
#include "strategies/contraction/plan/PrepackedCost.h"
#include "strategies/contraction/plan/StreamedTile.h"
#include "strategies/contraction/plan/TileMemory.h"
#include "strategies/contraction/plan/WindowOperand.h"
#include "target/DeviceFacts.h"
#include <cmath>
#include <limits>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {
/// A shape and the share of a multiprocessor's rate that it reaches.
struct Candidate {
  int64_t rows, columns, warpRows, warpColumns;
  double half, single, rounded,
      bytes; // with 16-bit operands, f32, f32 that may be rounded, bytes; 0: not for such
  bool warpgroups = false, prepacked = false;
  /// For sums that may not be split: where there are few rows, columns that keep a device busy.
  bool unsplit = false;
};
} // namespace

/// A warp's rectangle decides how often operands are read from shared memory: of 64 x 64 elements
/// 16-bit products are about as fast to read as to multiply; three products of TF32 hide the
/// reading of 64 x 32. Where operands are packed their splitting and rounding is not part of it:
/// then a product that may be rounded takes little more than a third of the time of three;
/// elsewhere no less, as it is the bringing of operands that takes the time. Speeds are those of
/// convolutions and products on an H200 (`tegula bench --tensor-tile=...`), in multiplications of a
/// clock of a multiprocessor.
static constexpr double halfRate = 960, singleRate = 300, byteRate = 1920;
static constexpr Candidate candidates[] = {
    {128, 256, 2, 4, 0.85, 0, 2.6, 1.4, true, true},
    {128, 128, 2, 4, 0.75, 4.0, 2.4, 1.2, true, true},
    {64, 256, 2, 4, 0.66, 3.6, 2.1, 1.1, true, true},
    {64, 128, 2, 4, 0.53, 2.8, 1.7, 0.8, true, true},
    {128, 256, 2, 4, 1.9, 0, 0, 1.4, true},
    {128, 192, 2, 4, 1.9, 0, 0, 1.3, true},
    {128, 128, 2, 4, 1.84, 2.6, 0.6, 1.2, true},
    {64, 256, 2, 4, 1.2, 2.4, 0.55, 1.1, true},
    {128, 64, 4, 2, 1.16, 1.8, 0.5, 0.8, true},
    {64, 128, 2, 4, 1.03, 1.8, 0.5, 0.8, true},
    {128, 256, 2, 4, 1.0, 0, 0, 0},
    {128, 128, 2, 4, 0.8, 1.0, 0.6, 0.5},
    {128, 64, 4, 2, 0.6, 0.85, 0.5, 0.4},
    {64, 128, 2, 4, 0.6, 0.85, 0.5, 0.4},
    {64, 64, 2, 2, 0.5, 0.7, 0.42, 0.3},
    {128, 32, 4, 1, 0.35, 0.55, 0.33, 0.2},
    {32, 128, 1, 4, 0.35, 0.55, 0.33, 0.2},
    {128, 16, 4, 1, 0.2, 0.35, 0.21, 0.12},
    {16, 128, 1, 4, 0.2, 0.35, 0.21, 0.12},
    // Not measured: a warpgroup's 64 rows take as long with fewer columns.
    {64, 64, 4, 1, 0.75, 0, 0, 0, true, false, true},
    {64, 32, 4, 2, 0.5, 0, 0, 0, true, false, true},
    {64, 16, 4, 1, 0.3, 0, 0, 0, true, false, true},
    {16, 64, 1, 4, 0.15, 0.26, 0.15, 0.1, false, false, true},
};

/// Numbers of 16 bits that come one by one, not in vectors, take that much longer than their
/// products do; so do bytes.
static constexpr double singleHalves = 0.13, singleBytes = 0.08;

/// The most elements of a tile whose sums have scales of blocks: beyond, registers for all sums,
/// for those of a stage and for scales are spilled (fp8_block_gemm of bench/real on an H100: 350 us
/// with 128 x 256, 217 with 128 x 192 and with 128 x 128).
static constexpr int64_t maxScaledElements = 128 * 192;

std::string TensorTile::name() const {
  StringRef how = halo          ? "-shifted"
                  : tail        ? "-tail"
                  : joint > 1   ? "-joint"
                  : accumulated ? "-accumulated"
                  : prepacked   ? "-packed"
                  : terms       ? "-terms"
                  : warpgroups  ? "-warpgroups"
                                : "";
  return (Twine(rows) + "x" + Twine(columns) + how).str();
}

std::string TensorTile::fullName() const { return name() + "/" + std::to_string(splits); }

static TensorTile tileOf(const Candidate &candidate, int64_t splits, bool halo = false) {
  return {candidate.rows, candidate.columns,    candidate.warpRows,  candidate.warpColumns,
          splits,         candidate.warpgroups, candidate.prepacked, halo};
}

static TensorTile tailTileOf(const Candidate &candidate) {
  TensorTile tile = tileOf(candidate, 1);
  tile.tail = true;
  return tile;
}

static TensorTile termTileOf(const Candidate &candidate, int64_t splits) {
  TensorTile tile = tileOf(candidate, splits);
  tile.terms = device::bf16Terms;
  return tile;
}

std::vector<std::string> tegula::tensorTileNames() {
  std::vector<std::string> names;
  for (const Candidate &candidate : candidates) {
    names.push_back(tileOf(candidate, 1).name());
    if (candidate.prepacked)
      names.push_back(tileOf(candidate, 1, /*shifted=*/true).name());
    else if (candidate.warpgroups && !candidate.unsplit) {
      names.push_back(tailTileOf(candidate).name());
      if (candidate.single)
        names.push_back(termTileOf(candidate, 1).name());
    }
    TensorTile joint = tileOf(candidate, 1), accumulated = joint;
    joint.joint = joint.columns / jointPanel;
    accumulated.accumulated = true;
    for (const TensorTile &tile : {joint, accumulated})
      if (mayHaveOneMainloop(tile) && !candidate.unsplit)
        names.push_back(tile.name());
  }
  return names;
}

/// Whether blocks with such tiles stay, if the product is large enough to bring boxes of its
/// operands.
static bool canHaveSplitKTail(const TensorTile &tile, ArrayRef<ProductOperands> products) {
  TargetInfo machine = TargetInfo::measured();
  machine.minTmaMacs = 0;
  return tile.warpgroups && !tile.prepacked && products.size() == 1 &&
         TileMemory(tile, products, machine).usesTma();
}

/// Clocks of so many tiles with last-wave split-K, where they take `clocks` without it and memory
/// takes `least` in any case.
static double tailClocks(const TensorTile &tile, ArrayRef<ProductOperands> products, int64_t tiles,
                         int64_t stages, double clocks, double least) {
  constexpr double ofLaunch = 6000, bytesPerClock = 2500;
  int64_t whole = tiles / device::multiprocessors, left = tiles % device::multiprocessors;
  int64_t parts =
      left ? std::min(device::multiprocessors / left, stages / TensorTile::minStagesOfSplit) : 0;
  if (whole == 0 || parts < 2 || !TileMemory(tile, products, TargetInfo::measured()).usesTma())
    return clocks + ofLaunch;
  double own = std::sqrt(std::max(clocks * clocks - least * least, 0.0));
  return std::hypot(own * (whole + 1.0 / parts) / (whole + 1), least) + ofLaunch +
         8.0 * left * parts * tile.rows * tile.columns / bytesPerClock;
}

static bool hasScales(const ContractionPlan &plan) {
  return llvm::any_of(plan.products,
                      [](const ContractionProduct &product) { return bool(product.scales); });
}

namespace {
/// The tiles that a contraction can have, with the clocks that each takes.
class TileRanking {
public:
  TileRanking(const ContractionPlan &plan, ArrayRef<ProductOperands> products,
              tgl::PointsOf *pointsOf)
      : plan(plan), products(products), pointsOf(pointsOf),
        axes(tgl::axesOfOp(tgl::ParallelOp(plan.op))),
        isFree(tgl::Invariance::of(tgl::ParallelOp(plan.op)).isFree()) {}

  /// Sums up the products; false where a size is not known.
  bool addProducts();
  /// Why a thread for a result is as fast, whatever the tile; empty: a tile may be faster.
  std::string whyNoTile() const;
  /// Adds the shapes of all candidates, the fastest first.
  void rankAll();
  /// Leaves out shapes by which the order of a sum depends on where in a tile or in the grid its
  /// element is, or on what is in the tile.
  void keepInvariant();
  /// Leaves out shapes of the other instruction: warps' products are not shown to have the bits of
  /// warpgroups'.
  void keepInstruction(bool warpgroups);
  /// Why a thread for a result is as fast where each of few lines reads the whole other side;
  /// empty: a tile may be faster.
  std::string whyNotRanked() const;

  SmallVector<RankedTile> ranked;

private:
  static constexpr int64_t maxShortLines = 12;
  /// A multiprocessor has one block of f32 by warpgroups at a time: no other block hides what it
  /// does before its products, which counts where elements are loaded one by one (measured with K =
  /// 27).
  static constexpr double startUp = 3000, startUpOfElement = 0.5, secondLaunch = 5000,
                          bytesPerClock = 2000;

  const ContractionPlan &plan;
  ArrayRef<ProductOperands> products;
  tgl::PointsOf *pointsOf;
  tgl::AxesOp axes;
  bool isFree;
  const TargetInfo card = TargetInfo::measured();
  int64_t rows = 0, columns = 0, batch = 0;
  /// Points of all sums, and of the shortest.
  int64_t summed = 0, shortest = std::numeric_limits<int64_t>::max();
  double clocks = 0; ///< of a multiprocessor, for an element
  bool allVectors = true, allHalf = true, allBytes = true, allRounded = true;
  int64_t lines = 0;
  /// Few lines share a large side, which is read for each of them, where sums are long.
  bool sharesLarge = false;
  bool mayUseWgmma = false, canUseHaloTile = false, mayUseTerms = false;
  double ofRow = 0, ofColumn = 0; ///< clocks to stage a row's or column's elements as terms
  PrepackedCost prepacked;
  double longerBytes = 0, fromMemory = 0, rate = 0;
  bool hasFewScalarLoads = false, streams = false;
  int64_t invariantParts = 0; ///< of each sum; 0: sums are whole

  std::string shape() const {
    return (Twine(rows) + " x " + Twine(columns) + " results of " + Twine(summed) + " products")
        .str();
  }
  void prepare();
  void addTermStaging();
  /// Products of the tensor cores with such a tile, relative to their rate; 0: it cannot be had.
  double speedOf(const Candidate &candidate) const;
  void rank(const Candidate &candidate, double speed);
  void rankTerms(const Candidate &candidate);
  int64_t numInvariantParts() const;
  void rankHalo(const Candidate &candidate, double speed, const HaloCost &halo);
  double clocksOf(const Candidate &candidate, double speed, int64_t tiles, int64_t steps,
                  int64_t splits) const;
  void rankOneMainloop(const TensorTile &tile, double speed);
};
} // namespace

bool TileRanking::addProducts() {
  std::optional<int64_t> knownRows = pointsOf(axes, plan.rows),
                         knownColumns = pointsOf(axes, plan.columns),
                         knownBatch = pointsOf(axes, plan.batch);
  bool known = knownRows && knownColumns && knownBatch;
  for (auto [product, operands] : llvm::zip_equal(plan.products, products)) {
    tgl::AxesOp sums = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
    std::optional<int64_t> extent = tgl::knownPoints(sums);
    known &= extent.has_value();
    summed += extent.value_or(0);
    shortest = std::min(shortest, extent.value_or(0));
    bool areBytes = isBytes(operands.type), isHalf = operands.type != MmaType::TF32 && !areBytes;
    allHalf &= isHalf;
    allBytes &= areBytes;
    allRounded &= operands.isRounded;
    allVectors &= operands.a.staging == Staging::Vectors && operands.b.staging == Staging::Vectors;
    clocks += extent.value_or(0) /
              (areBytes ? byteRate
               : isHalf ? halfRate
                        : singleRate) *
              (isHalf ? 1 : operands.multiplications());
  }
  if (!known)
    return false;
  rows = *knownRows;
  columns = *knownColumns;
  batch = *knownBatch;
  constexpr int64_t longSum = 32;
  lines = std::min(rows, columns);
  sharesLarge = allVectors && lines > 1 && summed >= longSum * lines;
  return true;
}

/// A thread for an element is as good where little is to be done or the operands' reading takes
/// all. But few lines share a large side, which is read for each of them then, where sums are
/// long.
std::string TileRanking::whyNoTile() const {
  constexpr int64_t shortestSum = 8, fewestProducts = 1 << 18;
  if (lines < maxShortLines && !sharesLarge)
    return (shape() + ": fewer than " + Twine(maxShortLines) +
            " rows or columns share what is read, so a thread for a result is as fast")
        .str();
  if (summed < shortestSum)
    return (shape() + ": fewer than " + Twine(shortestSum) +
            " products in a sum, so a thread for a result is as fast")
        .str();
  if (double(rows) * columns * batch * summed < double(fewestProducts))
    return (shape() + ": fewer than " + Twine(fewestProducts) +
            " products in all, so a thread for a result is as fast")
        .str();
  return "";
}

void TileRanking::prepare() {
  mayUseWgmma = canUseWgmma(plan, products, /*packed=*/false);
  mayUseTerms = canUseBF16Terms(plan, products);
  if (mayUseTerms)
    addTermStaging();
  // A prepacked sum may have another order, in which blocks of one scale do not follow each other.
  // Where operands are prepacked is counted in sizes that are known.
  prepacked.isAllowed = isFree && !((allHalf || allBytes) && allVectors) && !hasScales(plan) &&
                        canUseWgmma(plan, products, /*packed=*/true);
  if (prepacked.isAllowed)
    prepacked = prepackedCost(plan, products, double(batch) * rows, double(batch) * columns);
  canUseHaloTile = prepacked.isAllowed && llvm::any_of(candidates, [&](const Candidate &candidate) {
                     return candidate.prepacked && haloCost(plan, products, candidate.columns);
                   });
  // Memory bounds products of few rows of f32, as those of 16-bit operands. Producers that split
  // what they load wait for memory longer (12 x 4096 x 25088 on an H200: 159 us in tiles of 64 x
  // 256 by warpgroups, 114 in tiles of 16 x 128).
  constexpr int64_t maxScalarLoads = 16;
  constexpr double minStreamedBytes = 8e6; // bytes
  longerBytes = double(std::max(rows, columns)) * summed * batch * bytesOf(products.front().type);
  hasFewScalarLoads = lines <= maxScalarLoads && sharesLarge && longerBytes > minStreamedBytes &&
                      !allHalf && !allBytes;
  streams = allHalf && allVectors;
  fromMemory = minStreamedClocks(products, rows, columns, summed, batch);
  rate = allBytes ? byteRate : allHalf ? halfRate : singleRate;
  invariantParts = numInvariantParts();
}

/// Warps that split f32 take long for a step, so that few rows want parts of sums for all
/// multiprocessors. A function of what does not change with the batch: many rows, of which a block
/// adds up all parts, have as many. They pay for filling the ring again, so parts are long.
int64_t TileRanking::numInvariantParts() const {
  constexpr int64_t shortestPart = 512, fewRows = 16, manyColumns = 128, most = 16;
  if (isFree || allHalf || allBytes)
    return 0;
  std::optional<int64_t> leastRows = tgl::leastPoints(axes, plan.rows),
                         leastColumns = tgl::leastPoints(axes, plan.columns),
                         leastBatch = tgl::leastPoints(axes, plan.batch);
  if (!leastRows || !leastColumns || !leastBatch)
    return 0;
  auto tiles = [&](int64_t ofRows, int64_t ofColumns) {
    return divideCeil(*leastRows, ofRows) * divideCeil(*leastColumns, ofColumns);
  };
  int64_t fewest = std::min(tiles(fewRows, manyColumns), tiles(manyColumns, fewRows)) * *leastBatch;
  int64_t parts = std::min(
      {device::multiprocessors / std::max<int64_t>(fewest, 1), shortest / shortestPart, most});
  return parts > 1 ? parts : 0;
}

/// What bringing elements takes that are to be terms, or beside terms: copies are under way while
/// others are multiplied; what is loaded in vectors is split, eight bits at a time; what is
/// computed takes loads and arithmetic for each element.
void TileRanking::addTermStaging() {
  constexpr double ofSplit = 0.1, ofComputed = 0.3;
  auto clocksOf = [](const ContractionOperand &operand) {
    bool isCopied = operand.staging == Staging::Vectors;
    return isCopied && operand.isExact ? 0.0 : isCopied && operand.kMajor ? ofSplit : ofComputed;
  };
  SmallVector<ProductOperands> own = operandsOfBF16Terms(plan, products);
  for (auto [product, operands] : llvm::zip_equal(plan.products, own)) {
    double points = tgl::knownPoints(tgl::axesOfOp(tgl::ReduceOp(product.reduce))).value_or(0);
    ofRow += points * clocksOf(operands.a);
    ofColumn += points * clocksOf(operands.b);
  }
}

double TileRanking::speedOf(const Candidate &candidate) const {
  // Elements that warps load one by one make products slower (convolutions of 3 to 64 channels on
  // an H200).
  constexpr double singleElements = 0.55;
  double speed = allBytes     ? candidate.bytes
                 : allHalf    ? candidate.half
                 : allRounded ? candidate.rounded
                              : candidate.single;
  bool isLarge = candidate.rows * candidate.columns > 128 * 128;
  if (allHalf && !allVectors && !candidate.prepacked)
    speed *= singleHalves;
  if (allBytes && !allVectors && !candidate.prepacked)
    speed *= singleBytes;
  if (canUseHaloTile && !allHalf && !candidate.warpgroups)
    speed *= singleElements;
  bool isAllowed = candidate.prepacked ? prepacked.isAllowed : !candidate.warpgroups || mayUseWgmma;
  if (!isAllowed || (isLarge && !candidate.prepacked && !allVectors))
    return 0;
  if (hasScales(plan) && candidate.rows * candidate.columns > maxScaledElements)
    return 0;
  if (candidate.unsplit && isFree)
    return 0;
  // Lines along columns have 64 of them, which are one warpgroup's (WgmmaSharedLayout).
  constexpr int64_t lineColumns = 64, warpsOfGroup = 4, rowsOfGroup = 64;
  int64_t groups = candidate.warpRows * candidate.warpColumns / warpsOfGroup;
  int64_t columnsOfGroup =
      candidate.columns * (candidate.rows / rowsOfGroup) / std::max<int64_t>(groups, 1);
  if (candidate.warpgroups && columnsOfGroup % lineColumns &&
      llvm::any_of(products, [](const ProductOperands &each) { return !each.b.kMajor; }))
    return 0;
  // The accumulators of all products but one wait in shared memory.
  if (int64_t(plan.products.size() - 1) * candidate.rows * candidate.columns * 4 > 96 * 1024 ||
      (products.size() > 1 &&
       TileMemory(tileOf(candidate, 1), products, card).sharedBytes() > card.sharedBytes))
    return 0;
  return speed;
}

/// One copy of the images for all taps.
void TileRanking::rankHalo(const Candidate &candidate, double speed, const HaloCost &halo) {
  constexpr double haloSpeed = 0.82; // makes products slower
  int64_t count =
      divideCeil(rows, candidate.rows) * divideCeil(halo.columns, candidate.columns) * batch;
  double elements = double(candidate.rows) * candidate.columns;
  double product = elements * halo.points / rate / speed;
  double each = product / haloSpeed + startUp;
  double total = each * divideCeil(count, device::multiprocessors) + secondLaunch +
                 prepacked.bytes / bytesPerClock;
  ranked.push_back({tileOf(candidate, 1, /*shifted=*/true), total});
}

double TileRanking::clocksOf(const Candidate &candidate, double speed, int64_t tiles, int64_t steps,
                             int64_t splits) const {
  constexpr double warpSpecializedPenalty = 1.3;
  double ofElement = candidate.prepacked ? prepacked.points / rate : clocks;
  double elements = double(candidate.rows) * candidate.columns;
  double each = elements * ofElement / speed / splits + startUp;
  if (candidate.warpgroups && !allHalf && !allBytes && !allVectors)
    each += candidate.prepacked && (canUseHaloTile || prepacked.areNeighbours)
                ? candidate.columns * prepacked.clocksOfLine / splits
                : elements * startUpOfElement;
  int64_t blocks = tiles * splits, ofParts = 8 * blocks * candidate.rows * candidate.columns;
  double total = each * divideCeil(blocks, device::multiprocessors);
  if (candidate.prepacked)
    total += secondLaunch + prepacked.bytes / bytesPerClock;
  if (hasFewScalarLoads && candidate.warpgroups)
    total *= warpSpecializedPenalty;
  // Several blocks at a time hide what slows one down.
  bool isStreamedWithFewRows = hasFewScalarLoads && !candidate.warpgroups;
  if ((streams && !candidate.prepacked) || isStreamedWithFewRows)
    return streamedClocks(tileOf(candidate, splits), products, rows, columns, summed, batch,
                          elements * clocks / (isStreamedWithFewRows ? 1 : speed) / steps);
  return splits > 1 ? total + (secondLaunch + ofParts / bytesPerClock) : total;
}

void TileRanking::rank(const Candidate &candidate, double speed) {
  int64_t tiles = divideCeil(rows, candidate.rows) * divideCeil(columns, candidate.columns) * batch;
  int64_t steps = divideCeil(summed, int64_t(allBytes ? 128 : allHalf ? 64 : 32));
  int64_t maxParts =
      divideCeil(shortest, int64_t(allBytes ? 128 : 64)); // each with something of each sum
  int64_t most = std::clamp<int64_t>(std::min(steps / 8, maxParts), 1, device::multiprocessors);
  if (invariantParts && !candidate.warpgroups) {
    constexpr double ofPart = 2000; // the ring is filled again
    double waves = divideCeil(tiles, device::multiprocessors);
    for (int64_t splits : {int64_t(1), invariantParts}) {
      TensorTile tile = tileOf(candidate, splits);
      tile.parts = invariantParts;
      double refilled = splits == 1 ? ofPart * invariantParts * waves : 0;
      ranked.push_back({tile, clocksOf(candidate, speed, tiles, steps, splits) + refilled});
    }
    return;
  }
  if (std::optional<HaloCost> halo =
          candidate.prepacked ? haloCost(plan, products, candidate.columns) : std::nullopt)
    rankHalo(candidate, speed, *halo);
  for (int64_t splits = 1; splits <= most; ++splits) {
    double total = clocksOf(candidate, speed, tiles, steps, splits);
    ranked.push_back({tileOf(candidate, splits), total});
    if (TensorTile tile = tailTileOf(candidate); splits == 1 && canHaveSplitKTail(tile, products))
      ranked.push_back({tile, tailClocks(tile, products, tiles, steps, total, fromMemory)});
  }
}

/// The mainloop multiplies at the rate of one product with as many columns.
void TileRanking::rankOneMainloop(const TensorTile &tile, double speed) {
  if (!canHaveOneMainloop(tile, products))
    return;
  int64_t points = summed / tile.joint, steps = divideCeil(points, int64_t(64));
  double stage = double(tile.rows) * tile.statementColumns() * clocks / speed / steps;
  ranked.push_back({tile, streamedClocks(tile, products, rows, columns, points, batch, stage)});
}

/// Terms of bf16 by warpgroups: their products at the rate of 16 bits, after them what bringing the
/// next step's elements takes, where no other block multiplies meanwhile.
void TileRanking::rankTerms(const Candidate &candidate) {
  int64_t tiles = divideCeil(rows, candidate.rows) * divideCeil(columns, candidate.columns) * batch;
  int64_t most = std::clamp<int64_t>(shortest / 256, 1, device::multiprocessors);
  double elements = double(candidate.rows) * candidate.columns;
  double product = elements * summed * device::bf16Terms / (halfRate * candidate.half);
  double staging = candidate.rows * ofRow + candidate.columns * ofColumn;
  for (int64_t splits = 1; splits <= most; ++splits) {
    TensorTile tile = termTileOf(candidate, splits);
    TileMemory memory(tile, products, card);
    if (memory.sharedBytes() > card.sharedBytes)
      return;
    bool areTwo = 2 * memory.sharedBytes() <= card.sharedBytes;
    double each = (areTwo ? std::max(product, staging) + startUp / 2 : product + staging + startUp);
    double total = each / splits * divideCeil(tiles * splits, device::multiprocessors);
    if (splits > 1)
      total += secondLaunch + 8.0 * tiles * splits * elements / bytesPerClock;
    ranked.push_back({tile, total});
  }
}

void TileRanking::rankAll() {
  prepare();
  bool mayShare = allHalf && allVectors && mayUseWgmma && maySumsStayInWarps(plan),
       isJoint = mayShare && haveCommonRows(plan, products),
       isAccumulated = mayShare && areOneSum(plan, products);
  for (const Candidate &candidate : candidates) {
    if (double speed = speedOf(candidate))
      rank(candidate, speed);
    TensorTile joint = tileOf(candidate, 1), accumulated = joint;
    joint.joint = products.size();
    accumulated.accumulated = true;
    for (auto [tile, isPossible] :
         {std::pair(joint, isJoint), std::pair(accumulated, isAccumulated)})
      if (isPossible && !candidate.unsplit)
        rankOneMainloop(tile, candidate.half);
    if (mayUseTerms && candidate.warpgroups && !candidate.prepacked && candidate.single)
      rankTerms(candidate);
  }
  llvm::stable_sort(ranked,
                    [](const RankedTile &a, const RankedTile &b) { return a.clocks < b.clocks; });
}

/// The last wave of tiles is cut along K; how many blocks share a sum, and whether they exchange it
/// in a cluster, depends on how many tiles there are; the accuracy check of warpgroups lets a
/// tile's rows be computed again together; accumulated products are one sum, not a sum of two.
void TileRanking::keepInvariant() {
  bool isChecked = products.front().type == MmaType::TF32;
  llvm::erase_if(ranked, [&](const RankedTile &one) {
    const TensorTile &tile = one.tile;
    return tile.tail || tile.accumulated || (tile.splits > 1 && !tile.parts) ||
           (isChecked && tile.warpgroups);
  });
}

void TileRanking::keepInstruction(bool warpgroups) {
  llvm::erase_if(ranked, [&](const RankedTile &one) { return one.tile.warpgroups != warpgroups; });
}

std::string TileRanking::whyNotRanked() const {
  // Without a tile each of few lines reads the whole other side, from the second-level cache at
  // best.
  constexpr double cacheBytesPerClock = 2500, worthIt = 2;
  if (lines < maxShortLines && !ranked.empty() &&
      ranked.front().clocks * worthIt * cacheBytesPerClock > lines * longerBytes)
    return shape() +
           ": reading the operands takes longer than multiplying, with or without tensor cores";
  return ranked.empty() ? "no tile's operands and accumulators fit into shared memory and registers"
                        : "";
}

SmallVector<RankedTile> tegula::rankTiles(const ContractionPlan &plan,
                                          ArrayRef<ProductOperands> products, Mismatch *why) {
  TileRanking ranking(plan, products, tgl::plannedPoints);
  if (!ranking.addProducts()) // of all sizes something for the middle
    return {RankedTile{TensorTile{64, 64, 2, 2, 1}, 0}};
  std::string reason = ranking.whyNoTile();
  if (reason.empty()) {
    ranking.rankAll();
    if (!tgl::Invariance::of(tgl::ParallelOp(plan.op)).isFree())
      ranking.keepInvariant();
    reason = ranking.whyNotRanked();
  }
  if (reason.empty())
    return std::move(ranking.ranked);
  if (why)
    *why = {reason, "", plan.op, false};
  return {};
}

SmallVector<RankedTile> tegula::rankTilesOfClass(TensorProduct &product, Mismatch *why) {
  SmallVector<RankedTile> planned = rankTiles(product.plan, product.operands, why);
  if (planned.empty() || tgl::Invariance::of(tgl::ParallelOp(product.plan.op)).isFree())
    return planned;
  product.operands = *describeOperands(product.plan, tgl::expectedPoints);
  TileRanking ranking(product.plan, product.operands, tgl::expectedPoints);
  if (!ranking.addProducts())
    return planned;
  ranking.rankAll();
  ranking.keepInvariant();
  ranking.keepInstruction(planned.front().tile.warpgroups);
  return std::move(ranking.ranked);
}

SmallVector<RankedTile> tegula::rankTiles(tgl::ParallelOp op, Mismatch *why) {
  Mismatch unheard;
  Mismatch &reason = why ? *why : unheard;
  Matched<TensorProduct> product = matchTensorProduct(op);
  if (!product)
    return reason = product.mismatch(), SmallVector<RankedTile>();
  return rankTiles(product->plan, product->operands, &reason);
}
