//===- TileWgmma.h - Products of warpgroups over tiles ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILE_TILEWGMMA_H
#define TEGULA_CODEGEN_TILE_TILEWGMMA_H

#include "codegen/nvgpu/Wgmma.h"
#include "ir/tile/Tile.h"

namespace tegula {

/// Starts sums + a b^T for the thread's (i32) warpgroup, one commit. `a`, `b`: where the factors
/// begin in shared memory. The result is in flight (async/Async.h).
Wgmma::Accumulators startProduct(llvm::IRBuilder<> &builder, tile::MmaOp op, llvm::Value *thread,
                                 llvm::Value *a, llvm::Value *b,
                                 llvm::ArrayRef<llvm::Value *> sums);

} // namespace tegula

#endif // TEGULA_CODEGEN_TILE_TILEWGMMA_H
