//===- DeviceWindows.cpp - Register tiles of overlapping windows ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows of neighbouring points share most of what they read. A thread takes a tile of points:
// some along the last axis, if they make a vector of what is written, and some along another one.
// All of its windows are written out together. What several of them read is one load, and what
// several of them add up or compare, line by line, is computed once: LLVM finds that, as the
// expressions are the same. Lines that begin with a vector are read as vectors.
//
// Elements outside of a tensor are not loaded, each (each vector) by a condition of its own, where
// they may be outside at all. A border then costs what the interior does. A branch to other code
// for it would be taken by a part of every warp where lines are as long as a warp.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace llvm;
using namespace tegula;

/// Terms of all windows of a tile: more only fill the instruction cache.
static constexpr int64_t maxTerms = 256;
/// Of those with elementary functions, which are a dozen instructions each unless terms have them
/// in common.
static constexpr int64_t maxMathTerms = 32;
/// Elements that a tile loads, each of which may need a register.
static constexpr int64_t maxElements = 96;
/// Threads that are left to hide what a load takes.
static constexpr int64_t enoughThreads = 1 << 15;
/// Tiles are worth it from this share of the loads' time on.
static constexpr int64_t percentSaved = 20;

/// What a window takes along one axis, and how far its terms are from its first element: so far
/// numbers of 32 bits do for comparisons with the dims.
static constexpr int64_t longestStep = 1 << 20, farthestTerm = 1 << 29;

namespace {
/// Elements of a line that are loaded together, from `place` on, in displacements from a tile's
/// first element.
struct Piece {
  SmallVector<int64_t> place;
  unsigned width;
};
} // namespace

static unsigned bitsOf(tgl::TglTensorType type) {
  return type.getElementType().getIntOrFloatBitWidth();
}

/// What a read takes for the terms of its reduction; nothing where it is not steady in each of its
/// subscripts.
static std::optional<DeviceEmitter::Window> findWindow(tgl::ParallelOp op, tgl::ReduceOp reduce,
                                                       tgl::ReadOp read) {
  auto nest = cast<tgl::AxesOp>(reduce.getOperation());
  DeviceEmitter::Window window;
  window.read = read;
  for (const tgl::ValueExpr &subscript : read.getSubscriptExprs())
    window.subscripts.push_back(subscript);
  size_t rank = window.subscripts.size();
  auto addSteps = [&](mlir::Value axis) {
    SmallVector<int64_t> &steps = window.steps[axis];
    for (const tgl::ValueExpr &subscript : window.subscripts) {
      std::optional<int64_t> step = tgl::stepAlong(subscript, axis);
      if (!step || std::abs(*step) > longestStep)
        return false;
      steps.push_back(*step);
    }
    return true;
  };
  // All is loaded before anything of a point is computed.
  auto isKnown = [&](mlir::Value value) {
    bool isAxis = is_contained(op.getAxes(), value) || is_contained(reduce.getAxes(), value);
    return isAxis || !op->isAncestor(value.getParentBlock()->getParentOp());
  };
  for (const tgl::ValueExpr &subscript : window.subscripts)
    if (!all_of(subscript.operands(), isKnown))
      return std::nullopt;
  if (!rank || read.getGuard() || read.getChecked() || !read.getExactExprs().empty() ||
      (read.getFill() && !isKnown(read.getFill())) || bitsOf(read.getTensorType()) < 8)
    return std::nullopt;
  for (mlir::Value axis : op.getAxes())
    if (!addSteps(axis))
      return std::nullopt;
  window.terms.push_back(SmallVector<int64_t>(rank, 0));
  for (auto [number, own] : enumerate(reduce.getAxes())) {
    std::optional<int64_t> low = tgl::getAxisRange(nest, number).lo.asConstant();
    if (!low || !addSteps(own))
      return std::nullopt;
    SmallVector<SmallVector<int64_t>> terms;
    for (const SmallVector<int64_t> &term : window.terms)
      for (int64_t n = *low, end = *low + *tgl::knownPoints(nest, unsigned(number)); n < end; ++n) {
        terms.push_back(term);
        for (auto [place, step] : zip_equal(terms.back(), window.steps[own])) {
          int64_t moved;
          if (MulOverflow(n, step, moved) || AddOverflow(place, moved, place) ||
              std::abs(place) > farthestTerm)
            return std::nullopt;
        }
      }
    window.terms = std::move(terms);
    for (tgl::ValueExpr &subscript : window.subscripts)
      subscript = subscript.substitute(own, tgl::ValueExpr(int64_t(0)));
  }
  int64_t stride = 1;
  for (const auto &dim : reverse(read.getTensorType().getDims())) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent)
      return std::nullopt;
    window.dims.insert(window.dims.begin(), *extent);
    window.strides.insert(window.strides.begin(), stride);
    stride *= *extent;
  }
  return window;
}

/// Elements of a vector that begins wherever a tile's first column, less `offColumn`, does; 1: none
/// is known to.
unsigned DeviceEmitter::windowVector(Window &window, int64_t &offColumn) {
  mlir::Value along = statement.getAxes()[windows.along];
  int64_t width = accessBytes * 8 / bitsOf(window.read.getTensorType());
  auto axes = cast<tgl::AxesOp>(statement.getOperation());
  std::optional<int64_t> first = window.subscripts.back()
                                     .substitute(along, tgl::getAxisRange(axes, windows.along).lo)
                                     .asConstant();
  mlir::Value tensor = window.read.getTensor();
  bool isAligned = tensor.getDefiningOp() || options.tensorAlignment >= accessBytes;
  if (!isAligned || !first || window.dims.back() % width ||
      window.steps.lookup(along).back() * int64_t(windows.wide) % width)
    return 1;
  offColumn = (*first % width + width) % width;
  return width;
}

/// What a tile loads for a read: of each line whole vectors, or the part of one that is needed.
static SmallVector<Piece> piecesOf(DeviceEmitter::Window &window, ArrayRef<int64_t> across,
                                   int64_t high, ArrayRef<int64_t> along, int64_t wide,
                                   int64_t vector, int64_t off) {
  std::set<SmallVector<int64_t>> places;
  for (const SmallVector<int64_t> &term : window.terms)
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j) {
        SmallVector<int64_t> place = term;
        for (size_t dim = 0; dim < place.size(); ++dim)
          place[dim] += i * across[dim] + j * along[dim];
        places.insert(place);
      }
  SmallVector<Piece> pieces;
  for (auto it = places.begin(); it != places.end();) {
    auto isTogether = [&](const SmallVector<int64_t> &other, int64_t width) {
      return ArrayRef(*it).drop_back() == ArrayRef(other).drop_back() &&
             divideFloorSigned(it->back() + off, width) ==
                 divideFloorSigned(other.back() + off, width);
    };
    auto end = std::next(it);
    while (end != places.end() && isTogether(*end, vector))
      ++end;
    int64_t width = 1;
    while (!isTogether(*std::prev(end), width))
      width *= 2;
    Piece piece{*it, unsigned(width)};
    piece.place.back() = divideFloorSigned(it->back() + off, width) * width - off;
    pieces.push_back(std::move(piece));
    it = end;
  }
  return pieces;
}

/// Lines of the L1 cache that a warp touches with one access whose threads are `apart` bytes apart,
/// and the access.
static int64_t stepsFor(int64_t apart, int64_t bytes, bool isAligned) {
  constexpr int64_t line = 128, threads = DeviceEmitter::warp;
  int64_t lines = std::max(divideCeil(threads * std::abs(apart), line),
                           apart ? divideCeil(threads * bytes, line) : 1);
  return std::min(lines + !(isAligned || !apart), threads) + 1;
}

/// Steps that L1 takes for a warp's tiles; nothing for those that are too large.
std::optional<int64_t> DeviceEmitter::windowSteps(tgl::WriteOp write) {
  mlir::Value across = statement.getAxes()[windows.axis],
              along = statement.getAxes()[windows.along];
  int64_t steps = 0, elements = 0;
  for (Window &window : windowReads) {
    int64_t off = 0, vector = windowVector(window, off),
            bytes = bitsOf(window.read.getTensorType()) / 8;
    SmallVector<int64_t> alongSteps = window.steps.lookup(along);
    int64_t apart = 0;
    for (auto [step, stride] : zip_equal(alongSteps, window.strides))
      apart += step * stride * bytes * windows.wide;
    for (const Piece &piece : piecesOf(window, window.steps.lookup(across), windows.points,
                                       alongSteps, windows.wide, vector, off)) {
      steps += stepsFor(apart, piece.width * bytes, vector > 1);
      elements += piece.width;
    }
  }
  int64_t bytes = std::max(1u, bitsOf(write.getTensorType()) / 8);
  steps += windows.points * stepsFor(bytes * windows.wide, bytes * windows.wide, windows.wide > 1);
  return elements <= maxElements ? std::optional(steps) : std::nullopt;
}

/// Whether a thread's points along the last axis are a vector of what is written.
bool DeviceEmitter::writesVectors(tgl::WriteOp write) {
  int64_t wide = windows.wide;
  auto axes = cast<tgl::AxesOp>(statement.getOperation());
  tgl::ValueExpr offset = tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()),
                 origin = offset;
  unsigned bits = bitsOf(write.getTensorType());
  if (write.getCombine() || write.getGuard() || write.getChecked() || bits < 8 ||
      bits * wide > accessBytes * 8 ||
      !(write.getTensor().getDefiningOp() || options.tensorAlignment >= accessBytes) ||
      *tgl::knownPoints(axes, {windows.along}) % wide)
    return false;
  for (auto [number, variable] : enumerate(statement.getAxes())) {
    std::optional<int64_t> step = tgl::stepAlong(offset, variable);
    if (!step || (number == windows.along ? *step != 1 : *step % wide != 0))
      return false;
    origin = origin.substitute(variable, tgl::getAxisRange(axes, number).lo);
  }
  std::optional<int64_t> begin = origin.asConstant();
  return begin && *begin % wide == 0;
}

void DeviceEmitter::planWindows(tgl::ParallelOp op, ArrayRef<unsigned> outer,
                                const std::optional<LaneChoice> &lane) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  windows = WindowTile();
  windowReads.clear();
  windowRows.clear();
  std::optional<int64_t> all = tgl::knownPoints(axes);
  if (!all || options.checked || shape.columnSplit > 1 || outer.empty() ||
      outer.size() != axes.getAxes().size())
    return;
  SmallVector<tgl::ReduceOp> reductions(op.getBody().getOps<tgl::ReduceOp>());
  SmallVector<tgl::WriteOp> written(op.getBody().getOps<tgl::WriteOp>());
  tgl::Accesses accesses = tgl::accessesOf(op);
  std::vector<Window> reads; // of all reductions, or there is no tile
  int64_t terms = 0;
  bool hasFill = false, hasMath = false;
  for (tgl::ReduceOp reduce : reductions) {
    std::optional<int64_t> own = tgl::knownPoints(cast<tgl::AxesOp>(reduce.getOperation()));
    bool isPlain = all_of(reduce.getBody().front(),
                          [](mlir::Operation &nested) { return !nested.getNumRegions(); });
    hasMath |= any_of(reduce.getBody().front(), [](mlir::Operation &nested) {
      return isa<mlir::math::MathDialect>(nested.getDialect());
    });
    if (!own || *own < 2 || *own > maxTerms || !isPlain ||
        !hasRowShape(cast<tgl::AxesOp>(reduce.getOperation())))
      return;
    terms += *own;
    for (tgl::ReadOp read : reduce.getBody().getOps<tgl::ReadOp>()) {
      std::optional<Window> window = findWindow(op, reduce, read);
      if (!window || accesses.writes.contains(read.getTensor()))
        return;
      hasFill |= read.getFill() != nullptr;
      reads.push_back(std::move(*window));
    }
  }
  bool isOther = any_of(op.getBody().front(), [](mlir::Operation &nested) {
    return isa<tgl::TempOp, tgl::SortOp>(nested) ||
           (nested.getNumRegions() && !isa<tgl::ReduceOp>(nested));
  });
  int64_t most = hasMath ? maxMathTerms : maxTerms;
  if (reads.empty() || written.empty() || isOther || (hasMath && terms > most))
    return;
  windowReads = std::move(reads);
  windows.along = windows.axis = axes.getAxes().size() - 1;
  // Threads stay neighbours in memory.
  auto isAcross = [&](unsigned axis) {
    constexpr int64_t line = 32; // elements
    bool is = axis != windows.along && !(lane && lane->axis == axis);
    op.walk([&](mlir::Operation *nested) {
      std::optional<int64_t> step = 0;
      if (auto read = dyn_cast<tgl::ReadOp>(nested))
        step = tgl::stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()),
                              op.getAxes()[axis]);
      else if (auto write = dyn_cast<tgl::WriteOp>(nested))
        step = tgl::stepAlong(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()),
                              op.getAxes()[axis]);
      is &= step && (*step == 0 || std::abs(*step) >= line);
    });
    return is;
  };
  // In hundredths of what L1 does for a warp's points one by one; of tiles that are as good the
  // smallest.
  std::optional<int64_t> single = terms <= maxTerms ? windowSteps(written[0]) : std::nullopt;
  int64_t one = single ? *single : 3 * terms, least = 100 - percentSaved + 1;
  int64_t bestSteps = 0;
  WindowTile best = windows;
  auto consider = [&](unsigned axis, unsigned high, unsigned wide) {
    int64_t points = high * wide, extent = *tgl::knownPoints(axes, {axis});
    windows.axis = axis;
    windows.points = high;
    windows.wide = wide;
    if (terms * points > most || *all / points < enoughThreads ||
        (high > 1 && extent < 2 * int64_t(high)) ||
        (wide > 1 && (written.size() != 1 || !writesVectors(written[0]))))
      return;
    std::optional<int64_t> steps = windowSteps(written[0]);
    if (!steps || 100 * *steps >= least * one * points)
      return;
    int64_t before = best.points * best.wide, gained = bestSteps * points - *steps * before;
    if (before > 1 && (gained < 0 || (gained == 0 && points > before)))
      return;
    least = divideCeil(100 * *steps, one * points);
    bestSteps = *steps;
    best = windows;
  };
  for (unsigned axis : options.windowTiles ? outer : ArrayRef<unsigned>())
    for (unsigned wide : {1, 2, 4, 8})
      for (unsigned high : {1, 2, 4, 8})
        if ((high == 1 ? axis == outer.front() : isAcross(axis)) && high * wide > 1)
          consider(axis, high, wide);
  windows = best;
  bool isTile = windows.points * windows.wide > 1;
  constexpr int64_t windowRowPoints = 4;
  if ((lane ? lane->axis == windows.along : *all / windowRowPoints >= enoughThreads) && !hasMath &&
      windowRowPoints * terms <= maxTerms)
    planWindowRows(op, outer, isTile ? least * one : 100 * one);
  if (!windowRows.empty() || !(isTile || (hasFill && single && !lane)))
    windowReads.clear();
  if (windowRows.empty() && windowReads.empty())
    windows = WindowTile();
}

/// A window, row by row: rows that several windows share are then the same expression. Products
/// with weights, which differ from row to row, are added up in order.
Accumulator DeviceEmitter::emitWindowRows(tgl::ReduceOp op) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = statement.getAxes()[windows.axis];
  bool isShared = all_of(op.getBody().front(), [&](mlir::Operation &nested) {
    auto read = dyn_cast<tgl::ReadOp>(nested);
    return !read ||
           tgl::stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()),
                          axis) != 0;
  });
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, op.getAxes().size()));
  int64_t row = isShared ? *tgl::knownPoints(nest, {all.back()}) : *tgl::knownPoints(nest);
  Accumulator total;
  for (int64_t point = 0, points = *tgl::knownPoints(nest); point < points; point += row) {
    Accumulator part = initialAccumulator(*this, op);
    if (lanes)
      part = splatAccumulator(*this, op, std::move(part), lanes->width);
    for (int64_t term = point; term < point + row; ++term)
      setAxes(nest, all, i64(term), std::nullopt,
              [&] { part = emitReducePoint(op, std::move(part)); });
    total = point ? combine(*this, op, total, part) : part;
  }
  return total;
}

/// The least and the largest value of an expression of the statement's axes at first points of
/// tiles.
std::optional<std::pair<int64_t, int64_t>> DeviceEmitter::tileRangeOf(const tgl::ValueExpr &expr) {
  auto axes = cast<tgl::AxesOp>(statement.getOperation());
  tgl::ValueExpr origin = expr;
  int64_t below = 0, above = 0;
  for (auto [number, variable] : enumerate(statement.getAxes())) {
    if (!expr.uses(variable))
      continue;
    int64_t points = pointsAlong(axes, number);
    int64_t last = (divideCeil(*tgl::knownPoints(axes, {unsigned(number)}), points) - 1) * points;
    std::optional<int64_t> step = tgl::stepAlong(expr, variable);
    if (!step)
      return std::nullopt;
    (*step < 0 ? below : above) += *step * last;
    origin = origin.substitute(variable, tgl::getAxisRange(axes, number).lo);
  }
  std::optional<int64_t> first = origin.asConstant();
  return first ? std::optional(std::pair(*first + below, *first + above)) : std::nullopt;
}

/// All elements that a tile's windows read, those that exist.
void DeviceEmitter::loadWindow(Window &window) {
  constexpr int64_t longest = 1 << 30;
  tgl::TglTensorType type = window.read.getTensorType();
  const Buffer &buffer = buffers.find(window.read.getTensor())->second;
  Type *raw = storageType(type.getElementType());
  mlir::Value fill = window.read.getFill();
  size_t rank = window.dims.size();
  SmallVector<Value *> first;
  SmallVector<std::optional<std::pair<int64_t, int64_t>>> ranges;
  for (const tgl::ValueExpr &subscript : window.subscripts) {
    ranges.push_back(tileRangeOf(subscript));
    first.push_back(emitIndex(subscript));
    // Comparisons of 32 bits are one instruction.
    if (ranges.back() && ranges.back()->first > -longest && ranges.back()->second < longest &&
        window.dims[first.size() - 1] < longest)
      first.back() = b.CreateTrunc(first.back(), b.getInt32Ty());
  }
  Value *start =
      b.CreateGEP(raw, buffer.pointer, emitIndex(tgl::elementOffset(type, window.subscripts)));
  std::map<std::pair<size_t, int64_t>, Value *> known;
  // A vector is inside or outside as a whole, as lines are whole vectors.
  auto isInside = [&](size_t dim, int64_t place) -> Value * {
    if (ranges[dim] && ranges[dim]->first + place >= 0 &&
        ranges[dim]->second + place < window.dims[dim])
      return nullptr;
    Value *&is = known[{dim, place}];
    Type *integer = first[dim]->getType();
    if (!is)
      is = b.CreateICmpULT(b.CreateAdd(first[dim], ConstantInt::getSigned(integer, place)),
                           ConstantInt::get(integer, window.dims[dim]));
    return is;
  };
  mlir::Value across = statement.getAxes()[windows.axis],
              along = statement.getAxes()[windows.along];
  int64_t off = 0, vector = windowVector(window, off);
  for (const Piece &piece : piecesOf(window, window.steps.lookup(across), windows.points,
                                     window.steps.lookup(along), windows.wide, vector, off)) {
    Value *exists = nullptr;
    int64_t place = 0;
    for (size_t dim = 0; dim < rank; ++dim) {
      exists = emitAnd(exists, isInside(dim, piece.place[dim]));
      place += piece.place[dim] * window.strides[dim];
    }
    Type *loaded = piece.width > 1 ? FixedVectorType::get(raw, piece.width) : raw;
    auto load = [&] {
      LoadInst *load = b.CreateAlignedLoad(loaded, b.CreateGEP(raw, start, i64(place)),
                                           Align(piece.width * raw->getScalarSizeInBits() / 8));
      describeAccess(load, buffer);
      // LLVM would load a vector's elements one by one where few of them are needed.
      Value *whole = piece.width > 1 ? b.CreateFreeze(load) : load;
      SmallVector<Value *> elements;
      for (unsigned lane = 0; lane < piece.width; ++lane)
        elements.push_back(decode(piece.width > 1 ? b.CreateExtractElement(whole, lane) : whole,
                                  type.getElementType()));
      return elements;
    };
    // What no point that exists reads may be anything: 0.
    SmallVector<Value *> others(fill ? piece.width : 0, fill ? valueOf(fill) : nullptr);
    SmallVector<Value *> elements = exists ? emitIfElse(exists, load, others) : load();
    for (unsigned lane = 0; lane < piece.width; ++lane) {
      SmallVector<int64_t> at = piece.place;
      at.back() += lane;
      windowElements[{window.read, at}] = elements[lane];
    }
  }
}

/// An element of a window that is loaded, or a result that is stored with its neighbours.
bool DeviceEmitter::emitInWindow(mlir::Operation *op) {
  if (!inWindows || windowReads.empty())
    return false;
  if (auto write = dyn_cast<tgl::WriteOp>(op); write && windows.wide > 1) {
    mlir::Type element = write.getTensorType().getElementType();
    windowRowResults.push_back(encode(valueOf(write.getValue()), element));
    if (windowRowResults.size() < windows.wide)
      return true;
    values[statement.getAxes()[windows.along]] = windowFirst;
    Value *vector =
        PoisonValue::get(FixedVectorType::get(windowRowResults[0]->getType(), windows.wide));
    for (auto [lane, value] : enumerate(windowRowResults))
      vector = b.CreateInsertElement(vector, value, lane);
    windowRowResults.clear();
    auto store = [&] { storeVector(write, vector); };
    writes ? emitIf(writes, store) : store();
    return true;
  }
  auto window = find_if(windowReads, [&](const Window &window) { return window.read == op; });
  if (window == windowReads.end())
    return false;
  SmallVector<int64_t> place(window->dims.size(), 0);
  auto move = [&](mlir::Value axis, int64_t by) {
    for (auto [at, step] : zip_equal(place, window->steps.lookup(axis)))
      at += by * step;
  };
  for (mlir::Value own : cast<tgl::ReduceOp>(op->getParentOp()).getAxes())
    move(own, cast<ConstantInt>(values[own])->getSExtValue());
  move(statement.getAxes()[windows.axis], windowPoint.first);
  move(statement.getAxes()[windows.along], windowPoint.second);
  values[window->read.getResult()] = windowElements.at({op, place});
  return true;
}

/// The points of a tile, whose first one the axes are at.
void DeviceEmitter::emitWindows(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value across = op.getAxes()[windows.axis], along = op.getAxes()[windows.along];
  Value *top = values[across], *high = emitIndex(highOf(axes, windows.axis));
  windowFirst = values[along];
  windowElements.clear();
  for (Window &window : windowReads) {
    loadWindow(window);
    insideReads.insert(window.read);
  }
  inWindows = true;
  bool isPartial = *tgl::knownPoints(axes, {windows.axis}) % windows.points;
  for (unsigned i = 0; i < windows.points; ++i) {
    Value *line = windows.points > 1 ? b.CreateNSWAdd(top, i64(i)) : top;
    if (isPartial && i) {
      writes = b.CreateICmpSLT(line, high);
      line = b.CreateBinaryIntrinsic(Intrinsic::smin, line, b.CreateNSWSub(high, i64(1)));
    }
    for (unsigned j = 0; j < windows.wide; ++j) {
      if (windows.points > 1)
        values[across] = line;
      values[along] = windows.wide > 1 ? b.CreateNSWAdd(windowFirst, i64(j)) : windowFirst;
      windowPoint = {i, j};
      emitBlock(op.getBody().front());
    }
  }
  writes = nullptr;
  inWindows = false;
  insideReads.clear();
}
