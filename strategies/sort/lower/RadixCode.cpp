//===- RadixCode.cpp - Keys, digits and ranks of a sort -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/sort/lower/RadixCode.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

SmallVector<Digit> tegula::sortDigits(unsigned keyBits) {
  unsigned count = std::max(2u, keyBits / 8), bits = keyBits / count;
  SmallVector<Digit> digits;
  for (unsigned digit = 0; digit < count; ++digit)
    digits.push_back({digit * bits, bits});
  return digits;
}

SmallVector<Digit> tegula::selectDigits(unsigned keyBits) {
  constexpr unsigned widest = 11;
  unsigned count = divideCeil(keyBits, widest), bits = divideCeil(keyBits, count);
  SmallVector<Digit> digits;
  for (unsigned rest = keyBits; rest;) {
    unsigned own = std::min(bits, rest);
    rest -= own;
    digits.push_back({rest, own});
  }
  return digits;
}

int64_t SortWorkspace::add(int64_t size) {
  int64_t begin = bytes;
  bytes += alignTo(size, temporaryAlignment);
  return begin;
}

RadixCode::RadixCode(DeviceEmitter &e, const SortPlan &plan, unsigned threads, Value *workspace)
    : e(e), b(e.b), plan(plan), threads(threads), workspace(workspace),
      rawType(b.getIntNTy(plan.bits())) {
  thread = b.CreateTrunc(e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, threads), b.getInt32Ty());
  lane = b.CreateAnd(thread, i32(warp - 1));
  warpNumber = b.CreateLShr(thread, i32(llvm::countr_zero(warp)));
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value *RadixCode::blockNumber() {
  return e.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, std::numeric_limits<int32_t>::max());
}

void RadixCode::barrier() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
}

void RadixCode::warpBarrier() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {b.getInt32(-1)});
}

Value *RadixCode::ballot(Value *condition) {
  return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_vote_ballot_sync,
                           {b.getInt32(-1), condition});
}

Value *RadixCode::lanesBelow() {
  return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_read_ptx_sreg_lanemask_lt, {});
}

Value *RadixCode::addWarp(Value *value) {
  return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_redux_sync_add, {value, b.getInt32(-1)});
}

Value *RadixCode::slot(Value *array, Value *index, Type *type) {
  return b.CreateInBoundsGEP(type ? type : b.getInt32Ty(), array,
                             index->getType()->isIntegerTy(64) ? index : wide(index));
}

GlobalVariable *RadixCode::sharedCounts(unsigned count, const Twine &name) {
  return e.shared(ArrayType::get(b.getInt32Ty(), count), name);
}

void RadixCode::clear(Value *counts, unsigned count) {
  for (unsigned begin = 0; begin < count; begin += threads) {
    Value *index = b.CreateAdd(thread, i32(begin));
    auto store = [&] { b.CreateStore(i32(0), slot(counts, index)); };
    if (begin + threads <= count)
      store();
    else
      e.emitIf(b.CreateICmpULT(index, i32(count)), store);
  }
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

void RadixCode::atRow(Value *row, function_ref<void()> body) {
  auto axes = cast<tgl::AxesOp>(tgl::ParallelOp(plan.statement).getOperation());
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, axes.getAxes().size()));
  e.setAxes(axes, all, row, std::nullopt, [&] {
    for (mlir::Operation &op : tgl::ParallelOp(plan.statement).getBody().front())
      if (!isa<tgl::ParallelOp, tgl::SortOp>(op))
        e.emitOp(&op);
    body();
  });
}

RadixCode::Element RadixCode::evaluate(Value *number) {
  tgl::ParallelOp nest = plan.elements.nest;
  mlir::Value axis = nest.getAxes()[*plan.elements.axis];
  e.values[axis] = b.CreateNSWAdd(wide(number), b.getInt64(plan.elements.first));
  Value *raw;
  if (tgl::ReadOp source = plan.source) {
    for (mlir::Operation &op : nest.getBody().front())
      if (!op.getNumRegions() && !isa<tgl::WriteOp, tgl::ReadOp>(op))
        e.emitOp(&op);
    raw = e.loadRaw(e.buffers.lookup(source.getTensor()), source.getSubscriptExprs(), nullptr);
  } else {
    for (mlir::Operation &op : nest.getBody().front())
      if (!isa<tgl::WriteOp>(op))
        e.emitOp(&op);
    raw = e.encode(e.valueOf(tgl::WriteOp(plan.elements.value).getValue()), plan.element());
  }
  return {b.CreateBitCast(raw, rawType), plan.keepsPositions ? number : nullptr};
}

RadixCode::Memory RadixCode::tensorRow() {
  tgl::SortOp sort = plan.sort;
  const DeviceEmitter::Buffer values = e.buffers.lookup(sort.getValues()),
                              positions = e.buffers.lookup(sort.getPositions());
  SmallVector<ValueExpr> first = sort.getSubscriptExprs();
  first.push_back(ValueExpr(int64_t(0)));
  Value *row = e.emitIndex(tgl::elementOffset(values.type, first));
  return {b.CreateInBoundsGEP(e.storageType(values.type.getElementType()), values.pointer, row),
          b.CreateInBoundsGEP(b.getInt64Ty(), positions.pointer, row)};
}

RadixCode::Memory RadixCode::workspaceRow(const SortWorkspace &space, Value *row, int64_t length) {
  Value *begin = b.CreateNSWMul(row, b.getInt64(length));
  auto at = [&](int64_t offset, Type *type) {
    Value *base = b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), workspace, offset);
    return b.CreateInBoundsGEP(type, base, begin);
  };
  return {at(space.elements, rawType), at(space.numbers, b.getInt32Ty())};
}

RadixCode::Element RadixCode::load(const Memory &memory, Value *number) {
  Value *raw = b.CreateLoad(rawType, slot(memory.raws, number, rawType));
  return {raw, plan.keepsPositions ? b.CreateLoad(b.getInt32Ty(), slot(memory.numbers, number))
                                   : nullptr};
}

void RadixCode::store(const Memory &memory, Value *number, Element element) {
  b.CreateStore(element.raw, slot(memory.raws, number, rawType));
  if (plan.keepsPositions)
    b.CreateStore(element.number, slot(memory.numbers, number));
}

void RadixCode::leave(Value *place, Element element) {
  Memory row = tensorRow();
  if (plan.keepsValues) {
    mlir::Type sorted =
        cast<tgl::TglTensorType>(tgl::SortOp(plan.sort).getValues().getType()).getElementType();
    Type *stored = e.storageType(sorted);
    Value *raw = b.CreateBitCast(element.raw, e.storageType(plan.element()));
    if (plan.source)
      raw = e.encode(e.decode(raw, plan.element()), sorted);
    b.CreateStore(raw, slot(row.raws, place, stored));
  }
  if (plan.keepsPositions)
    b.CreateStore(b.CreateNSWAdd(wide(element.number), b.getInt64(plan.elements.first)),
                  slot(row.numbers, place, b.getInt64Ty()));
}

Value *RadixCode::keyOf(Value *raw) {
  mlir::Type element = plan.element();
  unsigned bits = plan.bits();
  APInt sign = APInt::getSignMask(bits);
  auto constant = [&](const APInt &value) { return ConstantInt::get(rawType, value); };
  Value *key = raw;
  if (auto type = dyn_cast<mlir::FloatType>(element)) {
    APInt infinity = APFloat::getInf(type.getFloatSemantics()).bitcastToAPInt();
    Value *magnitude = b.CreateAnd(raw, constant(~sign));
    Value *isNegative = b.CreateICmpSLT(raw, constant(APInt::getZero(bits)));
    key = b.CreateSelect(isNegative, b.CreateNot(raw), b.CreateOr(raw, constant(sign)));
    key = b.CreateSelect(b.CreateICmpEQ(magnitude, constant(APInt::getZero(bits))), constant(sign),
                         key);
    key = b.CreateSelect(b.CreateICmpUGT(magnitude, constant(infinity)),
                         constant(APInt::getAllOnes(bits)), key);
  } else {
    // Narrow unsigned numbers are compared as what they are, wide ones as signed, as everywhere.
    auto integer = cast<mlir::IntegerType>(element);
    bool isOrdered = integer.getWidth() == 1 || (integer.isUnsigned() && integer.getWidth() < 32);
    if (!isOrdered)
      key = b.CreateXor(raw, constant(sign));
  }
  return tgl::SortOp(plan.sort).getDescending() ? b.CreateNot(key) : key;
}

Value *RadixCode::digitOf(Value *key, Value *shift, unsigned bits) {
  Value *digit = b.CreateZExtOrTrunc(b.CreateLShr(key, shift), b.getInt32Ty());
  return b.CreateAnd(digit, i32((1u << bits) - 1));
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

Value *RadixCode::peersOf(Value *digit, unsigned bits) {
  Value *peers = b.getInt32(-1);
  for (unsigned bit = 0; bit < bits; ++bit) {
    Value *isSet = b.CreateICmpNE(b.CreateAnd(digit, i32(1u << bit)), i32(0));
    Value *set = ballot(isSet);
    peers = b.CreateAnd(peers, b.CreateSelect(isSet, set, b.CreateNot(set)));
  }
  return peers;
}

RadixCode::Scanned RadixCode::scanBlock(Value *own) {
  Value *with = own;
  for (unsigned distance = 1; distance < warp; distance *= 2) {
    Value *lower = e.shuffle(with, Intrinsic::nvvm_shfl_sync_up_i32, i32(distance), 0);
    with = b.CreateSelect(b.CreateICmpUGE(lane, i32(distance)), b.CreateAdd(with, lower), with);
  }
  unsigned warps = threads / warp;
  if (warps == 1)
    return {b.CreateSub(with, own),
            e.shuffle(with, Intrinsic::nvvm_shfl_sync_idx_i32, i32(warp - 1), warp - 1)};
  GlobalVariable *sums = sharedCounts(warps, "sums");
  e.emitIf(b.CreateICmpEQ(lane, i32(warp - 1)),
           [&] { b.CreateStore(with, slot(sums, warpNumber)); });
  barrier();
  Value *before = i32(0), *all = i32(0);
  for (unsigned number = 0; number < warps; ++number) {
    before = b.CreateSelect(b.CreateICmpEQ(warpNumber, i32(number)), all, before);
    all = b.CreateAdd(all, b.CreateLoad(b.getInt32Ty(), slot(sums, i32(number))));
  }
  return {b.CreateAdd(before, b.CreateSub(with, own)), all};
}

Value *RadixCode::rankedPlace(unsigned index, unsigned each) {
  Value *begin = b.CreateAdd(b.CreateMul(warpNumber, i32(warp * each)), lane);
  return b.CreateAdd(begin, i32(index * warp));
}

RadixCode::Values RadixCode::rank(ArrayRef<Value *> digits, unsigned bits, Value *counts,
                                  Value *before) {
  unsigned warps = threads / warp;
  Type *count = b.getInt32Ty();
  clear(counts, warps * digitValues);
  barrier();
  Value *table = b.CreateMul(warpNumber, i32(digitValues));
  Value *below = lanesBelow();
  Values ranks;
  for (Value *digit : digits) {
    Value *peers = peersOf(digit, bits);
    Value *place = slot(counts, b.CreateAdd(table, digit));
    Value *earlier = b.CreateLoad(count, place);
    Value *inRun = b.CreateUnaryIntrinsic(Intrinsic::ctpop, b.CreateAnd(peers, below));
    warpBarrier();
    e.emitIf(b.CreateICmpEQ(inRun, i32(0)), [&] {
      b.CreateStore(b.CreateAdd(earlier, b.CreateUnaryIntrinsic(Intrinsic::ctpop, peers)), place);
    });
    warpBarrier();
    ranks.push_back(b.CreateAdd(earlier, inRun));
  }
  barrier();
  // A thread for each digit: what the warps before each have of it, then all digits before.
  Value *hasDigit = threads == digitValues ? nullptr : b.CreateICmpULT(thread, i32(digitValues));
  auto addUp = [&]() -> Value * {
    Value *total = i32(0);
    for (unsigned number = 0; number < warps; ++number) {
      Value *place = slot(counts, b.CreateAdd(thread, i32(number * digitValues)));
      Value *own = b.CreateLoad(count, place);
      b.CreateStore(total, place);
      total = b.CreateAdd(total, own);
    }
    return total;
  };
  Value *total = hasDigit ? e.emitIfElse(hasDigit, addUp, i32(0)) : addUp();
  Value *start = scanBlock(total).before;
  auto keep = [&] { b.CreateStore(start, slot(before, thread)); };
  hasDigit ? e.emitIf(hasDigit, keep) : keep();
  barrier();
  for (auto [rank, digit] : zip_equal(ranks, digits)) {
    rank = b.CreateAdd(rank, b.CreateLoad(count, slot(counts, b.CreateAdd(table, digit))));
    rank = b.CreateAdd(rank, b.CreateLoad(count, slot(before, digit)));
  }
  return ranks;
}
