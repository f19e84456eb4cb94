//===- DeviceColumns.cpp - Column reductions split over the threads of a block ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction along an axis that is not the last, such as `y[n, w] = sum(x[n, d, w] for d)`, gives
// neighbouring columns to neighbouring threads. Were each column one thread's, the machine would
// walk hundreds of rows far apart from each other at a time. So eight threads of a block take every
// eighth term of a column each: what is read at a time are blocks of rows of few places. Where
// there are too few columns to keep the memory busy, shorter ones are shared too. On an H200 a sum
// of 8.6 GB with rows of 4095 floats takes 1972 us (a device copy's rate: 2016), an argmax 1978; by
// 64 columns in place of 128 2143, by 32 2266, by two blocks with eight loads a thread 2074.
//
// Columns that several nests read, such as a softmax over channels, stay in registers where those
// of a few threads have room: each keeps every so many-th term, and writes the results that belong
// to its terms.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned columnsOfLong = 128, minColumns = 32, columnsOfKept = 64,
                          maxColumnSplit = 8;
/// Terms of a thread whose loads are under way together.
static constexpr int64_t termsAtOnce = 4;
/// Shorter columns are done before threads have come together...
static constexpr int64_t longColumn = 512;
/// ...unless there are fewer (vectors of) columns than threads that keep the memory busy.
static constexpr int64_t manyColumns = 131072;
/// What partial results may take of a block's shared memory.
static constexpr unsigned exchangeBytes = 40 << 10;

static bool hasNumbers(tgl::ReduceOp op) {
  return op.getKind() != tgl::ReduceKind::Any && op.getKind() != tgl::ReduceKind::All;
}

/// Of the partial results of a column's reductions.
unsigned DeviceEmitter::partialBytes(tgl::ParallelOp op) {
  unsigned bytes = 0;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (Value *part : initialAccumulator(*this, reduce))
      bytes += part->getType()->getPrimitiveSizeInBits() / 8;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = chooseLanes(axes);
  return bytes * (lane ? lane->width : 1);
}

/// Terms of a column along the last axis: those of the first column where the last piece of one
/// that was cut is shorter. Nothing where they are not known, or there may be none.
static std::optional<int64_t> termsOf(tgl::AxesOp nest) {
  unsigned last = nest.getAxes().size() - 1;
  if (std::optional<int64_t> terms = tgl::knownPoints(nest, {last}))
    return terms;
  tgl::AxisRange range = getAxisRange(nest, last);
  ValueExpr terms = range.hi - range.lo;
  if (last || terms.uses(nest.getAxes()[0]))
    return std::nullopt;
  Prover prover(sizeFacts(nest->getParentOfType<tgl::KernelOp>()));
  AxisScope scope(prover, nest);
  if (!scope.proves(Condition::nonNegative(scope.toDims(terms - ValueExpr(int64_t(1))))))
    return std::nullopt;
  return lengthOfFirst(range);
}

/// Threads for a column of many terms, none of which is kept, and how many columns (or vectors of
/// them) a block has.
std::pair<unsigned, unsigned> DeviceEmitter::splitOfLongColumn(tgl::ParallelOp op) {
  constexpr std::pair<unsigned, unsigned> none = {1, columnsOfLong};
  bool hasReduction = false;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = chooseLanes(axes);
  int64_t columns = *tgl::knownPoints(axes) / (lane ? lane->width : 1);
  int64_t shortest = columns < manyColumns ? maxColumnSplit * termsAtOnce : longColumn;
  for (mlir::Operation &nested : op.getBody().front()) {
    auto reduce = dyn_cast<tgl::ReduceOp>(nested);
    if (!reduce && nested.getNumRegions())
      return none;
    if (!reduce)
      continue;
    auto nest = cast<tgl::AxesOp>(nested);
    std::optional<int64_t> terms = termsOf(nest);
    bool isPlain = all_of(reduce.getBody().front(),
                          [](mlir::Operation &inner) { return !inner.getNumRegions(); });
    bool hasFill = false;
    reduce.walk([&](tgl::ReadOp read) { hasFill |= read.getFill() != nullptr; });
    if (!terms || *terms < shortest || !isPlain || hasFill || !hasNumbers(reduce) ||
        (nest.getAxes().size() > 1 && !hasRowShape(nest)))
      return none;
    if (!lane && chooseLanes(nest)) // terms are neighbours
      return none;
    hasReduction = true;
  }
  if (!hasReduction)
    return none;
  unsigned columnSplit = maxColumnSplit, bytes = partialBytes(op);
  while (columnSplit > 1 && columnsOfLong * columnSplit * bytes > exchangeBytes)
    columnSplit /= 2;
  // Smaller blocks where there are too few for two on each multiprocessor.
  unsigned ofBlock = columnsOfLong;
  while (ofBlock > minColumns && columns < 2 * int64_t(ofBlock) * options.target.multiprocessors)
    ofBlock /= 2;
  return {columnSplit, ofBlock};
}

/// Threads for a column that several nests read, with too many values for the registers of one.
unsigned DeviceEmitter::splitOfKeptColumn(tgl::ParallelOp op) {
  constexpr int64_t maxPerThreadTerms = 64, maxPerThread = 32;
  Column column = findColumn(op);
  if (column.values <= maxPerThreadTerms || column.values > maxPerThread * maxColumnSplit ||
      !all_of(op.getBody().getOps<tgl::ReduceOp>(), hasNumbers) ||
      op.getBody().getOps<tgl::ReduceOp>().empty())
    return 1;
  unsigned columnSplit = PowerOf2Ceil(divideCeil(column.values, maxPerThread));
  return columnsOfKept * columnSplit * partialBytes(op) <= exchangeBytes ? columnSplit : 1;
}

bool DeviceEmitter::maySplitColumns(tgl::ParallelOp op) const {
  if (options.checked || !tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation())))
    return false;
  return none_of(op.getBody().front(), [](mlir::Operation &nested) {
    auto write = dyn_cast<tgl::WriteOp>(nested);
    return isa<tgl::TempOp, tgl::SortOp>(nested) || (write && write.getCombine());
  });
}

/// Threads that share a column have several terms of it under way each. By blocks a column's terms
/// lie apart: of every 32 bytes that memory gives a block takes one element, and the second-level
/// cache, not much faster than memory, brings them eight times for f32. So threads are better once
/// they have a quarter under way of what keeps the memory busy.
bool DeviceEmitter::columnsKeepMemoryBusy(tgl::ParallelOp op) {
  constexpr int64_t bytesOfMultiprocessor = 24 << 10; // 4.8 TB/s for 0.7 us, of 132
  if (!maySplitColumns(op))
    return false;
  int64_t columnSplit = splitOfLongColumn(op).first, bytes = 0; // of a term
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>())
      bytes = std::max<int64_t>(
          bytes, storageType(read.getTensorType().getElementType())->getScalarSizeInBits() / 8);
  int64_t columns = *tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()));
  return columnSplit > 1 && columns * columnSplit * termsAtOnce * bytes >=
                                bytesOfMultiprocessor / 4 * options.target.multiprocessors;
}

void DeviceEmitter::planColumnSplit(tgl::ParallelOp op, DeviceShape &wanted) {
  shape.columnSplit = wanted.columnSplit = 1;
  if (!shape.byThread() || !maySplitColumns(op))
    return;
  unsigned columnSplit = splitOfKeptColumn(op), columnsOfBlock = columnsOfKept;
  if (columnSplit == 1)
    std::tie(columnSplit, columnsOfBlock) = splitOfLongColumn(op);
  if (columnSplit == 1)
    return;
  shape.columnSplit = wanted.columnSplit = columnSplit;
  shape.threads = wanted.threads = columnsOfBlock * columnSplit;
  function->addFnAttr("nvvm.maxntid", std::to_string(shape.threads));
}

/// `body` at each of a thread's points of a nest that is written out; `exists`: null: always.
void DeviceEmitter::forSplitPoints(tgl::AxesOp nest, function_ref<void(Value *exists)> body) {
  int64_t points = *tgl::knownPoints(nest), columnSplit = shape.columnSplit;
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
  for (int64_t first = 0; first < points; first += columnSplit) {
    Value *number = b.CreateNSWAdd(columnSlice, i64(first)), *exists = nullptr;
    if (points - first < columnSplit) {
      exists = b.CreateICmpULT(number, i64(points));
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i64(points - 1));
    }
    setAxes(nest, all, number, std::nullopt, [&] { body(exists); });
  }
}

/// Each thread does the points whose values it keeps.
void DeviceEmitter::emitSplitParallel(tgl::ParallelOp op) {
  emitIf(isPoint, [&] {
    forSplitPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
      SaveAndRestore its(writes, exists);
      emitBlock(op.getBody().front());
    });
  });
}

Accumulator DeviceEmitter::emitSplitTerms(tgl::ReduceOp op) {
  Accumulator accumulator = initialAccumulator(*this, op);
  if (lanes)
    accumulator = splatAccumulator(*this, op, std::move(accumulator), lanes->width);
  forSplitPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
    Accumulator more = emitReducePoint(op, accumulator);
    for (auto [value, before] : zip_equal(more, accumulator))
      value = exists ? b.CreateSelect(exists, value, before) : value;
    accumulator = std::move(more);
  });
  return accumulator;
}

/// What the threads of a column found, put together in their order: all have the result.
Accumulator DeviceEmitter::combineColumnSplit(tgl::ReduceOp op, const Accumulator &own) {
  // Slots of threads of one column are a row of columns apart.
  Value *inBlock = readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  unsigned columnsOfBlock = shape.unitsPerBlock();
  Value *column = b.CreateURem(inBlock, i64(columnsOfBlock));
  SmallVector<GlobalVariable *> slots;
  for (Value *element : own) {
    slots.push_back(shared(ArrayType::get(element->getType(), shape.threads), "column"));
    b.CreateStore(element, b.CreateInBoundsGEP(element->getType(), slots.back(), inBlock));
  }
  barrier();
  Accumulator total;
  for (unsigned other = 0; other < shape.columnSplit; ++other) {
    Accumulator theirs;
    for (auto [element, array] : zip_equal(own, slots)) {
      Value *place = b.CreateNSWAdd(column, i64(other * columnsOfBlock));
      theirs.push_back(
          b.CreateLoad(element->getType(), b.CreateInBoundsGEP(element->getType(), array, place)));
    }
    total = other ? combine(*this, op, total, theirs) : theirs;
  }
  barrier(); // slots are used again for the next point
  return total;
}

/// A thread's terms of a column, then those of the others.
Accumulator DeviceEmitter::emitSplitColumn(tgl::ReduceOp op) {
  if (unrolled.contains(op))
    return combineColumnSplit(op, emitSplitTerms(op));
  constexpr int64_t stretch = 256; // terms of a thread that are added up on their own
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  unsigned innermost = op.getAxes().size() - 1;
  int64_t columnSplit = shape.columnSplit, step = columnSplit * termsAtOnce,
          round = stretch * columnSplit;
  Value *low = emitIndex(lowOf(nest, innermost));
  std::optional<int64_t> known = tgl::knownPoints(nest, {innermost});
  Value *extent = known ? i64(*known) : b.CreateNSWSub(emitIndex(highOf(nest, innermost)), low);
  auto multiple = [&](int64_t of) {
    return known ? i64(*known - *known % of)
                 : b.CreateNSWMul(b.CreateUDiv(extent, i64(of)), i64(of));
  };
  Value *whole = multiple(step), *full = multiple(round);
  auto initial = [&] {
    Accumulator start = initialAccumulator(*this, op);
    return lanes ? splatAccumulator(*this, op, std::move(start), lanes->width) : start;
  };
  auto term = [&](Value *number, Accumulator accumulator) {
    values[op.getAxes()[innermost]] = b.CreateNSWAdd(low, number);
    return emitReducePoint(op, std::move(accumulator));
  };
  auto part = [&](Value *from, Value *to) { // a multiple of the step apart
    keepNextLoopRolled = true;
    SmallVector<Value *> sum =
        emitLoop(from, to, i64(step), initial(), [&](Value *at, ArrayRef<Value *> now) {
          Accumulator accumulator(now.begin(), now.end());
          for (int64_t own = 0; own < termsAtOnce; ++own)
            accumulator =
                term(b.CreateNSWAdd(b.CreateNSWAdd(at, columnSlice), i64(own * columnSplit)),
                     std::move(accumulator));
          return SmallVector<Value *>(accumulator);
        });
    return Accumulator(sum.begin(), sum.end());
  };
  SmallVector<unsigned> outer = to_vector(seq<unsigned>(0, innermost));
  Accumulator own = emitSerialReduce(op, outer, initial(), [&](Accumulator accumulator) {
    keepNextLoopRolled = true;
    SmallVector<Value *> sum =
        emitLoop(i64(0), full, i64(round), accumulator, [&](Value *from, ArrayRef<Value *> now) {
          return SmallVector<Value *>(combine(*this, op, Accumulator(now.begin(), now.end()),
                                              part(from, b.CreateNSWAdd(from, i64(round)))));
        });
    accumulator.assign(sum.begin(), sum.end());
    if (!known || *known % round >= step)
      accumulator = combine(*this, op, accumulator, part(full, whole));
    // Fewer than a step: what does not exist repeats the last.
    for (int64_t rest = 0, most = known ? *known % step : step - 1; rest < most;
         rest += columnSplit) {
      Value *number = b.CreateNSWAdd(whole, b.CreateNSWAdd(columnSlice, i64(rest)));
      Value *exists = b.CreateICmpSLT(number, extent);
      number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(extent, i64(1)));
      Accumulator more = term(number, accumulator);
      for (auto [value, before] : zip_equal(more, accumulator))
        value = b.CreateSelect(exists, value, before);
      accumulator = std::move(more);
    }
    return accumulator;
  });
  return combineColumnSplit(op, own);
}
