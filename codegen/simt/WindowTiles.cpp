//===- WindowTiles.cpp - Register tiles of overlapping windows ----------===//
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
#include "codegen/simt/WindowTiles.h"

#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace llvm;
using namespace tegula;

WindowTiles::WindowTiles(DeviceEmitter &e) : e(e), b(e.b), rows(e) {}

/// Terms of all windows of a tile: more only fill the instruction cache, unless a window alone is
/// large (7 x 7): points side by side share most of it, and each of its terms has a weight to load.
static constexpr int64_t maxTerms = 256, largeWindow = 32, maxTermsOfLarge = 512;
/// Of those with elementary functions, which are a dozen instructions each unless terms have them
/// in common.
static constexpr int64_t maxMathTerms = 32;
/// Registers for the elements that a tile loads.
static constexpr int64_t maxRegisters = 96, maxRegistersOfLarge = 160;
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
static std::optional<WindowTiles::Window> findWindow(tgl::ParallelOp op, tgl::ReduceOp reduce,
                                                     tgl::ReadOp read) {
  auto nest = cast<tgl::AxesOp>(reduce.getOperation());
  WindowTiles::Window window;
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
unsigned WindowTiles::windowVector(Window &window, int64_t &offColumn) {
  mlir::Value along = e.statement.getAxes()[e.pointTile.along];
  int64_t width = e.accessBytes * 8 / bitsOf(window.read.getTensorType());
  auto axes = cast<tgl::AxesOp>(e.statement.getOperation());
  std::optional<int64_t> first =
      window.subscripts.back()
          .substitute(along, tgl::getAxisRange(axes, e.pointTile.along).lo)
          .asConstant();
  mlir::Value tensor = window.read.getTensor();
  bool isAligned = tensor.getDefiningOp() || e.options.tensorAlignment >= e.accessBytes;
  if (!isAligned || !first || window.dims.back() % width ||
      window.steps.lookup(along).back() * int64_t(e.pointTile.wide) % width)
    return 1;
  offColumn = (*first % width + width) % width;
  return width;
}

/// What a tile loads for a read: of each line whole vectors, or the part of one that is needed.
static SmallVector<Piece> piecesOf(WindowTiles::Window &window, ArrayRef<int64_t> across,
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
std::optional<int64_t> WindowTiles::windowSteps(tgl::WriteOp write) {
  mlir::Value across = e.statement.getAxes()[e.pointTile.axis],
              along = e.statement.getAxes()[e.pointTile.along];
  int64_t steps = 0, registers = 0, longest = 0;
  for (Window &window : windowReads) {
    longest = std::max<int64_t>(longest, window.terms.size());
    int64_t off = 0, vector = windowVector(window, off),
            bytes = bitsOf(window.read.getTensorType()) / 8;
    SmallVector<int64_t> alongSteps = window.steps.lookup(along);
    int64_t apart = 0;
    for (auto [step, stride] : zip_equal(alongSteps, window.strides))
      apart += step * stride * bytes * e.pointTile.wide;
    for (const Piece &piece : piecesOf(window, window.steps.lookup(across), e.pointTile.points,
                                       alongSteps, e.pointTile.wide, vector, off)) {
      steps += stepsFor(apart, piece.width * bytes, vector > 1);
      registers += divideCeil(piece.width * bytes, int64_t(4));
    }
  }
  int64_t bytes = std::max(1u, bitsOf(write.getTensorType()) / 8);
  steps += e.pointTile.points *
           stepsFor(bytes * e.pointTile.wide, bytes * e.pointTile.wide, e.pointTile.wide > 1);
  int64_t most = longest > largeWindow ? maxRegistersOfLarge : maxRegisters;
  return registers <= most ? std::optional(steps) : std::nullopt;
}

/// Whether a thread's points along the last axis are a vector of what is written.
bool WindowTiles::writesVectors(tgl::WriteOp write) {
  int64_t wide = e.pointTile.wide;
  auto axes = cast<tgl::AxesOp>(e.statement.getOperation());
  tgl::ValueExpr offset = tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()),
                 origin = offset;
  unsigned bits = bitsOf(write.getTensorType());
  if (write.getCombine() || write.getGuard() || write.getChecked() || bits < 8 ||
      bits * wide > e.accessBytes * 8 ||
      !(write.getTensor().getDefiningOp() || e.options.tensorAlignment >= e.accessBytes) ||
      *tgl::knownPoints(axes, {e.pointTile.along}) % wide)
    return false;
  for (auto [number, variable] : enumerate(e.statement.getAxes())) {
    std::optional<int64_t> step = tgl::stepAlong(offset, variable);
    if (!step || (number == e.pointTile.along ? *step != 1 : *step % wide != 0))
      return false;
    origin = origin.substitute(variable, tgl::getAxisRange(axes, number).lo);
  }
  std::optional<int64_t> begin = origin.asConstant();
  return begin && *begin % wide == 0;
}

void WindowTiles::plan(tgl::ParallelOp op, ArrayRef<unsigned> outer,
                       const std::optional<LaneChoice> &lane) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  e.pointTile = PointTile();
  windowReads.clear();
  rows.clear();
  std::optional<int64_t> all = tgl::knownPoints(axes);
  if (!all || e.options.checked || e.shape.columnSplit > 1 || outer.empty() ||
      outer.size() != axes.getAxes().size())
    return;
  SmallVector<tgl::ReduceOp> reductions(op.getBody().getOps<tgl::ReduceOp>());
  SmallVector<tgl::WriteOp> written(op.getBody().getOps<tgl::WriteOp>());
  tgl::Accesses accesses = tgl::accessesOf(op);
  std::vector<Window> reads; // of all reductions, or there is no tile
  int64_t terms = 0, longest = 0;
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
    longest = std::max(longest, *own);
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
  int64_t most = hasMath ? maxMathTerms : longest > largeWindow ? maxTermsOfLarge : maxTerms;
  if (reads.empty() || written.empty() || isOther || (hasMath && terms > most))
    return;
  windowReads = std::move(reads);
  e.pointTile.along = e.pointTile.axis = axes.getAxes().size() - 1;
  // Threads stay neighbours in memory.
  auto isAcross = [&](unsigned axis) {
    constexpr int64_t line = 32; // elements
    bool is = axis != e.pointTile.along && !(lane && lane->axis == axis);
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
  PointTile best = e.pointTile;
  auto consider = [&](unsigned axis, unsigned high, unsigned wide) {
    int64_t points = high * wide, extent = *tgl::knownPoints(axes, {axis});
    e.pointTile.axis = axis;
    e.pointTile.points = high;
    e.pointTile.wide = wide;
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
    best = e.pointTile;
  };
  for (unsigned axis : e.options.windowTiles ? outer : ArrayRef<unsigned>())
    for (unsigned wide : {1, 2, 4, 8})
      for (unsigned high : {1, 2, 4, 8})
        if ((high == 1 ? axis == outer.front() : isAcross(axis)) && high * wide > 1)
          consider(axis, high, wide);
  e.pointTile = best;
  bool isTile = e.pointTile.points * e.pointTile.wide > 1;
  constexpr int64_t windowRowPoints = 4;
  if ((lane ? lane->axis == e.pointTile.along : *all / windowRowPoints >= enoughThreads) &&
      !hasMath && windowRowPoints * terms <= maxTerms)
    rows.plan(op, outer, isTile ? least * one : 100 * one);
  if (rows.isPlanned() || !(isTile || (hasFill && single && !lane)))
    windowReads.clear();
  if (!rows.isPlanned() && windowReads.empty())
    e.pointTile = PointTile();
}

/// A window, row by row: rows that several windows share are then the same expression. Products
/// with weights, which differ from row to row, are added up in order.
Accumulator WindowTiles::emitReduce(tgl::ReduceOp op) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = e.statement.getAxes()[e.pointTile.axis];
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
    Accumulator part = initialAccumulator(e, op);
    if (e.lanes)
      part = splatAccumulator(e, op, std::move(part), e.lanes->width);
    for (int64_t term = point; term < point + row; ++term)
      e.setAxes(nest, all, e.i64(term), std::nullopt,
                [&] { part = e.emitReducePoint(op, std::move(part)); });
    total = point ? combine(e, op, total, part) : part;
  }
  return total;
}

/// The least and the largest value of an expression of the statement's axes at first points of
/// tiles.
std::optional<std::pair<int64_t, int64_t>> WindowTiles::tileRangeOf(const tgl::ValueExpr &expr) {
  auto axes = cast<tgl::AxesOp>(e.statement.getOperation());
  tgl::ValueExpr origin = expr;
  int64_t below = 0, above = 0;
  for (auto [number, variable] : enumerate(e.statement.getAxes())) {
    if (!expr.uses(variable))
      continue;
    int64_t points = e.pointsAlong(axes, number);
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
void WindowTiles::loadWindow(Window &window) {
  constexpr int64_t longest = 1 << 30;
  tgl::TglTensorType type = window.read.getTensorType();
  const Emitter::Buffer &buffer = e.buffers.find(window.read.getTensor())->second;
  Type *raw = e.storageType(type.getElementType());
  mlir::Value fill = window.read.getFill();
  size_t rank = window.dims.size();
  SmallVector<Value *> first;
  SmallVector<std::optional<std::pair<int64_t, int64_t>>> ranges;
  for (const tgl::ValueExpr &subscript : window.subscripts) {
    ranges.push_back(tileRangeOf(subscript));
    first.push_back(e.emitIndex(subscript));
    // Comparisons of 32 bits are one instruction.
    if (ranges.back() && ranges.back()->first > -longest && ranges.back()->second < longest &&
        window.dims[first.size() - 1] < longest)
      first.back() = b.CreateTrunc(first.back(), b.getInt32Ty());
  }
  Value *start =
      b.CreateGEP(raw, buffer.pointer, e.emitIndex(tgl::elementOffset(type, window.subscripts)));
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
  mlir::Value across = e.statement.getAxes()[e.pointTile.axis],
              along = e.statement.getAxes()[e.pointTile.along];
  int64_t off = 0, vector = windowVector(window, off);
  for (const Piece &piece : piecesOf(window, window.steps.lookup(across), e.pointTile.points,
                                     window.steps.lookup(along), e.pointTile.wide, vector, off)) {
    Value *exists = nullptr;
    int64_t place = 0;
    for (size_t dim = 0; dim < rank; ++dim) {
      exists = e.emitAnd(exists, isInside(dim, piece.place[dim]));
      place += piece.place[dim] * window.strides[dim];
    }
    Type *loaded = piece.width > 1 ? FixedVectorType::get(raw, piece.width) : raw;
    auto load = [&] {
      LoadInst *load = b.CreateAlignedLoad(loaded, b.CreateGEP(raw, start, e.i64(place)),
                                           Align(piece.width * raw->getScalarSizeInBits() / 8));
      e.describeAccess(load, buffer);
      // LLVM would load a vector's elements one by one where few of them are needed.
      Value *whole = piece.width > 1 ? b.CreateFreeze(load) : load;
      SmallVector<Value *> elements;
      for (unsigned lane = 0; lane < piece.width; ++lane)
        elements.push_back(e.decode(piece.width > 1 ? b.CreateExtractElement(whole, lane) : whole,
                                    type.getElementType()));
      return elements;
    };
    // What no point that exists reads may be anything: 0.
    SmallVector<Value *> others(fill ? piece.width : 0, fill ? e.valueOf(fill) : nullptr);
    SmallVector<Value *> elements = exists ? e.emitIfElse(exists, load, others) : load();
    for (unsigned lane = 0; lane < piece.width; ++lane) {
      SmallVector<int64_t> at = piece.place;
      at.back() += lane;
      windowElements[{window.read, at}] = elements[lane];
    }
  }
}

/// An element of a window that is loaded, or a result that is stored with its neighbours.
bool WindowTiles::emitInTile(mlir::Operation *op) {
  if (!e.inWindows || windowReads.empty())
    return false;
  if (auto write = dyn_cast<tgl::WriteOp>(op); write && e.pointTile.wide > 1) {
    mlir::Type element = write.getTensorType().getElementType();
    results.push_back(e.encode(e.valueOf(write.getValue()), element));
    if (results.size() < e.pointTile.wide)
      return true;
    e.values[e.statement.getAxes()[e.pointTile.along]] = windowFirst;
    Value *vector = PoisonValue::get(FixedVectorType::get(results[0]->getType(), e.pointTile.wide));
    for (auto [lane, value] : enumerate(results))
      vector = b.CreateInsertElement(vector, value, lane);
    results.clear();
    auto store = [&] { storeVector(e, write, vector); };
    e.writes ? e.emitIf(e.writes, store) : store();
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
    move(own, cast<ConstantInt>(e.values[own])->getSExtValue());
  move(e.statement.getAxes()[e.pointTile.axis], windowPoint.first);
  move(e.statement.getAxes()[e.pointTile.along], windowPoint.second);
  e.values[window->read.getResult()] = windowElements.at({op, place});
  return true;
}

/// The points of a tile, whose first one the axes are at.
void WindowTiles::emitTile(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value across = op.getAxes()[e.pointTile.axis], along = op.getAxes()[e.pointTile.along];
  Value *top = e.values[across], *high = e.emitIndex(e.highOf(axes, e.pointTile.axis));
  windowFirst = e.values[along];
  windowElements.clear();
  for (Window &window : windowReads) {
    loadWindow(window);
    e.insideReads.insert(window.read);
  }
  e.inWindows = true;
  bool isPartial = *tgl::knownPoints(axes, {e.pointTile.axis}) % e.pointTile.points;
  for (unsigned i = 0; i < e.pointTile.points; ++i) {
    Value *line = e.pointTile.points > 1 ? b.CreateNSWAdd(top, e.i64(i)) : top;
    if (isPartial && i) {
      e.writes = b.CreateICmpSLT(line, high);
      line = b.CreateBinaryIntrinsic(Intrinsic::smin, line, b.CreateNSWSub(high, e.i64(1)));
    }
    for (unsigned j = 0; j < e.pointTile.wide; ++j) {
      if (e.pointTile.points > 1)
        e.values[across] = line;
      e.values[along] = e.pointTile.wide > 1 ? b.CreateNSWAdd(windowFirst, e.i64(j)) : windowFirst;
      windowPoint = {i, j};
      e.emitBlock(op.getBody().front());
    }
  }
  e.writes = nullptr;
  e.inWindows = false;
  e.insideReads.clear();
}
