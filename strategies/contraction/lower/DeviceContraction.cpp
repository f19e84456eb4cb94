//===- DeviceContraction.cpp - Matrix products on tensor cores ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Columns of a part of a warpgroup's sums, where all have no place beside the ring: 64 bytes of
/// bf16 in a row.
static constexpr unsigned epiloguePassColumns = 32;
/// Tiles of rows that are neighbours in the order of blocks: their columns are then in the
/// second-level cache when the next of them are read.
static constexpr int64_t defaultRaster = 8;
/// The same of blocks that stay, with boxes of 16-bit operands (bf16 of 8192 x 8192 x 8192 1537 us
/// for 1565 on an H200).
static constexpr int64_t tmaRaster = 16;

static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

DeviceContraction::DeviceContraction(Emitter &emitter, const ContractionPlan &plan,
                                     const TensorTile &tile, ArrayRef<ProductOperands> products,
                                     std::optional<TileRange> range)
    : e(emitter), b(emitter.b), plan(plan), tile(tile), range(range), products(products),
      axes(axesOfOp(tgl::ParallelOp(plan.op))), rowBlocks(tile.rows / tile.warpRows / 16),
      columnBlocks(tile.columns / tile.warpColumns / 16),
      memory(tile, products, emitter.options.target), here(emitter, plan, this->tile, memory) {
  for (ProductOperands &product : this->products)
    if (product.type == MmaType::F8 && !usesWgmma() &&
        !emitter.options.target.hasF8) { // numbers of f16 all the same
      product.type = MmaType::F16;
      product.a.staging = product.b.staging = Staging::Values;
      product.a.isPlain = product.b.isPlain = false;
    }
  if (isPrepacked())
    for (auto [product, operands] : zip_equal(plan.products, products))
      prepacked.push_back(planPrepackedProduct(operands, product.reduce));
  chooseEpilogueColumns();
  if (isPrepacked() && tile.halo && prepacked.size() == 1 && prepacked.front().b)
    layOutHaloTile();
  if (emitter.options.clusterReduce && !range)
    memory.useClusterReduceWhereFits(numTiles().asConstant(), Epilogue::interleavedRows(plan));
}

/// One copy of the image for all taps, where the windows allow that.
void DeviceContraction::layOutHaloTile() {
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
  here.padColumns(halo->extents);
  pack.order = *order;
  // Rows alone, patches and places; or, with care, two stages of both.
  unsigned ring = std::max(ringRowsBytes() + haloBuffers * haloBytes() + tapOffsetsBytes(),
                           2 * memory.stageBytes());
  memory.setRingBytes(alignTo(ring, 16));
}

/// Where a tile's sums have no place beside the ring, a warp takes them there part by part, if it
/// does the rest alone: the block stays for other tiles then, and what they need is brought
/// meanwhile.
void DeviceContraction::chooseEpilogueColumns() {
  if (!isWarpSpecialized() || usesSplitPrecision() || isPersistent())
    return;
  memory.setEpilogueColumns(tile.columns / warpgroupColumns(tile) * epiloguePassColumns);
  if (isPersistent() && usesWarpEpilogue(Epilogue(here)))
    return;
  memory.setEpilogueColumns(std::nullopt);
  memory.forbidTma16Bit(); // in blocks that end with their tile boxes are no faster
}

/// Whether each warp does the rest for its own sums. With windows that are copied this takes
/// longer, why is not found (KernelBench's level 1, 62, 74 and 80: 1.08 to 1.36 times).
bool DeviceContraction::usesWarpEpilogue(const Epilogue &epilogue) const {
  return epilogue.fitsWarpEpilogue() &&
         !(isPrepacked() && (prepacked.front().a || prepacked.front().b));
}

//===----------------------------------------------------------------------===//
// Numbers known to the host
//===----------------------------------------------------------------------===//

IndexExpr DeviceContraction::numTiles() const {
  if (range)
    return range->count;
  auto blocks = [&](ArrayRef<unsigned> group, int64_t extent) {
    return IndexExpr::floorDiv(here.pointsOnHost(axes, group) + (extent - 1), extent);
  };
  return here.pointsOnHost(axes, plan.batch) * blocks(plan.rows, tile.rows) *
         blocks(plan.columns, tile.columns);
}

IndexExpr DeviceContraction::numBlocks() const {
  return isPersistent() ? persistentBlocks() : numTiles() * tile.splits;
}

/// Numbers of rows and columns and points of sums are divided in 32 bits.
IndexExpr DeviceContraction::largestNumber() const {
  IndexExpr largest = 1;
  auto add = [&](tgl::AxesOp op, ArrayRef<unsigned> group) {
    if (here.numbersFit32Bit(op, group))
      largest = IndexExpr::max(largest, here.pointsOnHost(op, group));
  };
  for (ArrayRef<unsigned> group :
       {ArrayRef(plan.batch), ArrayRef(plan.rows), ArrayRef(plan.columns)})
    add(axes, group);
  for (const ContractionProduct &product : plan.products)
    add(axesOfOp(product.reduce),
        to_vector(seq<unsigned>(0, axesOfOp(product.reduce).getAxes().size())));
  return largest;
}

IndexExpr DeviceContraction::workspaceBytes() const {
  return prepackedBytes() + numTiles() * (tile.splits * int64_t(blockWorkspaceBytes())) +
         splitKTailBytes() + tmaDescriptorsBytes();
}

SmallVector<mlir::Value> DeviceContraction::alignedTensors() const {
  SmallVector<mlir::Value> tensors;
  for (const ProductOperands &product : products)
    for (const ContractionOperand *operand : {&product.a, &product.b})
      if (operand->staging == Staging::Vectors)
        tensors.push_back(tgl::ReadOp(operand->read).getTensor());
  return tensors;
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

void DeviceContraction::barrier() {
  if (isWarpSpecialized())
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                      {i32(consumerBarrier), i32(threads())});
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

Value *DeviceContraction::ceilDiv(Value *x, Value *y) {
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, i64(1))), y);
}

/// Whether points of the batch read the same image a few pixels apart, as phases of a transposed
/// convolution do.
bool DeviceContraction::batchSharesImage() const {
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
int64_t DeviceContraction::raster() const {
  return tile.raster ? tile.raster : usesTma() && memory.are16Bit() ? tmaRaster : defaultRaster;
}

/// Where the tile lies: points of the batch, in them stretches of rows, in them columns, rows
/// fastest. Points that share an image are faster still: it is in the second-level cache when the
/// next of them reads it.
void DeviceContraction::setTile(Value *number) {
  int64_t rasterRows = raster();
  // One for each block is less than 2^31, and of 32 bits divisions are short.
  auto *type = tileNumbersFit32Bit() ? b.getInt32Ty() : b.getInt64Ty();
  auto constant = [&](int64_t value) { return ConstantInt::get(type, value); };
  number = b.CreateTrunc(number, type);
  Value *rowTiles = b.CreateTrunc(ceilDiv(here.rows.total, i64(tile.rows)), type),
        *columnTiles = b.CreateTrunc(ceilDiv(here.columns.total, i64(tile.columns)), type);
  Value *term = b.CreateMul(rowTiles, columnTiles);
  batch = i64(0);
  if (!plan.batch.empty()) {
    if (batchSharesImage()) {
      Value *points = b.CreateTrunc(here.pointsOf(axes, plan.batch), type);
      batch = wide(b.CreateURem(number, points));
      number = b.CreateUDiv(number, points);
    } else {
      batch = wide(b.CreateUDiv(number, term));
    }
    here.setNumber(axes, plan.batch, false, batch);
  }
  if (!plan.batch.empty() || isa<Constant>(term)) // else it is less; of a constant LLVM learns that
    number = b.CreateURem(number, term);
  if (tileNumbersFit32Bit()) // no number is larger than a stretch of so many
    columnTiles = b.CreateBinaryIntrinsic(Intrinsic::umin, columnTiles,
                                          constant((int64_t(1) << 31) / rasterRows));
  Value *stretch = b.CreateMul(columnTiles, constant(rasterRows));
  Value *firstTile = b.CreateMul(b.CreateUDiv(number, stretch), constant(rasterRows));
  Value *height = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateSub(rowTiles, firstTile),
                                          constant(rasterRows));
  Value *within = b.CreateURem(number, stretch);
  Value *row = b.CreateAdd(firstTile, b.CreateURem(within, height));
  here.rows.first = b.CreateMul(wide(row), i64(tile.rows));
  here.columns.first = b.CreateMul(wide(b.CreateUDiv(within, height)), i64(tile.columns));
}

/// Sets the summed axes to point `k` (i64).
void DeviceContraction::setPoint(tgl::ReduceOp reduce, const KLoop &sum, bool collapses, Value *k) {
  tgl::AxesOp summed = axesOfOp(reduce);
  if (!sum.isReordered)
    return here.setNumber(summed, sum.order.axes, collapses, k);
  unsigned last = sum.order.axes.back();
  if (sum.order.groupVectors) {
    GroupedPoint point = groupedPoint(sum.order, k);
    e.values[summed.getAxes()[last]] =
        b.CreateAdd(point.channel, e.emitIndex(e.lowOf(summed, last)));
    here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false, point.tap);
    return;
  }
  e.values[summed.getAxes()[last]] =
      b.CreateAdd(b.CreateURem(k, i64(sum.order.padded)), e.emitIndex(e.lowOf(summed, last)));
  here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false,
                 b.CreateUDiv(k, i64(sum.order.padded)));
}

bool MmaProduct::copies() const {
  return a.how->staging != Staging::Values || b.how->staging != Staging::Values;
}

static KOrder ownOrder(tgl::ReduceOp reduce) {
  return {to_vector(seq<unsigned>(0, axesOfOp(reduce).getAxes().size()))};
}

/// The block's step `number` (i64) among all of the sum.
Value *DeviceContraction::stepInKLoop(const KLoop &sum, Value *number) {
  if (tile.splits == 1)
    return tailSlice ? b.CreateAdd(b.CreateMul(number, tailSlice->step), tailSlice->first) : number;
  Value *together = i64(sum.together);
  Value *turn = b.CreateAdd(split, b.CreateMul(b.CreateUDiv(number, together), i64(tile.splits)));
  return b.CreateAdd(b.CreateMul(turn, together), b.CreateURem(number, together));
}

/// The steps of a sum, each of `depth` points, that are this block's, `together` of them in a turn.
KLoop DeviceContraction::makeKLoop(tgl::ReduceOp reduce, int64_t depth, const KOrder &order,
                                   unsigned together) {
  tgl::AxesOp summed = axesOfOp(reduce);
  KLoop sum;
  sum.order = order;
  sum.together = together;
  bool isPadded = order.padded && tgl::knownPoints(summed, {order.axes.back()}) != order.padded;
  sum.isReordered = isPadded || order.groupVectors || !llvm::is_sorted(order.axes);
  sum.total = order.padded ? i64(order.points(summed)) : here.pointsOf(summed, order.axes);
  std::optional<int64_t> known = tgl::knownPoints(summed);
  int64_t inTurn = depth * together;
  sum.fits = !isPadded && known && *known % inTurn == 0;
  Value *turns = tailSlice ? tailSlice->stages : ceilDiv(sum.total, i64(inTurn));
  if (tile.splits > 1) {
    // The first parts have one turn more where there is a rest. (With bounds (steps * split) /
    // splits one part of 33 was lost on an H200 where the dividend passed 65,535, though PTX and
    // emulator have it right.) Parts take turns: neighbours in memory are then read at about the
    // same time.
    Value *each = b.CreateUDiv(turns, i64(tile.splits)),
          *longer = b.CreateURem(turns, i64(tile.splits));
    turns = b.CreateAdd(each, b.CreateZExt(b.CreateICmpULT(split, longer), b.getInt64Ty()));
  }
  sum.steps = b.CreateMul(turns, i64(together));
  return sum;
}

/// The product by warps. Where warpgroups have made a part of its sums, and those are made again
/// here, it is the same points: other blocks' parts have the others.
DeviceContraction::Product DeviceContraction::makeMmaProduct(unsigned number) {
  const ContractionProduct &planned = plan.products[number];
  std::optional<WgmmaProduct> wgmma;
  if (usesWgmma() && tile.splits > 1)
    wgmma = makeWgmmaProduct(number);
  const ProductOperands *how = &products[number];
  if (wgmma && wgmma->kLoop.isReordered) { // neighbours in memory do not follow each other
    ProductOperands &evaluated = evaluatedOperands.try_emplace(number, *how).first->second;
    evaluated.a.staging = evaluated.b.staging = Staging::Values;
    how = &evaluated;
  }
  Product product;
  product.reduce = planned.reduce;
  MmaType type = how->type;
  unsigned elementBytes = bytesOf(type);
  product.operands = *how;
  auto operand = [&](const ContractionSide &side, const ContractionOperand &how, const Group &group,
                     unsigned offset) {
    bool kMajor = how.kMajor || isBytes(type);
    Operand result{&side, &how, &group, type, {kMajor, elementBytes, group.extent}, offset, 1, 0};
    if (how.staging == Staging::Vectors)
      result.vector = 16 / elementBytes;
    result.count = result.shared.bytes() / elementBytes / result.vector / threads();
    return result;
  };
  product.a = operand(planned.a, how->a, here.rows, 0);
  product.b = operand(planned.b, how->b, here.columns, product.a.shared.bytes());
  product.stages =
      product.copies() ? std::min(memory.stages(), memory.ringBytes() / product.stageBytes()) : 2;
  unsigned depth = product.a.shared.depth();
  if (wgmma)
    product.kLoop = makeKLoop(product.reduce, depth, wgmma->kLoop.order,
                              wgmma->a.shared.depth() * wgmma->substeps / depth);
  else
    product.kLoop = makeKLoop(product.reduce, depth, ownOrder(product.reduce));
  return product;
}

/// What the side is made of, for drawings.
static std::string sourceOf(const ContractionSide &side, const ContractionOperand &how) {
  if (!how.isPlain)
    return "evaluated by " + std::to_string(side.slice.size()) + " operations";
  return sourceName(tgl::ReadOp(how.read).getTensor());
}

void DeviceContraction::note(const Product &product) {
  auto operand = [](const Operand &its) {
    return OperandLayout{sourceOf(*its.side, *its.how), its.shared, its.offset,
                         its.how->staging != Staging::Values};
  };
  unsigned multiplications = product.a.how->terms + product.b.how->terms - 1;
  noted.push_back(
      {product.a.type, multiplications, product.stages, operand(product.a), operand(product.b)});
}

void DeviceContraction::note(const WgmmaProduct &product) {
  auto operand = [](const WgmmaOperand &its) {
    return OperandLayout{sourceOf(*its.side, *its.how), its.shared, its.offset, its.isCopied};
  };
  OperandLayout column = operand(product.b);
  if (product.b.usesHaloTile) {
    column.tile = haloLayout();
    column.offset = ringRowsBytes();
  }
  noted.push_back({product.type, product.a.terms + product.b.terms - 1, ringStages(),
                   operand(product.a), std::move(column)});
}

TileLayout DeviceContraction::layout(StringRef function) const {
  return {function.str(),     tile,          usesWgmma(), isWarpSpecialized(),
          hasCopyProducers(), sharedBytes(), noted};
}

//===----------------------------------------------------------------------===//
// What becomes of sums
//===----------------------------------------------------------------------===//

/// Two neighbours.
void DeviceContraction::storePair(Value *first, Value *second, Value *place) {
  Value *two = PoisonValue::get(FixedVectorType::get(here.accumulatorType(), 2));
  two = b.CreateInsertElement(two, first, uint64_t(0));
  two = b.CreateInsertElement(two, second, uint64_t(1));
  b.CreateAlignedStore(two, place, Align(8));
}

void DeviceContraction::storeAccumulators(ArrayRef<Value *> accumulators, unsigned base) {
  // Places are a constant from the first, which the optimiser does not see.
  TileCoord first = mmaAccumulatorAt(b, tile, here.corner, here.lane, 0);
  Value *place = here.accumulatorAddress(first.row, first.column, base);
  for (unsigned number = 0; number < accumulators.size(); number += 2) {
    FragmentStep step = fragmentStep(tile, number);
    unsigned further = step.down * accumulatorsPitch() + step.right;
    storePair(accumulators[number], accumulators[number + 1],
              b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}

void DeviceContraction::emitTile(Value *workspace) {
  here.begin();
  prepackedBase = workspace;
  if (isPersistent())
    return emitPersistentTiles();
  tile.splits > 1 ? setSplit() : setTile(wide(here.block));
  Epilogue epilogue(here);
  epilogue.returnIfUnused();
  if (isWarpSpecialized())
    startWarpSpecialization();
  if (usesClusterReduce())
    startClusterReduce();
  bool recomputesNonFinite = epilogue.recomputesNonFinite() && tile.splits == 1;
  for (unsigned which = 0; which < products.size(); ++which) {
    if (recomputesNonFinite && isChecked(which))
      emitCheckedMainloop(which, [&] { epilogue.recomputeNonFinite(); });
    else
      emitCheckedMainloop(which);
    if (isWarpSpecialized() && which + 1 < products.size())
      releaseProducers();
  }
  if (usesClusterReduce())
    clusterReduce();
  barrier();
  if (storesPartials())
    return storePartials(workspace);
  if (epilogue.recomputesNonFinite() && (usesClusterReduce() || !isChecked(0))) {
    epilogue.recomputeNonFinite();
    barrier(); // others begin reductions with them
  }
  epilogue.emit();
}
