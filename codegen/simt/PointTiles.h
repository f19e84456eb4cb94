//===- PointTiles.h - Emits points that a thread computes together -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `parallel (i, j) { s = reduce (k) a[i, k]*b[k, j]; write s }` with `point_tile = 2, 4`: a thread
// of the team takes two rows of four neighbours at a time. The sums of all eight are walked
// together, so that what several of them read is one load, which LLVM finds, as they stand side by
// side. Everything else of the nest is done op by op for all points of the tile.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_POINTTILES_H
#define TEGULA_CODEGEN_SIMT_POINTTILES_H

#include "passes/analysis/RegisterTiles.h"

namespace tegula {

class DeviceEmitter;

/// Emits a nest for which registerTileOf has this tile. All threads of the team come to it.
void emitPointTiles(DeviceEmitter &e, tgl::ParallelOp nest, RegisterTile tile);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_POINTTILES_H
