//===- DeviceRowCopies.cpp - Rows on their way while those before are done ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row that a block keeps in shared memory (DeviceRows.cpp) leaves its place in the last nest that reads it, vector
// after vector. As soon as a vector has been used, the one at the same place of the block's next row is copied there
// (`cp.async`): memory is read while it is written, and what is on its way takes no registers. Each thread copies what
// it will read itself and waits for its own copies, so nobody meets.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"
#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Whether each vector of `width` elements that a read takes along `lane` begins at a multiple of its length, and where
/// it does is known before the statement's point is done.
static bool canCopyAhead(tgl::ReadOp read, tgl::AxesOp nest, tgl::AxesOp statement, int64_t lane, int64_t width) {
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  for (mlir::Value operand : offset.operands()) {
    auto argument = dyn_cast<mlir::BlockArgument>(operand);
    bool isAxis = argument && (argument.getOwner() == nest.getAxesBlock() ||
                               argument.getOwner() == statement.getAxesBlock());
    if (!isAxis && statement->isProperAncestor(operand.getParentRegion()->getParentOp()))
      return false;
    if (!isAxis && statement.getOperation() == operand.getParentRegion()->getParentOp())
      return false;
  }
  if (width == 1)
    return true;
  for (tgl::AxesOp axes : {statement, nest})
    for (auto [number, axis] : enumerate(axes.getAxes())) {
      std::optional<int64_t> step = tgl::stepAlong(offset, axis);
      bool isLane = axes == nest && int64_t(number) == lane;
      if (!step || (isLane ? *step != 1 : *step % width != 0))
        return false;
      offset = offset.substitute(axis, getAxisRange(axes, number).lo);
    }
  std::optional<int64_t> origin = offset.asConstant();
  return origin && *origin % width == 0;
}

/// Copies need whole words, at multiples of their length, and the places of all rows in advance.
void DeviceEmitter::planRowCopies(tgl::ParallelOp op, const std::optional<LaneChoice> &lane) {
  auto statementAxes = cast<tgl::AxesOp>(op.getOperation());
  row.copies = options.copiesRows;
  for (auto [slot, bytes] : enumerate(row.bytes)) {
    auto [read, nest] = row.sources[slot];
    bool isWord = bytes == 4 || bytes == 8 || bytes == 16;
    bool isAligned = !lane || read.getTensor().getDefiningOp() || options.tensorAlignment >= bytes;
    row.copies &= isWord && isAligned &&
                  canCopyAhead(read, nest, statementAxes, lane ? int64_t(lane->axis) : -1, lane ? lane->width : 1);
  }
}

/// What `body` does with the statement's axes at their place in row `number`, or in the last one.
void DeviceEmitter::atNextRow(tgl::AxesOp axes, ArrayRef<unsigned> outer, Value *number, Value *count) {
  if (!row.copies)
    return;
  row.hasNext = b.CreateICmpSLT(number, count);
  number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(count, i64(1)));
  row.next.clear();
  setAxes(axes, outer, number, std::nullopt, [&] {
    for (mlir::Value axis : axes.getAxes())
      row.next.push_back({axis, valueOf(axis)});
  });
}

/// Sends for vector `number` of the next row, which is put where this thread has the one of `round`; zeros for one that
/// does not exist.
void DeviceEmitter::copyAhead(unsigned slot, Value *round, Value *number, Value *exists,
                              const std::optional<LaneChoice> &lane) {
  auto [read, nest] = row.sources[slot];
  SmallVector<std::pair<mlir::Value, Value *>> here;
  for (auto [axis, value] : row.next) {
    here.push_back({axis, values.lookup(axis)});
    values[axis] = value;
  }
  const Buffer &buffer = buffers.find(read.getTensor())->second;
  Value *from = nullptr;
  setAxes(nest, to_vector(seq<unsigned>(0, nest.getAxes().size())), number, lane, [&, &read = read] {
    Value *offset = emitIndexAtLaneZero(elementOffset(buffer.type, read.getSubscriptExprs()));
    from = b.CreateInBoundsGEP(storageType(buffer.type.getElementType()), buffer.pointer, offset);
  });
  for (auto [axis, value] : here)
    values[axis] = value;
  unsigned bytes = row.bytes[slot];
  Intrinsic::ID copy = bytes == 16  ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                       : bytes == 8 ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                    : Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
  constexpr unsigned globalSpace = 1;
  from = b.CreateAddrSpaceCast(from, PointerType::get(b.getContext(), globalSpace));
  b.CreateIntrinsic(b.getVoidTy(), copy,
                    {rowSlot(slot, round), from, b.CreateSelect(emitAnd(row.hasNext, exists), b.getInt32(bytes), b.getInt32(0))});
}

/// The first row of the block, before its first round.
void DeviceEmitter::copyFirstRow() {
  RowDeal deal = rowDeal();
  Value *first = rowThread(b, deal, rank, thread);
  auto rounds = [&](Value *round, bool whole) {
    for (unsigned slot = 0; slot < row.bytes.size(); ++slot) {
      auto [read, nest] = row.sources[slot];
      Value *number = rowVector(b, deal, round, first), *exists = nullptr;
      if (!whole) {
        exists = b.CreateICmpULT(number, i64(row.vectors));
        number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i64(row.vectors - 1));
      }
      copyAhead(slot, round, number, exists, chooseLanes(nest));
    }
  };
  int64_t whole = row.vectors / deal.each();
  nextLoopStays = true;
  emitLoop(i64(0), i64(whole), i64(1), {}, [&](Value *round, ArrayRef<Value *>) {
    rounds(round, true);
    return SmallVector<Value *>();
  });
  for (int64_t round = whole; round < row.rounds; ++round)
    rounds(i64(round), false);
}
