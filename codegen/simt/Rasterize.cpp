//===- Rasterize.cpp - Rasterisation: the order in which blocks take points ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Points are numbered with the last axis fastest. In `y[n, j] = x[n, j] * w[j]` with long rows
// every n reads all of w again, from memory where a row of x, w and y together are more than the L2
// cache holds. Then blocks take a chunk of j for all n before the next chunk: w comes from memory
// once.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/Rasterize.h"

#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// What may pass through an L2 cache of 50 MB between two reads of an element for it to be there
/// still.
static constexpr int64_t cacheBytes = 16 << 20;
/// Vectors of a chunk: as many as blocks side by side read together.
static constexpr int64_t minInChunk = 32, maxInChunk = 2048;
/// An order of one's own is worth it from this share of all bytes on.
static constexpr int64_t shareSaved = 20;

Raster tegula::planRaster(DeviceEmitter &e, tgl::ParallelOp op, ArrayRef<unsigned> outer,
                          const std::optional<LaneChoice> &lane) {
  Raster raster;
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> axes(outer);
  if (lane) { // as setAxes has them
    llvm::erase(axes, lane->axis);
    axes.push_back(lane->axis);
  }
  SmallVector<int64_t> extents;
  for (unsigned axis : axes) {
    std::optional<int64_t> points = tgl::knownPoints(nest, axis);
    if (!points || !*points)
      return raster;
    extents.push_back(*points);
  }
  auto product = [&](unsigned from, unsigned to, function_ref<bool(unsigned)> counts) {
    int64_t points = 1;
    for (unsigned at = from; at < to; ++at)
      if (counts(at) && MulOverflow(points, extents[at], points))
        return std::numeric_limits<int64_t>::max() >> 8;
    return points;
  };
  auto all = [](unsigned) { return true; };
  unsigned number = axes.size();
  int64_t bytesOfPoint = 0;
  SmallVector<std::pair<tgl::ReadOp, int64_t>> reads; // and the bytes of an element
  for (mlir::Operation &inside : op.getBody().front()) {
    if (inside.getNumRegions())
      return raster;
    auto read = dyn_cast<tgl::ReadOp>(inside);
    auto write = dyn_cast<tgl::WriteOp>(inside);
    if (!read && !write)
      continue;
    tgl::TglTensorType type =
        read ? read.getTensorType() : cast<tgl::TglTensorType>(write.getTensor().getType());
    int64_t bytes = std::max(1u, e.storageType(type.getElementType())->getScalarSizeInBits() / 8);
    bytesOfPoint += bytes;
    if (read)
      reads.push_back({read, bytes});
  }
  int64_t points = product(0, number, all), most = 0;
  for (auto &[read, bytes] : reads) {
    auto varies = [&, read = read](unsigned at) mutable {
      return any_of(read.getSubscriptExprs(), [&](const tgl::ValueExpr &subscript) {
        return subscript.uses(op.getAxes()[axes[at]]);
      });
    };
    for (unsigned from = 0, to; from < number; from = to + 1) {
      for (to = from; to < number && !varies(to);)
        ++to;
      if (to == from || to == number)
        continue;
      int64_t repeats = product(from, to, all), inner = product(to, number, all);
      int64_t vectors = lane ? inner / lane->width : inner, chunk = 1;
      while (chunk < maxInChunk && vectors % (2 * chunk) == 0)
        chunk *= 2;
      int64_t saved = product(0, from, all) * (repeats - 1) * product(to, number, varies) * bytes;
      bool passes = inner > cacheBytes / bytesOfPoint; // by the cache, before it is read again
      if (passes && chunk >= minInChunk && saved > most &&
          saved / bytesOfPoint >= points / shareSaved) {
        most = saved;
        raster = {repeats, vectors, chunk};
      }
    }
  }
  return raster;
}

/// The point with this number, in its turn.
Value *Raster::rasterized(IRBuilder<> &b, Value *number, Value *count) const {
  auto *points = dyn_cast<ConstantInt>(count);
  if (!repeats || !points)
    return number;
  bool isShort = points->getSExtValue() <= std::numeric_limits<int32_t>::max();
  Type *type = isShort ? b.getInt32Ty() : b.getInt64Ty();
  auto constant = [&](int64_t value) { return ConstantInt::get(type, value); };
  if (isShort)
    number = b.CreateTrunc(number, type, "", /*IsNUW=*/true, /*IsNSW=*/true);
  Value *whole = constant(repeats * vectors), *turn = constant(repeats * chunk);
  Value *rest = b.CreateURem(number, whole), *inTurn = b.CreateURem(rest, turn);
  Value *repeat = b.CreateUDiv(inTurn, constant(chunk)),
        *place = b.CreateURem(inTurn, constant(chunk));
  place = b.CreateAdd(place, b.CreateMul(b.CreateUDiv(rest, turn), constant(chunk)));
  place = b.CreateAdd(place, b.CreateMul(repeat, constant(vectors)));
  place = b.CreateAdd(place, b.CreateSub(number, rest));
  return isShort ? b.CreateZExt(place, b.getInt64Ty(), "", /*IsNonNeg=*/true) : place;
}
