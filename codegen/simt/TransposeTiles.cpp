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
//===----------------------------------------------------------------------===//
#include "codegen/simt/TransposeTiles.h"

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

static unsigned bytesIn(tgl::TglTensorType type) {
  return std::max(1u, type.getElementType().getIntOrFloatBitWidth() / 8);
}

void TransposeTiles::plan(tgl::ParallelOp op, SmallVectorImpl<unsigned> &outer,
                          std::optional<LaneChoice> &lane, Raster &raster) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  std::optional<int64_t> points = tgl::knownPoints(nest);
  if (lane || e.options.checked || !points || outer.size() != nest.getAxes().size() ||
      outer.size() < 2)
    return;
  tgl::Accesses accesses = tgl::accessesOf(op);
  SmallVector<tgl::ReadOp> reads;
  SmallVector<tgl::WriteOp> writes;
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions())
      return;
    if (auto read = dyn_cast<tgl::ReadOp>(inside)) {
      if (read.getFill() || read.getGuard() || read.getChecked() || !read.getExactExprs().empty() ||
          accesses.writes.contains(read.getTensor()))
        return;
      reads.push_back(read);
    } else if (auto write = dyn_cast<tgl::WriteOp>(inside)) {
      if (write.getCombine() || write.getGuard() || write.getChecked())
        return;
      writes.push_back(write);
    }
  }
  auto step = [&](tgl::TglTensorType type, ArrayRef<tgl::ValueExpr> subscripts, unsigned axis) {
    return tgl::stepAlong(tgl::elementOffset(type, subscripts), op.getAxes()[axis]);
  };
  auto stepOfWrite = [&](tgl::WriteOp write, unsigned axis) {
    return step(cast<tgl::TglTensorType>(write.getTensor().getType()), write.getSubscriptExprs(),
                axis);
  };
  auto stepOfRead = [&](tgl::ReadOp read, unsigned axis) {
    return step(read.getTensorType(), read.getSubscriptExprs(), axis);
  };
  for (unsigned across : outer)
    for (unsigned along : outer) {
      if (across == along || writes.empty())
        continue;
      bool fits =
          all_of(writes, [&](tgl::WriteOp write) { return stepOfWrite(write, across) == 1; });
      SmallVector<tgl::ReadOp> turned;
      for (tgl::ReadOp read : reads) {
        std::optional<int64_t> stepAcross = stepOfRead(read, across),
                               stepAlong = stepOfRead(read, along);
        fits &= stepAcross.has_value() && stepAlong.has_value();
        if (!fits || *stepAcross == 1 ||
            *stepAcross == 0) // vectors as they are, or one element for all
          continue;
        fits &= *stepAlong == 1;
        turned.push_back(read);
      }
      if (!fits || turned.empty() || turned.size() > maxReads)
        continue;
      unsigned bytes = bytesIn(turned.front().getTensorType());
      auto isAsWide = [&](tgl::TglTensorType type) {
        return type.getElementType().getIntOrFloatBitWidth() == 8 * bytes;
      };
      fits = (bytes == 2 || bytes == 4) &&
             all_of(turned, [&](tgl::ReadOp read) { return isAsWide(read.getTensorType()); }) &&
             all_of(writes, [&](tgl::WriteOp write) {
               return isAsWide(cast<tgl::TglTensorType>(write.getTensor().getType()));
             });
      int64_t width = e.accessBytes / bytes, acrossPoints = *tgl::knownPoints(nest, across),
              alongPoints = *tgl::knownPoints(nest, along);
      if (!fits || acrossPoints % width || alongPoints % width ||
          *points < minTransposeTiles * width * width)
        continue;
      this->across = across;
      for (tgl::ReadOp read : turned)
        rows[read] = {};
      lane = LaneChoice{across, unsigned(width), 1};
      e.pointTile = {along, unsigned(width)};
      llvm::erase(outer, across);
      llvm::erase(outer, along);
      outer.append({along, across});
      int64_t vectors = acrossPoints / width, repeats = threadsAlong, chunk = threadsAcross;
      while (alongPoints / width % repeats)
        repeats /= 2;
      while (vectors % chunk)
        chunk /= 2;
      raster = {repeats, vectors, chunk};
      return;
    }
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
}

bool TransposeTiles::emitIn(mlir::Operation *op) {
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
