//===- DeviceContraction.cpp - Matrix products on tensor cores ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Columns of a part of a warpgroup's sums, where all have no place beside the ring: 64 bytes of bf16 in a row.
static constexpr unsigned partColumns = 32;
/// Tiles of rows that are neighbours in the order of blocks: their columns are then in the second-level
/// cache when the next of them are read.
static constexpr int64_t usualRaster = 8;
/// The same of blocks that stay, with boxes of 16-bit operands (bf16 of 8192 x 8192 x 8192 1537 us for 1565 on an H200).
static constexpr int64_t boxedRaster = 16;

static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

DeviceContraction::DeviceContraction(Emitter &emitter, const ContractionPlan &plan,
                                     const TensorTile &tile, ArrayRef<ProductOperands> products,
                                     std::optional<TileRange> range)
    : e(emitter), b(emitter.b), plan(plan), tile(tile), range(range), products(products),
      axes(axesOfOp(tgl::ParallelOp(plan.op))), rowBlocks(tile.rows / tile.warpRows / 16),
      columnBlocks(tile.columns / tile.warpColumns / 16),
      memory(tile, products,
             {emitter.options.sharedBytes, emitter.options.hasWarpgroups, emitter.options.copiesInBulk,
              emitter.options.boxesOfHalves, emitter.options.leastBoxed}),
      here(emitter, plan, this->tile, memory) {
  for (ProductOperands &product : this->products)
    if (product.type == Multiplicand::F8 && !byWarpgroups() && !emitter.options.hasF8) { // numbers of f16 all the same
      product.type = Multiplicand::F16;
      product.row.staging = product.column.staging = Staging::Values;
      product.row.isPlain = product.column.isPlain = false;
    }
  if (isPacked())
    for (auto [product, operands] : zip_equal(plan.products, products))
      packs.push_back(planPackedProduct(operands, product.reduce));
  placeByParts();
  if (isPacked() && tile.shifted && packs.size() == 1 && packs.front().column)
    placeShifted();
  if (emitter.options.sharesSums && !range)
    memory.shareWhereFits(numTiles().asConstant(), TileRest::interleavedRows(plan));
}

/// One copy of the image for all taps, where the windows allow that.
void DeviceContraction::placeShifted() {
  PackedProduct &pack = packs.front();
  shifted = planShifted(*pack.column, this->products.front().column.read, plan.products.front().reduce, axes,
                        plan.columns);
  std::optional<SumOrder> order;
  if (shifted)
    order = groupChannels(pack.order, *shifted, PlaneTile::lineElements / stepPlanes(), tile.columns, isSplit());
  if (!order) {
    shifted.reset();
    return;
  }
  here.countColumns(shifted->extents);
  pack.order = *order;
  // Rows alone, patches and places; or, with care, two stages of both.
  unsigned ring = std::max(ringRowsBytes() + patches * patchBytes() + placesBytes(), 2 * memory.stageBytes());
  memory.setRingBytes(alignTo(ring, 16));
}

/// Where a tile's sums have no place beside the ring, a warp takes them there part by part, if it does the rest alone: the block
/// stays for other tiles then, and what they need is brought meanwhile.
void DeviceContraction::placeByParts() {
  if (!hasRoles() || isSplit() || isPersistent())
    return;
  memory.setSumsColumns(tile.columns / groupColumns(tile) * partColumns);
  if (isPersistent() && restsByWarps(TileRest(here)))
    return;
  memory.setSumsColumns(std::nullopt);
  memory.leaveHalves(); // in blocks that end with their tile boxes are no faster
}

/// Whether each warp does the rest for its own sums. With windows that are copied this takes longer, why is not found
/// (KernelBench's level 1, 62, 74 and 80: 1.08 to 1.36 times).
bool DeviceContraction::restsByWarps(const TileRest &rest) const {
  return rest.fitsWarps() && !(isPacked() && (packs.front().row || packs.front().column));
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
  return here.pointsOnHost(axes, plan.batch) * blocks(plan.rows, tile.rows) * blocks(plan.columns, tile.columns);
}

IndexExpr DeviceContraction::numBlocks() const {
  return isPersistent() ? persistentBlocks() : numTiles() * tile.splits;
}

/// Numbers of rows and columns and points of sums are divided in 32 bits.
IndexExpr DeviceContraction::largestNumber() const {
  IndexExpr largest = 1;
  auto add = [&](tgl::AxesOp op, ArrayRef<unsigned> group) {
    if (here.hasShortNumbers(op, group))
      largest = IndexExpr::max(largest, here.pointsOnHost(op, group));
  };
  for (ArrayRef<unsigned> group : {ArrayRef(plan.batch), ArrayRef(plan.rows), ArrayRef(plan.columns)})
    add(axes, group);
  for (const ContractionProduct &product : plan.products)
    add(axesOfOp(product.reduce), to_vector(seq<unsigned>(0, axesOfOp(product.reduce).getAxes().size())));
  return largest;
}

IndexExpr DeviceContraction::workspaceBytes() const {
  return packedBytes() + numTiles() * (tile.splits * int64_t(blockWorkspaceBytes())) + tailBytes() + mapsBytes();
}

SmallVector<mlir::Value> DeviceContraction::alignedTensors() const {
  SmallVector<mlir::Value> tensors;
  for (const ProductOperands &product : products)
    for (const ContractionOperand *operand : {&product.row, &product.column})
      if (operand->staging == Staging::Vectors)
        tensors.push_back(tgl::ReadOp(operand->read).getTensor());
  return tensors;
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

void DeviceContraction::barrier() {
  if (hasRoles())
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                      {i32(ownBarrier), i32(threads())});
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

Value *DeviceContraction::ceilDiv(Value *x, Value *y) {
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, i64(1))), y);
}

/// Whether points of the batch read the same image a few pixels apart, as phases of a transposed convolution do.
bool DeviceContraction::batchSharesImage() const {
  if (!isPacked() || !packs.front().column)
    return false;
  SmallVector<tgl::ValueExpr> subscripts = tgl::ReadOp(products.front().column.read).getSubscriptExprs();
  tgl::AxesOp op = axes;
  auto usesBatch = [&](unsigned dim) {
    return any_of(plan.batch, [&](unsigned axis) { return subscripts[dim].uses(op.getAxes()[axis]); });
  };
  const WindowOperand &window = *packs.front().column;
  return any_of(window.pixelDims, usesBatch) && none_of(window.imageDims, usesBatch) && !usesBatch(window.channelDim);
}

/// Tiles of rows that are neighbours in the order of blocks.
int64_t DeviceContraction::raster() const {
  return tile.raster ? tile.raster : isMapped() && memory.areHalves() ? boxedRaster : usualRaster;
}

/// Where the tile lies: points of the batch, in them stretches of rows, in them columns, rows fastest. Points that share an
/// image are faster still: it is in the second-level cache when the next of them reads it.
void DeviceContraction::setTile(Value *number) {
  int64_t rasterRows = raster();
  // One for each block is less than 2^31, and of 32 bits divisions are short.
  auto *type = hasShortTileNumbers() ? b.getInt32Ty() : b.getInt64Ty();
  auto constant = [&](int64_t value) { return ConstantInt::get(type, value); };
  number = b.CreateTrunc(number, type);
  Value *rowTiles = b.CreateTrunc(ceilDiv(here.rows.total, i64(tile.rows)), type),
        *columnTiles = b.CreateTrunc(ceilDiv(here.columns.total, i64(tile.columns)), type);
  Value *plane = b.CreateMul(rowTiles, columnTiles);
  batch = i64(0);
  if (!plan.batch.empty()) {
    if (batchSharesImage()) {
      Value *points = b.CreateTrunc(here.pointsOf(axes, plan.batch), type);
      batch = wide(b.CreateURem(number, points));
      number = b.CreateUDiv(number, points);
    } else {
      batch = wide(b.CreateUDiv(number, plane));
    }
    here.setNumber(axes, plan.batch, false, batch);
  }
  if (!plan.batch.empty() || isa<Constant>(plane)) // else it is less; of a constant LLVM learns that
    number = b.CreateURem(number, plane);
  if (hasShortTileNumbers()) // no number is larger than a stretch of so many
    columnTiles = b.CreateBinaryIntrinsic(Intrinsic::umin, columnTiles, constant((int64_t(1) << 31) / rasterRows));
  Value *stretch = b.CreateMul(columnTiles, constant(rasterRows));
  Value *firstTile = b.CreateMul(b.CreateUDiv(number, stretch), constant(rasterRows));
  Value *height = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateSub(rowTiles, firstTile), constant(rasterRows));
  Value *within = b.CreateURem(number, stretch);
  Value *row = b.CreateAdd(firstTile, b.CreateURem(within, height));
  here.rows.first = b.CreateMul(wide(row), i64(tile.rows));
  here.columns.first = b.CreateMul(wide(b.CreateUDiv(within, height)), i64(tile.columns));
}

/// Sets the summed axes to point `k` (i64).
void DeviceContraction::setPoint(tgl::ReduceOp reduce, const Sum &sum, bool collapses, Value *k) {
  tgl::AxesOp summed = axesOfOp(reduce);
  if (!sum.isReordered)
    return here.setNumber(summed, sum.order.axes, collapses, k);
  unsigned last = sum.order.axes.back();
  if (sum.order.groupRuns) {
    GroupedPoint point = groupedPoint(sum.order, k);
    e.values[summed.getAxes()[last]] = b.CreateAdd(point.channel, e.emitIndex(e.lowOf(summed, last)));
    here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false, point.tap);
    return;
  }
  e.values[summed.getAxes()[last]] =
      b.CreateAdd(b.CreateURem(k, i64(sum.order.padded)), e.emitIndex(e.lowOf(summed, last)));
  here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false, b.CreateUDiv(k, i64(sum.order.padded)));
}

bool TileProduct::copies() const {
  return row.how->staging != Staging::Values || column.how->staging != Staging::Values;
}

static SumOrder ownOrder(tgl::ReduceOp reduce) {
  return {to_vector(seq<unsigned>(0, axesOfOp(reduce).getAxes().size()))};
}

/// The block's step `number` (i64) among all of the sum.
Value *DeviceContraction::stepInSum(const Sum &sum, Value *number) {
  if (tile.splits == 1)
    return ownPart ? b.CreateAdd(b.CreateMul(number, ownPart->step), ownPart->first) : number;
  Value *together = i64(sum.together);
  Value *turn = b.CreateAdd(split, b.CreateMul(b.CreateUDiv(number, together), i64(tile.splits)));
  return b.CreateAdd(b.CreateMul(turn, together), b.CreateURem(number, together));
}

/// The steps of a sum, each of `depth` points, that are this block's, `together` of them in a turn.
DeviceContraction::Sum DeviceContraction::makeSum(tgl::ReduceOp reduce, int64_t depth, const SumOrder &order,
                                                  unsigned together) {
  tgl::AxesOp summed = axesOfOp(reduce);
  Sum sum;
  sum.order = order;
  sum.together = together;
  bool isPadded = order.padded && tgl::knownPoints(summed, {order.axes.back()}) != order.padded;
  sum.isReordered = isPadded || order.groupRuns || !llvm::is_sorted(order.axes);
  sum.total = order.padded ? i64(order.points(summed)) : here.pointsOf(summed, order.axes);
  std::optional<int64_t> known = tgl::knownPoints(summed);
  int64_t inTurn = depth * together;
  sum.fits = !isPadded && known && *known % inTurn == 0;
  Value *turns = ownPart ? ownPart->stages : ceilDiv(sum.total, i64(inTurn));
  if (tile.splits > 1) {
    // The first parts have one turn more where there is a rest. (With bounds (steps * split) / splits one part of
    // 33 was lost on an H200 where the dividend passed 65,535, though PTX and emulator have it right.)
    // Parts take turns: neighbours in memory are then read at about the same time.
    Value *each = b.CreateUDiv(turns, i64(tile.splits)), *longer = b.CreateURem(turns, i64(tile.splits));
    turns = b.CreateAdd(each, b.CreateZExt(b.CreateICmpULT(split, longer), b.getInt64Ty()));
  }
  sum.steps = b.CreateMul(turns, i64(together));
  return sum;
}

/// The product by warps. Where warpgroups have made a part of its sums, and those are made again here, it is the same
/// points: other blocks' parts have the others.
DeviceContraction::Product DeviceContraction::makeProduct(unsigned number) {
  const ContractionProduct &planned = plan.products[number];
  std::optional<PlaneProduct> planes;
  if (byWarpgroups() && tile.splits > 1)
    planes = makePlaneProduct(number);
  const ProductOperands *how = &products[number];
  if (planes && planes->sum.isReordered) { // neighbours in memory do not follow each other
    ProductOperands &evaluated = evaluatedOperands.try_emplace(number, *how).first->second;
    evaluated.row.staging = evaluated.column.staging = Staging::Values;
    how = &evaluated;
  }
  Product product;
  product.reduce = planned.reduce;
  Multiplicand type = how->type;
  unsigned elementBytes = bytesOf(type);
  product.operands = *how;
  auto operand = [&](const ContractionSide &side, const ContractionOperand &how, const Group &group,
                     unsigned offset) {
    bool alongSum = how.alongSum || isBytes(type);
    Operand result{&side, &how, &group, type, {alongSum, elementBytes, group.extent}, offset, 1, 0};
    if (how.staging == Staging::Vectors)
      result.vector = 16 / elementBytes;
    result.count = result.shared.bytes() / elementBytes / result.vector / threads();
    return result;
  };
  product.row = operand(planned.row, how->row, here.rows, 0);
  product.column = operand(planned.column, how->column, here.columns, product.row.shared.bytes());
  product.stages = product.copies() ? std::min(memory.stages(), memory.ringBytes() / product.stageBytes()) : 2;
  unsigned depth = product.row.shared.depth();
  if (planes)
    product.sum = makeSum(product.reduce, depth, planes->sum.order, planes->row.shared.depth() * planes->substeps / depth);
  else
    product.sum = makeSum(product.reduce, depth, ownOrder(product.reduce));
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
  unsigned multiplications = product.row.how->parts + product.column.how->parts - 1;
  noted.push_back({product.row.type, multiplications, product.stages, operand(product.row), operand(product.column)});
}

void DeviceContraction::note(const PlaneProduct &product) {
  auto operand = [](const PlaneOperand &its) {
    return OperandLayout{sourceOf(*its.side, *its.how), its.shared, its.offset, its.isCopied};
  };
  OperandLayout column = operand(product.column);
  if (product.column.isShifted) {
    column.tile = patchLayout();
    column.offset = ringRowsBytes();
  }
  noted.push_back({product.type, product.row.planes + product.column.planes - 1, ringStages(),
                   operand(product.row), std::move(column)});
}

TileLayout DeviceContraction::layout(StringRef function) const {
  return {function.str(), tile, byWarpgroups(), hasRoles(), hasCopiers(), sharedBytes(), noted};
}

//===----------------------------------------------------------------------===//
// What becomes of sums
//===----------------------------------------------------------------------===//

/// Two neighbours.
void DeviceContraction::storePair(Value *first, Value *second, Value *place) {
  Value *two = PoisonValue::get(FixedVectorType::get(here.sumType(), 2));
  two = b.CreateInsertElement(two, first, uint64_t(0));
  two = b.CreateInsertElement(two, second, uint64_t(1));
  b.CreateAlignedStore(two, place, Align(8));
}

void DeviceContraction::storeSums(ArrayRef<Value *> sums, unsigned base) {
  // Places are a constant from the first, which the optimiser does not see.
  TilePlace first = fragmentSum(b, tile, here.corner, here.lane, 0);
  Value *place = here.sumPlace(first.row, first.column, base);
  for (unsigned number = 0; number < sums.size(); number += 2) {
    FragmentStep step = fragmentStep(tile, number);
    unsigned further = step.down * sumsPitch() + step.right;
    storePair(sums[number], sums[number + 1], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}

void DeviceContraction::emitTile(Value *workspace) {
  here.begin();
  packed = workspace;
  if (isPersistent())
    return emitOwnTiles();
  tile.splits > 1 ? setPart() : setTile(wide(here.block));
  TileRest rest(here);
  rest.endIfUnused();
  if (hasRoles())
    startRoles();
  if (sharesSums())
    startSharing();
  bool mends = rest.mends() && tile.splits == 1;
  for (unsigned which = 0; which < products.size(); ++which) {
    if (mends && isChecked(which))
      sumUpSafely(which, [&] { rest.mendSums(); });
    else
      sumUpSafely(which);
    if (hasRoles() && which + 1 < products.size())
      letProducersGoOn();
  }
  if (sharesSums())
    shareSums();
  barrier();
  if (leavesSums())
    return leaveSums(workspace);
  if (rest.mends() && (sharesSums() || !isChecked(0))) {
    rest.mendSums();
    barrier(); // others begin reductions with them
  }
  rest.emit();
}
