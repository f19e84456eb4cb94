//===- WindowRows.cpp - Sliding windows along a row, in registers of a thread ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows of points side by side in memory share most of their elements: a thread a point, each
// element is loaded as often as windows are long, which is more than L1 gives. So a thread takes
// four points that make one vector of what is written, loads what their windows read as whole
// vectors, and takes each element from its registers. Lines of other lengths than multiples of four
// begin anywhere: the four points then begin where a vector of the result does, the first of a line
// before it, and vectors that are read are shifted by as many elements as they lie off theirs. On
// an H200, for windows of 8 terms: 1147 and 1920 us (average; maximum of every third element) in
// place of 1897 and 2892.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/WindowRows.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/PeelInterior.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

WindowRows::WindowRows(DeviceEmitter &e) : e(e), b(e.b) {}

static constexpr int64_t vectorLanes = 4; // of 32 bits

static std::optional<int64_t> stepOf(tgl::ReadOp read, mlir::Value axis) {
  return tgl::stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()), axis);
}

static std::optional<int64_t> knownElements(tgl::TglTensorType type) {
  std::optional<int64_t> bytes = tensorBytes(type, 1).asConstant();
  return bytes ? std::optional(*bytes * 8 / type.getElementType().getIntOrFloatBitWidth())
               : std::nullopt;
}

static int64_t vectorsOf(const WindowRow &run) {
  return divideCeil(run.length + vectorLanes - 1, vectorLanes);
}

/// The runs of neighbours that a read of a reduction takes for the points of a tile; nothing where
/// that is not known.
static std::optional<SmallVector<WindowRow>> findWindowRows(tgl::ReadOp read,
                                                            tgl::ReduceOp reduce) {
  constexpr int64_t longestGap = 4; // elements that are loaded for nothing
  auto nest = cast<tgl::AxesOp>(reduce.getOperation());
  SmallVector<int64_t> places{0};
  SmallVector<SmallVector<int64_t>> positions{{}};
  for (auto [number, own] : enumerate(reduce.getAxes())) {
    std::optional<int64_t> step = stepOf(read, own),
                           low = tgl::getAxisRange(nest, number).lo.asConstant();
    if (!step || !low)
      return std::nullopt;
    SmallVector<int64_t> more;
    SmallVector<SmallVector<int64_t>> morePositions;
    for (auto [place, position] : zip_equal(places, positions))
      for (int64_t n = *low, end = *low + *tgl::knownPoints(nest, unsigned(number)); n < end; ++n) {
        more.push_back(place + n * *step);
        morePositions.push_back(position);
        morePositions.back().push_back(n);
      }
    places = std::move(more);
    positions = std::move(morePositions);
  }
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, places.size()));
  stable_sort(order, [&](unsigned left, unsigned right) { return places[left] < places[right]; });
  SmallVector<WindowRow> rows;
  for (unsigned term : order) {
    int64_t place = places[term], end = rows.empty() ? 0 : rows.back().first + rows.back().length;
    if (rows.empty() || place > end + longestGap)
      rows.push_back({place, vectorLanes, positions[term], {}});
    else
      rows.back().length = std::max(rows.back().length, place + vectorLanes - rows.back().first);
  }
  return rows;
}

/// Takes points along the last axis where L1 gives their vectors sooner than what else is loaded,
/// in `steps`, hundredths, for each point of a warp.
void WindowRows::plan(tgl::ParallelOp op, ArrayRef<unsigned> outer, int64_t steps) {
  constexpr int64_t maxElements = 72;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  unsigned last = op.getAxes().size() - 1;
  mlir::Value axis = op.getAxes()[last];
  rows.clear();
  SmallVector<tgl::WriteOp> written(op.getBody().getOps<tgl::WriteOp>());
  auto isAligned = [&](mlir::Value tensor) {
    return tensor.getDefiningOp() || e.options.tensorAlignment >= 4 * vectorLanes;
  };
  if (written.size() != 1 || written[0].getCombine() || written[0].getGuard() ||
      written[0].getChecked() || !written[0].getTensorType().getElementType().isF32() ||
      !isAligned(written[0].getTensor()) || *tgl::knownPoints(axes, {last}) < 8 * vectorLanes)
    return;
  tgl::ValueExpr offset =
      tgl::elementOffset(written[0].getTensorType(), written[0].getSubscriptExprs());
  if (tgl::stepAlong(offset, axis) != 1)
    return;
  int64_t vectors = 0, elements = 0;
  DenseMap<mlir::Operation *, SmallVector<WindowRow>> found;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (mlir::Operation &nested : reduce.getBody().front()) {
      auto read = dyn_cast<tgl::ReadOp>(nested);
      if (!read)
        continue;
      std::optional<int64_t> step = stepOf(read, axis);
      if (step == 0)
        continue;
      if (step != 1 || read.getGuard() || read.getChecked() || !read.getExactExprs().empty() ||
          !read.getTensorType().getElementType().isF32() || !isAligned(read.getTensor()) ||
          !knownElements(read.getTensorType()))
        return;
      std::optional<SmallVector<WindowRow>> own = findWindowRows(read, reduce);
      if (!own)
        return;
      for (const WindowRow &run : *own) {
        vectors += vectorsOf(run);
        elements += vectorsOf(run) * vectorLanes;
      }
      found[read] = std::move(*own);
    }
  // For a warp L1 gives a vector in four steps, beside the access's own: by a fifth fewer of them.
  constexpr int64_t stepsOfVector = 5;
  bool isBetter = 125 * stepsOfVector * (vectors + 1) < steps * vectorLanes;
  if (found.empty() || elements > maxElements || !isBetter)
    return;
  // Whether every line begins with a vector.
  bool isWhole = true;
  tgl::ValueExpr origin = offset;
  for (unsigned number : outer) {
    mlir::Value variable = op.getAxes()[number];
    std::optional<int64_t> step = tgl::stepAlong(offset, variable);
    isWhole &= variable == axis || (step && *step % vectorLanes == 0);
    origin = origin.substitute(variable, tgl::getAxisRange(axes, number).lo);
  }
  std::optional<int64_t> begin = origin.asConstant();
  isWhole &= begin && *begin % vectorLanes == 0;
  rows = std::move(found);
  e.pointTile = {last, unsigned(vectorLanes), isWhole ? 0u : unsigned(vectorLanes - 1), last, 1};
}

/// Where the points of a tile begin that has this number: where a vector of the result does.
Value *WindowRows::emitStart(tgl::ParallelOp op, Value *first) {
  if (!e.pointTile.slack)
    return first;
  tgl::WriteOp write = *op.getBody().getOps<tgl::WriteOp>().begin();
  Value *place = e.emitIndex(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()));
  return b.CreateNSWSub(first, b.CreateAnd(place, e.i64(vectorLanes - 1)));
}

/// The place of a run's first element for the tile's first point, for which the axis is set.
Value *WindowRows::emitAddress(tgl::ReadOp read, const WindowRow &run) {
  auto reduce = cast<tgl::ReduceOp>(read->getParentOp());
  for (auto [own, position] : zip_equal(reduce.getAxes(), run.position))
    e.values[own] = e.i64(position);
  return e.emitIndex(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()));
}

/// Whether all vectors of a tile end inside their tensors; null: they do.
Value *WindowRows::emitInside(tgl::ParallelOp op) {
  Value *inside = nullptr;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>())
      for (const WindowRow &run : rows.lookup(read)) {
        Value *place = b.CreateAnd(emitAddress(read, run), e.i64(-vectorLanes));
        int64_t latest = *knownElements(read.getTensorType()) - vectorsOf(run) * vectorLanes;
        inside = e.emitAnd(inside, b.CreateICmpSLE(place, e.i64(latest)));
      }
  return inside;
}

void WindowRows::loadRows(tgl::ParallelOp op) {
  Type *type = b.getFloatTy();
  auto *vector = FixedVectorType::get(type, vectorLanes);
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>()) {
      auto found = rows.find(read);
      if (found == rows.end())
        continue;
      const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
      for (WindowRow &run : found->second) {
        Value *place = emitAddress(read, run), *off = b.CreateAnd(place, e.i64(vectorLanes - 1));
        Value *start = b.CreateInBoundsGEP(type, buffer.pointer, b.CreateNSWSub(place, off));
        SmallVector<Value *> &elements = run.elements;
        elements.clear();
        for (int64_t part = 0, parts = vectorsOf(run); part < parts; ++part) {
          Value *address = b.CreateInBoundsGEP(type, start, e.i64(part * vectorLanes));
          LoadInst *load = b.CreateAlignedLoad(vector, address, Align(4 * vectorLanes));
          e.describeAccess(load, buffer);
          for (int64_t lane = 0; lane < vectorLanes; ++lane)
            elements.push_back(b.CreateExtractElement(load, lane));
        }
        for (int64_t by = 1; by < vectorLanes; by *= 2) {
          Value *isOff = b.CreateICmpNE(b.CreateAnd(off, e.i64(by)), e.i64(0));
          for (int64_t n = 0; n + by < int64_t(elements.size()); ++n)
            elements[n] = b.CreateSelect(isOff, elements[n + by], elements[n]);
        }
      }
    }
}

/// An element of a run that is loaded, or a result that is stored with its neighbours.
bool WindowRows::emitIn(mlir::Operation *op) {
  if (point < 0)
    return false;
  if (auto write = dyn_cast<tgl::WriteOp>(op)) {
    results.push_back(e.valueOf(write.getValue()));
    return true;
  }
  auto found = rows.find(op);
  if (found == rows.end())
    return false;
  auto read = cast<tgl::ReadOp>(op);
  int64_t place = point;
  for (mlir::Value own : cast<tgl::ReduceOp>(op->getParentOp()).getAxes())
    place += *stepOf(read, own) * cast<ConstantInt>(e.values[own])->getSExtValue();
  for (const WindowRow &run : found->second)
    if (place >= run.first && place < run.first + run.length)
      e.values[read.getResult()] = run.elements[place - run.first];
  return true;
}

/// The points of a tile from `first` on, all of which exist.
void WindowRows::emitTiles(tgl::ParallelOp op, Value *first) {
  mlir::Value axis = op.getAxes()[e.pointTile.axis];
  e.values[axis] = first;
  loadRows(op);
  results.clear();
  for (point = 0; point < vectorLanes; ++point) {
    e.values[axis] = b.CreateNSWAdd(first, e.i64(point));
    e.emitBlock(op.getBody().front());
  }
  point = -1;
  e.values[axis] = first;
  tgl::WriteOp write = *op.getBody().getOps<tgl::WriteOp>().begin();
  Value *vector = PoisonValue::get(FixedVectorType::get(b.getFloatTy(), vectorLanes));
  for (auto [lane, value] : enumerate(results))
    vector = b.CreateInsertElement(vector, value, lane);
  storeVector(e, write, vector);
}

/// Stores encoded neighbours at the current axes, the first of which are where a vector begins.
void tegula::storeVector(DeviceEmitter &e, tgl::WriteOp write, Value *vector) {
  const Emitter::Buffer &buffer = e.buffers.find(write.getTensor())->second;
  Type *element = cast<VectorType>(vector->getType())->getElementType();
  Value *place = e.emitIndex(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()));
  unsigned bytes = vector->getType()->getPrimitiveSizeInBits() / 8;
  StoreInst *store = e.b.CreateAlignedStore(
      vector, e.b.CreateInBoundsGEP(element, buffer.pointer, place), Align(bytes));
  e.describeAccess(store, buffer);
}

/// The points of a tile of a line: together where all of them exist and all that their windows
/// read, else one by one.
void WindowRows::emit(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[e.pointTile.axis];
  int64_t extent = *tgl::knownPoints(axes, {e.pointTile.axis}), points = e.pointTile.points;
  Value *low = e.emitIndex(e.lowOf(axes, e.pointTile.axis)),
        *high = e.emitIndex(e.highOf(axes, e.pointTile.axis));
  Value *first = emitStart(op, e.values[axis]);
  Value *last = b.CreateNSWAdd(first, e.i64(points - 1));
  Value *inside = extent % points || e.pointTile.slack ? b.CreateICmpSLT(last, high) : nullptr;
  if (e.pointTile.slack)
    inside = e.emitAnd(inside, b.CreateICmpSGE(first, low));
  DenseSet<mlir::Operation *> unchecked;
  bool isKnown = true;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (Value *corner : {first, last}) {
      e.values[axis] = corner;
      SmallVector<mlir::Operation *> free;
      inside = e.emitAnd(inside, emitPeeledInterior(e, reduce, free));
      unchecked.insert_range(free);
      reduce.walk(
          [&](tgl::ReadOp read) { isKnown &= !read.getFill() || unchecked.contains(read); });
    }
  if (!isKnown)
    inside = b.getFalse();
  e.values[axis] = first;
  inside = e.emitAnd(inside, emitInside(op));
  auto together = [&] {
    e.insideReads.insert_range(unchecked);
    e.inWindows = true;
    emitTiles(op, first);
    e.inWindows = false;
    e.insideReads.clear();
  };
  if (!inside)
    return together();
  e.emitIf(inside, together);
  e.emitIf(b.CreateNot(inside), [&] {
    Value *end =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(first, e.i64(points)), high);
    e.keepNextLoopRolled = true;
    if (e.pointTile.slack)
      first = b.CreateBinaryIntrinsic(Intrinsic::smax, first, low);
    e.emitLoop(first, end, e.i64(1), {}, [&](Value *position, ArrayRef<Value *>) {
      e.values[axis] = position;
      e.emitBlock(op.getBody().front());
      return SmallVector<Value *>();
    });
  });
}
