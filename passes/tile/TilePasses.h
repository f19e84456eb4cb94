//===- TilePasses.h - Passes over the tile dialect --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_TILEPASSES_H
#define TEGULA_PASSES_TILE_TILEPASSES_H

#include "ir/tile/Tile.h"
#include "mlir/Pass/Pass.h"
#include "support/Counters.h"

namespace tegula {
#define GEN_PASS_DECL
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

#endif // TEGULA_PASSES_TILE_TILEPASSES_H
