//===- PingPong.cpp - Ping-pong scheduling of two consumer warpgroups -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two warpgroups multiply, and the threads of a third copy factors, some of them each. The two meet
// nowhere but where one hands the tensor cores to the other: at the start of an iteration it waits
// for its turn, starts its products, and passes the turn on. So one computes the values of its tile
// while the other's products are under way, as FlashAttention-3 has it (Shah et al., arXiv
// 2407.08608, "ping-pong"). A stage of a factor is full for each of the two, and empty when both
// have released it. All are named barriers at which some threads arrive and others wait.
//
// A multiprocessor has room for one such block. Where there are more blocks of rows than
// multiprocessors each stays for several of them, and its tiles are one sequence: those that copy
// bring the next rows and their first tiles while the last tile's values are computed and stored,
// and turns go on from one block of rows to the next.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/PingPong.h"

#include "codegen/async/Async.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

PingPong::PingPong(TileLoopBlock &block, TileLoopCopies &copies)
    : c(block), e(block.e), b(block.b), copies(copies) {}

namespace {
/// Registers of a thread of each role: together what a multiprocessor has for 384 threads.
struct WarpRoleRegisters {
  unsigned producing, consuming;
};
} // namespace
/// Two planes are twice the places to copy from.
static constexpr WarpRoleRegisters ofOneTerm = {40, 232}, ofTwoTerms = {56, 224};
static constexpr unsigned numStages = 2;

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void PingPong::waitAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, c.i32(threads)});
}

void PingPong::arriveAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                    {number, c.i32(threads)});
}

/// A ring for each right factor's tiles. Nothing of those that copy is under way when they are done
/// with a stage.
void PingPong::makeRings() {
  unsigned first = FirstOfProduct;
  for (auto [number, product] : enumerate(c.products)) {
    if (product.owner != number) {
      product.ring = c.products[product.owner].ring;
      continue;
    }
    product.ring = async::makeRing(b, {.first = first,
                                       .stages = numStages,
                                       .groups = unsigned(c.tile.warpgroups),
                                       .fillers = c.numProducerThreads(),
                                       .users = c.numConsumerThreads(),
                                       .fillersPublish = true});
    first += perProduct;
  }
}

/// The stage for tile `number` holds it, for one of the warpgroups: the first product that has it
/// waits.
void PingPong::awaitTile(const Product &product, Value *number) {
  if (c.isWarpSpecialized && &product == &c.products[product.owner])
    async::wait(b, product.ring, c.inAll(number), c.warpgroup);
}

/// Nobody reads the stage for tile `number` any more, where the last product that has it is done.
void PingPong::releaseTile(const Product &product, Value *number) {
  if (c.isWarpSpecialized && product.isLast)
    async::release(b, product.ring, c.inAll(number));
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// The first warpgroup begins: it has a turn from the second, which in the end is one too many.
/// The second warpgroup gives the first its turn. The first arrives at a spare barrier, at which
/// the second waits in the end: in a branch that not all warps take, ptxas would make products run
/// one after the other.
void PingPong::start() {
  arriveAt(b.CreateSelect(isSecond(), c.i32(Turn), c.i32(Spare)), c.numConsumerThreads());
}

Value *PingPong::isSecond() { return b.CreateICmpEQ(c.warpgroup, c.i32(1)); }

void PingPong::awaitTurn() {
  waitAt(b.CreateAdd(c.warpgroup, c.i32(Turn)), c.numConsumerThreads());
}

/// Lets the other warpgroup multiply.
void PingPong::passTurn() {
  arriveAt(b.CreateSub(c.i32(Turn + 1), c.warpgroup), c.numConsumerThreads());
}

void PingPong::endTurns() {
  waitAt(b.CreateSelect(isSecond(), c.i32(Spare), c.i32(Turn)), c.numConsumerThreads());
}

//===----------------------------------------------------------------------===//
// Blocks of rows
//===----------------------------------------------------------------------===//

/// `body` for each block of rows that the block has: with k blocks on the machine the i-th takes i,
/// 2k-1-i, 2k+i, .., so that all have about as much to do where blocks of rows have less and less.
/// The number of tiles of all of them.
Value *PingPong::forBlocks(function_ref<void()> body) {
  Value *first = b.CreateUDiv(c.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff),
                              c.i32(c.tile.clusterBlocks));
  auto take = [&](Value *number) {
    c.setBlock(number);
    c.findTiles(c.plan.tiles);
    body();
  };
  c.tilesBefore = c.i32(0);
  c.isOdd = b.getFalse();
  if (!c.staysForBlocks()) {
    take(first);
    return b.CreateTrunc(c.numTiles, b.getInt32Ty());
  }
  int64_t all = c.numRowBlocks(), atOnce = e.options.target.multiprocessors, whole = all / atOnce;
  Value *last = b.CreateSub(c.i32(atOnce - 1), first);
  Value *inLast = b.CreateICmpSLT(whole % 2 ? last : first, c.i32(all % atOnce));
  Value *rounds = b.CreateAdd(c.i64(whole), b.CreateZExt(inLast, b.getInt64Ty()));
  e.keepNextLoopRolled = true;
  return e.emitLoop(
      c.i64(0), rounds, c.i64(1), {c.i32(0), b.getFalse()},
      [&](Value *round, ArrayRef<Value *> carried) {
        c.tilesBefore = carried[0];
        c.isOdd = carried[1];
        Value *isBackwards = b.CreateTrunc(round, b.getInt1Ty());
        Value *before = b.CreateMul(b.CreateTrunc(round, b.getInt32Ty()), c.i32(atOnce));
        take(b.CreateAdd(before, b.CreateSelect(isBackwards, last, first)));
        return Values{c.inAll(c.numTiles),
                      b.CreateXor(carried[1], b.CreateICmpSGT(c.numTiles, c.i64(0)))};
      },
      "rows")[0];
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The tiles of a block of rows, and the rows before the first. Where a stage is to be filled again
/// it is waited for: when the first tile has a stage all tiles but the last of the rows before have
/// been multiplied, and so have the rows before those, whose place these rows get.
void PingPong::copyTiles(const Product &product) {
  auto acquire = [&](Value *number) { async::acquire(b, product.ring, c.inAll(number)); };
  if (product.a)
    e.emitIf(b.CreateICmpSGT(c.numTiles, c.i64(0)), [&] {
      acquire(c.i64(0));
      copies.copy(*product.a, copies.rowStage(product), c.firstRow, c.rowsEnd);
    });
  e.keepNextLoopRolled = true;
  e.emitLoop(c.i64(0), c.numTiles, c.i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
    if (product.a) // the first has been
      e.emitIf(b.CreateICmpSGT(number, c.i64(0)), [&] { acquire(number); });
    else
      acquire(number);
    copies.copy(product.b, copies.stageOf(product, number), c.lowOfTile(number), c.tilesEnd);
    async::awaitAllCopies(b);
    async::commit(b, product.ring, c.inAll(number));
    return Values();
  });
}

/// For all blocks of rows. At the end it waits until all stages are empty: so those that multiply
/// need not know whether somebody waits.
void PingPong::copyAllTiles(const Product &product) {
  c.tilesBefore = forBlocks([&] { copyTiles(product); });
  for (unsigned number = 0; number < numStages; ++number)
    async::acquire(b, product.ring, c.inAll(c.i64(number)));
}

/// The last warpgroup copies, and ends; what follows is for the others.
void PingPong::branchToProducers() {
  Function *function = b.GetInsertBlock()->getParent();
  // Registers move between roles only where the number at the start is fixed.
  function->addFnAttr("nvvm.minctasm", "1");
  WarpRoleRegisters registers = c.usesSplitPrecision() ? ofTwoTerms : ofOneTerm;
  makeRings();
  BasicBlock *producing = BasicBlock::Create(b.getContext(), "copying", function);
  BasicBlock *consuming = BasicBlock::Create(b.getContext(), "multiplying", function);
  b.CreateCondBr(b.CreateICmpUGE(c.thread, c.i32(c.numConsumerThreads())), producing, consuming);
  b.SetInsertPoint(producing);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                    {c.i32(registers.producing)});
  unsigned first = c.numConsumerThreads();
  for (auto [number, product] : enumerate(c.products)) {
    if (product.owner != number)
      continue;
    SaveAndRestore count(c.numProducers, c.numProducerThreads());
    SaveAndRestore own(c.producer, b.CreateSub(c.thread, c.i32(first)));
    e.emitIf(b.CreateICmpULT(c.producer, c.i32(c.numProducerThreads())),
             [&] { copyAllTiles(product); });
    first += c.numProducerThreads();
  }
  b.CreateRetVoid();
  b.SetInsertPoint(consuming);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {c.i32(registers.consuming)});
}
