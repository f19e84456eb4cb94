//===- FusedTileLoop.cpp - Fused tile loops (FlashAttention-style) --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/FusedTileLoop.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ValueExpr;

static tgl::AxesOp axesOfOp(mlir::Operation *op) { return cast<tgl::AxesOp>(op); }

FusedTileLoop::FusedTileLoop(DeviceEmitter &emitter, const TileLoopPlan &plan,
                             const TileLoopShape &tile)
    : e(emitter), b(emitter.b), plan(plan), tile(tile), axes(axesOfOp(tgl::ParallelOp(plan.op))),
      rowAxis(axes.getAxes()[plan.row]) {
  isWarpSpecialized = tegula::isWarpSpecialized(plan, tile);
  numRowStages = rowStagesOf(plan, tile);
  layOut();
  layOutTerms();
}

//===----------------------------------------------------------------------===//
// Numbers known to the host
//===----------------------------------------------------------------------===//

int64_t FusedTileLoop::numRowBlocks() const {
  tgl::AxesOp own = axes;
  int64_t rows = *tgl::knownPoints(own, {plan.row}), batch = *tgl::knownPoints(own, plan.batch);
  return divideCeil(rows, tile.rows()) * batch;
}

IndexExpr FusedTileLoop::numBlocks() const {
  return staysForBlocks() ? int64_t(e.options.target.multiprocessors)
                          : numRowBlocks() * tile.clusterBlocks;
}

SmallVector<mlir::Value> FusedTileLoop::alignedTensors() const {
  SmallVector<mlir::Value> tensors;
  for (const Product &product : products) {
    tensors.push_back(tgl::ReadOp(product.b.read).getTensor());
    if (product.a)
      tensors.push_back(tgl::ReadOp(product.a->read).getTensor());
  }
  return tensors;
}

/// Left factors first, then stages of each right factor.
void FusedTileLoop::layOut() {
  unsigned base = 0;
  auto kBlocksOf = [](int64_t points) -> unsigned {
    return divideCeil(points, WgmmaSharedLayout::lineElements);
  };
  auto extentOf = [](int64_t lines) -> unsigned {
    return alignTo(lines, WgmmaSharedLayout::lineElements);
  };
  for (const TileLoopProduct &planned : plan.products) {
    BlockArgument summed = axesOfOp(tgl::ReduceOp(planned.reduce)).getAxes()[0];
    BlockArgument columnAxis = axesOfOp(tgl::ParallelOp(planned.nest)).getAxes()[0];
    int64_t fixed = tile.blockShare(planned.fixed);
    Product product{&planned,
                    std::nullopt,
                    {},
                    unsigned(planned.reducesTile ? fixed : tile.columns),
                    unsigned(planned.reducesTile ? tile.columns : fixed)};
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
  for (Product &product : products) {
    product.b.base = base;
    base += 2 * product.b.bytes();
  }
  exchangeBase = base;
  if (splitsSums())
    base += tile.exchanges() * tile.warpgroups *
            (bytesOfRound(plan, tile) + TileLoopShape::exchangeState);
  assert(base == sharedBytes() && "the plan counts the same bytes");
}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

Value *FusedTileLoop::readSreg(Intrinsic::ID id, unsigned limit) {
  auto *call = b.CreateIntrinsic(b.getInt32Ty(), id, {});
  call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
  return call;
}

void FusedTileLoop::barrier() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

void FusedTileLoop::begin() {
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
int64_t FusedTileLoop::batchesTogether(int64_t batches) const {
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
void FusedTileLoop::setBlock(Value *number) {
  int64_t rows = *tgl::knownPoints(axes, {plan.row}), blocks = divideCeil(rows, tile.rows());
  Value *block = nullptr, *rest = nullptr;
  if (plan.bounds.empty()) {
    block = b.CreateURem(number, i32(blocks));
    rest = b.CreateUDiv(number, i32(blocks));
  } else {
    int64_t batches = *tgl::knownPoints(axes, plan.batch);
    int64_t together = staysForBlocks() ? batches : batchesTogether(batches);
    Value *inGroup = b.CreateURem(number, i32(blocks * together));
    Value *group = b.CreateUDiv(number, i32(blocks * together));
    block = b.CreateSub(i32(blocks - 1), b.CreateUDiv(inGroup, i32(together)));
    rest = b.CreateAdd(b.CreateMul(group, i32(together)), b.CreateURem(inGroup, i32(together)));
  }
  for (unsigned axis : reverse(plan.batch)) {
    Value *extent = i32(*tgl::knownPoints(axes, {axis}));
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

void FusedTileLoop::emit(Value *memory) {
  workspace = memory;
  begin();
  startClusterReduce();
  findScales();
  startAccuracyFlag();
  if (isWarpSpecialized) {
    branchToProducers();
    startPingPong();
  }
  forBlocks([&] { emitBlock(tgl::ParallelOp(plan.op).getBody().front()); });
  if (isWarpSpecialized)
    endTurns();
  endClusterReduce();
  storeAccuracyFlag();
}

void FusedTileLoop::emitBlock(mlir::Block &block) {
  for (mlir::Operation &op : block) {
    if (isa<tgl::YieldOp, tgl::TempOp>(op))
      continue;
    if (auto nest = dyn_cast<tgl::ParallelOp>(op))
      emitNest(nest);
    else if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
      emitReduce(reduce);
    else if (auto tiles = dyn_cast<tgl::TilesOp>(op))
      emitTiles(tiles);
    else if (auto write = dyn_cast<tgl::WriteOp>(op))
      emitWrite(write, nullptr);
    else
      emitFragment(&op, nullptr);
  }
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

/// An expression's largest (smallest) value in the rows of the block.
Value *FusedTileLoop::atRow(const ValueExpr &expr, bool wantsLargest) {
  bool grows = tgl::stepAlong(expr, rowAxis).value_or(0) >= 0;
  e.values[rowAxis] = grows == wantsLargest ? lastRow : firstRow;
  return e.emitIndex(expr);
}

/// The part of the tile loop's range in which something may change.
void FusedTileLoop::boundTiles(Value *&low, Value *&high) {
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

void FusedTileLoop::findTiles(tgl::TilesOp op) {
  Value *low = e.emitIndex(op.getLowExpr());
  Value *from = low, *to = tilesEnd = e.emitIndex(op.getHighExpr());
  boundTiles(from, to);
  // Whole tiles from the range's start on: vectors stay whole.
  Value *columns = i64(tile.columns);
  Value *left = b.CreateUDiv(b.CreateSub(from, low), columns);
  firstTile = b.CreateAdd(low, b.CreateMul(left, columns));
  Value *length = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(to, firstTile), i64(0));
  numTiles = b.CreateUDiv(b.CreateAdd(length, b.CreateSub(columns, i64(1))), columns);
}

void FusedTileLoop::emitTiles(tgl::TilesOp op) {
  // The loop carries its values, the temporaries that it writes to, and words.
  Values carried;
  for (mlir::Value init : op.getInits()) {
    Fragment value = fragmentOf(init);
    carried.append({value.at(0, 0), value.at(1, 0)});
  }
  SmallVector<mlir::Value> kept, results(op.getResults().begin(), op.getResults().end());
  op.walk([&](tgl::WriteOp write) {
    if (elements.contains(write.getTensor()) && !is_contained(kept, write.getTensor()))
      kept.push_back(write.getTensor());
  });
  for (mlir::Value tensor : kept)
    carried.append(elements[tensor].values);
  findTargets();
  choose(b.CreateICmpSGT(numTiles, i64(0)), carried, [&] { return emitLoop(op, kept, carried); });
  take(carried, results, kept);
}

/// Sums that go nowhere but into a temporary that the loop carries.
void FusedTileLoop::findTargets() {
  for (Product &product : products) {
    mlir::Operation *last = tgl::ReduceOp(product.planned->reduce);
    if (product.a || product.planned->terms > 1 || !last->hasOneUse())
      continue;
    mlir::Operation *user = *last->user_begin();
    if (isa<mlir::arith::AddFOp>(user) && user->hasOneUse())
      user = *user->user_begin();
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (!write || !elements.contains(write.getTensor()))
      continue;
    // Once in an iteration it is waited for, and once written.
    unsigned writes = 0, reads = 0;
    tgl::TilesOp(plan.tiles).walk([&](mlir::Operation *other) {
      if (auto access = dyn_cast<tgl::WriteOp>(other))
        writes += access.getTensor() == write.getTensor();
      else if (auto access = dyn_cast<tgl::ReadOp>(other))
        reads += access.getTensor() == write.getTensor();
    });
    if (writes == 1 && reads)
      product.target = write.getTensor();
  }
}

/// The loop's values and temporaries from what is carried, two rows of each value.
void FusedTileLoop::take(ArrayRef<Value *> carried, mlir::ValueRange names,
                         ArrayRef<mlir::Value> kept) {
  for (mlir::Value name : names) {
    fragments[name] = {true, false, Values(carried.take_front(2))};
    carried = carried.drop_front(2);
  }
  for (mlir::Value tensor : kept) {
    Values &own = elements[tensor].values;
    own.assign(carried.begin(), carried.begin() + own.size());
    carried = carried.drop_front(own.size());
  }
}

/// At least one tile. What is carried at the end.
FusedTileLoop::Values FusedTileLoop::emitLoop(tgl::TilesOp op, ArrayRef<mlir::Value> kept,
                                              Values carried) {
  SmallVector<mlir::Value> results(op.getResults().begin(), op.getResults().end());
  startCopies();
  unsigned numCarried = carried.size();
  auto forWords = [&](function_ref<void(Value *&)> body) {
    for (Product &product : products)
      for (Values &four : product.words)
        for (Value *&word : four)
          body(word);
  };
  for (Product &product : products)
    if (product.target)
      product.words.assign(product.depth / Wgmma::stepDepth, Values(4, i32(0)));
  forWords([&](Value *word) { carried.push_back(word); });
  SmallVector<mlir::Value> arguments(op.getIterArgs().begin(), op.getIterArgs().end());
  // After the loop the values are those of the last iteration.
  auto set = [&](ArrayRef<Value *> current, mlir::ValueRange names) {
    take(current, names, kept);
    current = current.drop_front(numCarried);
    forWords([&](Value *&word) {
      word = current.front();
      current = current.drop_front();
    });
  };
  e.keepNextLoopRolled = true;
  Values last = e.emitLoop(
      i64(0), numTiles, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        tileNumber = number;
        set(current, arguments);
        Value *low = lowOfTile(number);
        e.values[op.getTileLow()] = low;
        e.values[op.getTileHigh()] =
            b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(low, i64(tile.columns)), tilesEnd);
        startTile();
        emitBlock(op.getBody().front());
        Values next;
        for (mlir::Value value : op.getYield().getValues()) {
          Fragment result = fragmentOf(value);
          next.append({result.at(0, 0), result.at(1, 0)});
        }
        for (mlir::Value tensor : kept)
          next.append(elements[tensor].values);
        forWords([&](Value *word) { next.push_back(word); });
        return next;
      },
      "tile");
  set(last, results);
  finishTiles();
  Values ends;
  for (mlir::Value result : results)
    ends.append(fragments[result].values);
  for (mlir::Value tensor : kept)
    ends.append(elements[tensor].values);
  return ends;
}
