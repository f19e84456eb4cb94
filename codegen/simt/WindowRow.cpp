//===- WindowRow.cpp - Sliding windows along a row, in registers of a thread ===//
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
#include "codegen/common/AccessShape.h"
#include "codegen/common/PeelInterior.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

static constexpr int64_t vectorLanes = 4; // of 32 bits

static std::optional<int64_t> stepOf(tgl::ReadOp read, mlir::Value axis) {
  return tgl::stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()), axis);
}

static std::optional<int64_t> knownElements(tgl::TglTensorType type) {
  std::optional<int64_t> bytes = tensorBytes(type, 1).asConstant();
  return bytes ? std::optional(*bytes * 8 / type.getElementType().getIntOrFloatBitWidth())
               : std::nullopt;
}

static int64_t vectorsOf(const DeviceEmitter::WindowRow &run) {
  return divideCeil(run.length + vectorLanes - 1, vectorLanes);
}

/// The runs of neighbours that a read of a reduction takes for the points of a tile; nothing where
/// that is not known.
static std::optional<SmallVector<DeviceEmitter::WindowRow>> findWindowRows(tgl::ReadOp read,
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
  SmallVector<DeviceEmitter::WindowRow> windowRows;
  for (unsigned term : order) {
    int64_t place = places[term],
            end = windowRows.empty() ? 0 : windowRows.back().first + windowRows.back().length;
    if (windowRows.empty() || place > end + longestGap)
      windowRows.push_back({place, vectorLanes, positions[term], {}});
    else
      windowRows.back().length =
          std::max(windowRows.back().length, place + vectorLanes - windowRows.back().first);
  }
  return windowRows;
}

/// Takes points along the last axis where L1 gives their vectors sooner than what else is loaded,
/// in `steps`, hundredths, for each point of a warp.
void DeviceEmitter::planWindowRows(tgl::ParallelOp op, ArrayRef<unsigned> outer, int64_t steps) {
  constexpr int64_t maxElements = 72;
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  unsigned last = op.getAxes().size() - 1;
  mlir::Value axis = op.getAxes()[last];
  windowRows.clear();
  SmallVector<tgl::WriteOp> written(op.getBody().getOps<tgl::WriteOp>());
  auto isAligned = [&](mlir::Value tensor) {
    return tensor.getDefiningOp() || options.tensorAlignment >= 4 * vectorLanes;
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
  windowRows = std::move(found);
  windows = {last, unsigned(vectorLanes), isWhole ? 0u : unsigned(vectorLanes - 1), last, 1};
}

/// Where the points of a tile begin that has this number: where a vector of the result does.
Value *DeviceEmitter::emitWindowRowStart(tgl::ParallelOp op, Value *first) {
  if (!windows.slack)
    return first;
  tgl::WriteOp write = *op.getBody().getOps<tgl::WriteOp>().begin();
  Value *place = emitIndex(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()));
  return b.CreateNSWSub(first, b.CreateAnd(place, i64(vectorLanes - 1)));
}

/// The place of a run's first element for the tile's first point, for which the axis is set.
Value *DeviceEmitter::emitWindowRowAddress(tgl::ReadOp read, const WindowRow &run) {
  auto reduce = cast<tgl::ReduceOp>(read->getParentOp());
  for (auto [own, position] : zip_equal(reduce.getAxes(), run.position))
    values[own] = i64(position);
  return emitIndex(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()));
}

/// Whether all vectors of a tile end inside their tensors; null: they do.
Value *DeviceEmitter::emitWindowRowsInside(tgl::ParallelOp op) {
  Value *inside = nullptr;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>())
      for (const WindowRow &run : windowRows.lookup(read)) {
        Value *place = b.CreateAnd(emitWindowRowAddress(read, run), i64(-vectorLanes));
        int64_t latest = *knownElements(read.getTensorType()) - vectorsOf(run) * vectorLanes;
        inside = emitAnd(inside, b.CreateICmpSLE(place, i64(latest)));
      }
  return inside;
}

void DeviceEmitter::loadWindowRows(tgl::ParallelOp op) {
  Type *type = b.getFloatTy();
  auto *vector = FixedVectorType::get(type, vectorLanes);
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>()) {
      auto found = windowRows.find(read);
      if (found == windowRows.end())
        continue;
      const Buffer &buffer = buffers.find(read.getTensor())->second;
      for (WindowRow &run : found->second) {
        Value *place = emitWindowRowAddress(read, run),
              *off = b.CreateAnd(place, i64(vectorLanes - 1));
        Value *start = b.CreateInBoundsGEP(type, buffer.pointer, b.CreateNSWSub(place, off));
        SmallVector<Value *> &elements = run.elements;
        elements.clear();
        for (int64_t part = 0, parts = vectorsOf(run); part < parts; ++part) {
          Value *address = b.CreateInBoundsGEP(type, start, i64(part * vectorLanes));
          LoadInst *load = b.CreateAlignedLoad(vector, address, Align(4 * vectorLanes));
          describeAccess(load, buffer);
          for (int64_t lane = 0; lane < vectorLanes; ++lane)
            elements.push_back(b.CreateExtractElement(load, lane));
        }
        for (int64_t by = 1; by < vectorLanes; by *= 2) {
          Value *isOff = b.CreateICmpNE(b.CreateAnd(off, i64(by)), i64(0));
          for (int64_t n = 0; n + by < int64_t(elements.size()); ++n)
            elements[n] = b.CreateSelect(isOff, elements[n + by], elements[n]);
        }
      }
    }
}

/// An element of a run that is loaded, or a result that is stored with its neighbours.
bool DeviceEmitter::emitInWindowRow(mlir::Operation *op) {
  if (windowRowPoint < 0)
    return false;
  if (auto write = dyn_cast<tgl::WriteOp>(op)) {
    windowRowResults.push_back(valueOf(write.getValue()));
    return true;
  }
  auto found = windowRows.find(op);
  if (found == windowRows.end())
    return false;
  auto read = cast<tgl::ReadOp>(op);
  int64_t place = windowRowPoint;
  for (mlir::Value own : cast<tgl::ReduceOp>(op->getParentOp()).getAxes())
    place += *stepOf(read, own) * cast<ConstantInt>(values[own])->getSExtValue();
  for (const WindowRow &run : found->second)
    if (place >= run.first && place < run.first + run.length)
      values[read.getResult()] = run.elements[place - run.first];
  return true;
}

/// The points of a tile from `first` on, all of which exist.
void DeviceEmitter::emitWindowRowTiles(tgl::ParallelOp op, Value *first) {
  mlir::Value axis = op.getAxes()[windows.axis];
  values[axis] = first;
  loadWindowRows(op);
  windowRowResults.clear();
  for (windowRowPoint = 0; windowRowPoint < vectorLanes; ++windowRowPoint) {
    values[axis] = b.CreateNSWAdd(first, i64(windowRowPoint));
    emitBlock(op.getBody().front());
  }
  windowRowPoint = -1;
  values[axis] = first;
  tgl::WriteOp write = *op.getBody().getOps<tgl::WriteOp>().begin();
  Value *vector = PoisonValue::get(FixedVectorType::get(b.getFloatTy(), vectorLanes));
  for (auto [lane, value] : enumerate(windowRowResults))
    vector = b.CreateInsertElement(vector, value, lane);
  storeVector(write, vector);
}

/// Stores encoded neighbours at the current axes, the first of which are where a vector begins.
void DeviceEmitter::storeVector(tgl::WriteOp write, Value *vector) {
  const Buffer &buffer = buffers.find(write.getTensor())->second;
  Type *element = cast<VectorType>(vector->getType())->getElementType();
  Value *place = emitIndex(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()));
  unsigned bytes = vector->getType()->getPrimitiveSizeInBits() / 8;
  StoreInst *store = b.CreateAlignedStore(
      vector, b.CreateInBoundsGEP(element, buffer.pointer, place), Align(bytes));
  describeAccess(store, buffer);
}

/// The points of a tile of a line: together where all of them exist and all that their windows
/// read, else one by one.
void DeviceEmitter::emitWindowRowTile(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[windows.axis];
  int64_t extent = *tgl::knownPoints(axes, {windows.axis}), points = windows.points;
  Value *low = emitIndex(lowOf(axes, windows.axis)), *high = emitIndex(highOf(axes, windows.axis));
  Value *first = emitWindowRowStart(op, values[axis]);
  Value *last = b.CreateNSWAdd(first, i64(points - 1));
  Value *inside = extent % points || windows.slack ? b.CreateICmpSLT(last, high) : nullptr;
  if (windows.slack)
    inside = emitAnd(inside, b.CreateICmpSGE(first, low));
  DenseSet<mlir::Operation *> unchecked;
  bool isKnown = true;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (Value *corner : {first, last}) {
      values[axis] = corner;
      SmallVector<mlir::Operation *> free;
      inside = emitAnd(inside, emitPeeledInterior(*this, reduce, free));
      unchecked.insert_range(free);
      reduce.walk(
          [&](tgl::ReadOp read) { isKnown &= !read.getFill() || unchecked.contains(read); });
    }
  if (!isKnown)
    inside = b.getFalse();
  values[axis] = first;
  inside = emitAnd(inside, emitWindowRowsInside(op));
  auto together = [&] {
    insideReads.insert_range(unchecked);
    inWindows = true;
    emitWindowRowTiles(op, first);
    inWindows = false;
    insideReads.clear();
  };
  if (!inside)
    return together();
  emitIf(inside, together);
  emitIf(b.CreateNot(inside), [&] {
    Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(first, i64(points)), high);
    keepNextLoopRolled = true;
    if (windows.slack)
      first = b.CreateBinaryIntrinsic(Intrinsic::smax, first, low);
    emitLoop(first, end, i64(1), {}, [&](Value *position, ArrayRef<Value *>) {
      values[axis] = position;
      emitBlock(op.getBody().front());
      return SmallVector<Value *>();
    });
  });
}
