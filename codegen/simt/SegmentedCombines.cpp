//===- SegmentedCombines.cpp - Runs of equal targets in a warp --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/SegmentedCombines.h"

#include "codegen/common/Accesses.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Whether the offset holds an element of a tensor of integers that `axis` subscripts.
static bool isChosenByData(const ValueExpr &offset, mlir::Value axis) {
  return any_of(offset.operands(), [&](mlir::Value operand) {
    SmallVector<mlir::Value> left{operand};
    while (!left.empty()) {
      mlir::Value value = left.pop_back_val();
      mlir::Operation *made = value.getDefiningOp();
      if (!made || made->getNumRegions())
        continue;
      auto read = dyn_cast<tgl::ReadOp>(made);
      if (read && any_of(read.getSubscriptExprs(),
                         [&](const ValueExpr &subscript) { return subscript.uses(axis); }))
        return true;
      left.append(made->operand_begin(), made->operand_end());
    }
    return false;
  });
}

/// Whether threads of a warp may combine what they write: reductions know integers with a sign
/// alone, and the same value needs no combining.
static bool combinesInWarp(tgl::WriteOp write) {
  tgl::ReduceKind kind = *write.getCombine();
  bool isExtreme = kind == tgl::ReduceKind::Max || kind == tgl::ReduceKind::Min;
  bool isUnsigned = write.getTensorType().getElementType().isUnsignedInteger();
  return kind != tgl::ReduceKind::Any && !(isExtreme && isUnsigned);
}

void SegmentedCombines::plan(tgl::ParallelOp op, ArrayRef<unsigned> outer) {
  taken.clear();
  if (outer.empty() || outer.size() != op.getAxes().size() || e.options.checked ||
      !e.options.segmentedCombines)
    return;
  mlir::Value fastest = op.getAxes()[outer.back()];
  SmallVector<mlir::Operation *> found;
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions()) // warps may come apart in it
      return;
    auto write = dyn_cast<tgl::WriteOp>(inside);
    if (!write || !write.getCombine() || !combinesInWarp(write))
      continue;
    ValueExpr offset = tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs());
    if (!offset.uses(fastest) && isChosenByData(offset, fastest))
      found.push_back(write);
  }
  taken.insert_range(found);
}

/// What the thread's run of equal targets holds up to its own: `first` is the lane that begins it.
Value *SegmentedCombines::combineRuns(tgl::ReduceKind kind, Value *value, Value *lane,
                                      Value *first) {
  IRBuilder<> &b = e.b;
  for (unsigned distance = 1; distance < e.warp; distance *= 2) {
    Value *other =
        e.shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(distance), /*clamp=*/0);
    Value *both = combine(e, kind, Accumulator{value}, Accumulator{other}).front();
    Value *isOfRun = b.CreateICmpSGE(b.CreateNSWSub(lane, b.getInt32(distance)), first);
    value = b.CreateSelect(isOfRun, both, value);
  }
  return value;
}

bool SegmentedCombines::emitIn(mlir::Operation *op) {
  if (!taken.contains(op))
    return false;
  auto write = cast<tgl::WriteOp>(op);
  IRBuilder<> &b = e.b;
  const ScalarEmitter::Buffer &buffer = e.buffers.find(write.getTensor())->second;
  Value *mask = e.emitAnd(emitWriteMask(e, write), e.isPoint);
  Value *exists = mask ? mask : b.getTrue();
  e.checks.verifyProved(buffer.type, write.getSubscriptExprs(), mask);
  Value *offset = e.emitIndex(tgl::elementOffset(buffer.type, write.getSubscriptExprs()));
  Value *value = e.valueOf(write.getValue());
  Value *thread = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, e.shape.threads);
  Value *lane = b.CreateAnd(b.CreateTrunc(thread, b.getInt32Ty()), b.getInt32(e.warp - 1));

  Value *key = b.CreateSelect(exists, offset, e.i64(-1));
  if (write.getReplaced()) {
    // A neighbour with a larger number writes in place of this lane.
    Value *next = e.shuffle(key, Intrinsic::nvvm_shfl_sync_down_i32, b.getInt32(1), 31);
    Value *larger = e.shuffle(value, Intrinsic::nvvm_shfl_sync_down_i32, b.getInt32(1), 31);
    Value *yields =
        b.CreateAnd(b.CreateICmpNE(lane, b.getInt32(e.warp - 1)),
                    b.CreateAnd(b.CreateICmpEQ(key, next), b.CreateICmpSGT(larger, value)));
    emitCombine(e, write, buffer.pointer, offset, value, b.CreateAnd(exists, b.CreateNot(yields)));
    return true;
  }
  Value *before = e.shuffle(key, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(1), 0);
  Value *meets = b.CreateAnd(
      exists, b.CreateAnd(b.CreateICmpNE(lane, b.getInt32(0)), b.CreateICmpEQ(key, before)));
  Value *meeting =
      b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_vote_ballot_sync, {b.getInt32(-1), meets});
  Value *haveMet = b.CreateICmpNE(meeting, b.getInt32(0));
  auto add = [&](Value *what, Value *where) {
    emitCombine(e, write, buffer.pointer, offset, what, where);
  };
  e.emitIf(haveMet, [&] {
    // Lanes that begin a run, up to this one; the next lane's bit is beyond the last's.
    Value *begins = b.CreateNot(meeting);
    Value *upTo = b.CreateSub(b.CreateShl(b.getInt32(2), lane), b.getInt32(1));
    Value *leading =
        b.CreateBinaryIntrinsic(Intrinsic::ctlz, b.CreateAnd(begins, upTo), b.getTrue());
    Value *first = b.CreateSub(b.getInt32(31), leading);
    Value *next = b.CreateLShr(b.CreateLShr(begins, lane), b.getInt32(1));
    Value *isLast = b.CreateOr(b.CreateICmpEQ(lane, b.getInt32(e.warp - 1)),
                               b.CreateTrunc(next, b.getInt1Ty()));
    add(combineRuns(*write.getCombine(), value, lane, first), b.CreateAnd(exists, isLast));
  });
  add(value, b.CreateAnd(exists, b.CreateNot(haveMet)));
  return true;
}
