//===- StreamedTile.cpp - What a tile of streamed operands takes -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/StreamedTile.h"

#include "passes/TileMemory.h"

using namespace llvm;
using namespace tegula;

double tegula::streamedClocks(const TensorTile &tile, ArrayRef<ProductOperands> products, int64_t rows, int64_t columns,
                              int64_t points, int64_t batch, double multiplied, double startUp) {
  constexpr double lineBytes = 128, memoryRate = 13.8, cacheRate = 25, nearBytes = 8e6;
  constexpr double ofWarps = 150, leastOfWarps = 850, leastOfFewRows = 600, ofUsualRing = 600, leastOfWarpgroups = 700,
                   nearRate = 36, ofFewColumns = 1.05;
  int64_t rowTiles = divideCeil(rows, tile.rows), columnTiles = divideCeil(columns, tile.columns);
  int64_t elementBytes = bytesOf(products.front().type), pointsOfStep = int64_t(lineBytes) / elementBytes;
  int64_t steps = divideCeil(divideCeil(points, pointsOfStep), tile.splits);
  double once = lineBytes * (double(tile.rows) / columnTiles + double(tile.columns) / rowTiles) / memoryRate;
  auto far = [&](int64_t lines, int64_t ofTile) { return double(elementBytes) * batch * lines * points > nearBytes ? lineBytes * ofTile : 0; };
  double again = tile.splits > 1 ? (far(rows, tile.rows) + far(columns, tile.columns)) / cacheRate : 0;
  double each = std::max({multiplied, once, again});
  // A deep ring has so much under way that a step takes no longer than its bytes need to a multiprocessor.
  TileMemory memory(tile, products, {});
  bool isDeep = memory.stages() > std::min(int64_t(TileMemory::usualStages), steps + 1);
  double alone = !tile.warpgroups            ? std::max(each + ofWarps, isDeep ? leastOfFewRows : leastOfWarps)
                 : isDeep || tile.splits > 1 ? std::max(each, memory.stageBytes() / nearRate)
                                             : std::max({each, leastOfWarpgroups, once + ofUsualRing});
  if (tile.warpgroups && tile.columns < 128)
    alone *= ofFewColumns;
  int64_t residents = std::max(1u, device::sharedBytes(90) / memory.sharedBytes());
  int64_t waves = divideCeil(rowTiles * columnTiles * batch * tile.splits, int64_t(device::multiprocessors));
  int64_t rounds = divideCeil(waves, residents);
  return rounds * startUp + steps * std::max(waves * each, rounds * alone);
}
