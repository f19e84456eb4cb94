//===- ContractionNumbers.cpp - Numbers of a contraction for the host ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/ContractionNumbers.h"

#include "codegen/nvgpu/Fragments.h"
#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/plan/JointTile.h"

using namespace llvm;
using namespace tegula;

/// Columns of a part of a warpgroup's sums, where all have no place beside the ring: 64 bytes of
/// bf16 in a row. Of products that share a tile the least that a lane's four columns divide.
static constexpr unsigned epiloguePassColumns = 32, minEpiloguePassColumns = 8;
/// Tiles of rows that are neighbours in the order of blocks: their columns are then in the
/// second-level cache when the next of them are read.
static constexpr int64_t defaultRaster = 8;
/// The same of blocks that stay, with boxes of 16-bit operands (bf16 of 8192 x 8192 x 8192 1537 us
/// for 1565 on an H200).
static constexpr int64_t tmaRaster = 16;

/// A persistent block has a bit for each of its tiles.
static constexpr int64_t maxTiles = 8 * TileMemory::flaggedTilesBytes;

ContractionNumbers::ContractionNumbers(const EmitterOptions &options, const ContractionPlan &plan,
                                       const TensorTile &tile, ArrayRef<ProductOperands> products,
                                       std::optional<TileRange> range)
    : options(options), plan(plan), tile(tile), range(range), products(products),
      axes(tgl::axesOfOp(tgl::ParallelOp(plan.op))), memory(tile, products, options.target) {
  wgmmaProducts = usesBF16Terms() ? operandsOfBF16Terms(plan, products) : this->products;
  for (ProductOperands &product : this->products)
    if (product.type == MmaType::F8 && !usesWgmma() &&
        !options.target.hasF8) { // numbers of f16 all the same
      product.type = MmaType::F16;
      product.a.staging = product.b.staging = Staging::Values;
      product.a.isPlain = product.b.isPlain = false;
    }
  if (isPrepacked())
    for (auto [product, operands] : zip_equal(plan.products, products))
      prepacked.push_back(planPrepackedProduct(operands, product.reduce));
  chooseEpilogueColumns();
  if (tile.hasOneMainloop() && !(usesTma() && isPersistent() && usesWarpEpilogue()))
    separateProducts();
  if (isPrepacked() && tile.halo && prepacked.size() == 1 && prepacked.front().b)
    layOutHaloTile();
  if (options.clusterReduce && !range)
    memory.useClusterReduceWhereFits(numTiles().asConstant(), EpiloguePlan::interleavedRows(plan));
}

/// One copy of the image for all taps, where the windows allow that.
void ContractionNumbers::layOutHaloTile() {
  PrepackedProduct &pack = prepacked.front();
  halo = planHaloTile(*pack.b, this->products.front().b.read, plan.products.front().reduce, axes,
                      plan.columns);
  std::optional<KOrder> order;
  if (halo)
    order = groupChannels(pack.order, *halo, WgmmaSharedLayout::lineElements / termsOfStep(),
                          tile.columns, usesSplitPrecision());
  if (!order) {
    halo.reset();
    return;
  }
  padded.assign(halo->extents.begin(), halo->extents.end());
  pack.order = *order;
  // Rows alone, patches and places; or, with care, two stages of both.
  unsigned ring = std::max(ringRowsBytes() + haloBuffers * haloBytes() + tapOffsetsBytes(),
                           2 * memory.stageBytes());
  memory.setRingBytes(alignTo(ring, 16));
}

/// Where a tile's sums have no place beside the ring, a warp takes them there part by part, if it
/// does the rest alone: the block stays for other tiles then, and what they need is brought
/// meanwhile.
void ContractionNumbers::chooseEpilogueColumns() {
  if (!isWarpSpecialized() || usesSplitPrecision() || isPersistent())
    return;
  unsigned ofProduct = std::max<unsigned>(
      llvm::bit_floor(epiloguePassColumns / unsigned(tile.joint)), minEpiloguePassColumns);
  memory.setEpilogueColumns(tile.columns / warpgroupColumns(tile) * ofProduct);
  if (isPersistent() && usesWarpEpilogue())
    return;
  memory.setEpilogueColumns(std::nullopt);
  memory.forbidTma16Bit(); // in blocks that end with their tile boxes are no faster
}

/// Products that share a tile are those of blocks that stay, whose warps do the rest by themselves.
/// Elsewhere they come one after the other, with a tile for each.
void ContractionNumbers::separateProducts() {
  tile = *separateTileOf(tile, products, options.target); // matched where there is one
  memory = TileMemory(tile, products, options.target);
}

/// Whether each warp does the rest for its own sums. With windows that are copied this takes
/// longer, why is not found (KernelBench's level 1, 62, 74 and 80: 1.08 to 1.36 times).
bool ContractionNumbers::usesWarpEpilogue() const {
  return planEpilogue().fitsWarpEpilogue() &&
         !(isPrepacked() && (prepacked.front().a || prepacked.front().b));
}

//===----------------------------------------------------------------------===//
// Points of groups of axes
//===----------------------------------------------------------------------===//

IndexExpr ContractionNumbers::pointsOnHost(tgl::AxesOp op, ArrayRef<unsigned> group) const {
  IndexExpr result = 1;
  for (unsigned axis : group) {
    if (int64_t counted = paddedExtent(op, axis)) {
      result = result * counted;
      continue;
    }
    tgl::AxisRange range = tgl::getAxisRange(op, axis);
    result = result * IndexExpr::max((range.hi - range.lo).expr(), 0);
  }
  return result;
}

bool ContractionNumbers::numbersFit32Bit(tgl::AxesOp op, ArrayRef<unsigned> group) const {
  std::optional<int64_t> known = tgl::knownPoints(op, group);
  return known ? *known <= maxDivisible32 : pointsOnHost(op, group).isSize();
}

int64_t ContractionNumbers::paddedExtent(tgl::AxesOp op, unsigned axis) const {
  if (padded.empty() || op != axes)
    return 0;
  unsigned images = plan.columns.size() - padded.size();
  auto place = llvm::find(plan.columns, axis) - plan.columns.begin();
  return place >= images && place < int64_t(plan.columns.size()) ? padded[place - images] : 0;
}

//===----------------------------------------------------------------------===//
// Tiles and blocks
//===----------------------------------------------------------------------===//

IndexExpr ContractionNumbers::numTiles() const {
  if (range)
    return range->count;
  auto blocks = [&](ArrayRef<unsigned> group, int64_t extent) {
    return IndexExpr::floorDiv(pointsOnHost(axes, group) + (extent - 1), extent);
  };
  return pointsOnHost(axes, plan.batch) * blocks(plan.rows, tile.rows) *
         blocks(plan.columns, tile.statementColumns());
}

IndexExpr ContractionNumbers::numBlocks() const {
  return isPersistent() ? persistentBlocks() : numTiles() * tile.splits;
}

IndexExpr ContractionNumbers::persistentBlocks() const {
  IndexExpr tiles = numTiles(), least = IndexExpr::floorDiv(tiles + (maxTiles - 1), maxTiles);
  return IndexExpr::min(tiles, IndexExpr::max(least, int64_t(options.target.multiprocessors)));
}

/// Whether tiles are known to have numbers of 32 bits. The first division of 64 bits in a function
/// takes ptxas milliseconds.
bool ContractionNumbers::tileNumbersFit32Bit() const {
  std::optional<int64_t> tiles = numTiles().asConstant();
  return !isPersistent() || (tiles && isInt<32>(*tiles));
}

/// Numbers of rows and columns and points of sums are divided in 32 bits.
IndexExpr ContractionNumbers::largestNumber() const {
  IndexExpr largest = 1;
  auto add = [&](tgl::AxesOp op, ArrayRef<unsigned> group) {
    if (numbersFit32Bit(op, group))
      largest = IndexExpr::max(largest, pointsOnHost(op, group));
  };
  for (ArrayRef<unsigned> group :
       {ArrayRef(plan.batch), ArrayRef(plan.rows), ArrayRef(plan.columns)})
    add(axes, group);
  for (const ContractionProduct &product : plan.products)
    add(tgl::axesOfOp(product.reduce),
        to_vector(seq<unsigned>(0, tgl::axesOfOp(product.reduce).getAxes().size())));
  return largest;
}

SmallVector<mlir::Value> ContractionNumbers::alignedTensors() const {
  SmallVector<mlir::Value> tensors;
  for (ArrayRef<ProductOperands> all : {ArrayRef(products), ArrayRef(wgmmaProducts)})
    for (const ProductOperands &product : all)
      for (const ContractionOperand *operand : {&product.a, &product.b})
        if (operand->staging == Staging::Vectors)
          tensors.push_back(tgl::ReadOp(operand->read).getTensor());
  return tensors;
}

/// Whether points of the batch read the same image a few pixels apart, as phases of a transposed
/// convolution do.
bool ContractionNumbers::batchSharesImage() const {
  if (!isPrepacked() || !prepacked.front().b)
    return false;
  SmallVector<tgl::ValueExpr> subscripts = tgl::ReadOp(products.front().b.read).getSubscriptExprs();
  tgl::AxesOp op = axes;
  auto usesBatch = [&](unsigned dim) {
    return any_of(plan.batch,
                  [&](unsigned axis) { return subscripts[dim].uses(op.getAxes()[axis]); });
  };
  const WindowOperand &window = *prepacked.front().b;
  return any_of(window.pixelDims, usesBatch) && none_of(window.imageDims, usesBatch) &&
         !usesBatch(window.channelDim);
}

/// Tiles of rows that are neighbours in the order of blocks.
int64_t ContractionNumbers::raster() const {
  return tile.raster ? tile.raster : usesTma() && memory.are16Bit() ? tmaRaster : defaultRaster;
}

/// Of a tile, added up by one block: few enough for all multiprocessors to take part.
unsigned ContractionNumbers::combineRows() const {
  unsigned least = memory.minEpilogueRows(EpiloguePlan::interleavedRows(plan)), own = 16;
  std::optional<int64_t> tiles = numTiles().asConstant();
  while (tiles && own > least &&
         *tiles * (tile.rows / own) < 2 * int64_t(options.target.multiprocessors))
    own /= 2;
  return own;
}

/// Nothing where no tiles are left, or too many for two blocks each.
std::optional<SplitKTail> ContractionNumbers::splitKTail() const {
  if (!tile.tail || !options.splitKTail || !isPersistent() || usesSplitPrecision() ||
      isPrepacked() || !hasCopyProducers())
    return std::nullopt;
  if (!partialWrites(plan.op).empty()) // a reduction begins in whole tiles
    return std::nullopt;
  std::optional<int64_t> tiles = numTiles().asConstant(), blocks = persistentBlocks().asConstant();
  std::optional<int64_t> points = tgl::knownPoints(
      cast<tgl::AxesOp>(tgl::ReduceOp(plan.products.front().reduce).getOperation()));
  if (!tiles || !blocks || !points || *tiles % *blocks == 0)
    return std::nullopt;
  SplitKTail result;
  result.blocks = *blocks;
  result.whole = *tiles / *blocks;
  result.tiles = *tiles % *blocks;
  result.stages =
      divideCeil(*points, int64_t(WgmmaSharedLayout::lineBytes / bytesOf(products.front().type)));
  result.slices = std::min(*blocks / result.tiles, result.stages / TensorTile::minStagesOfSplit);
  return result.slices > 1 ? std::optional(result) : std::nullopt;
}

std::optional<ContractionNumbers::RemainderTiles> ContractionNumbers::remainderTiles() const {
  std::optional<SplitKTail> tail = splitKTail();
  if (!tail)
    return std::nullopt;
  TensorTile split = tile;
  split.tail = false;
  split.splits = tail->slices;
  split.raster = raster(); // so that numbers are of the same tiles
  return RemainderTiles{split, {tail->whole * tail->blocks, tail->tiles}};
}

//===----------------------------------------------------------------------===//
// Threads and their roles
//===----------------------------------------------------------------------===//

/// Whether stages are in memory as shared memory has them, or maps say how they are. Windows are
/// gathered.
bool ContractionNumbers::usesBulkLoads() const {
  return usesTma() ||
         (options.target.usesBulkLoads && isPrepacked() &&
          none_of(prepacked, [](const PrepackedProduct &pack) { return pack.a || pack.b; }));
}

/// Those that come to barriers of both roles: all, or, where one thread copies, its warp and those
/// that multiply.
unsigned ContractionNumbers::barrierThreads() const {
  constexpr unsigned warpThreads = 32;
  return usesBulkLoads() ? threads() + warpThreads : blockThreads();
}

WarpRoleRegisters ContractionNumbers::roleRegisters() const {
  constexpr WarpRoleRegisters ofHalves = {88, 168}, ofCopyProducers = {72, 216},
                              ofBulkProducers = {40, 232};
  return usesBulkLoads() ? ofBulkProducers : hasCopyProducers() ? ofCopyProducers : ofHalves;
}

/// Whether the mainloop of product `number` asks if all sums are finite.
bool ContractionNumbers::isChecked(unsigned number) const {
  const ProductOperands &how = products[number];
  return usesWgmma() ? usesSplitPrecision() : how.a.terms + how.b.terms > 2;
}

//===----------------------------------------------------------------------===//
// Halo tiles
//===----------------------------------------------------------------------===//

/// 16-bit numbers of a value in shared memory.
unsigned ContractionNumbers::termsOfStep() const {
  const ProductOperands &how = products.front();
  return usesSplitPrecision() ? std::max(how.a.terms, how.b.terms) : 1;
}

unsigned ContractionNumbers::haloBytes() const {
  return halo->haloPixels(tile.columns) * groupOrder().groupVectors * termsOfStep() *
         haloChunkBytes;
}

HaloLayout ContractionNumbers::haloLayout() const {
  const KOrder &order = groupOrder();
  HaloLayout layout{haloBuffers,   haloBytes(),          unsigned(order.groupVectors),
                    termsOfStep(), unsigned(order.taps), {}};
  for (const HaloTile::Stretch &stretch : halo->stretches(tile.columns))
    layout.pixels.emplace_back(stretch.first, stretch.first + stretch.count - 1);
  return layout;
}

unsigned ContractionNumbers::tapOffsetsBytes() const {
  return groupOrder().groupPoints / Wgmma::stepDepth * 4;
}
