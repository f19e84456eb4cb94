//===- ScanTile.cpp - Tiles of long scans ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/scan/plan/ScanTile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "passes/analysis/Nest.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Attribute ScanTile::toAttribute(MLIRContext *context) const {
  return Builder(context).getDenseI64ArrayAttr({columns, each, group});
}

std::optional<ScanTile> ScanTile::of(ForOp loop) {
  auto shape = loop->getAttrOfType<DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3)
    return std::nullopt;
  return ScanTile{shape[0], shape[1], shape[2]};
}

ScanGrid::ScanGrid(const ScanTile &tile, int64_t points, int64_t steps)
    : across(llvm::divideCeil(points, tile.columns)), parts(llvm::divideCeil(steps, tile.steps())) {
}

int64_t ScanGrid::groups(const ScanTile &tile) const { return llvm::divideCeil(parts, tile.group); }

/// Whether neighbouring steps touch memory side by side, in most accesses.
static bool runsAlongSteps(ForOp loop) {
  int near = 0;
  auto visit = [&](TglTensorType type, ArrayRef<ValueExpr> subscripts) {
    std::optional<int64_t> stride = strideAlong(type, subscripts, loop.getLoopVar());
    near += !stride || *stride == 0 ? 0 : *stride == 1 ? 1 : -1;
  };
  loop.getBody().walk([&](ReadOp read) { visit(read.getTensorType(), read.getSubscriptExprs()); });
  loop.getBody().walk(
      [&](WriteOp write) { visit(write.getTensorType(), write.getSubscriptExprs()); });
  return near > 0;
}

/// The most steps for which a thread has registers and the instruction cache has room.
static int64_t maxPerThread(ForOp loop) {
  int64_t operations = 0, reads = 0;
  for (Operation &op : loop.getBody().front()) {
    operations += isa<math::MathDialect>(op.getDialect()) ? 16 : 1;
    reads += isa<ReadOp>(op);
  }
  return reads <= 2 && operations <= 12 ? 16 : operations <= 32 ? 8 : 4;
}

Matched<ScanTile> tegula::chooseScanTile(ParallelOp statement, const PrefixLoop &prefix,
                                         int64_t threads) {
  // Blocks that take whole rows of vectors are as fast where the rows fill the machine, or are
  // short; so are threads with columns of their own.
  constexpr int64_t shortRow = 8192, shortOddRow = 2048, shortColumn = 256, vector = 4;
  constexpr int64_t maxColumns = 32, fewerColumns = 8, minPointsAcross = 8, minPerThread = 4;
  constexpr int64_t minGroup = 8, maxPartsOfThread = 4;
  std::optional<int64_t> points = knownPoints(cast<AxesOp>(statement.getOperation()));
  ForOp loop = prefix.loop;
  std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
  if (!points || !steps || *points <= 0 || *steps <= 0)
    return Mismatch{"the length of the scan, or the number of scans, is not known when compiling",
                    "compile for known sizes (-d)", loop};
  std::string shape =
      std::to_string(*points) + " scans of " + std::to_string(*steps) + " elements: ";
  ScanTile tile{1, maxPerThread(loop), 0};
  int64_t resident = std::max<int64_t>(threads / ScanTile::threads, 1);
  if (runsAlongSteps(loop)) {
    bool isOdd = *steps % vector;
    if (*steps < (isOdd ? shortOddRow : shortRow) || (!isOdd && *points >= resident))
      return Mismatch{shape + "a block for a row is as fast", "", loop};
  } else {
    if (*steps < shortColumn || *points >= threads)
      return Mismatch{shape + "a thread for a column is as fast", "", loop};
    auto columnsOf = [&](int64_t most) {
      return std::min<int64_t>(llvm::PowerOf2Ceil(*points), most);
    };
    // Tiles of fewer have more steps: with few points fewer groups follow each other.
    tile.columns = columnsOf(maxColumns);
    if (ScanGrid(tile, *points, *steps).across < minPointsAcross)
      tile.columns = columnsOf(fewerColumns);
  }
  auto tiles = [&] {
    ScanGrid grid(tile, *points, *steps);
    return grid.across > resident ? grid.across : grid.across * grid.parts;
  };
  while (tile.each > minPerThread && (tiles() < resident || tile.steps() / 2 >= *steps))
    tile.each /= 2;
  ScanGrid grid(tile, *points, *steps);
  int64_t count;
  if (llvm::MulOverflow(grid.across, grid.parts, count) ||
      count > std::numeric_limits<int32_t>::max())
    return Mismatch{shape + "more than 2^31 tiles", "", loop};
  // Tiles that run at once are of so many parts. Groups follow each other, 2 us each: theirs should
  // take longer to read.
  int64_t atOnce = llvm::bit_floor(uint64_t(std::max<int64_t>(resident / grid.across, 1)));
  int64_t longestGroup = maxPartsOfThread * ScanTile::threads / tile.columns;
  tile.group = std::clamp(atOnce, minGroup, longestGroup);
  return tile;
}

Matched<PrefixLoop> tegula::matchLookBackScan(ParallelOp statement) {
  auto loops = statement.getBody().front().getOps<ForOp>();
  Mismatch other{"", "", statement, /*isOther=*/true}; // tgl-split-scans has told why
  if (!llvm::hasSingleElement(loops) || !ScanTile::of(*loops.begin()))
    return other;
  bool isAlone = llvm::all_of(statement.getBody().front(), [](Operation &op) {
    return isa<ForOp>(op) || (!op.getNumRegions() && !isa<WriteOp, TempOp>(op));
  });
  if (!isAlone)
    return other;
  return matchPrefixLoop(*loops.begin());
}
