//===- BlockTile.cpp - The tile that a block computes ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/BlockTile.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned sharedSpace = 3;

BlockTile::BlockTile(Emitter &emitter, const ContractionNumbers &numbers)
    : numbers(numbers), e(emitter), b(emitter.b), plan(numbers.plan), tile(numbers.tile),
      memory(numbers.memory), axes(numbers.axes), epilogueRows(tile.rows) {}

void BlockTile::selectRows(unsigned numRows, Value *first) {
  epilogueRows = numRows;
  rows.first = b.CreateAdd(rows.first, first);
  firstAccumulatorRow = b.CreateTrunc(first, b.getInt32Ty());
}

void BlockTile::selectSlice(unsigned numRows, Value *first) {
  selectRows(numRows, first);
  isPart = true;
  firstAccumulatorRow = nullptr;
}

unsigned BlockTile::accumulatorsBase(unsigned product) const {
  return isPart ? product * epilogueRows * memory.accumulatorsPitch() * 4
                : memory.accumulatorsBase(product);
}

//===----------------------------------------------------------------------===//
// Numbers of rows and columns
//===----------------------------------------------------------------------===//

Value *BlockTile::paddedColumnExists(Value *number) const {
  if (!isPadded())
    return nullptr;
  Value *exists = nullptr;
  for (unsigned axis : reverse(plan.columns)) {
    int64_t counted = numbers.paddedExtent(axes, axis);
    if (!counted)
      break; // images have no padding between them
    Value *digit = b.CreateURem(number, i64(counted));
    number = b.CreateUDiv(number, i64(counted));
    exists = e.emitAnd(exists, b.CreateICmpSLT(digit, i64(*tgl::knownPoints(axes, {axis}))));
  }
  return exists;
}

Value *BlockTile::extentOf(tgl::AxesOp op, unsigned axis) const {
  if (int64_t counted = numbers.paddedExtent(op, axis))
    return i64(counted);
  tgl::AxisRange range = tgl::getAxisRange(op, axis);
  if (std::optional<int64_t> known = tgl::knownPoints(op, {axis}))
    return i64(*known);
  return b.CreateBinaryIntrinsic(Intrinsic::smax, e.emitIndex(range.hi - range.lo), i64(0));
}

Value *BlockTile::pointsOf(tgl::AxesOp op, ArrayRef<unsigned> group) const {
  Value *result = i64(1);
  for (unsigned axis : group)
    result = b.CreateMul(result, extentOf(op, axis));
  return result;
}

/// The quotient and the rest of `number` by `extent`. Of `a*m + b` with a multiple of the extent as
/// m those of b alone are to be found: elements of a step of which b's quotient is the same then
/// have it in common.
static std::pair<Value *, Value *> divide(IRBuilder<> &b, Value *number, Value *extent,
                                          bool isShort) {
  using namespace PatternMatch;
  Value *factor = nullptr, *remainder = nullptr;
  const APInt *multiple = nullptr;
  auto *by = dyn_cast<ConstantInt>(extent);
  if (by && by->isZero()) // of no points
    return {number, number};
  if (by && match(number, m_Add(m_Mul(m_Value(factor), m_APInt(multiple)), m_Value(remainder))) &&
      multiple->urem(by->getValue()) == 0) {
    Value *before = b.CreateMul(factor, b.getInt(multiple->udiv(by->getValue())));
    return {b.CreateAdd(before, b.CreateUDiv(remainder, extent)), b.CreateURem(remainder, extent)};
  }
  auto *type = isShort && !by ? b.getInt32Ty()
                              : b.getInt64Ty(); // by constants LLVM knows what divisions share
  number = b.CreateTrunc(number, type);
  extent = b.CreateTrunc(extent, type);
  return {b.CreateZExt(b.CreateUDiv(number, extent), b.getInt64Ty()),
          b.CreateZExt(b.CreateURem(number, extent), b.getInt64Ty())};
}

void BlockTile::setNumber(tgl::AxesOp op, ArrayRef<unsigned> group, bool collapses,
                          Value *number) const {
  // What the others leave is the first axis' that has more than one point.
  const unsigned *first = find_if(group, [&](unsigned axis) {
    return numbers.paddedExtent(op, axis) > 1 || tgl::knownPoints(op, axis) != 1;
  });
  unsigned front = first != group.end() ? *first : group.empty() ? 0 : group.front();
  bool isShort = numbers.numbersFit32Bit(op, group);
  for (unsigned axis : reverse(group)) {
    Value *digit = number;
    if (collapses && axis != group.back()) {
      digit = i64(0);
    } else if (!collapses && axis != front) {
      Value *extent = extentOf(op, axis);
      if (!isa<Constant>(extent))
        extent = b.CreateBinaryIntrinsic(Intrinsic::umax, extent, i64(1));
      std::tie(number, digit) = divide(b, number, extent, isShort);
    }
    if (numbers.paddedExtent(op, axis)) // those that are there for the padding are the last again
      digit =
          b.CreateBinaryIntrinsic(Intrinsic::smin, digit, i64(*tgl::knownPoints(op, {axis}) - 1));
    e.values[op.getAxes()[axis]] = b.CreateAdd(digit, e.emitIndex(e.lowOf(op, axis)));
    e.checks.setCountsOthers(op.getAxes()[axis],
                             collapses && axis == group.back() && group.size() > 1);
  }
}

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

Value *BlockTile::readSreg(Intrinsic::ID id) const {
  return b.CreateIntrinsic(b.getInt32Ty(), id, {});
}

Value *BlockTile::opaque(Value *word) const {
  auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
  return b.CreateCall(InlineAsm::get(type, "mov.b32 $0, $1;", "=r,r", /*hasSideEffects=*/true),
                      {word});
}

Value *BlockTile::opaqueThread() const {
  Value *number = opaque(thread);
  // But how large it gets: then lines of a step do not change what stands before them in a place.
  return isPowerOf2_32(tile.threads()) ? b.CreateAnd(number, i32(tile.threads() - 1)) : number;
}

Value *BlockTile::sharedAt(Value *bytes) const {
  return b.CreateInBoundsGEP(b.getInt8Ty(), shared, bytes);
}

Value *BlockTile::accumulatorAddress(Value *row, Value *column, unsigned base) const {
  if (firstAccumulatorRow)
    row = b.CreateAdd(row, firstAccumulatorRow);
  Value *number = b.CreateAdd(b.CreateMul(row, i32(memory.accumulatorsPitch())), column);
  return sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(base)));
}

Value *BlockTile::epilogueCorner() const {
  return b.CreateUDiv(warpgroupCorner(b, tile, thread).column,
                      i32(warpgroupColumns(tile) / warpgroupEpilogueColumns()));
}

void BlockTile::begin() {
  shared = b.GetInsertBlock()->getModule()->getNamedGlobal("tegula_shared_memory");
  if (!shared) {
    shared =
        new GlobalVariable(*b.GetInsertBlock()->getModule(), ArrayType::get(b.getInt8Ty(), 0),
                           false, GlobalValue::ExternalLinkage, nullptr, "tegula_shared_memory",
                           nullptr, GlobalValue::NotThreadLocal, sharedSpace);
    shared->setAlignment(Align(WgmmaSharedLayout::alignment));
  }
  thread = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x);
  block = readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  lane = b.CreateAnd(thread, i32(31));
  corner = warpCorner(b, tile, thread);
  auto group = [&](ArrayRef<unsigned> its, int64_t extent) {
    TileDim result;
    result.axes = its;
    result.extent = extent;
    result.total = pointsOf(axes, its);
    std::optional<int64_t> known = tgl::knownPoints(axes, its);
    bool hasPadding =
        any_of(its, [&](unsigned axis) { return numbers.paddedExtent(axes, axis) != 0; });
    result.fits = known && *known % extent == 0 && !hasPadding;
    return result;
  };
  rows = group(plan.rows, tile.rows);
  columns = group(plan.columns, tile.statementColumns());
}
