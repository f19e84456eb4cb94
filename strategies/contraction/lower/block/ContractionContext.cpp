//===- ContractionContext.cpp - What code of a contraction shares ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/ContractionContext.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

ContractionCode::ContractionCode(ContractionContext &context)
    : context(context), numbers(context.numbers), e(context.e), b(context.b), plan(numbers.plan),
      tile(numbers.tile), memory(numbers.memory), products(numbers.products), axes(numbers.axes),
      here(context.here) {}

Value *ContractionCode::ceilDiv(Value *x, Value *y) const {
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(y, i64(1))), y);
}

/// Two neighbours.
void ContractionCode::storePair(Value *first, Value *second, Value *place) const {
  Value *two = PoisonValue::get(FixedVectorType::get(here.accumulatorType(), 2));
  two = b.CreateInsertElement(two, first, uint64_t(0));
  two = b.CreateInsertElement(two, second, uint64_t(1));
  b.CreateAlignedStore(two, place, Align(8));
}

void ContractionCode::barrier() const {
  if (numbers.isWarpSpecialized())
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                      {i32(context.consumerBarrier), i32(numbers.threads())});
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

/// `body` reckons places anew: what it would share with other tiles takes the registers that sums
/// need.
void ContractionCode::withRecomputedIndices(function_ref<void()> body) const {
  SaveAndRestore number(here.thread, here.opaqueThread());
  SaveAndRestore ofWarp(here.lane, b.CreateAnd(here.thread, i32(31)));
  SaveAndRestore its(here.corner, warpCorner(b, tile, here.thread));
  body();
}

/// Of the tile, of this block.
Value *ContractionCode::numStages(const WgmmaProduct &product) const {
  return b.CreateMul(product.kLoop.steps, i64(product.substeps));
}

/// Of the tile's stage `number` (i64) that among all that go through the ring.
Value *ContractionCode::stageNumber(const WgmmaProduct &product, Value *number) const {
  return product.stagesBefore ? b.CreateAdd(product.stagesBefore, number) : number;
}

//===----------------------------------------------------------------------===//
// Layouts, for drawings
//===----------------------------------------------------------------------===//

bool MmaProduct::copies() const {
  return a.how->staging != Staging::Values || b.how->staging != Staging::Values;
}

/// What the side is made of, for drawings.
static std::string sourceOf(const ContractionSide &side, const ContractionOperand &how) {
  if (!how.isPlain)
    return "evaluated by " + std::to_string(side.slice.size()) + " operations";
  return sourceName(tgl::ReadOp(how.read).getTensor());
}

void ContractionContext::note(const MmaProduct &product) {
  auto operand = [](const MmaOperand &its) {
    return OperandLayout{sourceOf(*its.side, *its.how), its.shared, its.offset,
                         its.how->staging != Staging::Values};
  };
  unsigned multiplications = product.a.how->terms + product.b.how->terms - 1;
  noted.push_back(
      {product.a.type, multiplications, product.stages, operand(product.a), operand(product.b)});
}

void ContractionContext::note(const WgmmaProduct &product) {
  auto operand = [](const WgmmaOperand &its) {
    return OperandLayout{sourceOf(*its.side, *its.how), its.shared, its.offset, its.isCopied};
  };
  OperandLayout column = operand(product.b);
  OperandLayout row = operand(product.a);
  for (unsigned other = 1; numbers.tile.hasOneMainloop() && other < numbers.products.size();
       ++other) {
    const ContractionProduct &planned = numbers.plan.products[other];
    column.source += " and " + sourceOf(planned.b, numbers.products[other].b);
    if (numbers.tile.accumulated)
      row.source += " and " + sourceOf(planned.a, numbers.products[other].a);
  }
  if (product.b.usesHaloTile) {
    column.tile = numbers.haloLayout();
    column.offset = numbers.ringRowsBytes();
  }
  unsigned multiplications = std::max(product.a.terms + product.b.terms - 1, product.planes());
  noted.push_back(
      {product.type, multiplications, numbers.ringStages(), std::move(row), std::move(column)});
}
