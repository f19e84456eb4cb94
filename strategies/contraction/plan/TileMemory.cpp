//===- TileMemory.cpp - Shared memory of a block's tile -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/TileMemory.h"
#include "target/DeviceFacts.h"

#include <cmath>
#include <numeric>

using namespace llvm;
using namespace tegula;

/// The bytes of rings that are to be deep. They leave room for the launch that adds up partial
/// sums, which starts early.
static constexpr unsigned deepRoom = 192 * 1024;
/// The stages of deep rings of warps.
static constexpr unsigned deepStages = 8;
/// More would only cost time.
static constexpr unsigned maxStages = 16;

namespace {
/// The extents of a product whose operands have TMA descriptors.
struct Extents {
  double rows, columns, points, batch;
};
} // namespace

static Extents extentsOf(const ProductOperands &product) {
  auto batchOf = [](const TmaOperand &map) {
    double points = 1;
    for (int64_t extent : ArrayRef(map.extents).drop_front(2))
      points *= extent;
    return points;
  };
  const TmaOperand &row = *product.a.tma, &column = *product.b.tma;
  return {double(row.extents[product.a.kMajor]), double(column.extents[product.b.kMajor]),
          double(row.extents[!product.a.kMajor]), std::max(batchOf(row), batchOf(column))};
}

/// Lines of the largest stage: a tile of each operand, or one for each plane.
static unsigned linesOfStage(const TensorTile &tile, ArrayRef<ProductOperands> products) {
  unsigned lines = 0;
  auto planesOf = [&](const ContractionOperand &operand) {
    return operand.isExact ? 1 : tile.terms;
  };
  for (const ProductOperands &product : products)
    lines = std::max<unsigned>(lines, tile.rows * planesOf(product.a) +
                                          tile.columns * planesOf(product.b));
  return lines;
}

TileMemory::TileMemory(const TensorTile &tile, ArrayRef<ProductOperands> products,
                       const TargetInfo &machine)
    : tile(tile), machine(machine), numProducts(tile.hasOneMainloop() ? 1 : products.size()),
      stageLines(usesBF16Terms() ? linesOfStage(tile, products) : tile.rows + tile.columns),
      usesSplitPrecision(products.front().type == MmaType::TF32),
      areBytes(isBytes(products.front().type)), isF8(products.front().type == MmaType::F8),
      copies(any_of(products,
                    [](const ProductOperands &each) {
                      return each.a.staging != Staging::Values || each.b.staging != Staging::Values;
                    })),
      allowsTma(
          all_of(products, [](const ProductOperands &each) { return each.a.tma && each.b.tma; })) {
  steps = maxStages;
  double longest = 0;
  for (const ProductOperands &product : products)
    if (allowsTma) {
      Extents of = extentsOf(product);
      multiplications += of.rows * of.columns * of.points * of.batch;
      double blocks = std::ceil(of.rows / tile.rows) *
                      std::ceil(of.columns / tile.statementColumns()) * of.batch * tile.splits;
      isAlone = are16Bit() && blocks <= device::multiprocessors;
      longest = tile.accumulated ? longest + of.points : std::max(longest, of.points);
    }
  constexpr double depth = lineBytes / 2;
  if (allowsTma)
    steps = std::min(double(maxStages), std::ceil(std::ceil(longest / depth) / tile.splits));
}

/// Whether TMA loads of 16-bit operands pay: in persistent blocks that compute several tiles.
/// Building descriptors takes a microsecond, which is much for a small product.
bool TileMemory::usesTma16Bit() const {
  constexpr int64_t largeTile = 128 * 192;
  constexpr double ofLarge =
      1.0 / 3; // smaller tiles have deep rings in small products, which are faster
  double least = machine.minTmaMacs * (tile.rows * tile.columns >= largeTile ? ofLarge : 1);
  return are16Bit() && machine.tma16Bit && tile.splits == 1 && numProducts == 1 &&
         multiplications >= least;
}

unsigned TileMemory::stages() const {
  if (usesBF16Terms()) // more would leave no room for a second block
    return 2;
  if (tile.stages)
    return tile.stages;
  // Blocks that share a sum, or have a multiprocessor each, wait for memory more than for products:
  // what a multiprocessor holds is to be on its way, and all of a short sum.
  unsigned others = (numProducts - 1) * accumulatorsBytes(),
           room = machine.sharedBytes - std::min(others, machine.sharedBytes);
  unsigned deep = std::min({std::min(deepRoom, room) / stageBytes(), steps + 2, maxStages});
  if (usesWgmma())
    return isDeep() || (tile.splits > 1 && !isWarpSpecialized()) ? std::max(defaultStages, deep)
                                                                 : defaultStages;
  room = std::min(room, tile.threads() > 128 ? 192u * 1024 : 64u * 1024);
  unsigned usual = std::clamp(room / stageBytes(), 2u, defaultStages);
  return isDeep() ? std::max(usual, std::min(deep, deepStages)) : usual;
}

unsigned TileMemory::linesBytes() const {
  if (!isWarpSpecialized() || !usesSplitPrecision)
    return 0;
  unsigned lines = 4 * (tile.rows + tile.columns);
  if (!isPrepacked() || !isPersistent())
    return (isPrepacked() ? 1 : 2) * lines;
  bool fits = minPersistentBytes() + 2 * lines <= machine.sharedBytes;
  return fits ? 2 * lines : 0;
}

/// Scales of packed lines may lie where sums do later.
unsigned TileMemory::minPersistentBytes() const {
  unsigned lines = isPrepacked() || !usesSplitPrecision ? 0 : 2 * 4 * (tile.rows + tile.columns);
  return ringBytes() + lines + jointAccumulatorsBytes() + flaggedTilesBytes + barriersBytes();
}

unsigned TileMemory::barriersBytes() const {
  constexpr unsigned barrierBytes = 8;
  return isPrepacked() || usesTma() ? alignTo(numProducts * stages() * barrierBytes, 16) : 0;
}

bool TileMemory::isPersistent() const {
  return isWarpSpecialized() && tile.splits == 1 && numProducts == 1 &&
         minPersistentBytes() <= machine.sharedBytes;
}

unsigned TileMemory::sharedBytes() const {
  if (isPersistent())
    return persistentBytes();
  return operandsBytes() + behindOperands() + (hasReceiveBuffer() ? receivedBytes() : 0);
}

//===----------------------------------------------------------------------===//
// Blocks that share a sum
//===----------------------------------------------------------------------===//

static constexpr unsigned receivedBarrierBytes = 16;

unsigned TileMemory::behindOperands() const {
  return linesBytes() + (numProducts - 1) * accumulatorsBytes() + barriersBytes() +
         (reducesInCluster ? receivedBarrierBytes : 0);
}

bool TileMemory::hasReceiveBuffer() const {
  return reducesInCluster &&
         std::max(ringBytes(), accumulatorsBytes()) + behindOperands() + receivedBytes() <=
             machine.sharedBytes;
}

unsigned TileMemory::operandsBytes() const {
  return std::max(ringBytes(), accumulatorsBytes() + (hasReceiveBuffer() ? 0 : receivedBytes()));
}

unsigned TileMemory::receivedBase() const {
  return hasReceiveBuffer() ? operandsBytes() + behindOperands() : accumulatorsBytes();
}

unsigned TileMemory::receivedBarrier() const {
  unsigned end = isPersistent() ? persistentBytes() : operandsBytes() + behindOperands();
  return end - (reducesInCluster ? receivedBarrierBytes : 0);
}

int64_t TileMemory::residents() const { return std::max(1u, machine.sharedBytes / sharedBytes()); }

unsigned TileMemory::minEpilogueRows(unsigned interleavedRows) const {
  return std::max(interleavedRows,
                  unsigned(tile.threads() / std::gcd(tile.threads(), tile.columns)));
}

void TileMemory::useClusterReduceWhereFits(std::optional<int64_t> tiles, unsigned interleavedRows) {
  reducesInCluster = tile.splits > 1 && !tile.parts &&
                     tile.rows % (tile.splits * minEpilogueRows(interleavedRows)) == 0;
  reducesInCluster = reducesInCluster && clustersFit(tiles);
}

bool TileMemory::clustersFit(std::optional<int64_t> tiles) const {
  if (sharedBytes() > machine.sharedBytes)
    return false;
  return tile.splits == 2 || (tiles && *tiles <= device::clustersAtOnce(tile.splits) * residents());
}

unsigned TileMemory::accumulatorsBase(unsigned product) const {
  if (isPersistent())
    return linesBase() + linesBytes() + product * accumulatorsBytes();
  // The last product's sums lie where the operands were.
  return product + 1 == numProducts ? 0 : barriersBase() - (product + 1) * accumulatorsBytes();
}

std::pair<unsigned, unsigned> TileMemory::stageLimits() const {
  if (tile.halo && isPrepacked()) // its ring has columns elsewhere
    return {defaultStages, defaultStages};
  if (usesBF16Terms() || (!usesWgmma() && !copies)) // values are stored a step ahead
    return {2, 2};
  // A block has 16 barriers, of which those with roles use four and, for each stage, one when it is
  // full (of f8 one for each warpgroup) and one when it is empty. Warpgroups without roles multiply
  // a stage, have the one before under way, and copy at least one. Whether operands of 16 bits come
  // as boxes, and there are roles, is known once it is known who does the rest.
  bool mayBeUnspecialized = !isWarpSpecialized() || (are16Bit() && !tile.prepacked);
  unsigned least = usesWgmma() && mayBeUnspecialized ? 3 : 2,
           most = isWarpSpecialized() ? 12 / (isF8 ? 3 : 2) : maxStages;
  auto fits = [&](unsigned stages) {
    TileMemory other = *this;
    other.tile.stages = stages;
    return other.sharedBytes() <= machine.sharedBytes;
  };
  while (most > least && !fits(most))
    --most;
  return {least, most};
}
