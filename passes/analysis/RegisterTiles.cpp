//===- RegisterTiles.cpp - Points that a thread computes together ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/RegisterTiles.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <set>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static constexpr int64_t threadsOfWarp = 32, vectorBytes = 16, lineBytes = 128, bankBytes = 4;
/// Terms that a step of a sum's loop takes (codegen/simt/PointTiles.cpp).
static constexpr int64_t sumStep = 4;
/// Terms that one accumulator takes: longer sums are added up in parts.
static constexpr int64_t mostTerms = 256;
/// Values of a thread: accumulators, and those with the elements that it has loaded for a term.
static constexpr int64_t mostAccumulators = 64, mostValues = 96;

TglTensorType tegula::typeOfSharedRows(TglTensorType type) {
  std::optional<int64_t> row =
      type.getRank() < 2 ? std::nullopt : type.getDims().back().getExpr().asConstant();
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  if (!row || *row < 1 || bits < 8 || *row * bits / 8 % lineBytes)
    return type;
  SmallVector<IndexExprAttr> dims(type.getDims());
  dims.back() = IndexExprAttr::get(type.getContext(), IndexExpr(*row + vectorBytes * 8 / bits));
  return TglTensorType::get(type.getContext(), dims, type.getElementType());
}

std::optional<int64_t> tegula::teamOf(ParallelOp statement) {
  auto team = statement->getAttrOfType<IntegerAttr>(teamAttrName);
  return team ? std::optional(team.getInt()) : std::nullopt;
}

namespace {
/// An access of the nest, by the steps that neighbours along its axes are apart.
struct TileAccess {
  SmallVector<std::optional<int64_t>> steps; ///< in elements; nothing: it differs
  int64_t bytes = 4;                         ///< of an element
  bool isShared = false;                     ///< in shared memory, with its banks
  bool isNarrow = false;                     ///< converted when it is loaded
  bool isOfPoint = false;                    ///< teams with other points have other elements
  int64_t terms = 1;                         ///< neighbours along a sum, which are one access
};

struct TileReduce {
  double terms = 1, instructions = 1; ///< instructions for a term of one point
  SmallVector<TileAccess> reads;      ///< those that vary from term to term
};

/// What a thread does at a point of a nest.
struct TileNest {
  SmallVector<int64_t> extents;    ///< by inner axis
  SmallVector<bool> canBeLane;     ///< by inner axis
  SmallVector<bool> hasNeighbours; ///< by inner axis: elements that sums read lie side by side
  SmallVector<TileReduce> reduces;
  SmallVector<TileAccess> accesses; ///< of the point itself
  double instructions = 0;          ///< of the point itself
  bool isInPlace = false;           ///< it writes what it reads

  static std::optional<TileNest> of(AxesOp op, ArrayRef<unsigned> inner);
  double clocks(const RegisterTile &tile, int64_t team) const;
  bool fits(const RegisterTile &tile) const;

private:
  /// Elements that sums have read, and the first sum, whose axes stand for those of sums over the
  /// same.
  SmallVector<std::pair<Value, ValueExpr>> known;
  ReduceOp firstReduce;

  bool isNew(ReadOp read, ReduceOp reduce);
  bool add(Operation &op, AxesOp nest, ArrayRef<unsigned> inner);
  bool addReduce(ReduceOp reduce, AxesOp nest, ArrayRef<unsigned> inner);
  TileAccess accessOf(Value tensor, TglTensorType type, ArrayRef<ValueExpr> subscripts, AxesOp nest,
                      ArrayRef<unsigned> inner);
};
} // namespace

//===----------------------------------------------------------------------===//
// What a nest does
//===----------------------------------------------------------------------===//

static bool isPlainRead(ReadOp read) {
  return !read.getFill() && !read.getChecked() && read.getExactNumerators().empty() &&
         read.getTensorType().getElementType().getIntOrFloatBitWidth() >= 8;
}

static bool isPlainWrite(WriteOp write) {
  return !write.getCombine() && !write.getChecked() &&
         write.getTensorType().getElementType().getIntOrFloatBitWidth() >= 8;
}

static double instructionsOf(Operation *op) {
  constexpr double elementary = 16;
  if (isa<arith::ConstantOp, arith::IndexCastOp, YieldOp>(op))
    return 0;
  return isa<math::MathDialect>(op->getDialect()) ? elementary : 1;
}

TileAccess TileNest::accessOf(Value tensor, TglTensorType type, ArrayRef<ValueExpr> subscripts,
                              AxesOp nest, ArrayRef<unsigned> inner) {
  TileAccess access;
  access.isShared = tensor.getDefiningOp<TempOp>() != nullptr;
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  access.bytes = bits / 8;
  access.isNarrow = bits < 32;
  ValueExpr offset = elementOffset(access.isShared ? typeOfSharedRows(type) : type, subscripts);
  access.isOfPoint = llvm::any_of(offset.operands(), [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    Operation *owner = argument ? argument.getOwner()->getParentOp() : nullptr;
    bool isInner =
        owner == nest.getOperation() && llvm::is_contained(inner, argument.getArgNumber());
    return !isInner && !(owner && nest->isProperAncestor(owner));
  });
  for (auto [number, axis] : llvm::enumerate(inner)) {
    access.steps.push_back(stepAlong(offset, nest.getAxes()[axis]));
    // Elements that are apart are no vector.
    canBeLane[number] = canBeLane[number] && access.steps.back() &&
                        (*access.steps.back() == 0 || *access.steps.back() == 1);
  }
  return access;
}

/// Neighbouring terms of a sum that are neighbours in memory, and begin at whole vectors.
static int64_t termsAtOnce(const TileAccess &access, ReadOp read, ReduceOp reduce) {
  auto axes = cast<AxesOp>(reduce.getOperation());
  unsigned last = axes.getAxes().size() - 1;
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  int64_t terms = std::min(sumStep, vectorBytes / access.bytes);
  bool areWhole =
      *knownPoints(axes, {last}) % terms == 0 && stepAlong(offset, axes.getAxes()[last]) == 1 &&
      llvm::all_of(access.steps,
                   [&](std::optional<int64_t> step) { return step && *step % terms == 0; });
  return areWhole ? terms : 1;
}

/// Whether no sum over the same axes reads the element before: a tile walks them together.
bool TileNest::isNew(ReadOp read, ReduceOp reduce) {
  if (!firstReduce)
    firstReduce = reduce;
  auto ranges = [](ReduceOp op) { return getAxisRanges(cast<AxesOp>(op.getOperation())); };
  bool isAlike = llvm::equal(ranges(firstReduce), ranges(reduce),
                             [](const AxisRange &one, const AxisRange &other) {
                               return one.lo == other.lo && one.hi == other.hi;
                             });
  if (!isAlike)
    return true;
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  std::pair<Value, ValueExpr> element{
      read.getTensor(), offset.substitute([&](Value value) -> std::optional<ValueExpr> {
        for (auto [own, first] : llvm::zip_equal(reduce.getAxes(), firstReduce.getAxes()))
          if (value == own)
            return ValueExpr(Value(first));
        return std::nullopt;
      })};
  if (llvm::is_contained(known, element))
    return false;
  known.push_back(std::move(element));
  return true;
}

/// Whether neighbouring points of the nest read some of the same elements, each with another term:
/// windows, of which a thread has tiles of its own kind (codegen/simt/WindowTiles.h).
static bool readsWindow(ReadOp read, ReduceOp reduce, AxesOp nest) {
  auto extentOf = [](AxesOp op, unsigned axis) {
    AxisRange range = getAxisRange(op, axis);
    return (range.hi - range.lo).asConstant().value_or(1);
  };
  auto terms = cast<AxesOp>(reduce.getOperation());
  for (const ValueExpr &subscript : read.getSubscriptExprs())
    for (auto [number, point] : llvm::enumerate(nest.getAxes()))
      for (auto [summed, term] : llvm::enumerate(terms.getAxes())) {
        if (!subscript.uses(point) || !subscript.uses(term))
          continue;
        std::optional<int64_t> step = stepAlong(subscript, point), own = stepAlong(subscript, term);
        if (!step || !own ||
            (std::abs(*step) < std::abs(*own) * extentOf(terms, summed) &&
             std::abs(*own) < std::abs(*step) * extentOf(nest, number)))
          return true;
      }
  return false;
}

bool TileNest::addReduce(ReduceOp reduce, AxesOp nest, ArrayRef<unsigned> inner) {
  auto axes = cast<AxesOp>(reduce.getOperation());
  std::optional<int64_t> terms = knownPoints(axes);
  bool isKind = llvm::is_contained(
      {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}, reduce.getKind());
  if (!isKind || !terms || *terms < 1 || *terms > mostTerms || axes.getAxes().empty() ||
      llvm::any_of(getAxisRanges(axes), [](const AxisRange &range) {
        return !range.lo.asConstant() || !range.hi.asConstant();
      }))
    return false;
  TileReduce own;
  own.terms = double(*terms);
  double products = 0, others = 0;
  for (Operation &op : reduce.getBody().front()) {
    auto read = dyn_cast<ReadOp>(op);
    if (op.getNumRegions() || (read && (!isPlainRead(read) || readsWindow(read, reduce, nest))) ||
        (!read && !isMemoryEffectFree(&op)))
      return false;
    if (!read) {
      (isa<arith::MulFOp, arith::MulIOp>(op) ? products : others) +=
          isa<arith::AddFOp, arith::SubFOp>(op) ? 0 : instructionsOf(&op);
      continue;
    }
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    TileAccess access = accessOf(read.getTensor(), read.getTensorType(), subscripts, nest, inner);
    for (auto [number, step] : llvm::enumerate(access.steps))
      hasNeighbours[number] = hasNeighbours[number] || step == 1;
    access.terms = termsAtOnce(access, read, reduce);
    if (isNew(read, reduce) && llvm::any_of(subscripts, [&](const ValueExpr &subscript) {
          return llvm::any_of(reduce.getAxes(), [&](Value axis) { return subscript.uses(axis); });
        }))
      own.reads.push_back(std::move(access));
  }
  own.instructions = std::max(products, 1.0) + others;
  reduces.push_back(std::move(own));
  return true;
}

bool TileNest::add(Operation &op, AxesOp nest, ArrayRef<unsigned> inner) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return addReduce(reduce, nest, inner);
  if (auto read = dyn_cast<ReadOp>(op)) {
    accesses.push_back(
        accessOf(read.getTensor(), read.getTensorType(), read.getSubscriptExprs(), nest, inner));
    return isPlainRead(read);
  }
  if (auto write = dyn_cast<WriteOp>(op)) {
    accesses.push_back(
        accessOf(write.getTensor(), write.getTensorType(), write.getSubscriptExprs(), nest, inner));
    return isPlainWrite(write);
  }
  instructions += instructionsOf(&op);
  return !op.getNumRegions() && isMemoryEffectFree(&op);
}

std::optional<TileNest> TileNest::of(AxesOp op, ArrayRef<unsigned> inner) {
  constexpr size_t mostAxes = 4;
  if (inner.size() > mostAxes)
    return std::nullopt;
  TileNest nest;
  for (unsigned axis : inner) {
    AxisRange range = getAxisRange(op, axis);
    std::optional<int64_t> low = range.lo.asConstant(), high = range.hi.asConstant();
    if (!low || !high || *high <= *low)
      return std::nullopt;
    nest.extents.push_back(*high - *low);
  }
  nest.canBeLane.assign(inner.size(), true);
  nest.hasNeighbours.assign(inner.size(), false);
  for (Operation &nested : *op.getAxesBlock())
    if (!nest.add(nested, op, inner))
      return std::nullopt;
  Accesses all = accessesOf(op);
  nest.isInPlace =
      llvm::any_of(all.writes, [&](Value tensor) { return all.reads.contains(tensor); });
  return nest;
}

//===----------------------------------------------------------------------===//
// What a tile takes
//===----------------------------------------------------------------------===//

/// Clocks that memory near the threads takes for an access of a warp whose threads take tiles one
/// after another, the lane axis fastest, then the last axis.
static double turnsOf(const TileAccess &access, ArrayRef<int64_t> extents, const RegisterTile &tile,
                      int64_t team) {
  SmallVector<unsigned> order;
  if (tile.lane)
    order.push_back(*tile.lane);
  for (unsigned axis = extents.size(); axis-- > 0;)
    if (axis != tile.lane)
      order.push_back(axis);
  bool isVector = tile.lane && access.steps[*tile.lane] == 1;
  int64_t size = access.bytes * (isVector ? tile.points[*tile.lane] : access.terms);
  std::set<int64_t> places, lines;
  for (int64_t thread = 0; thread < std::min(threadsOfWarp, team); ++thread) {
    int64_t number = thread, place = 0;
    for (unsigned axis : order) {
      int64_t tiles = llvm::divideCeil(extents[axis], tile.points[axis]), digit = number % tiles;
      number /= tiles;
      bool isTogether = tile.lane == axis || tile.sideBySide[axis];
      place += digit * (isTogether ? tile.points[axis] : 1) *
               access.steps[axis].value_or(lineBytes) * access.bytes;
    }
    if (number > 0)
      break; // there are no more tiles
    places.insert(place);
    lines.insert(llvm::divideFloorSigned(place, lineBytes));
  }
  // Each thread gets its own copy, a word of all of them in a clock.
  double whole = std::max(1.0, double(size) / bankBytes);
  // Teams that share a warp lie in other banks, but in other lines too.
  double teams = access.isOfPoint ? std::max(1.0, double(threadsOfWarp) / double(team)) : 1;
  if (!access.isShared)
    return std::max(whole, double(lines.size()) * teams);
  std::map<int64_t, double> banks;
  int64_t unit = std::max(size, bankBytes);
  for (int64_t place : places)
    banks[llvm::divideFloorSigned(place, unit) % (lineBytes / unit)] += size >= bankBytes;
  for (auto &[bank, times] : banks)
    whole = std::max(whole, times);
  return whole;
}

/// Accesses of a thread for its tile: one for points that read the same, one for a vector.
static double timesOf(const TileAccess &access, const RegisterTile &tile) {
  double times = 1;
  for (auto [axis, step] : llvm::enumerate(access.steps))
    if (step != 0 && axis != tile.lane)
      times *= double(tile.points[axis]);
  return times;
}

static double pointsOf(const RegisterTile &tile) {
  double points = 1;
  for (int64_t own : tile.points)
    points *= double(own);
  return points;
}

bool TileNest::fits(const RegisterTile &tile) const {
  double accumulators = pointsOf(tile) * double(reduces.size()), most = 0;
  for (const TileReduce &reduce : reduces) {
    double loaded = 0;
    for (const TileAccess &read : reduce.reads)
      loaded += timesOf(read, tile) * double(read.terms) *
                double(tile.lane && read.steps[*tile.lane] != 0 ? tile.points[*tile.lane] : 1);
    most = std::max(most, loaded);
  }
  return accumulators <= mostAccumulators && accumulators + most <= mostValues;
}

double TileNest::clocks(const RegisterTile &tile, int64_t team) const {
  // Instructions of warps, and accesses of one, in a clock; addresses take one for two of these.
  constexpr double warpsPerClock = 4, ofAddress = 0.5, overlap = 0.5;
  double points = pointsOf(tile), tiles = 1;
  for (auto [extent, own] : llvm::zip_equal(extents, tile.points))
    tiles *= double(llvm::divideCeil(extent, own));
  double lanes = 0, memory = 0;
  auto add = [&](const TileAccess &access, double runs) {
    double times = timesOf(access, tile) * runs / double(access.terms);
    memory += times * turnsOf(access, extents, tile, team);
    bool isVector = tile.lane && access.steps[*tile.lane] != 0;
    lanes += times * (1 + ofAddress +
                      (access.isNarrow ? double(isVector ? tile.points[*tile.lane] : 1) : 0));
  };
  for (const TileReduce &reduce : reduces) {
    lanes += reduce.terms * points * reduce.instructions;
    for (const TileAccess &read : reduce.reads)
      add(read, reduce.terms);
  }
  for (const TileAccess &access : accesses)
    add(access, 1);
  lanes = (lanes + instructions * points) / warpsPerClock;
  double each = std::max(lanes, memory) + overlap * std::min(lanes, memory);
  double rounds = std::ceil(tiles / double(team));
  return each * rounds * double(team) / threadsOfWarp;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Calls `visit` with all tiles that a lane allows.
static void forTiles(const TileNest &nest, std::optional<unsigned> lane,
                     llvm::function_ref<void(RegisterTile &)> visit) {
  RegisterTile tile;
  tile.lane = lane;
  unsigned numAxes = nest.extents.size();
  tile.points.assign(numAxes, 1);
  tile.sideBySide.assign(numAxes, false);
  auto choose = [&](auto &self, unsigned axis) -> void {
    if (axis == numAxes)
      return visit(tile);
    constexpr int64_t most = 8;
    for (int64_t points = 1; points <= std::min(most, nest.extents[axis]); points *= 2) {
      bool isWhole = nest.extents[axis] % points == 0;
      if (lane == axis && (points == 1 || points > 4 || !isWhole))
        continue;
      if (nest.isInPlace && !isWhole) // a point that is repeated reads what another thread writes
        continue;
      tile.points[axis] = points;
      tile.sideBySide[axis] = isWhole && points > 1 && nest.hasNeighbours[axis];
      self(self, axis + 1);
    }
  };
  choose(choose, 0);
}

static std::optional<RegisterTile> choose(const TileNest &nest, int64_t team, bool shares) {
  std::optional<RegisterTile> best;
  auto consider = [&](RegisterTile &tile) {
    if (!nest.fits(tile))
      return;
    for (auto [axis, points] : llvm::enumerate(tile.points))
      if (!shares && axis != tile.lane && points > 1)
        return;
    tile.clocks = nest.clocks(tile, team);
    tile.accumulators = int64_t(pointsOf(tile)) * int64_t(nest.reduces.size());
    if (!best || tile.clocks < best->clocks)
      best = tile;
  };
  forTiles(nest, std::nullopt, consider);
  for (unsigned axis = 0; axis < nest.extents.size(); ++axis)
    if (nest.canBeLane[axis])
      forTiles(nest, axis, consider);
  return best;
}

std::optional<RegisterTile> tegula::chooseRegisterTile(AxesOp op, ArrayRef<unsigned> inner,
                                                       int64_t team) {
  std::optional<TileNest> nest = TileNest::of(op, inner);
  bool shares = nest && llvm::any_of(nest->reduces, [](const TileReduce &reduce) {
                  return llvm::any_of(reduce.reads, [](const TileAccess &read) {
                    return llvm::is_contained(read.steps, std::optional<int64_t>(0));
                  });
                });
  return shares ? choose(*nest, team, true) : std::nullopt;
}

std::optional<RegisterTile> tegula::chooseRegisterTile(ParallelOp nest, int64_t team) {
  auto op = cast<AxesOp>(nest.getOperation());
  return chooseRegisterTile(op, llvm::to_vector(llvm::seq<unsigned>(0, op.getAxes().size())), team);
}

std::optional<double> tegula::clocksWithoutTile(AxesOp op, ArrayRef<unsigned> inner, int64_t team) {
  std::optional<TileNest> nest = TileNest::of(op, inner);
  if (!nest)
    return std::nullopt;
  std::optional<RegisterTile> tile = choose(*nest, team, false);
  return tile ? std::optional(tile->clocks) : std::nullopt;
}

std::optional<RegisterTile> tegula::registerTileOf(ParallelOp nest) {
  auto points = nest->getAttrOfType<DenseI64ArrayAttr>(pointTileAttrName);
  if (!points)
    return std::nullopt;
  auto op = cast<AxesOp>(nest.getOperation());
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, op.getAxes().size()));
  std::optional<TileNest> own = TileNest::of(op, all);
  if (!own || points.size() != int64_t(all.size()))
    return std::nullopt;
  RegisterTile tile;
  SmallVector<StringRef> words;
  if (auto mapping = nest.getMappingAttr())
    mapping.getValue().split(words, ',');
  for (auto [axis, extent] : llvm::enumerate(own->extents)) {
    int64_t count = points[axis];
    if (count < 1 || count > extent)
      return std::nullopt;
    tile.points.push_back(count);
    if (axis < words.size() && words[axis] == "vector") {
      if (!own->canBeLane[axis] || count < 2 || extent % count)
        return std::nullopt;
      tile.lane = axis;
    }
    tile.sideBySide.push_back(count > 1 && extent % count == 0 && own->hasNeighbours[axis]);
  }
  return tile;
}
