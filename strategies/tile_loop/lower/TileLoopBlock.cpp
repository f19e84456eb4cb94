//===- TileLoopBlock.cpp - A block of a fused tile loop ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/TileLoopBlock.h"

#include "ir/tgl/TglShapes.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ValueExpr;

TileLoopBlock::TileLoopBlock(DeviceEmitter &emitter, const TileLoopPlan &plan,
                             const TileLoopShape &tile)
    : e(emitter), b(emitter.b), plan(plan), tile(tile),
      axes(tgl::axesOfOp(tgl::ParallelOp(plan.op))), rowAxis(axes.getAxes()[plan.row]) {
  isWarpSpecialized = tegula::isWarpSpecialized(plan, tile);
  numRowStages = rowStagesOf(plan, tile);
  layOut();
  layOutTerms();
  maskRanges.emplace(emitter, plan, tile, split.empty() ? 0 : split.back().end());
}

int64_t TileLoopBlock::SplitTensor::termAt(unsigned term) const {
  return base + 4 * numLargest + term * termBytes();
}

/// 0: it is known at the launch.
int64_t TileLoopBlock::numRowBlocks() const {
  tgl::AxesOp own = axes;
  return divideCeil(*tgl::knownPoints(own, {plan.row}), tile.rows()) *
         tgl::knownPoints(own, plan.batch).value_or(0);
}

bool TileLoopBlock::staysForBlocks() const {
  return isWarpSpecialized && numRowStages == 2 &&
         numRowBlocks() > int64_t(e.options.target.multiprocessors);
}

IndexExpr TileLoopBlock::numBlocks() const {
  if (staysForBlocks())
    return int64_t(e.options.target.multiprocessors);
  tgl::AxesOp own = axes;
  IndexExpr blocks = int64_t(divideCeil(*tgl::knownPoints(own, {plan.row}), tile.rows()));
  for (unsigned axis : plan.batch) {
    tgl::AxisRange range = tgl::getAxisRange(own, axis);
    blocks = blocks * IndexExpr::max((range.hi - range.lo).expr(), 0);
  }
  return blocks * IndexExpr(tile.clusterBlocks);
}

SmallVector<mlir::Value> TileLoopBlock::alignedTensors() const {
  SmallVector<mlir::Value> tensors;
  for (const Product &product : products) {
    tensors.push_back(tgl::ReadOp(product.b.read).getTensor());
    if (product.a)
      tensors.push_back(tgl::ReadOp(product.a->read).getTensor());
  }
  return tensors;
}

bool TileLoopBlock::splitsSums() const {
  return any_of(products,
                [&](const Product &product) { return splitsSum(*product.planned, tile); });
}

/// Left factors first, then stages of each right factor.
void TileLoopBlock::layOut() {
  unsigned base = 0;
  auto kBlocksOf = [](int64_t points) -> unsigned {
    return divideCeil(points, WgmmaSharedLayout::lineElements);
  };
  auto extentOf = [](int64_t lines) -> unsigned {
    return alignTo(lines, WgmmaSharedLayout::lineElements);
  };
  for (const TileLoopProduct &planned : plan.products) {
    BlockArgument summed = tgl::axesOfOp(tgl::ReduceOp(planned.reduce)).getAxes()[0];
    BlockArgument columnAxis = tgl::axesOfOp(tgl::ParallelOp(planned.nest)).getAxes()[0];
    int64_t fixed = tile.blockShare(planned.fixed);
    Product product{&planned,
                    std::nullopt,
                    {},
                    unsigned(planned.reducesTile ? fixed : tile.columns),
                    unsigned(planned.reducesTile ? tile.columns : fixed),
                    tileOwner(plan, tile, products.size())};
    for (Product &earlier : products)
      earlier.isLast &= earlier.owner != product.owner;
    numTilesOfTurn += product.owner == products.size();
    if (planned.a)
      product.a = Staged{planned.a,
                         rowAxis,
                         summed,
                         rowAxis,
                         {planned.aKMajor, 1, unsigned(tile.rows())},
                         kBlocksOf(fixed),
                         0,
                         planned.terms};
    product.b = Staged{planned.b,
                       columnAxis,
                       summed,
                       planned.reducesTile ? summed : columnAxis,
                       {planned.bKMajor, 1, extentOf(product.columns)},
                       kBlocksOf(product.depth),
                       0,
                       planned.terms};
    products.push_back(product);
  }
  for (Product &product : products)
    if (product.a) {
      product.a->base = base;
      base += numRowStages * product.a->bytes();
    }
  for (auto [number, product] : enumerate(products)) {
    if (product.owner != number) {
      product.b.base = products[product.owner].b.base;
      continue;
    }
    product.b.base = base;
    base += 2 * product.b.bytes();
  }
  exchangeBase = base;
  if (splitsSums())
    base += tile.exchanges() * tile.warpgroups *
            (bytesOfRound(plan, tile) + TileLoopShape::exchangeState);
  assert(base == sharedBytes() && "the plan counts the same bytes");
}

void TileLoopBlock::layOutTerms() {
  int64_t base = accuracyFlagBytes;
  for (mlir::Value tensor : splitPrecisionTensors(plan)) {
    split.push_back({tensor, *tgl::knownElements(tensor), base});
    base = split.back().end();
  }
}

const TileLoopBlock::SplitTensor *TileLoopBlock::splitTensorOf(mlir::Value tensor) const {
  auto found = find_if(split, [&](const SplitTensor &one) { return one.tensor == tensor; });
  return found == split.end() ? nullptr : &*found;
}

Value *TileLoopBlock::readSreg(Intrinsic::ID id, unsigned limit) {
  auto *call = b.CreateIntrinsic(b.getInt32Ty(), id, {});
  call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
  return call;
}

void TileLoopBlock::barrier() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

/// Values of `then` where the condition, the same for all threads, holds.
void TileLoopBlock::choose(Value *condition, Values &values, function_ref<Values()> then) {
  BasicBlock *before = b.GetInsertBlock(), *end = nullptr;
  Values others;
  e.emitIf(condition, [&] {
    others = then();
    end = b.GetInsertBlock();
  });
  for (auto [value, other] : zip_equal(values, others)) {
    PHINode *either = b.CreatePHI(value->getType(), 2);
    either->addIncoming(value, before);
    either->addIncoming(other, end);
    value = either;
  }
}

Value *TileLoopBlock::bytesAt(Value *bytes, int64_t distance) {
  return b.CreateInBoundsGEP(b.getInt8Ty(), bytes, i64(distance));
}

/// Elements in memory's order.
Value *TileLoopBlock::chunkAt(const SplitTensor &split, Value *number) {
  const Emitter::Buffer &buffer = e.buffers.find(split.tensor)->second;
  mlir::Type element = buffer.type.getElementType();
  Type *storage = e.storageType(element);
  Value *from =
      b.CreateInBoundsGEP(storage, buffer.pointer, b.CreateMul(number, i64(chunkElements)));
  return e.decode(
      b.CreateAlignedLoad(FixedVectorType::get(storage, chunkElements), from, Align(16)), element);
}

void TileLoopBlock::begin() {
  Module &module = *b.GetInsertBlock()->getModule();
  shared = module.getNamedGlobal("tegula_shared_memory");
  if (!shared)
    shared = new GlobalVariable(module, ArrayType::get(b.getInt8Ty(), 0), false,
                                GlobalValue::ExternalLinkage, nullptr, "tegula_shared_memory",
                                nullptr, GlobalValue::NotThreadLocal, 3);
  shared->setAlignment(Align(WgmmaSharedLayout::alignment));
  thread = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, threads());
  lane = b.CreateAnd(thread, i32(31));
  warpgroup = b.CreateLShr(thread, i32(7));
  producer = thread;
  numProducers = numConsumerThreads();
}

/// Batches whose right factors the second-level cache holds together, a divisor of their number.
int64_t TileLoopBlock::batchesTogether(int64_t batches) const {
  constexpr int64_t maxBytes = 16 << 20; // of the 50 MB of an H100 or H200
  int64_t bytes = 0;
  for (const TileLoopProduct &product : plan.products)
    bytes += plan.extent * product.fixed * 2;
  int64_t together = std::clamp<int64_t>(maxBytes / std::max<int64_t>(bytes, 1), 1, batches);
  while (batches % together)
    --together;
  return together;
}

/// Rows of one batch are neighbours: they read the same tiles. Where tiles are bounded by rows,
/// last rows, which may have most of them, first: of several batches, so that none is left to the
/// end, and where blocks stay of all: only then do they have about the same to do. `number`: i32,
/// as many as a grid has blocks.
void TileLoopBlock::setBlock(Value *number) {
  int64_t rows = *tgl::knownPoints(axes, {plan.row}), blocks = divideCeil(rows, tile.rows());
  Value *block = nullptr, *rest = nullptr;
  if (plan.bounds.empty()) {
    block = b.CreateURem(number, i32(blocks));
    rest = b.CreateUDiv(number, i32(blocks));
  } else {
    std::optional<int64_t> batches = tgl::knownPoints(axes, plan.batch);
    int64_t together = !batches ? 1 : staysForBlocks() ? *batches : batchesTogether(*batches);
    Value *inGroup = b.CreateURem(number, i32(blocks * together));
    Value *group = b.CreateUDiv(number, i32(blocks * together));
    block = b.CreateSub(i32(blocks - 1), b.CreateUDiv(inGroup, i32(together)));
    rest = b.CreateAdd(b.CreateMul(group, i32(together)), b.CreateURem(inGroup, i32(together)));
  }
  for (unsigned axis : reverse(plan.batch)) {
    std::optional<int64_t> points = tgl::knownPoints(axes, {axis});
    Value *extent = points ? i32(*points)
                           : b.CreateTrunc(e.emitIndex(e.highOf(axes, axis) - e.lowOf(axes, axis)),
                                           b.getInt32Ty());
    e.values[axes.getAxes()[axis]] =
        b.CreateAdd(wide(b.CreateURem(rest, extent)), e.emitIndex(e.lowOf(axes, axis)));
    rest = b.CreateUDiv(rest, extent);
  }
  Value *low = e.emitIndex(e.lowOf(axes, plan.row));
  rowsEnd = b.CreateAdd(low, i64(rows));
  firstRow = b.CreateAdd(low, b.CreateMul(wide(block), i64(tile.rows())));
  lastRow = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(firstRow, i64(tile.rows() - 1)),
                                    b.CreateSub(rowsEnd, i64(1)));
  Value *warp = b.CreateLShr(thread, i32(5));
  Value *own = b.CreateAdd(b.CreateShl(warp, i32(4)), b.CreateLShr(lane, i32(2)));
  Fragment numbers{true, false, {}};
  for (unsigned half = 0; half < 2; ++half) {
    Value *row = b.CreateAdd(firstRow, wide(b.CreateAdd(own, i32(8 * half))));
    rowExists[half] = rows % tile.rows() ? b.CreateICmpSLT(row, rowsEnd) : nullptr;
    numbers.values.push_back(b.CreateBinaryIntrinsic(Intrinsic::smin, row, lastRow));
  }
  fragments[rowAxis] = numbers;
}

/// The first column of this block's part (i64).
Value *TileLoopBlock::lowOfRank(int64_t points) {
  return b.CreateMul(wide(clusterRank), i64(tile.blockShare(points)));
}

/// An expression's largest (smallest) value in the rows of the block.
Value *TileLoopBlock::atRow(const ValueExpr &expr, bool wantsLargest) {
  bool grows = tgl::stepAlong(expr, rowAxis).value_or(0) >= 0;
  e.values[rowAxis] = grows == wantsLargest ? lastRow : firstRow;
  return e.emitIndex(expr);
}

/// The part of the tile loop's range in which something may change.
void TileLoopBlock::boundTiles(Value *&low, Value *&high) {
  for (const TileLoopPlan::Bound &bound : plan.bounds) {
    const ValueExpr &expr = bound.comparison.expr;
    int64_t step = *tgl::stepAlong(expr, bound.axis);
    ValueExpr rest = expr - ValueExpr(step) * ValueExpr(mlir::Value(bound.axis));
    Value *limit = atRow(rest, /*wantsLargest=*/true);
    if (step < 0) // axis <= rest
      high = b.CreateBinaryIntrinsic(Intrinsic::smin, high, b.CreateAdd(limit, i64(1)));
    else // axis >= -rest
      low = b.CreateBinaryIntrinsic(Intrinsic::smax, low, b.CreateNeg(limit));
  }
}

/// What the launch before has found for the block's rows.
void TileLoopBlock::boundTilesByMasks(Value *&low, Value *&high) {
  throughout.clear();
  if (plan.masks.empty())
    return;
  Value *entry = maskRanges->entryOf(firstRow);
  for (auto [number, mask] : enumerate(plan.masks)) {
    auto [first, end, firstOfAll, endOfAll] = maskRanges->endsOf(number, entry, workspace);
    if (mask.skips) { // where it holds nowhere the end is before all columns
      high = b.CreateBinaryIntrinsic(Intrinsic::smax,
                                     b.CreateBinaryIntrinsic(Intrinsic::smin, high, end), low);
      low = b.CreateBinaryIntrinsic(Intrinsic::smin,
                                    b.CreateBinaryIntrinsic(Intrinsic::smax, low, first), high);
    }
    throughout.push_back({firstOfAll, endOfAll});
  }
}

void TileLoopBlock::findTiles(tgl::TilesOp op) {
  Value *low = e.emitIndex(op.getLowExpr());
  Value *from = low, *to = tilesEnd = e.emitIndex(op.getHighExpr());
  boundTiles(from, to);
  boundTilesByMasks(from, to);
  // Whole tiles from the range's start on: vectors stay whole.
  Value *columns = i64(tile.columns);
  Value *left = b.CreateUDiv(b.CreateSub(from, low), columns);
  firstTile = b.CreateAdd(low, b.CreateMul(left, columns));
  Value *length = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(to, firstTile), i64(0));
  numTiles = b.CreateUDiv(b.CreateAdd(length, b.CreateSub(columns, i64(1))), columns);
}

Value *TileLoopBlock::lowOfTile(Value *number) {
  return b.CreateAdd(firstTile, b.CreateMul(number, i64(tile.columns)));
}

/// The number (i32) of a tile of these rows among those of all rows of the block.
Value *TileLoopBlock::inAll(Value *number) {
  return b.CreateAdd(tilesBefore, b.CreateTrunc(number, b.getInt32Ty()));
}
