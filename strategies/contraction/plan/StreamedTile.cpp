//===- StreamedTile.cpp - Cost model of tiles whose operands are streamed -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/StreamedTile.h"

#include "strategies/contraction/plan/TileMemory.h"
#include "target/DeviceFacts.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

/// Adding up what blocks have of a sum: a cluster sends its sums once, `share` bytes to each block;
/// a second launch reads what all blocks wrote.
static double clocksOfParts(const TensorTile &tile, const TileMemory &memory, int64_t blocks) {
  constexpr double ofCluster = 290, sentPerClock = 13.8, ofLaunch = 2470, readPerClock = 3000;
  if (tile.splits == 1)
    return 0;
  if (memory.usesClusterReduce())
    return ofCluster + memory.receivedBytes() / sentPerClock;
  return ofLaunch + 8.0 * blocks * tile.rows * tile.columns / readPerClock;
}

double tegula::minStreamedClocks(ArrayRef<ProductOperands> products, int64_t rows, int64_t columns,
                                 int64_t points, int64_t batch) {
  constexpr double memoryPerClock = 2400;
  return double(bytesOf(products.front().type)) * batch * (rows + columns) * points /
         memoryPerClock;
}

double tegula::streamedClocks(const TensorTile &tile, ArrayRef<ProductOperands> products,
                              int64_t rows, int64_t columns, int64_t points, int64_t batch,
                              double multiplied) {
  constexpr double startUp = 6240, elementsPerClock = 6.14, ofCache = 1330, ofMemory = 930,
                   ofWarps = 112, minStepClocks = 683, ofUnevenLines = 1.29;
  constexpr int64_t lineBytes = TileMemory::lineBytes;
  int64_t rowTiles = divideCeil(rows, tile.rows),
          columnTiles = divideCeil(columns, tile.statementColumns()),
          tiles = rowTiles * columnTiles * batch;
  int64_t elementBytes = bytesOf(products.front().type), blocks = tiles * tile.splits;
  int64_t steps = divideCeil(divideCeil(points, lineBytes / elementBytes), tile.splits);
  TileMemory memory(tile, products, TargetInfo::measured());
  memory.useClusterReduceWhereFits(tiles);
  // Threads that copy vectors of such lines find the place of each.
  if (tile.warpgroups && !memory.usesTma() && !isPowerOf2_64(tile.columns))
    multiplied *= ofUnevenLines;
  // A step's bytes that no other block brings from memory, as a share of all.
  double own = (double(tile.rows) / columnTiles + double(tile.columns) / rowTiles) /
               (tile.rows + tile.columns);
  // With warpgroups the stage before the one that is multiplied is not free yet either.
  double underWay = memory.stages() - (tile.warpgroups ? 2 : 1);
  double alone = std::max(
      {multiplied, (ofCache + own * ofMemory) / underWay, tile.warpgroups ? 0 : minStepClocks});
  if (!tile.warpgroups)
    alone += ofWarps;
  // Blocks that stay begin a tile during the rest of the one before.
  int64_t waves = divideCeil(blocks, device::multiprocessors),
          rounds = divideCeil(waves, memory.residents());
  double step = std::max(alone, std::min(waves, memory.residents()) * multiplied);
  double starts =
      (memory.usesTma() ? 1 : rounds) * (startUp + tile.rows * tile.columns / elementsPerClock);
  double least = minStreamedClocks(products, rows, columns, points, batch);
  return starts + std::hypot(rounds * steps * step, least) + clocksOfParts(tile, memory, blocks);
}
