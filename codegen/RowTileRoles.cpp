//===- RowTileRoles.cpp - Who copies and who multiplies in tile loops -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two warpgroups multiply, and the threads of a third copy right factors, some of them each. The
// two meet nowhere but where one hands the tensor cores to the other: at the start of an iteration
// it waits for its turn, starts its products, and passes the turn on. So one computes the values of
// its tile while the other's products are under way, as FlashAttention-3 has it (Shah et al., arXiv
// 2407.08608, "ping-pong"). A stage of a factor is full for each of the two, and empty when both
// have released it. All are named barriers at which some threads arrive and others wait.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceRowTiles.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// Registers of a thread of each role: together what a multiprocessor has for 384 threads.
static constexpr unsigned copyingRegisters = 40, multiplyingRegisters = 232;
static constexpr unsigned numStages = 2;

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void DeviceRowTiles::waitAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, i32(threads)});
}

void DeviceRowTiles::arriveAt(Value *number, unsigned threads) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                    {number, i32(threads)});
}

/// The stage for tile `number` holds it, for one of the warpgroups.
Value *DeviceRowTiles::fullBarrier(const Product &product, Value *group, Value *number) {
  Value *stage = b.CreateAnd(b.CreateTrunc(number, b.getInt32Ty()), i32(numStages - 1));
  unsigned first = FirstOfProduct + perProduct * unsigned(&product - products.data());
  return b.CreateAdd(b.CreateAdd(b.CreateMul(group, i32(numStages)), stage), i32(first));
}

/// Nobody reads the stage for tile `number` any more.
Value *DeviceRowTiles::emptyBarrier(const Product &product, Value *number) {
  return fullBarrier(product, i32(tile.warpgroups), number);
}

void DeviceRowTiles::awaitTile(const Product &product, Value *number) {
  if (hasRoles)
    waitAt(fullBarrier(product, warpgroup, number), Warpgroup::threads + numCopying());
}

void DeviceRowTiles::releaseTile(const Product &product, Value *number) {
  if (hasRoles)
    arriveAt(emptyBarrier(product, number), numMultiplying() + numCopying());
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

/// Left factors are there; the first warpgroup begins. The turn that it gets here is one that the
/// second does not pass on at the end. What is left over meets at a spare barrier: with branches
/// that not all warps take products would run one after the other (ptxas).
void DeviceRowTiles::startTurns() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_all, {});
  Warpgroup(b, false).publish();
  waitAt(i32(Multiplying), numMultiplying());
  arriveAt(b.CreateSelect(isSecond(), i32(Turn), i32(Spare)), numMultiplying());
}

Value *DeviceRowTiles::isSecond() { return b.CreateICmpEQ(warpgroup, i32(1)); }

void DeviceRowTiles::awaitTurn() { waitAt(b.CreateAdd(warpgroup, i32(Turn)), numMultiplying()); }

/// To the other warpgroup, if it has an iteration to come.
void DeviceRowTiles::passTurn() {
  Value *isLast = b.CreateICmpEQ(b.CreateAdd(tileNumber, i64(1)), numTiles);
  Value *other = b.CreateSub(i32(Turn + 1), warpgroup);
  arriveAt(b.CreateSelect(b.CreateAnd(isLast, isSecond()), i32(Spare), other), numMultiplying());
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Where a stage is to be filled again it is waited for, and at the end until all are empty: so
/// those that multiply need not know whether somebody waits.
void DeviceRowTiles::copyTiles(const Product &product) {
  e.nextLoopStays = true;
  e.emitLoop(
      i64(0), b.CreateAdd(numTiles, i64(numStages)), i64(1), {},
      [&](Value *number, ArrayRef<Value *>) {
        e.emitIf(b.CreateICmpSGE(number, i64(numStages)),
                 [&] { waitAt(emptyBarrier(product, number), numMultiplying() + numCopying()); });
        e.emitIf(b.CreateICmpSLT(number, numTiles), [&] {
          copy(product.column, stageOf(product, number), lowOfTile(number), tilesEnd);
          b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_all, {});
          Warpgroup(b, false).publish();
          for (unsigned group = 0; group < tile.warpgroups; ++group)
            arriveAt(fullBarrier(product, i32(group), number), Warpgroup::threads + numCopying());
        });
        return Values();
      });
}

/// The last warpgroup copies, and ends; what follows is for the others.
void DeviceRowTiles::splitOffCopies() {
  Function *function = b.GetInsertBlock()->getParent();
  // Registers move between roles only where the number at the start is fixed.
  function->addFnAttr("nvvm.minctasm", "1");
  BasicBlock *copying = BasicBlock::Create(b.getContext(), "copying", function);
  BasicBlock *multiplying = BasicBlock::Create(b.getContext(), "multiplying", function);
  b.CreateCondBr(b.CreateICmpUGE(thread, i32(numMultiplying())), copying, multiplying);
  b.SetInsertPoint(copying);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                    {i32(copyingRegisters)});
  for (auto [number, product] : enumerate(products)) {
    unsigned first = numMultiplying() + unsigned(number) * numCopying();
    SaveAndRestore count(numCopiers, numCopying());
    SaveAndRestore own(copier, b.CreateSub(thread, i32(first)));
    e.emitIf(b.CreateICmpULT(copier, i32(numCopying())), [&] { copyTiles(product); });
  }
  b.CreateRetVoid();
  b.SetInsertPoint(multiplying);
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {i32(multiplyingRegisters)});
}
