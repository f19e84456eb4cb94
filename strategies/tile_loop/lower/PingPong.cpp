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
#include "strategies/tile_loop/lower/FusedTileLoop.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

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

void FusedTileLoop::waitAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, i32(threads)});
}

void FusedTileLoop::arriveAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                    {number, i32(threads)});
}

/// A ring for each product. Nothing of those that copy is under way when they are done with a
/// stage.
void FusedTileLoop::makeRings() {
  for (auto [number, product] : enumerate(products))
    product.ring = async::makeRing(b, {.first = FirstOfProduct + perProduct * unsigned(number),
                                       .stages = numStages,
                                       .groups = unsigned(tile.warpgroups),
                                       .fillers = numProducerThreads(),
                                       .users = numConsumerThreads(),
                                       .fillersPublish = true});
}

/// The stage for tile `number` holds it, for one of the warpgroups.
void FusedTileLoop::awaitTile(const Product &product, Value *number) {
  if (isWarpSpecialized)
    async::wait(b, product.ring, inAll(number), warpgroup);
}

/// Nobody reads the stage for tile `number` any more.
void FusedTileLoop::releaseTile(const Product &product, Value *number) {
  if (isWarpSpecialized)
    async::release(b, product.ring, inAll(number));
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// The first warpgroup begins: it has a turn from the second, which in the end is one too many.
/// The second warpgroup gives the first its turn. The first arrives at a spare barrier, at which
/// the second waits in the end: in a branch that not all warps take, ptxas would make products run
/// one after the other.
void FusedTileLoop::startPingPong() {
  arriveAt(b.CreateSelect(isSecond(), i32(Turn), i32(Spare)), numConsumerThreads());
}

Value *FusedTileLoop::isSecond() { return b.CreateICmpEQ(warpgroup, i32(1)); }

void FusedTileLoop::awaitTurn() { waitAt(b.CreateAdd(warpgroup, i32(Turn)), numConsumerThreads()); }

/// Lets the other warpgroup multiply.
void FusedTileLoop::passTurn() {
  arriveAt(b.CreateSub(i32(Turn + 1), warpgroup), numConsumerThreads());
}

void FusedTileLoop::endTurns() {
  waitAt(b.CreateSelect(isSecond(), i32(Spare), i32(Turn)), numConsumerThreads());
}

//===----------------------------------------------------------------------===//
// Blocks of rows
//===----------------------------------------------------------------------===//

bool FusedTileLoop::staysForBlocks() const {
  return isWarpSpecialized && numRowStages == 2 &&
         numRowBlocks() > int64_t(e.options.target.multiprocessors);
}

/// `body` for each block of rows that the block has: with k blocks on the machine the i-th takes i,
/// 2k-1-i, 2k+i, .., so that all have about as much to do where blocks of rows have less and less.
/// The number of tiles of all of them.
Value *FusedTileLoop::forBlocks(function_ref<void()> body) {
  Value *first = b.CreateUDiv(readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff),
                              i32(tile.clusterBlocks));
  auto take = [&](Value *number) {
    setBlock(number);
    findTiles(plan.tiles);
    body();
  };
  tilesBefore = i32(0);
  isOdd = b.getFalse();
  if (!staysForBlocks()) {
    take(first);
    return b.CreateTrunc(numTiles, b.getInt32Ty());
  }
  int64_t all = numRowBlocks(), atOnce = e.options.target.multiprocessors, whole = all / atOnce;
  Value *last = b.CreateSub(i32(atOnce - 1), first);
  Value *inLast = b.CreateICmpSLT(whole % 2 ? last : first, i32(all % atOnce));
  Value *rounds = b.CreateAdd(i64(whole), b.CreateZExt(inLast, b.getInt64Ty()));
  e.keepNextLoopRolled = true;
  return e.emitLoop(
      i64(0), rounds, i64(1), {i32(0), b.getFalse()},
      [&](Value *round, ArrayRef<Value *> carried) {
        tilesBefore = carried[0];
        isOdd = carried[1];
        Value *isBackwards = b.CreateTrunc(round, b.getInt1Ty());
        Value *before = b.CreateMul(b.CreateTrunc(round, b.getInt32Ty()), i32(atOnce));
        take(b.CreateAdd(before, b.CreateSelect(isBackwards, last, first)));
        return Values{inAll(numTiles), b.CreateXor(carried[1], b.CreateICmpSGT(numTiles, i64(0)))};
      },
      "rows")[0];
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The tiles of a block of rows, and the rows before the first. Where a stage is to be filled again
/// it is waited for: when the first tile has a stage all tiles but the last of the rows before have
/// been multiplied, and so have the rows before those, whose place these rows get.
void FusedTileLoop::copyTiles(const Product &product) {
  auto acquire = [&](Value *number) { async::acquire(b, product.ring, inAll(number)); };
  if (product.a)
    e.emitIf(b.CreateICmpSGT(numTiles, i64(0)), [&] {
      acquire(i64(0));
      copy(*product.a, rowStage(product), firstRow, rowsEnd);
    });
  e.keepNextLoopRolled = true;
  e.emitLoop(i64(0), numTiles, i64(1), {}, [&](Value *number, ArrayRef<Value *>) {
    if (product.a) // the first has been
      e.emitIf(b.CreateICmpSGT(number, i64(0)), [&] { acquire(number); });
    else
      acquire(number);
    copy(product.b, stageOf(product, number), lowOfTile(number), tilesEnd);
    async::awaitAllCopies(b);
    async::commit(b, product.ring, inAll(number));
    return Values();
  });
}

/// For all blocks of rows. At the end it waits until all stages are empty: so those that multiply
/// need not know whether somebody waits.
void FusedTileLoop::copyAllTiles(const Product &product) {
  tilesBefore = forBlocks([&] { copyTiles(product); });
  for (unsigned number = 0; number < numStages; ++number)
    async::acquire(b, product.ring, inAll(i64(number)));
}

/// The last warpgroup copies, and ends; what follows is for the others.
void FusedTileLoop::branchToProducers() {
  Function *function = b.GetInsertBlock()->getParent();
  // Registers move between roles only where the number at the start is fixed.
  function->addFnAttr("nvvm.minctasm", "1");
  WarpRoleRegisters registers = usesSplitPrecision() ? ofTwoTerms : ofOneTerm;
  makeRings();
  BasicBlock *producing = BasicBlock::Create(b.getContext(), "copying", function);
  BasicBlock *consuming = BasicBlock::Create(b.getContext(), "multiplying", function);
  b.CreateCondBr(b.CreateICmpUGE(thread, i32(numConsumerThreads())), producing, consuming);
  b.SetInsertPoint(producing);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                    {i32(registers.producing)});
  for (auto [number, product] : enumerate(products)) {
    unsigned first = numConsumerThreads() + unsigned(number) * numProducerThreads();
    SaveAndRestore count(numProducers, numProducerThreads());
    SaveAndRestore own(producer, b.CreateSub(thread, i32(first)));
    e.emitIf(b.CreateICmpULT(producer, i32(numProducerThreads())), [&] { copyAllTiles(product); });
  }
  b.CreateRetVoid();
  b.SetInsertPoint(consuming);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {i32(registers.consuming)});
}
