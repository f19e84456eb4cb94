//===- TileReductions.cpp - Plans partial reductions in the epilogue ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/TileReductions.h"

#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/plan/WindowOperand.h"
#include <numeric>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static tgl::AxesOp axesOf(const ContractionPlan &plan) {
  return cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
}

SmallVector<tgl::WriteOp> tegula::partialWrites(tgl::ParallelOp op) {
  return to_vector(make_filter_range(op.getBody().getOps<tgl::WriteOp>(), [](tgl::WriteOp write) {
    return write->hasAttr(partialAttrName);
  }));
}

SmallVector<int64_t> tegula::paddedColumns(const ContractionPlan &plan,
                                           ArrayRef<ProductOperands> products,
                                           const TensorTile &tile, bool hasWgmma) {
  if (!tile.halo || !hasWgmma || products.size() != 1)
    return {};
  tgl::ReduceOp reduce = plan.products.front().reduce;
  PrepackedProduct prepacked = planPrepackedProduct(products.front(), reduce);
  std::optional<HaloTile> halo;
  if (prepacked.b)
    halo = planHaloTile(*prepacked.b, products.front().b.read, reduce, axesOf(plan), plan.columns);
  return halo ? SmallVector<int64_t>(halo->extents) : SmallVector<int64_t>();
}

namespace {
/// Lines of one group of axes, being taken apart.
struct Group {
  ReducedLines lines;
  ValueExpr before = ValueExpr(int64_t(0)), reduced = ValueExpr(int64_t(0)); ///< numbers of b and m

  ValueExpr line() const {
    return before * ValueExpr(lines.reduced) + reduced;
  } ///< where `after` is 1
};
} // namespace

/// Nothing where reduced axes are not side by side. Of the last axes `counted` are the extents that
/// they are counted by.
static std::optional<Group> takeApart(tgl::AxesOp axes, ArrayRef<unsigned> group,
                                      const BitVector &isReduced, ArrayRef<int64_t> counted) {
  Group result;
  ReducedLines &lines = result.lines;
  unsigned uncounted = group.size() - counted.size();
  for (auto [place, axis] : enumerate(group)) {
    std::optional<int64_t> known = tgl::knownPoints(axes, {axis});
    if (!known || *known < 1 || tgl::getAxisRange(axes, axis).lo.asConstant() != 0)
      return std::nullopt;
    int64_t extent = place >= uncounted ? counted[place - uncounted] : *known;
    ValueExpr value{mlir::Value(axes.getAxes()[axis])};
    if (isReduced[axis]) {
      if (lines.after != 1)
        return std::nullopt;
      lines.reducedAxes.push_back(axis);
      result.reduced = result.reduced * ValueExpr(extent) + value;
      lines.reduced *= extent;
    } else if (lines.isReduced()) {
      lines.after *= extent;
    } else {
      result.before = result.before * ValueExpr(extent) + value;
      lines.before *= extent;
    }
  }
  return result;
}

/// Parts have at most `length` reduced rows: several threads then have something to do.
static bool planRows(Group &group, int64_t extent, int64_t length) {
  ReducedLines &rows = group.lines;
  rows.number = ValueExpr(int64_t(0));
  if (!rows.isReduced())
    return true;
  int64_t block = rows.reduced * rows.after;
  if (extent % rows.after != 0)
    return false;
  rows.own = extent / rows.after;
  if (rows.before > 1 && extent % block == 0)
    rows.own = rows.reduced; // a tile has whole results
  else if (rows.before > 1 && block % extent != 0)
    return false;
  rows.length = std::min(rows.own, std::max<int64_t>(length, 1));
  if (rows.own % rows.length)
    return false;
  rows.parts = divideCeil(rows.reduced, rows.length);
  if (rows.parts > 1)
    rows.number = ValueExpr::floorDiv(group.reduced, ValueExpr(rows.length));
  return true;
}

static bool planColumns(Group &group, int64_t extent) {
  constexpr int64_t maxSegments = 4;
  ReducedLines &columns = group.lines;
  columns.number = ValueExpr(int64_t(0));
  if (!columns.isReduced())
    return true;
  if (columns.after != 1)
    return false;
  columns.length = extent;
  if (columns.before == 1 || columns.reduced % extent == 0) {
    columns.parts = divideCeil(columns.reduced, extent);
    if (columns.parts > 1)
      columns.number = ValueExpr::floorDiv(group.reduced, ValueExpr(extent));
    return true;
  }
  if (extent % columns.reduced == 0) { // a tile has whole results
    columns.segments = extent / columns.reduced;
    return columns.segments <= maxSegments;
  }
  // A result's lines begin and end in the middle of tiles.
  columns.segments = divideCeil(extent - 1, columns.reduced) + 1;
  columns.parts = (columns.reduced + extent - 2) / extent + 1;
  ValueExpr first =
      ValueExpr::floorDiv(group.before * ValueExpr(columns.reduced), ValueExpr(extent));
  columns.number = ValueExpr::floorDiv(group.line(), ValueExpr(extent)) - first;
  return columns.segments <= maxSegments;
}

std::optional<TileReductions> tegula::planTileReductions(const ContractionPlan &plan,
                                                         const TensorTile &tile,
                                                         const BitVector &reduced,
                                                         ArrayRef<int64_t> counted) {
  tgl::AxesOp axes = axesOf(plan);
  if (tile.splits != 1 || counted.size() > plan.columns.size())
    return std::nullopt;
  std::optional<Group> rows = takeApart(axes, plan.rows, reduced, {}),
                       columns = takeApart(axes, plan.columns, reduced, counted);
  if (!rows || !columns)
    return std::nullopt;
  constexpr int64_t warp = 32;
  if (columns->lines.isReduced() && tile.statementColumns() % warp)
    return std::nullopt;
  // A warp for each part, or a thread for one of a column.
  int64_t columnsAtOnce =
      columns->lines.isReduced() ? warp : std::gcd(tile.statementColumns(), tile.threads());
  int64_t length = tile.rows * columnsAtOnce / tile.threads();
  if (!planRows(*rows, tile.rows, length) || !planColumns(*columns, tile.statementColumns()))
    return std::nullopt;
  TileReductions parts{rows->lines, columns->lines, {}};
  copy_if(plan.batch, std::back_inserter(parts.batch),
          [&](unsigned axis) { return reduced[axis]; });
  if (!parts.rows.isReduced() && !parts.columns.isReduced())
    return std::nullopt;
  return parts;
}

SmallVector<int64_t> TileReductions::reducedAxes() const {
  SmallVector<int64_t> all(batch.begin(), batch.end());
  all.append(rows.reducedAxes.begin(), rows.reducedAxes.end());
  all.append(columns.reducedAxes.begin(), columns.reducedAxes.end());
  llvm::sort(all);
  return all;
}

SmallVector<std::pair<ValueExpr, int64_t>> TileReductions::numbers(tgl::ParallelOp op) const {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<std::pair<ValueExpr, int64_t>> result;
  for (unsigned axis : batch)
    result.push_back(
        {ValueExpr(mlir::Value(axes.getAxes()[axis])), *tgl::knownPoints(axes, {axis})});
  result.push_back({columns.number, columns.parts});
  result.push_back({rows.number, rows.parts});
  return result;
}

std::optional<TileReductions> tegula::tileReductionsOf(tgl::WriteOp write,
                                                       const ContractionPlan &plan,
                                                       const TensorTile &tile,
                                                       ArrayRef<int64_t> counted) {
  tgl::AxesOp axes = axesOf(plan);
  auto reduced = write->getAttrOfType<mlir::DenseI64ArrayAttr>(partialAttrName);
  if (!reduced)
    return std::nullopt;
  BitVector isReduced(axes.getAxes().size());
  for (int64_t axis : reduced.asArrayRef())
    isReduced.set(axis);
  std::optional<TileReductions> parts = planTileReductions(plan, tile, isReduced, counted);
  if (!parts)
    return std::nullopt;
  SmallVector<ValueExpr> subscripts = write.getSubscriptExprs();
  for (auto &[number, extent] : parts->numbers(plan.op))
    if (!is_contained(subscripts, number))
      return std::nullopt;
  return parts;
}
