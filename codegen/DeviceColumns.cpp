//===- DeviceColumns.cpp - Long columns that threads of a block share -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction along an axis that is not the last, such as `y[n, w] = sum(x[n, d, w] for d)`, gives neighbouring columns
// to neighbouring threads. Were each column one thread's, the machine would walk hundreds of rows far apart from each
// other at a time. So eight threads of a block take every eighth term of a column each: what is read at a time are
// blocks of rows of few places. Where there are too few columns to keep the memory busy, shorter ones are shared too. On
// an H200 a sum of 8.6 GB with rows of 4095 floats takes 1972 us (a device copy's rate: 2016), an argmax 1978; by 64
// columns in place of 128 2143, by 32 2266, by two blocks with eight loads a thread 2074.
//
// Columns that several nests read, such as a softmax over channels, stay in registers where those of a few threads
// have room: each keeps every so many-th term, and writes the results that belong to its terms.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"
#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "passes/Nest.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned columnsOfLong = 128, fewestColumns = 32, columnsOfKept = 64, mostSharers = 8;
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
    for (Value *part : initialAccumulator(reduce))
      bytes += part->getType()->getPrimitiveSizeInBits() / 8;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = chooseLanes(axes);
  return bytes * (lane ? lane->width : 1);
}

/// Terms of a column along the last axis: those of the first column where the last piece of one that was cut is shorter.
/// Nothing where they are not known, or there may be none.
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

/// Threads for a column of many terms, none of which is kept, and how many columns (or vectors of them) a block has.
std::pair<unsigned, unsigned> DeviceEmitter::sharersOfLong(tgl::ParallelOp op) {
  constexpr std::pair<unsigned, unsigned> none = {1, columnsOfLong};
  bool hasReduction = false;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = chooseLanes(axes);
  int64_t columns = *tgl::knownPoints(axes) / (lane ? lane->width : 1);
  int64_t shortest = columns < manyColumns ? mostSharers * termsAtOnce : longColumn;
  for (mlir::Operation &nested : op.getBody().front()) {
    auto reduce = dyn_cast<tgl::ReduceOp>(nested);
    if (!reduce && nested.getNumRegions())
      return none;
    if (!reduce)
      continue;
    auto nest = cast<tgl::AxesOp>(nested);
    std::optional<int64_t> terms = termsOf(nest);
    bool isPlain = all_of(reduce.getBody().front(), [](mlir::Operation &inner) { return !inner.getNumRegions(); });
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
  unsigned sharers = mostSharers, bytes = partialBytes(op);
  while (sharers > 1 && columnsOfLong * sharers * bytes > exchangeBytes)
    sharers /= 2;
  // Smaller blocks where there are too few for two on each multiprocessor.
  unsigned ofBlock = columnsOfLong;
  while (ofBlock > fewestColumns && columns < 2 * int64_t(ofBlock) * options.multiprocessors)
    ofBlock /= 2;
  return {sharers, ofBlock};
}

/// Threads for a column that several nests read, with too many values for the registers of one.
unsigned DeviceEmitter::sharersOfKept(tgl::ParallelOp op) {
  constexpr int64_t mostAlone = 64, mostOfThread = 32;
  Column column = findColumn(op);
  if (column.values <= mostAlone || column.values > mostOfThread * mostSharers ||
      !all_of(op.getBody().getOps<tgl::ReduceOp>(), hasNumbers) || op.getBody().getOps<tgl::ReduceOp>().empty())
    return 1;
  unsigned sharers = PowerOf2Ceil(divideCeil(column.values, mostOfThread));
  return columnsOfKept * sharers * partialBytes(op) <= exchangeBytes ? sharers : 1;
}

bool DeviceEmitter::mayShareColumns(tgl::ParallelOp op) const {
  if (options.checked || !tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation())))
    return false;
  return none_of(op.getBody().front(), [](mlir::Operation &nested) {
    auto write = dyn_cast<tgl::WriteOp>(nested);
    return isa<tgl::TempOp, tgl::SortOp>(nested) || (write && write.getCombine());
  });
}

/// Threads that share a column have several terms of it under way each. By blocks a column's terms lie apart: of every
/// 32 bytes that memory gives a block takes one element, and the second-level cache, not much faster than memory, brings
/// them eight times for f32. So threads are better once they have a quarter under way of what keeps the memory busy.
bool DeviceEmitter::columnsKeepMemoryBusy(tgl::ParallelOp op) {
  constexpr int64_t bytesOfMultiprocessor = 24 << 10; // 4.8 TB/s for 0.7 us, of 132
  if (!mayShareColumns(op))
    return false;
  int64_t sharers = sharersOfLong(op).first, bytes = 0; // of a term
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>())
      bytes = std::max<int64_t>(bytes, storageType(read.getTensorType().getElementType())->getScalarSizeInBits() / 8);
  int64_t columns = *tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()));
  return sharers > 1 && columns * sharers * termsAtOnce * bytes >= bytesOfMultiprocessor / 4 * options.multiprocessors;
}

void DeviceEmitter::planSharers(tgl::ParallelOp op, DeviceShape &wanted) {
  shape.sharers = wanted.sharers = 1;
  if (!shape.byThread() || !mayShareColumns(op))
    return;
  unsigned sharers = sharersOfKept(op), columnsOfBlock = columnsOfKept;
  if (sharers == 1)
    std::tie(sharers, columnsOfBlock) = sharersOfLong(op);
  if (sharers == 1)
    return;
  shape.sharers = wanted.sharers = sharers;
  shape.threads = wanted.threads = columnsOfBlock * sharers;
  function->addFnAttr("nvvm.maxntid", std::to_string(shape.threads));
}

/// `body` at each of a thread's points of a nest that is written out; `exists`: null: always.
void DeviceEmitter::forSharedPoints(tgl::AxesOp nest, function_ref<void(Value *exists)> body) {
  int64_t points = *tgl::knownPoints(nest), sharers = shape.sharers;
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
  for (int64_t first = 0; first < points; first += sharers) {
    Value *number = b.CreateNSWAdd(sharer, i64(first)), *exists = nullptr;
    if (points - first < sharers) {
      exists = b.CreateICmpULT(number, i64(points));
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i64(points - 1));
    }
    setAxes(nest, all, number, std::nullopt, [&] { body(exists); });
  }
}

/// Each thread does the points whose values it keeps.
void DeviceEmitter::emitSharedParallel(tgl::ParallelOp op) {
  emitIf(isPoint, [&] {
    forSharedPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
      SaveAndRestore its(writes, exists);
      emitBlock(op.getBody().front());
    });
  });
}

Emitter::Accumulator DeviceEmitter::emitSharedTerms(tgl::ReduceOp op) {
  Accumulator accumulator = initialAccumulator(op);
  if (lanes)
    accumulator = splatAccumulator(op, std::move(accumulator), lanes->width);
  forSharedPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
    Accumulator more = emitReducePoint(op, accumulator);
    for (auto [value, before] : zip_equal(more, accumulator))
      value = exists ? b.CreateSelect(exists, value, before) : value;
    accumulator = std::move(more);
  });
  return accumulator;
}

/// What the threads of a column found, put together in their order: all have the result.
Emitter::Accumulator DeviceEmitter::combineSharers(tgl::ReduceOp op, const Accumulator &own) {
  // Slots of threads of one column are a row of columns apart.
  Value *inBlock = special(Intrinsic::nvvm_read_ptx_sreg_tid_x, shape.threads);
  unsigned columnsOfBlock = shape.unitsPerBlock();
  Value *column = b.CreateURem(inBlock, i64(columnsOfBlock));
  SmallVector<GlobalVariable *> slots;
  for (Value *element : own) {
    slots.push_back(shared(ArrayType::get(element->getType(), shape.threads), "column"));
    b.CreateStore(element, b.CreateInBoundsGEP(element->getType(), slots.back(), inBlock));
  }
  meet();
  Accumulator total;
  for (unsigned other = 0; other < shape.sharers; ++other) {
    Accumulator theirs;
    for (auto [element, array] : zip_equal(own, slots)) {
      Value *place = b.CreateNSWAdd(column, i64(other * columnsOfBlock));
      theirs.push_back(b.CreateLoad(element->getType(), b.CreateInBoundsGEP(element->getType(), array, place)));
    }
    total = other ? combine(op, total, theirs) : theirs;
  }
  meet(); // slots are used again for the next point
  return total;
}

/// A thread's terms of a column, then those of the others.
Emitter::Accumulator DeviceEmitter::emitSharedColumn(tgl::ReduceOp op) {
  if (straight.contains(op))
    return combineSharers(op, emitSharedTerms(op));
  constexpr int64_t stretch = 256; // terms of a thread that are added up on their own
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  unsigned innermost = op.getAxes().size() - 1;
  int64_t sharers = shape.sharers, step = sharers * termsAtOnce, round = stretch * sharers;
  Value *low = emitIndex(lowOf(nest, innermost));
  std::optional<int64_t> known = tgl::knownPoints(nest, {innermost});
  Value *extent = known ? i64(*known) : b.CreateNSWSub(emitIndex(highOf(nest, innermost)), low);
  auto multiple = [&](int64_t of) {
    return known ? i64(*known - *known % of) : b.CreateNSWMul(b.CreateUDiv(extent, i64(of)), i64(of));
  };
  Value *whole = multiple(step), *full = multiple(round);
  auto initial = [&] {
    Accumulator start = initialAccumulator(op);
    return lanes ? splatAccumulator(op, std::move(start), lanes->width) : start;
  };
  auto term = [&](Value *number, Accumulator accumulator) {
    values[op.getAxes()[innermost]] = b.CreateNSWAdd(low, number);
    return emitReducePoint(op, std::move(accumulator));
  };
  auto part = [&](Value *from, Value *to) { // a multiple of the step apart
    nextLoopStays = true;
    SmallVector<Value *> sum = emitLoop(from, to, i64(step), initial(), [&](Value *at, ArrayRef<Value *> now) {
      Accumulator accumulator(now.begin(), now.end());
      for (int64_t own = 0; own < termsAtOnce; ++own)
        accumulator = term(b.CreateNSWAdd(b.CreateNSWAdd(at, sharer), i64(own * sharers)), std::move(accumulator));
      return SmallVector<Value *>(accumulator);
    });
    return Accumulator(sum.begin(), sum.end());
  };
  SmallVector<unsigned> outer = to_vector(seq<unsigned>(0, innermost));
  Accumulator own = emitSerialReduce(op, outer, initial(), [&](Accumulator accumulator) {
    nextLoopStays = true;
    SmallVector<Value *> sum = emitLoop(i64(0), full, i64(round), accumulator, [&](Value *from, ArrayRef<Value *> now) {
      return SmallVector<Value *>(
          combine(op, Accumulator(now.begin(), now.end()), part(from, b.CreateNSWAdd(from, i64(round)))));
    });
    accumulator.assign(sum.begin(), sum.end());
    if (!known || *known % round >= step)
      accumulator = combine(op, accumulator, part(full, whole));
    // Fewer than a step: what does not exist repeats the last.
    for (int64_t rest = 0, most = known ? *known % step : step - 1; rest < most; rest += sharers) {
      Value *number = b.CreateNSWAdd(whole, b.CreateNSWAdd(sharer, i64(rest)));
      Value *exists = b.CreateICmpSLT(number, extent);
      number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(extent, i64(1)));
      Accumulator more = term(number, accumulator);
      for (auto [value, before] : zip_equal(more, accumulator))
        value = b.CreateSelect(exists, value, before);
      accumulator = std::move(more);
    }
    return accumulator;
  });
  return combineSharers(op, own);
}
