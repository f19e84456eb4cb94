//===- TileLoopMaskRanges.cpp - Columns in which masks of data hold -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/TileLoopMaskRanges.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "strategies/tile_loop/plan/TileLoopMasks.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
namespace arith = mlir::arith;

static constexpr int64_t noColumn = std::numeric_limits<int64_t>::max();

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// The axes of blocks that masks vary along.
SmallVector<unsigned> MaskRanges::batch() const {
  tgl::AxesOp own = axes;
  SmallVector<unsigned> used;
  for (unsigned axis : plan.batch)
    if (any_of(plan.masks, [&](const TileLoopPlan::DataMask &mask) {
          return tgl::axesOf(mask.condition).contains(own.getAxes()[axis]);
        }))
      used.push_back(axis);
  return used;
}

/// Blocks of rows that masks can tell apart.
int64_t MaskRanges::count() const {
  tgl::AxesOp own = axes;
  SmallVector<unsigned> used = batch();
  return divideCeil(*tgl::knownPoints(own, {plan.row}), rows) *
         (used.empty() ? 1 : *tgl::knownPoints(own, used));
}

/// The place of the four numbers of a mask. `entry`: i64, of the block of rows.
Value *MaskRanges::placeOf(unsigned mask, Value *entry, Value *memory) {
  Value *number = b.CreateAdd(entry, i64(mask * count()));
  Value *distance = b.CreateAdd(b.CreateMul(number, i64(rangeBytes)), i64(base));
  return b.CreateInBoundsGEP(b.getInt8Ty(), memory, distance);
}

/// Of the block of rows that begins with `firstRow` (i64), at the values of the axes of blocks.
Value *MaskRanges::entryOf(Value *firstRow) {
  int64_t blocks = divideCeil(*tgl::knownPoints(axes, {plan.row}), rows);
  Value *entry = i64(0);
  for (unsigned axis : batch()) {
    Value *at = b.CreateSub(e.values[axes.getAxes()[axis]], e.emitIndex(e.lowOf(axes, axis)));
    entry = b.CreateAdd(b.CreateMul(entry, i64(*tgl::knownPoints(axes, {axis}))), at);
  }
  Value *before = b.CreateSub(firstRow, e.emitIndex(e.lowOf(axes, plan.row)));
  return b.CreateAdd(b.CreateMul(entry, i64(blocks)), b.CreateUDiv(before, i64(rows)));
}

std::array<Value *, 4> MaskRanges::endsOf(unsigned mask, Value *entry, Value *memory) {
  Value *place = placeOf(mask, entry, memory);
  std::array<Value *, 4> ends;
  for (auto [number, end] : enumerate(ends))
    end = b.CreateAlignedLoad(b.getInt64Ty(),
                              b.CreateInBoundsGEP(b.getInt64Ty(), place, i64(number)), Align(8));
  return ends;
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

Value *MaskRanges::readSreg(Intrinsic::ID id, unsigned limit) {
  auto *call = b.CreateIntrinsic(b.getInt32Ty(), id, {});
  call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
  return call;
}

void MaskRanges::barrier() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

/// The extreme of all threads' numbers (i64).
Value *MaskRanges::acrossBlock(Value *number, Intrinsic::ID id) {
  constexpr unsigned warps = threads / 32;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    auto other = [&](Value *word) {
      return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_shfl_sync_bfly_i32,
                               {i32(-1), word, i32(distance), i32(31)});
    };
    Value *low = other(b.CreateTrunc(number, b.getInt32Ty())),
          *high = other(b.CreateTrunc(b.CreateLShr(number, i64(32)), b.getInt32Ty()));
    Value *all = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()),
                            b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), i64(32)));
    number = b.CreateBinaryIntrinsic(id, number, all);
  }
  auto placeOfWarp = [&](Value *warp) {
    return b.CreateInBoundsGEP(b.getInt64Ty(), shared, wide(warp));
  };
  barrier(); // the numbers before have been read
  e.emitIf(b.CreateICmpEQ(lane, i32(0)), [&] {
    b.CreateAlignedStore(number, placeOfWarp(b.CreateLShr(thread, i32(5))), Align(8));
  });
  barrier();
  for (unsigned warp = 0; warp < warps; ++warp) {
    Value *own = b.CreateAlignedLoad(b.getInt64Ty(), placeOfWarp(i32(warp)), Align(8));
    number = warp ? b.CreateBinaryIntrinsic(id, number, own) : own;
  }
  return number;
}

/// An integer in an order of i64.
Value *MaskRanges::orderedAt(mlir::Value value, bool isUnsigned) {
  Value *number = e.valueOf(value);
  if (!isUnsigned && !value.getType().isInteger(1))
    return b.CreateSExt(number, b.getInt64Ty());
  bool isWide = number->getType()->getIntegerBitWidth() == 64;
  number = b.CreateZExt(number, b.getInt64Ty());
  return isWide ? b.CreateXor(number, i64(std::numeric_limits<int64_t>::min())) : number;
}

/// At the current column, where operations that compute the condition have been emitted.
MaskRanges::Holds MaskRanges::holdsIn(const MapVector<mlir::Value, Extremes> &rows,
                                      mlir::BlockArgument column, mlir::Value condition) {
  MaskAnalysis analysis(plan, column);
  mlir::Operation *op = condition.getDefiningOp();
  SmallVector<Holds> parts;
  for (mlir::Value part : MaskAnalysis::partsOf(condition))
    parts.push_back(holdsIn(rows, column, part));
  if (parts.size() == 1)
    return {b.CreateNot(parts[0].everywhere), b.CreateNot(parts[0].somewhere)};
  if (parts.size() == 2 && isa<arith::AndIOp>(op))
    return {b.CreateAnd(parts[0].somewhere, parts[1].somewhere),
            b.CreateAnd(parts[0].everywhere, parts[1].everywhere)};
  if (parts.size() == 2)
    return {b.CreateOr(parts[0].somewhere, parts[1].somewhere),
            b.CreateOr(parts[0].everywhere, parts[1].everywhere)};
  switch (analysis.leafOf(condition)) {
  case MaskLeaf::Unknown:
    return {b.getTrue(), b.getFalse()};
  case MaskLeaf::Truth: {
    if (auto found = rows.find(condition); found != rows.end())
      return {b.CreateICmpNE(found->second.greatest, i64(0)),
              b.CreateICmpNE(found->second.least, i64(0))};
    Value *holds = e.valueOf(condition);
    return {holds, holds};
  }
  case MaskLeaf::Compared:
    break;
  }
  auto compare = cast<arith::CmpIOp>(op);
  arith::CmpIPredicate predicate = compare.getPredicate();
  bool isTurned = analysis.sideOf(compare.getLhs()) == MaskSide::Column;
  bool isUnsigned = ICmpInst::isUnsigned(CmpInst::Predicate(
      predicate >= arith::CmpIPredicate::ult ? CmpInst::ICMP_ULT : CmpInst::ICMP_SLT));
  auto [least, greatest] = rows.lookup(condition);
  Value *own = orderedAt(isTurned ? compare.getLhs() : compare.getRhs(), isUnsigned);
  auto isLess = [&](Value *a, Value *other) { return b.CreateICmpSLT(a, other); };
  Value *isAll = b.CreateAnd(b.CreateICmpEQ(least, own), b.CreateICmpEQ(greatest, own));
  Value *isInside = b.CreateNot(b.CreateOr(isLess(own, least), isLess(greatest, own)));
  bool isGreater = false, isStrict = false;
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return {isInside, isAll};
  case arith::CmpIPredicate::ne:
    return {b.CreateNot(isAll), b.CreateNot(isInside)};
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    isGreater = isStrict = true;
    break;
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    isGreater = true;
    break;
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    isStrict = true;
    break;
  default:
    break;
  }
  auto holds = [&](Value *row) {
    Value *a = row, *other = own;
    if (isGreater != isTurned)
      std::swap(a, other);
    return isStrict ? isLess(a, other) : b.CreateNot(isLess(other, a));
  };
  bool wantsGreat = isGreater != isTurned;
  return {holds(wantsGreat ? greatest : least), holds(wantsGreat ? least : greatest)};
}

void MaskRanges::emit(Value *memory) {
  Module &module = *b.GetInsertBlock()->getModule();
  shared = module.getNamedGlobal("tegula_shared_memory");
  if (!shared) {
    shared = new GlobalVariable(module, ArrayType::get(b.getInt8Ty(), 0), false,
                                GlobalValue::ExternalLinkage, nullptr, "tegula_shared_memory",
                                nullptr, GlobalValue::NotThreadLocal, 3);
    shared->setAlignment(Align(16));
  }
  thread = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, threads);
  lane = b.CreateAnd(thread, i32(31));
  int64_t all = *tgl::knownPoints(axes, {plan.row}), blocks = divideCeil(all, rows);
  Value *entry = readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
  Value *rest = b.CreateUDiv(entry, i32(blocks));
  for (unsigned axis : plan.batch)
    e.values[axes.getAxes()[axis]] = e.emitIndex(e.lowOf(axes, axis));
  for (unsigned axis : reverse(batch())) {
    Value *extent = i32(*tgl::knownPoints(axes, {axis}));
    e.values[axes.getAxes()[axis]] =
        b.CreateAdd(wide(b.CreateURem(rest, extent)), e.values[axes.getAxes()[axis]]);
    rest = b.CreateUDiv(rest, extent);
  }
  Value *low = e.emitIndex(e.lowOf(axes, plan.row));
  Value *first = b.CreateAdd(low, b.CreateMul(wide(b.CreateURem(entry, i32(blocks))), i64(rows)));
  Value *row = b.CreateAdd(first, wide(b.CreateURem(thread, i32(rows))));
  row = b.CreateBinaryIntrinsic(Intrinsic::smin, row,
                                b.CreateSub(b.CreateAdd(low, i64(all)), i64(1)));
  tgl::TilesOp tiles = plan.tiles;
  Value *from = e.emitIndex(tiles.getLowExpr()), *to = e.emitIndex(tiles.getHighExpr());
  for (auto [number, mask] : enumerate(plan.masks)) {
    MaskAnalysis analysis(plan, mask.axis);
    auto emitSlice = [&](mlir::Value value) {
      SetVector<mlir::Operation *> slice = *analysis.sliceOf(value);
      for (mlir::Operation *op : slice)
        e.emitOp(op);
    };
    // Of rows.
    MapVector<mlir::Value, Extremes> extremes;
    e.values[axes.getAxes()[plan.row]] = row;
    SmallVector<mlir::Value> pending{mask.condition};
    while (!pending.empty()) {
      mlir::Value leaf = pending.pop_back_val();
      SmallVector<mlir::Value, 2> parts = MaskAnalysis::partsOf(leaf);
      pending.append(parts.begin(), parts.end());
      if (!parts.empty())
        continue;
      mlir::Value value;
      bool isUnsigned = false;
      if (analysis.leafOf(leaf) == MaskLeaf::Compared) {
        auto compare = leaf.getDefiningOp<arith::CmpIOp>();
        value = analysis.sideOf(compare.getLhs()) == MaskSide::Row ? compare.getLhs()
                                                                   : compare.getRhs();
        isUnsigned = compare.getPredicate() >= arith::CmpIPredicate::ult;
      } else if (analysis.leafOf(leaf) == MaskLeaf::Truth &&
                 analysis.sideOf(leaf) == MaskSide::Row) {
        value = leaf;
      }
      if (!value)
        continue;
      emitSlice(value);
      Value *own = orderedAt(value, isUnsigned);
      extremes[leaf] = {acrossBlock(own, Intrinsic::smin), acrossBlock(own, Intrinsic::smax)};
    }
    // Of columns.
    e.keepNextLoopRolled = true;
    Values found = e.emitLoop(
        b.CreateAdd(from, wide(thread)), to, i64(threads),
        {i64(noColumn), i64(-noColumn), i64(noColumn), i64(-noColumn), i64(0)},
        [&](Value *column, ArrayRef<Value *> before) {
          e.values[mask.axis] = column;
          emitSlice(mask.condition);
          Holds holds = holdsIn(extremes, mask.axis, mask.condition);
          Values next;
          for (auto [own, least] :
               {std::pair(holds.somewhere, 0), std::pair(holds.everywhere, 2)}) {
            Value *smaller = b.CreateBinaryIntrinsic(Intrinsic::smin, before[least], column);
            Value *larger = b.CreateBinaryIntrinsic(Intrinsic::smax, before[least + 1],
                                                    b.CreateAdd(column, i64(1)));
            next.push_back(b.CreateSelect(own, smaller, before[least]));
            next.push_back(b.CreateSelect(own, larger, before[least + 1]));
          }
          next.push_back(b.CreateAdd(before[4], b.CreateZExt(holds.everywhere, b.getInt64Ty())));
          return next;
        },
        "column");
    // Columns in which it holds throughout are a range where none is missing.
    Values ends;
    for (unsigned end = 0; end < 4; ++end)
      ends.push_back(acrossBlock(found[end], end % 2 ? Intrinsic::smax : Intrinsic::smin));
    Value *count = found[4];
    for (unsigned distance = 1; distance < 32; distance *= 2)
      count = b.CreateAdd(count,
                          wide(b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_shfl_sync_bfly_i32,
                                                 {i32(-1), b.CreateTrunc(count, b.getInt32Ty()),
                                                  i32(distance), i32(31)})));
    barrier();
    e.emitIf(b.CreateICmpEQ(lane, i32(0)), [&] {
      Value *warp = b.CreateLShr(thread, i32(5));
      b.CreateAlignedStore(count, b.CreateInBoundsGEP(b.getInt64Ty(), shared, wide(warp)),
                           Align(8));
    });
    barrier();
    Value *total = i64(0);
    for (unsigned warp = 0; warp < threads / 32; ++warp)
      total = b.CreateAdd(
          total,
          b.CreateAlignedLoad(b.getInt64Ty(),
                              b.CreateInBoundsGEP(b.getInt64Ty(), shared, i64(warp)), Align(8)));
    Value *isRange = b.CreateICmpEQ(b.CreateSub(ends[3], ends[2]), total);
    ends[2] = b.CreateSelect(isRange, ends[2], i64(noColumn));
    ends[3] = b.CreateSelect(isRange, ends[3], i64(-noColumn));
    Value *place = placeOf(number, wide(entry), memory);
    e.emitIf(b.CreateICmpEQ(thread, i32(0)), [&] {
      for (auto [end, value] : enumerate(ends))
        b.CreateAlignedStore(value, b.CreateInBoundsGEP(b.getInt64Ty(), place, i64(end)), Align(8));
    });
  }
}
