//===- RowCopies.cpp - Prefetches the next row to shared memory -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row that a block keeps in shared memory (RowCache.cpp) leaves its place in the last nest that
// reads it, vector after vector. As soon as a vector has been used, the one at the same place of
// the block's next row is copied there
// (`cp.async`): memory is read while it is written, and what is on its way takes no registers. Each
// thread copies what it will read itself and waits for its own copies, so nobody meets.
//
// Rows of an odd length begin anywhere. Their vectors begin at multiples of 16 bytes all the same,
// the first of them before the row, and only rounds with a row's ends ask which of their elements
// exist.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/RowCache.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// Whether where a read's elements are is known before the statement's point is done: by its axes,
/// and the nest's.
static bool isKnownAhead(tgl::ReadOp read, tgl::AxesOp nest, tgl::AxesOp statement) {
  return all_of(elementOffset(read.getTensorType(), read.getSubscriptExprs()).operands(),
                [&](mlir::Value operand) {
                  mlir::Block *block = operand.getParentBlock();
                  bool isAxis = isa<mlir::BlockArgument>(operand) &&
                                (block == nest.getAxesBlock() || block == statement.getAxesBlock());
                  return isAxis || !statement->isAncestor(block->getParentOp());
                });
}

/// What an offset moves by along the statement's axes, and where it begins, modulo `width`; nothing
/// where that is not known, or where it does not move by one along the nest's axis `lane`, or not
/// by multiples along others.
static std::optional<SmallVector<int64_t>> placeInVector(ValueExpr offset, tgl::AxesOp nest,
                                                         tgl::AxesOp statement, unsigned lane,
                                                         int64_t width) {
  SmallVector<int64_t> place;
  for (tgl::AxesOp axes : {nest, statement})
    for (auto [number, axis] : enumerate(axes.getAxes())) {
      std::optional<int64_t> step = tgl::stepAlong(offset, axis);
      if (!step || (axes == nest && (number == lane ? *step != 1 : *step % width != 0)))
        return std::nullopt;
      if (axes == statement)
        place.push_back((*step % width + width) % width);
      offset = offset.substitute(axis, getAxisRange(axes, number).lo);
    }
  std::optional<int64_t> origin = offset.asConstant();
  if (!origin)
    return std::nullopt;
  place.push_back((*origin % width + width) % width);
  return place;
}

/// Copies need whole words, at multiples of their length, and the places of all rows in advance.
bool RowCache::canPrefetchRows(tgl::ParallelOp op, const std::optional<LaneChoice> &lane) {
  auto statementAxes = cast<tgl::AxesOp>(op.getOperation());
  return all_of(zip_equal(row.bytes, row.sources), [&](const auto &slot) {
    auto [bytes, source] = slot;
    auto [read, nest] = source;
    if ((bytes != 4 && bytes != 8 && bytes != 16) || !isKnownAhead(read, nest, statementAxes))
      return false;
    if (!lane)
      return true;
    ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
    std::optional<SmallVector<int64_t>> place =
        placeInVector(offset, nest, statementAxes, lane->axis, lane->width);
    bool isAligned = read.getTensor().getDefiningOp() || e.options.tensorAlignment >= bytes;
    return isAligned && place && all_of(*place, [](int64_t part) { return part == 0; });
  });
}

/// Rows of lengths that are no multiples of a vector's begin anywhere, but as all that a nest reads
/// and writes along them is as far from a multiple, vectors can begin there: the first and last of
/// a row hang over. Returns these vectors, if there are any.
std::optional<LaneChoice> RowCache::planShift(tgl::ParallelOp op, ArrayRef<tgl::AxesOp> nests) {
  auto statementAxes = cast<tgl::AxesOp>(op.getOperation());
  tgl::Accesses accesses = tgl::accessesOf(op);
  struct Access {
    ValueExpr offset;
    tgl::AxesOp nest;
  };
  SmallVector<Access> along;
  unsigned maxBytes = 0, minBytes = e.accessBytes;
  for (tgl::AxesOp nest : nests) {
    if (nest.getAxes().size() != 1 || e.lowOf(nest, 0).asConstant() != 0)
      return std::nullopt;
    for (mlir::Operation &nested : *nest.getAxesBlock()) {
      if (nested.getNumRegions())
        return std::nullopt;
      auto read = dyn_cast<tgl::ReadOp>(nested);
      auto write = dyn_cast<tgl::WriteOp>(nested);
      if (!read && !write)
        continue;
      tgl::TglTensorType type = read ? read.getTensorType() : write.getTensorType();
      ValueExpr offset =
          elementOffset(type, read ? read.getSubscriptExprs() : write.getSubscriptExprs());
      if (read && !offset.uses(nest.getAxes()[0]) && !read.getFill() && !read.getGuard())
        continue; // the same for all lanes
      mlir::Value tensor = read ? read.getTensor() : write.getTensor();
      bool isPlain = read ? !read.getFill() && !read.getGuard() && !read.getChecked() &&
                                read.getExactExprs().empty() && !accesses.writes.contains(tensor) &&
                                isKnownAhead(read, nest, statementAxes)
                          : !write.getCombine() && !write.getGuard() && !write.getChecked();
      unsigned bits = e.storageType(type.getElementType())->getScalarSizeInBits();
      bool isPacked = type.getElementType().isInteger(4);
      if (!isPlain || isPacked ||
          !(tensor.getDefiningOp() || e.options.tensorAlignment >= e.accessBytes))
        return std::nullopt;
      if (read && along.empty())
        row.shiftedBy = {read, nest};
      maxBytes = std::max(maxBytes, bits / 8);
      minBytes = std::min(minBytes, bits / 8);
      along.push_back({offset, nest});
    }
  }
  if (!row.shiftedBy.first)
    return std::nullopt;
  constexpr unsigned minCopyBytes = 4; // bytes
  int64_t width = e.accessBytes / maxBytes;
  if (width * minBytes < minCopyBytes)
    return std::nullopt;
  auto placeOf = [&](const Access &access) {
    return placeInVector(access.offset, access.nest, statementAxes, /*lane=*/0, width);
  };
  std::optional<SmallVector<int64_t>> place = placeOf(along.front());
  if (!place || !all_of(along, [&](const Access &access) { return placeOf(access) == place; }))
    return std::nullopt;
  row.isShifted = true;
  return LaneChoice{0, unsigned(width), 1};
}

/// How many elements before the row at the statement's axes its first vector begins.
Value *RowCache::emitShift() {
  if (!row.isShifted)
    return nullptr;
  auto [read, nest] = row.shiftedBy;
  e.values[nest.getAxes()[0]] = e.i64(0);
  Value *offset = e.emitIndex(elementOffset(read.getTensorType(), read.getSubscriptExprs()));
  return b.CreateAnd(offset, e.i64(row.lane->width - 1));
}

std::optional<LaneChoice> RowCache::laneOf(tgl::AxesOp nest) {
  return row.isShifted && row.nests.contains(nest) ? row.lane : e.chooseLanes(nest);
}

/// Where the row `number` is, or the last one.
void RowCache::atNextRow(tgl::AxesOp axes, ArrayRef<unsigned> outer, Value *number, Value *count) {
  if (!row.copies)
    return;
  row.hasNext = b.CreateICmpSLT(number, count);
  number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(count, e.i64(1)));
  row.next.clear();
  e.setAxes(axes, outer, number, std::nullopt, [&] {
    for (mlir::Value axis : axes.getAxes())
      row.next.push_back({axis, e.valueOf(axis)});
    row.nextShift = emitShift();
  });
}

/// Sends for vector `number` of the next row, which is put where this thread has the one of
/// `round`; zeros for what does not exist of it. Hardware copies a vector or nothing, and the last
/// of a tensor may hang over its end: a part is loaded by elements.
void RowCache::prefetch(unsigned slot, Value *round, Value *number, Value *exists) {
  auto [read, nest] = row.sources[slot];
  const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
  Type *element = e.storageType(buffer.type.getElementType());
  unsigned bytes = row.bytes[slot];
  SmallVector<std::pair<mlir::Value, Value *>> here;
  for (auto [axis, value] : row.next) {
    here.push_back({axis, e.values.lookup(axis)});
    e.values[axis] = value;
  }
  Value *shift = std::exchange(row.shift, row.nextShift), *offset = nullptr, *left = nullptr;
  e.setAxes(nest, to_vector(seq<unsigned>(0, nest.getAxes().size())), number, row.lane,
            [&, &read = read] {
              offset = e.emitIndexAtLaneZero(elementOffset(buffer.type, read.getSubscriptExprs()));
              if (row.isShifted && row.atEdge) {
                left = b.CreateNSWSub(e.i64(row.terms), e.lanes->base);
                left = b.CreateBinaryIntrinsic(Intrinsic::smin, left, e.i64(row.lane->width));
                left = b.CreateBinaryIntrinsic(Intrinsic::smax, left, e.i64(0));
                offset = b.CreateSelect(b.CreateICmpSGT(left, e.i64(0)), offset, e.i64(0));
              }
            });
  row.shift = shift;
  for (auto [axis, value] : here)
    e.values[axis] = value;
  Value *to = rowSlot(slot, round), *from = b.CreateInBoundsGEP(element, buffer.pointer, offset);
  Value *isThere = e.emitAnd(row.hasNext, exists);
  auto copyAll = [&] {
    Intrinsic::ID copy = bytes == 16  ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                         : bytes == 8 ? Intrinsic::nvvm_cp_async_ca_shared_global_8_s
                                      : Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
    b.CreateIntrinsic(b.getVoidTy(), copy,
                      {to, from, b.CreateSelect(isThere, b.getInt32(bytes), b.getInt32(0))});
  };
  if (!left)
    return copyAll();
  unsigned width = row.lane->width;
  Value *isPart =
      b.CreateAnd(isThere, b.CreateICmpULT(b.CreateNSWSub(left, e.i64(1)), e.i64(width - 1)));
  isThere = b.CreateAnd(isThere, b.CreateICmpSGT(left, e.i64(0)));
  e.emitIf(b.CreateNot(isPart), copyAll);
  e.emitIf(isPart, [&] {
    Value *vector = Constant::getNullValue(FixedVectorType::get(element, width));
    for (unsigned number = 0; number + 1 < width; ++number) {
      Value *one = e.emitIfElse(
          b.CreateICmpSLT(e.i64(number), left),
          [&]() -> Value * {
            return b.CreateLoad(element, b.CreateInBoundsGEP(element, from, e.i64(number)));
          },
          Constant::getNullValue(element));
      vector = b.CreateInsertElement(vector, one, number);
    }
    b.CreateAlignedStore(vector, to, Align(bytes));
  });
}

/// The first row of the block, before its first round.
void RowCache::prefetchFirstRow() {
  RowDistribution over = rowDistribution();
  Value *first = rowThread(b, over, e.rank, e.thread);
  auto copyRound = [&](Value *round, bool isWhole) {
    Value *number = rowVector(b, over, round, first), *exists = nullptr;
    if (!isWhole && !row.isShifted) {
      exists = b.CreateICmpULT(number, e.i64(row.vectors));
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, e.i64(row.vectors - 1));
    }
    row.atEdge = !isWhole;
    for (unsigned slot = 0; slot < row.bytes.size(); ++slot)
      prefetch(slot, round, number, exists);
  };
  auto [begin, end] = wholeRounds();
  for (int64_t round = 0; round < begin; ++round)
    copyRound(e.i64(round), false);
  e.keepNextLoopRolled = true;
  e.emitLoop(e.i64(begin), e.i64(end), e.i64(1), {}, [&](Value *round, ArrayRef<Value *>) {
    copyRound(round, true);
    return SmallVector<Value *>();
  });
  for (int64_t round = end; round < row.rounds; ++round)
    copyRound(e.i64(round), false);
}

void RowCache::withLanes(tgl::AxesOp op, const LaneChoice &lane, Value *base,
                         function_ref<void()> body) {
  mlir::Value axis = op.getAxes()[lane.axis];
  if (!row.isShifted || !row.nests.contains(op))
    return e.withLanes(axis, lane.width, base, nullptr, body);
  Value *low = e.emitIndex(e.lowOf(op, lane.axis)), *high = e.emitIndex(e.highOf(op, lane.axis));
  base = b.CreateNSWSub(base, row.shift);
  e.withLanes(axis, lane.width, base, nullptr, [&] {
    e.lanes->isAligned = true;
    if (row.atEdge) {
      // In half the width of positions.
      auto bounded = [&](Value *position) {
        position =
            b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateNSWSub(position, base), e.i64(0));
        return b.CreateTrunc(b.CreateBinaryIntrinsic(Intrinsic::smin, position, e.i64(lane.width)),
                             b.getInt32Ty());
      };
      Value *from = bounded(low), *to = bounded(high);
      SmallVector<Constant *> numbers;
      for (unsigned number = 0; number < lane.width; ++number)
        numbers.push_back(b.getInt32(number));
      Value *number = ConstantVector::get(numbers);
      e.lanes->mask = b.CreateAnd(b.CreateICmpSGE(number, b.CreateVectorSplat(lane.width, from)),
                                  b.CreateICmpSLT(number, b.CreateVectorSplat(lane.width, to)));
      e.lanes->isWhole = b.CreateAnd(b.CreateICmpEQ(from, b.getInt32(0)),
                                     b.CreateICmpEQ(to, b.getInt32(lane.width)));
    }
    body();
  });
}
