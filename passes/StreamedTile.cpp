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
  constexpr double lineBytes = 128, memoryRate = 13.8, cacheRate = 25, togetherRate = 33, pairedRate = 20, nearBytes = 8e6;
  constexpr double ofWarps = 150, leastOfWarps = 850, ofUsualRing = 600, leastOfWarpgroups = 700, ofFewColumns = 1.05;
  constexpr double leastOfFewLines = 600, nearRate = 41;
  constexpr int64_t fewLines = 16;
  int64_t rowTiles = divideCeil(rows, tile.rows), columnTiles = divideCeil(columns, tile.columns);
  int64_t elementBytes = bytesOf(products.front().type), pointsOfStep = int64_t(lineBytes) / elementBytes;
  int64_t steps = divideCeil(divideCeil(points, pointsOfStep), tile.splits);
  double once = lineBytes * (double(tile.rows) / columnTiles + double(tile.columns) / rowTiles) / memoryRate;
  auto far = [&](int64_t lines, int64_t ofTile) { return double(elementBytes) * batch * lines * points > nearBytes ? lineBytes * ofTile : 0; };
  // Blocks that read the same at the same time, and pairs, which lie side by side and read what others do at other times.
  bool arePairs = tile.splits == 2, areTogether = !arePairs && rowTiles * columnTiles * batch <= TensorTile::fewTiles;
  double againRate = arePairs ? pairedRate : areTogether ? togetherRate : cacheRate;
  double again = tile.splits > 1 ? (far(rows, tile.rows) + far(columns, tile.columns)) / againRate : 0;
  double each = std::max({multiplied, once, again});
  // A block that has a multiprocessor for itself has so much under way that a step takes what its bytes take; where not all
  // multiprocessors have one, memory has more for each. (Not measured where memory alone decides: as with the usual ring.)
  TileMemory memory(tile, products, {});
  bool isDeep = memory.isDeep() && memory.stages() > TileMemory::usualStages;
  int64_t blocks = rowTiles * columnTiles * batch * tile.splits;
  double ofFew = once * memoryRate / std::min(memoryRate * device::multiprocessors / blocks, nearRate);
  double alone;
  if (tile.warpgroups)
    alone = isDeep && tile.splits == 1 ? std::max({multiplied, memory.stageBytes() / nearRate, ofFew > multiplied ? ofFew + ofUsualRing : 0})
                                        : std::max({each, leastOfWarpgroups, tile.splits > 1 ? 0 : once + ofUsualRing});
  else if (isDeep)
    alone = std::max({multiplied, std::max(ofFew, again) + ofWarps,
                      std::min(tile.rows, tile.columns) <= fewLines ? leastOfFewLines : leastOfWarps});
  else
    alone = std::max(each + ofWarps, leastOfWarps);
  if (tile.warpgroups && tile.columns < 128)
    alone *= ofFewColumns;
  int64_t residents = std::max(1u, device::sharedBytes(90) / memory.sharedBytes());
  int64_t waves = divideCeil(blocks, int64_t(device::multiprocessors));
  int64_t rounds = divideCeil(waves, residents);
  return rounds * startUp + steps * (isDeep ? alone : std::max(waves * each, rounds * alone));
}
