//===- TileLoopAccuracyCheck.cpp - Flags inaccurate sums of a tile loop ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor's planes have one scale (TileLoopPrecision.cpp). An element far below the largest keeps
// fewer bits than f32 has, or none: of heads in other units, of keys beside rows that a mask leaves
// out and that hold anything. Where large elements count too, that is less than f32's own
// roundings.
//
// The size of a sum shows the loss, as in matrix products (AccuracyCheck.cpp). With the scales
// still in them, the terms that were lost are, over K points,
//
//   2^-25 / sqrt(3) * sqrt(2 K) * 2^12.5 = 2^-12.8 sqrt(K)
//
// of either sign (2^12.5 is the size of a normal number where the largest of thousands is below
// 2^15), and 2^-11.3 sqrt(K) where all elements of one factor are as large as its largest; products
// of normal numbers have sums of 2^25 sqrt(K). A thread has a doubt where eight of its sums are
// below 2^7 sqrt(K): of larger ones what was lost is 2^-18 to 2^-20. The eight are of one row, in
// 32 columns that follow each other, so half of 64 columns may have other units than the rest. Of
// ordinary data one sum in 2^18 is that small, not eight; where the largest element is 2^10 times
// the normal one, and what is lost less than f32's roundings, one in 2^8, and eight once in 2^64.
//
// Sums of zeros alone are 0 and right: an element of a tensor that is not 0 has a plane that is not
// 0. Of a left factor in registers elements below 2^-39 of its row's largest in the tile are 0.
//
// Sums with columns of few keys say nothing among those with large ones, as where a mask leaves a
// few and garbage behind them. So where a key's elements are neighbours in memory the launch that
// writes planes has a doubt where it is small.
//
// An infinity has no planes: infinity less infinity is NaN. It is a doubt where it is an element of
// a tensor, or a row's largest.
//
// A doubt of the loop is a register of the thread until its work is done, since ptxas runs products
// one after the other beside branches that not all warps take. Then it becomes a word of the
// workspace, and the launch behind the loop, which is of the general strategy's code and else ends
// at once, computes all rows again.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/TileLoopAccuracyCheck.h"

using namespace llvm;
using namespace tegula;

TileLoopAccuracyCheck::TileLoopAccuracyCheck(TileLoopBlock &block)
    : c(block), e(block.e), b(block.b) {}

/// Sums of a fragment that a thread has in a row, and fragments that tell together.
static constexpr unsigned columnsOfFragment = 8, sumsOfRow = 2, fragmentsTogether = 4;
/// The size of a line's largest element from which on what was lost of it is less than 2^-18 of its
/// sums.
static constexpr double smallestOfLine = 0x1p-5;

void TileLoopAccuracyCheck::start() {
  if (!c.usesSplitPrecision())
    return;
  BasicBlock &entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  flag = IRBuilder<>(&entry, entry.begin()).CreateAlloca(b.getInt32Ty(), nullptr, "doubt");
  b.CreateStore(c.i32(0), flag);
}

/// In the launch before the loop that has this block, by one thread.
void TileLoopAccuracyCheck::clear(Value *block, Value *memory) {
  Value *isFirst = b.CreateICmpEQ(b.CreateOr(block, c.thread), c.i32(0));
  e.emitIf(isFirst, [&] { b.CreateAlignedStore(c.i32(0), memory, Align(4)); });
}

/// The size of a row's sums, scales still in them, below which they may be what was lost (f32).
Value *TileLoopAccuracyCheck::smallestSum(const Product &product, unsigned row) {
  Type *type = b.getFloatTy();
  double limit = 0x1p7 * std::sqrt(double(product.depth));
  if (product.a)
    return ConstantFP::get(type, limit);
  // The largest scale may bring a row to less than 2^14, if to no less than 1.
  constexpr double minInverse = 0x1p-126;
  Value *isLargest = b.CreateFCmpOEQ(product.scales[row], ConstantFP::get(type, minInverse));
  return b.CreateSelect(isLargest, ConstantFP::get(type, limit * 0x1p-14),
                        ConstantFP::get(type, limit));
}

/// Scales are still in the sums, which are of the scope's columns from `first` on.
void TileLoopAccuracyCheck::flagSmallSums(const Product &product, const Values &accumulators,
                                          const Scope &scope, unsigned first) {
  if (product.planned->terms == 1)
    return;
  unsigned fragments = accumulators.size() / (2 * sumsOfRow),
           groups = std::max(fragments / fragmentsTogether, 1u);
  auto groupOf = [&](unsigned fragment) {
    return std::min(fragment / fragmentsTogether, groups - 1);
  };
  Values largest(2 * groups); // of both rows
  for (auto [number, sum] : enumerate(accumulators)) {
    Value *&ofGroup = largest[2 * groupOf(number / (2 * sumsOfRow)) + number / sumsOfRow % 2];
    Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, sum);
    ofGroup = ofGroup ? b.CreateMaxNum(ofGroup, size) : size;
  }
  // A row with a single column is not judged: one sum says nothing.
  if (scope.ragged)
    c.choose(scope.ragged, largest, [&] {
      Values told;
      for (auto [number, size] : enumerate(largest)) {
        unsigned fragment = first / columnsOfFragment + number / 2 * fragmentsTogether;
        Value *second = scope.numbers[fragment * sumsOfRow + 1];
        told.push_back(b.CreateSelect(b.CreateICmpSLT(second, scope.high), size,
                                      ConstantFP::get(b.getFloatTy(), 0)));
      }
      return told;
    });
  // With 0 the largest number one comparison tells.
  auto order = [&](Value *size) {
    return b.CreateSub(b.CreateBitCast(size, b.getInt32Ty()), c.i32(1));
  };
  Value *isSmall = b.getFalse();
  for (unsigned row = 0; row < 2; ++row) {
    Value *least = order(largest[row]);
    for (unsigned group = 1; group < groups; ++group)
      least = b.CreateBinaryIntrinsic(Intrinsic::umin, least, order(largest[2 * group + row]));
    isSmall = b.CreateOr(isSmall, b.CreateICmpULT(least, order(smallestSum(product, row))));
  }
  Value *before = b.CreateLoad(b.getInt32Ty(), flag);
  b.CreateStore(b.CreateOr(before, b.CreateZExt(isSmall, b.getInt32Ty())), flag);
}

void TileLoopAccuracyCheck::raise() {
  b.CreateAtomicRMW(AtomicRMWInst::Or, c.workspace, c.i32(1), Align(4), AtomicOrdering::Monotonic,
                    b.getContext().getOrInsertSyncScopeID("device"));
}

/// A thread's last work.
void TileLoopAccuracyCheck::store() {
  if (c.usesSplitPrecision())
    e.emitIf(b.CreateICmpNE(b.CreateLoad(b.getInt32Ty(), flag), c.i32(0)), [&] { raise(); });
}

/// Elements of a line of the tensor that is a column of a right factor whose columns are the
/// tile's; 0: it has none.
int64_t TileLoopAccuracyCheck::lineOf(const SplitTensor &split) const {
  auto *found = find_if(c.plan.products, [&](const TileLoopProduct &product) {
    return !product.reducesTile && product.bKMajor &&
           tgl::ReadOp(product.b).getTensor() == split.tensor;
  });
  return found == c.plan.products.end() ? 0 : found->fixed;
}

/// A doubt of the loop where a row's largest number (f32) is infinite.
void TileLoopAccuracyCheck::flagInfinite(Value *largest) {
  Value *isInfinite = b.CreateFCmpOEQ(largest, ConstantFP::getInfinity(b.getFloatTy()));
  b.CreateStore(
      b.CreateOr(b.CreateLoad(b.getInt32Ty(), flag), b.CreateZExt(isInfinite, b.getInt32Ty())),
      flag);
}

/// A doubt where an element of a unit is infinite, or where the unit is of a line of which too much
/// is lost; of few units the other ones of the line are looked at.
void TileLoopAccuracyCheck::flagElements(const SplitTensor &split, Value *element, Value *scaled,
                                         Value *scale) {
  Type *type = b.getFloatTy();
  auto largestOf = [&](Value *chunk) {
    return b.CreateFPMaxReduce(b.CreateUnaryIntrinsic(Intrinsic::fabs, chunk));
  };
  Value *own = largestOf(scaled);
  e.emitIf(b.CreateFCmpOEQ(own, ConstantFP::getInfinity(type)), [&] { raise(); });
  int64_t points = lineOf(split);
  if (!points)
    return;
  auto isLost = [&](Value *largest) {
    return b.CreateAnd(b.CreateFCmpOLT(largest, ConstantFP::get(type, smallestOfLine)),
                       b.CreateFCmpOGT(largest, ConstantFP::get(type, 0)));
  };
  e.emitIf(isLost(own), [&] {
    Value *first = b.CreateSub(element, b.CreateURem(element, c.i64(points)));
    Value *end = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateAdd(first, c.i64(points)),
                                         c.i64(split.elements));
    auto chunkOf = [&](Value *place) {
      return b.CreateUDiv(place, c.i64(TileLoopBlock::chunkElements));
    };
    Value *largest =
        e.emitLoop(chunkOf(first), chunkOf(end), c.i64(1), {own},
                   [&](Value *number, ArrayRef<Value *> before) {
                     return Values{b.CreateMaxNum(
                         before[0], b.CreateFMul(largestOf(c.chunkAt(split, number)), scale))};
                   })[0];
    e.emitIf(isLost(largest), [&] { raise(); });
  });
}
