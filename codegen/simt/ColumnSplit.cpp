//===- ColumnSplit.cpp - Column reductions split over the threads of a block ===//
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
#include "codegen/simt/ColumnSplit.h"

#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

ColumnSplit::ColumnSplit(DeviceEmitter &e) : e(e), b(e.b) {}

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
unsigned ColumnSplit::partialBytes(tgl::ParallelOp op) {
  unsigned bytes = 0;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (Value *part : initialAccumulator(e, reduce))
      bytes += part->getType()->getPrimitiveSizeInBits() / 8;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = e.chooseLanes(axes);
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
std::pair<unsigned, unsigned> ColumnSplit::splitOfLongColumn(tgl::ParallelOp op) {
  constexpr std::pair<unsigned, unsigned> none = {1, columnsOfLong};
  bool hasReduction = false;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  std::optional<LaneChoice> lane = e.chooseLanes(axes);
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
    if (!lane && e.chooseLanes(nest)) // terms are neighbours
      return none;
    // What all columns read stays in caches, and a thread walks several reductions of it at once.
    bool isOfAll = none_of(reduce.getBody().getOps<tgl::ReadOp>(), [&](tgl::ReadOp read) {
      tgl::AxisSet varies = tgl::axesOf(read.getResult());
      return varies.contains(reduce.getAxes()[0]) &&
             any_of(op.getAxes(), [&](mlir::BlockArgument axis) { return varies.contains(axis); });
    });
    bool hasAlike = any_of(op.getBody().getOps<tgl::ReduceOp>(), [&](tgl::ReduceOp other) {
      return other != reduce && shareReads(reduce, other);
    });
    if (isOfAll && hasAlike)
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
  while (ofBlock > minColumns && columns < 2 * int64_t(ofBlock) * e.options.target.multiprocessors)
    ofBlock /= 2;
  return {columnSplit, ofBlock};
}

/// Threads for a column that several nests read, with too many values for the registers of one.
unsigned ColumnSplit::splitOfKeptColumn(tgl::ParallelOp op) {
  constexpr int64_t maxPerThreadTerms = 64, maxPerThread = 32;
  Column column = findColumn(op);
  if (column.values <= maxPerThreadTerms || column.values > maxPerThread * maxColumnSplit ||
      !all_of(op.getBody().getOps<tgl::ReduceOp>(), hasNumbers) ||
      op.getBody().getOps<tgl::ReduceOp>().empty())
    return 1;
  unsigned columnSplit = PowerOf2Ceil(divideCeil(column.values, maxPerThread));
  return columnsOfKept * columnSplit * partialBytes(op) <= exchangeBytes ? columnSplit : 1;
}

bool ColumnSplit::maySplitColumns(tgl::ParallelOp op) const {
  if (e.options.checked || !tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation())))
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
bool ColumnSplit::keepsMemoryBusy(tgl::ParallelOp op) {
  constexpr int64_t bytesOfMultiprocessor = 24 << 10; // 4.8 TB/s for 0.7 us, of 132
  if (!maySplitColumns(op))
    return false;
  int64_t columnSplit = splitOfLongColumn(op).first, bytes = 0; // of a term
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>())
      bytes = std::max<int64_t>(
          bytes, e.storageType(read.getTensorType().getElementType())->getScalarSizeInBits() / 8);
  int64_t columns = *tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()));
  return columnSplit > 1 && columns * columnSplit * termsAtOnce * bytes >=
                                bytesOfMultiprocessor / 4 * e.options.target.multiprocessors;
}

void ColumnSplit::plan(tgl::ParallelOp op, DeviceShape &wanted) {
  e.shape.columnSplit = wanted.columnSplit = 1;
  if (!e.shape.byThread() || !maySplitColumns(op))
    return;
  unsigned columnSplit = splitOfKeptColumn(op), columnsOfBlock = columnsOfKept;
  if (columnSplit == 1)
    std::tie(columnSplit, columnsOfBlock) = splitOfLongColumn(op);
  if (columnSplit == 1)
    return;
  e.shape.columnSplit = wanted.columnSplit = columnSplit;
  e.shape.threads = wanted.threads = columnsOfBlock * columnSplit;
  e.function->addFnAttr("nvvm.maxntid", std::to_string(e.shape.threads));
}

/// `body` at each of a thread's points of a nest that is written out; `exists`: null: always.
void ColumnSplit::forSplitPoints(tgl::AxesOp nest, function_ref<void(Value *exists)> body) {
  int64_t points = *tgl::knownPoints(nest), columnSplit = e.shape.columnSplit;
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, nest.getAxes().size()));
  for (int64_t first = 0; first < points; first += columnSplit) {
    Value *number = b.CreateNSWAdd(slice, e.i64(first)), *exists = nullptr;
    if (points - first < columnSplit) {
      exists = b.CreateICmpULT(number, e.i64(points));
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, e.i64(points - 1));
    }
    e.setAxes(nest, all, number, std::nullopt, [&] { body(exists); });
  }
}

/// Each thread does the points whose values it keeps.
void ColumnSplit::emitParallel(tgl::ParallelOp op) {
  e.emitIf(e.isPoint, [&] {
    forSplitPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
      SaveAndRestore its(e.writes, exists);
      e.emitBlock(op.getBody().front());
    });
  });
}

Accumulator ColumnSplit::emitTerms(tgl::ReduceOp op) {
  Accumulator accumulator = initialAccumulator(e, op);
  if (e.lanes)
    accumulator = splatAccumulator(e, op, std::move(accumulator), e.lanes->width);
  forSplitPoints(cast<tgl::AxesOp>(op.getOperation()), [&](Value *exists) {
    Accumulator more = e.emitReducePoint(op, accumulator);
    for (auto [value, before] : zip_equal(more, accumulator))
      value = exists ? b.CreateSelect(exists, value, before) : value;
    accumulator = std::move(more);
  });
  return accumulator;
}

/// What the threads of a column found, put together in their order: all have the result.
Accumulator ColumnSplit::combineParts(tgl::ReduceOp op, const Accumulator &own) {
  // Slots of threads of one column are a row of columns apart.
  Value *inBlock = e.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, e.shape.threads);
  unsigned columnsOfBlock = e.shape.unitsPerBlock();
  Value *column = b.CreateURem(inBlock, e.i64(columnsOfBlock));
  SmallVector<GlobalVariable *> slots;
  for (Value *element : own) {
    slots.push_back(e.shared(ArrayType::get(element->getType(), e.shape.threads), "column"));
    b.CreateStore(element, b.CreateInBoundsGEP(element->getType(), slots.back(), inBlock));
  }
  e.barrier();
  Accumulator total;
  for (unsigned other = 0; other < e.shape.columnSplit; ++other) {
    Accumulator theirs;
    for (auto [element, array] : zip_equal(own, slots)) {
      Value *place = b.CreateNSWAdd(column, e.i64(other * columnsOfBlock));
      theirs.push_back(
          b.CreateLoad(element->getType(), b.CreateInBoundsGEP(element->getType(), array, place)));
    }
    total = other ? combine(e, op, total, theirs) : theirs;
  }
  e.barrier(); // slots are used again for the next point
  return total;
}

/// A thread's terms of a column, then those of the others.
Accumulator ColumnSplit::emitReduce(tgl::ReduceOp op) {
  if (e.unrolled.contains(op))
    return combineParts(op, emitTerms(op));
  constexpr int64_t stretch = 256; // terms of a thread that are added up on their own
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  unsigned innermost = op.getAxes().size() - 1;
  int64_t columnSplit = e.shape.columnSplit, step = columnSplit * termsAtOnce,
          round = stretch * columnSplit;
  Value *low = e.emitIndex(e.lowOf(nest, innermost));
  std::optional<int64_t> known = tgl::knownPoints(nest, {innermost});
  Value *extent =
      known ? e.i64(*known) : b.CreateNSWSub(e.emitIndex(e.highOf(nest, innermost)), low);
  auto multiple = [&](int64_t of) {
    return known ? e.i64(*known - *known % of)
                 : b.CreateNSWMul(b.CreateUDiv(extent, e.i64(of)), e.i64(of));
  };
  Value *whole = multiple(step), *full = multiple(round);
  auto initial = [&] {
    Accumulator start = initialAccumulator(e, op);
    return e.lanes ? splatAccumulator(e, op, std::move(start), e.lanes->width) : start;
  };
  auto term = [&](Value *number, Accumulator accumulator) {
    e.values[op.getAxes()[innermost]] = b.CreateNSWAdd(low, number);
    return e.emitReducePoint(op, std::move(accumulator));
  };
  auto part = [&](Value *from, Value *to) { // a multiple of the step apart
    e.keepNextLoopRolled = true;
    SmallVector<Value *> sum =
        e.emitLoop(from, to, e.i64(step), initial(), [&](Value *at, ArrayRef<Value *> now) {
          Accumulator accumulator(now.begin(), now.end());
          e.checks.reportTogether([&] {
            for (int64_t own = 0; own < termsAtOnce; ++own)
              accumulator =
                  term(b.CreateNSWAdd(b.CreateNSWAdd(at, slice), e.i64(own * columnSplit)),
                       std::move(accumulator));
          });
          return SmallVector<Value *>(accumulator);
        });
    return Accumulator(sum.begin(), sum.end());
  };
  SmallVector<unsigned> outer = to_vector(seq<unsigned>(0, innermost));
  Accumulator own = e.emitSerialReduce(op, outer, initial(), [&](Accumulator accumulator) {
    e.keepNextLoopRolled = true;
    SmallVector<Value *> sum = e.emitLoop(
        e.i64(0), full, e.i64(round), accumulator, [&](Value *from, ArrayRef<Value *> now) {
          return SmallVector<Value *>(combine(e, op, Accumulator(now.begin(), now.end()),
                                              part(from, b.CreateNSWAdd(from, e.i64(round)))));
        });
    accumulator.assign(sum.begin(), sum.end());
    if (!known || *known % round >= step)
      accumulator = combine(e, op, accumulator, part(full, whole));
    // Fewer than a step: what does not exist repeats the last.
    for (int64_t rest = 0, most = known ? *known % step : step - 1; rest < most;
         rest += columnSplit) {
      Value *number = b.CreateNSWAdd(whole, b.CreateNSWAdd(slice, e.i64(rest)));
      Value *exists = b.CreateICmpSLT(number, extent);
      number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateNSWSub(extent, e.i64(1)));
      Accumulator more = term(number, accumulator);
      for (auto [value, before] : zip_equal(more, accumulator))
        value = b.CreateSelect(exists, value, before);
      accumulator = std::move(more);
    }
    return accumulator;
  });
  return combineParts(op, own);
}

ColumnSplit::Column ColumnSplit::findColumn(tgl::ParallelOp op) {
  Column column;
  SmallVector<tgl::AxesOp> nests;
  for (mlir::Operation &nested : op.getBody().front()) {
    if (!nested.getNumRegions())
      continue;
    auto nest = dyn_cast<tgl::AxesOp>(nested);
    bool isPlain =
        nest && isa<tgl::ReduceOp, tgl::ParallelOp>(nested) && hasRowShape(nest) &&
        all_of(*nest.getAxesBlock(), [](mlir::Operation &inner) { return !inner.getNumRegions(); });
    if (!isPlain || (!nests.empty() && tgl::knownPoints(nest) != tgl::knownPoints(nests.front())))
      return column;
    nests.push_back(nest);
  }
  if (nests.size() < 2)
    return column;
  tgl::Accesses accesses = tgl::accessesOf(op);
  int64_t kept = 0; // tensors
  for (mlir::Operation &nested : *nests.front().getAxesBlock())
    if (auto read = dyn_cast<tgl::ReadOp>(nested);
        read && !accesses.writes.contains(read.getTensor()))
      kept += any_of(ArrayRef(nests).drop_front(), [&](tgl::AxesOp other) {
        return any_of(*other.getAxesBlock(), [&](mlir::Operation &inner) {
          auto again = dyn_cast<tgl::ReadOp>(inner);
          return again && isSameElement(read, nests.front(), again, other);
        });
      });
  column.values = kept * *tgl::knownPoints(nests.front());
  if (column.values)
    column.nests = std::move(nests);
  return column;
}

/// Where several nests of a thread's point read the same column, which fits into its registers,
/// they are written out. Returns how many neighbouring points have room there; 0: there is no such
/// column.
unsigned ColumnSplit::planKept(tgl::ParallelOp op) {
  constexpr int64_t maxRegisters = 64;
  Column column = findColumn(op);
  int64_t each = divideCeil(column.values, int64_t(e.shape.columnSplit));
  if (column.nests.empty() || each > maxRegisters)
    return 0;
  e.unrolled.insert_range(column.nests);
  int64_t room = maxRegisters / each;
  return room >= 4 ? 4 : room >= 2 ? 2 : 1;
}
