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

FusedTileLoop::FusedTileLoop(DeviceEmitter &emitter, const TileLoopPlan &plan,
                             const TileLoopShape &tile)
    : c(emitter, plan, tile), e(emitter), b(emitter.b), products(c) {}

//===----------------------------------------------------------------------===//
// A block
//===----------------------------------------------------------------------===//

void FusedTileLoop::emit(Value *memory) {
  c.workspace = memory;
  c.begin();
  products.sums.start();
  products.precision.findScales();
  products.check.start();
  if (c.isWarpSpecialized) {
    products.turns.branchToProducers();
    products.turns.start();
  }
  products.turns.forBlocks([&] { emitBlock(tgl::ParallelOp(c.plan.op).getBody().front()); });
  if (c.isWarpSpecialized)
    products.turns.endTurns();
  products.sums.end();
  products.check.store();
}

void FusedTileLoop::emitBlock(mlir::Block &block) {
  for (mlir::Operation &op : block) {
    if (isa<tgl::YieldOp, tgl::TempOp>(op))
      continue;
    if (auto nest = dyn_cast<tgl::ParallelOp>(op))
      products.values.emitNest(nest);
    else if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
      products.values.emitReduce(reduce);
    else if (auto tiles = dyn_cast<tgl::TilesOp>(op))
      emitTiles(tiles);
    else if (auto write = dyn_cast<tgl::WriteOp>(op))
      products.values.emitWrite(write, nullptr);
    else
      products.values.emitFragment(&op, nullptr);
  }
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

void FusedTileLoop::emitTiles(tgl::TilesOp op) {
  // The loop carries its values, the temporaries that it writes to, and words.
  Values carried;
  for (mlir::Value init : op.getInits()) {
    Fragment value = products.values.fragmentOf(init);
    carried.append({value.at(0, 0), value.at(1, 0)});
  }
  SmallVector<mlir::Value> kept, results(op.getResults().begin(), op.getResults().end());
  op.walk([&](tgl::WriteOp write) {
    if (c.elements.contains(write.getTensor()) && !is_contained(kept, write.getTensor()))
      kept.push_back(write.getTensor());
  });
  for (mlir::Value tensor : kept)
    carried.append(c.elements[tensor].values);
  findTargets();
  c.choose(b.CreateICmpSGT(c.numTiles, c.i64(0)), carried,
           [&] { return emitLoop(op, kept, carried); });
  take(carried, results, kept);
}

/// Sums that go nowhere but into a temporary that the loop carries, of tiles of their own: in the
/// next iteration tiles that others have too would take a third stage.
void FusedTileLoop::findTargets() {
  for (auto [number, product] : enumerate(c.products)) {
    mlir::Operation *last = tgl::ReduceOp(product.planned->reduce);
    if (product.a || product.owner != number || !product.isLast || product.planned->addsTiles() ||
        !last->hasOneUse())
      continue;
    mlir::Operation *user = *last->user_begin();
    if (isa<mlir::arith::AddFOp>(user) && user->hasOneUse())
      user = *user->user_begin();
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (!write || !c.elements.contains(write.getTensor()))
      continue;
    // Once in an iteration it is waited for, and once written.
    unsigned writes = 0, reads = 0;
    tgl::TilesOp(c.plan.tiles).walk([&](mlir::Operation *other) {
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
    c.fragments[name] = {true, false, Values(carried.take_front(2))};
    carried = carried.drop_front(2);
  }
  for (mlir::Value tensor : kept) {
    Values &own = c.elements[tensor].values;
    own.assign(carried.begin(), carried.begin() + own.size());
    carried = carried.drop_front(own.size());
  }
}

/// At least one tile. What is carried at the end.
TileLoopBlock::Values FusedTileLoop::emitLoop(tgl::TilesOp op, ArrayRef<mlir::Value> kept,
                                              Values carried) {
  SmallVector<mlir::Value> results(op.getResults().begin(), op.getResults().end());
  products.startCopies();
  unsigned numCarried = carried.size();
  auto forWords = [&](function_ref<void(Value *&)> body) {
    for (Product &product : c.products)
      for (Values &four : product.words)
        for (Value *&word : four)
          body(word);
  };
  for (Product &product : c.products)
    if (product.target)
      product.words.assign(product.depth / Wgmma::stepDepth, Values(4, c.i32(0)));
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
      c.i64(0), c.numTiles, c.i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        c.tileNumber = number;
        set(current, arguments);
        Value *low = c.lowOfTile(number);
        e.values[op.getTileLow()] = low;
        e.values[op.getTileHigh()] = b.CreateBinaryIntrinsic(
            Intrinsic::smin, b.CreateAdd(low, c.i64(c.tile.columns)), c.tilesEnd);
        products.startTile();
        emitBlock(op.getBody().front());
        Values next;
        for (mlir::Value value : op.getYield().getValues()) {
          Fragment result = products.values.fragmentOf(value);
          next.append({result.at(0, 0), result.at(1, 0)});
        }
        for (mlir::Value tensor : kept)
          next.append(c.elements[tensor].values);
        forWords([&](Value *word) { next.push_back(word); });
        return next;
      },
      "tile");
  set(last, results);
  products.finishTiles();
  Values ends;
  for (mlir::Value result : results)
    ends.append(c.fragments[result].values);
  for (mlir::Value tensor : kept)
    ends.append(c.elements[tensor].values);
  return ends;
}
