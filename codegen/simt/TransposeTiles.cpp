//===- TransposeTiles.cpp - Register-tiled transposes ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In `y[j, i] = x[i, j]` neighbours of what is written are far apart in what is read. A thread
// takes a square of 4 x 4 such points (8 x 8 of 16 bits): it reads vectors along j, takes from each
// the element of a point, and writes vectors along i. The threads of a warp are 8 along i and 4
// along j, so that both sides touch whole sectors of 32 bytes.
//
// Where a statement writes in both orders, as `y[i, j] = q; t[j, i] = q` does, the square's
// elements of t stay in registers until all are there, and are written in vectors along i.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/TransposeTiles.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/Accesses.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

TransposeTiles::TransposeTiles(DeviceEmitter &e) : e(e), b(e.b) {}

/// Threads of a warp along what is written; the others lie along what is read.
static constexpr int64_t threadsAcross = 8, threadsAlong = 4;
/// Of fewer squares a large GPU is not busy.
static constexpr int64_t minTransposeTiles = 32768;
/// Reads whose vectors a thread holds at a time.
static constexpr size_t maxReads = 2;

/// Writes whose elements a thread keeps until its square is full.
static constexpr size_t maxWrites = 2;

namespace {
/// An access in a statement, and how its elements lie.
struct TileAccess {
  mlir::Operation *op;
  tgl::TglTensorType type;
  tgl::ValueExpr offset;

  bool isWrite() const { return isa<tgl::WriteOp>(op); }
  std::optional<int64_t> stepAlong(mlir::Value axis) const { return tgl::stepAlong(offset, axis); }
  /// Whether vectors along the axis are as they are in memory, or one element for all.
  bool isStraight(mlir::Value axis) const {
    std::optional<int64_t> step = stepAlong(axis);
    return step == 1 || (step == 0 && !isWrite());
  }
};
} // namespace

/// All accesses of the statement; nothing where it has more than values, or elements that may not
/// exist.
static std::optional<SmallVector<TileAccess>> plainAccesses(tgl::ParallelOp op) {
  tgl::Accesses accesses = tgl::accessesOf(op);
  SmallVector<TileAccess> found;
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions())
      return std::nullopt;
    if (auto read = dyn_cast<tgl::ReadOp>(inside)) {
      if (read.getFill() || read.getGuard() || read.getChecked() || !read.getExactExprs().empty() ||
          accesses.writes.contains(read.getTensor()))
        return std::nullopt;
      found.push_back({read, read.getTensorType(),
                       tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs())});
    } else if (auto write = dyn_cast<tgl::WriteOp>(inside)) {
      if (write.getCombine() || write.getGuard() || write.getChecked())
        return std::nullopt;
      found.push_back({write, write.getTensorType(),
                       tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs())});
    }
  }
  return found;
}

/// The accesses that turn a tile of points along both axes: those whose vectors lie along the other
/// axis than the tile's. Nothing where a thread cannot take such a tile.
static std::optional<SmallVector<TileAccess>>
turnedAccesses(ArrayRef<TileAccess> accesses, mlir::Value across, mlir::Value along) {
  SmallVector<TileAccess> turned;
  bool hasStraightWrite = false;
  for (const TileAccess &access : accesses) {
    if (!access.stepAlong(across) || !access.stepAlong(along))
      return std::nullopt;
    if (access.isStraight(across)) {
      hasStraightWrite |= access.isWrite();
      continue;
    }
    bool isChosen = any_of(access.offset.operands(),
                           [](mlir::Value operand) { return operand.getDefiningOp(); });
    if (access.stepAlong(along) != 1 || isChosen)
      return std::nullopt;
    turned.push_back(access);
  }
  size_t writes = count_if(turned, [](const TileAccess &access) { return access.isWrite(); });
  if (!hasStraightWrite || turned.empty() || writes > maxWrites ||
      turned.size() - writes > maxReads)
    return std::nullopt;
  return turned;
}

/// Points of a square's side: as many as a vector of 16 bytes has of the widest elements that are
/// turned or written. Nothing where no vectors of them are taken.
static std::optional<unsigned> sideOf(ArrayRef<TileAccess> accesses, ArrayRef<TileAccess> turned) {
  int64_t widest = 0;
  for (const TileAccess &access : accesses) {
    bool isTurned = any_of(turned, [&](const TileAccess &one) { return one.op == access.op; });
    if (!isTurned && !access.isWrite())
      continue;
    mlir::Type element = access.type.getElementType();
    if (isPacked(element) || element.isInteger(1))
      return std::nullopt;
    widest = std::max<int64_t>(widest, storageBytes(element));
  }
  if (widest != 2 && widest != 4)
    return std::nullopt;
  return DeviceEmitter::accessBytes / widest;
}

std::optional<TransposeTile> tegula::chooseTransposeTile(tgl::ParallelOp op) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  std::optional<int64_t> points = tgl::knownPoints(nest);
  std::optional<SmallVector<TileAccess>> accesses = plainAccesses(op);
  if (!points || !accesses)
    return std::nullopt;
  std::optional<TransposeTile> best;
  for (auto [across, acrossAxis] : enumerate(op.getAxes()))
    for (auto [along, alongAxis] : enumerate(op.getAxes())) {
      std::optional<SmallVector<TileAccess>> turned;
      if (across != along)
        turned = turnedAccesses(*accesses, acrossAxis, alongAxis);
      std::optional<unsigned> side = turned ? sideOf(*accesses, *turned) : std::nullopt;
      if (!side || *tgl::knownPoints(nest, unsigned(across)) % *side ||
          *tgl::knownPoints(nest, unsigned(along)) % *side ||
          *points < minTransposeTiles * int64_t(*side) * *side ||
          (best && best->turned.size() <= turned->size()))
        continue;
      best = TransposeTile{unsigned(across), unsigned(along), *side, {}};
      for (const TileAccess &access : *turned)
        best->turned.push_back(access.op);
    }
  return best;
}

void TransposeTiles::plan(tgl::ParallelOp op, SmallVectorImpl<unsigned> &outer,
                          std::optional<LaneChoice> &lane, Raster &raster) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  if (lane || e.options.checked || outer.size() != nest.getAxes().size())
    return;
  std::optional<TransposeTile> tile = chooseTransposeTile(op);
  if (!tile)
    return;
  across = tile->across;
  for (mlir::Operation *access : tile->turned)
    (isa<tgl::WriteOp>(access) ? columns : rows)[access] = {};
  lane = LaneChoice{across, tile->side, 1};
  e.pointTile = {tile->along, tile->side};
  llvm::erase(outer, tile->across);
  llvm::erase(outer, tile->along);
  outer.append({tile->along, tile->across});
  int64_t vectors = *tgl::knownPoints(nest, tile->across) / tile->side, repeats = threadsAlong,
          chunk = threadsAcross;
  while (*tgl::knownPoints(nest, tile->along) / tile->side % repeats)
    repeats /= 2;
  while (vectors % chunk)
    chunk /= 2;
  raster = {repeats, vectors, chunk};
}

/// The points of a thread's square; vectors of lanes are along what is written, at the first of the
/// other axis.
void TransposeTiles::emit(tgl::ParallelOp op) {
  mlir::Value across = op.getAxes()[this->across], along = op.getAxes()[e.pointTile.axis];
  Emitter::Lanes own = *e.lanes;
  Value *places = e.values[across], *first = e.values[along];
  e.lanes.reset();
  for (mlir::Operation &inside : op.getBody().front()) {
    auto found = rows.find(&inside);
    if (found == rows.end())
      continue;
    auto read = cast<tgl::ReadOp>(inside);
    found->second.clear();
    for (unsigned lane = 0; lane < own.width; ++lane) {
      e.values[across] = b.CreateNSWAdd(own.base, e.i64(lane));
      e.withLanes(along, e.pointTile.points, first, nullptr, [&] {
        found->second.push_back(
            e.loadRaw(e.buffers.find(read.getTensor())->second, read.getSubscriptExprs(), nullptr));
      });
    }
  }
  e.lanes = own;
  e.values[across] = places;
  for (point = 0; point < int64_t(e.pointTile.points); ++point) {
    e.values[along] = b.CreateNSWAdd(first, e.i64(point));
    e.emitBlock(op.getBody().front());
  }
  point = -1;
  for (mlir::Operation &inside : op.getBody().front())
    if (auto found = columns.find(&inside); found != columns.end())
      storeColumns(cast<tgl::WriteOp>(inside), std::exchange(found->second, {}), along, first);
  e.lanes = own;
  e.values[across] = places;
}

/// Writes what the points of a square have kept: a vector along the other axis for each lane.
void TransposeTiles::storeColumns(tgl::WriteOp write, ArrayRef<Value *> kept, mlir::Value along,
                                  Value *first) {
  mlir::Value across = write->getParentOfType<tgl::ParallelOp>().getAxes()[this->across];
  Emitter::Lanes own = *std::exchange(e.lanes, std::nullopt);
  const Emitter::Buffer &buffer = e.buffers.find(write.getTensor())->second;
  Type *element = cast<VectorType>(kept.front()->getType())->getElementType();
  for (unsigned lane = 0; lane < own.width; ++lane) {
    Value *vector = PoisonValue::get(FixedVectorType::get(element, kept.size()));
    for (auto [place, row] : enumerate(kept))
      vector = b.CreateInsertElement(vector, b.CreateExtractElement(row, uint64_t(lane)),
                                     uint64_t(place));
    e.values[across] = b.CreateNSWAdd(own.base, e.i64(lane));
    e.withLanes(along, kept.size(), first, nullptr,
                [&] { e.storeRaw(buffer, write.getSubscriptExprs(), vector, nullptr); });
  }
  e.lanes = own;
}

bool TransposeTiles::emitIn(mlir::Operation *op) {
  if (auto write = point < 0 ? columns.end() : columns.find(op); write != columns.end()) {
    auto op = cast<tgl::WriteOp>(write->first);
    write->second.push_back(
        e.splat(emitRaw(e, op.getValue(), op.getTensorType().getElementType())));
    return true;
  }
  auto found = point < 0 ? rows.end() : rows.find(op);
  if (found == rows.end())
    return false;
  auto read = cast<tgl::ReadOp>(op);
  Type *element = cast<VectorType>(found->second.front()->getType())->getElementType();
  Value *vector = PoisonValue::get(FixedVectorType::get(element, found->second.size()));
  for (auto [lane, row] : enumerate(found->second))
    vector = b.CreateInsertElement(vector, b.CreateExtractElement(row, point), uint64_t(lane));
  e.values[read.getResult()] = e.decode(vector, read.getTensorType().getElementType());
  return true;
}
