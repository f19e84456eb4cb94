//===- TileLayout.h - Shared-memory layouts, as drawn for people -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code generation notes here what it emitted code for; drawings ask its own functions for each
// place (Mma::offset, Warpgroup::place, Fragments.h), so that a drawing cannot differ from the
// code.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_TILELAYOUT_H
#define TEGULA_CODEGEN_NVGPU_TILELAYOUT_H

#include "codegen/nvgpu/SharedLayout.h"
#include "strategies/contraction/plan/TensorTile.h"
#include <string>
#include <variant>
#include <vector>

namespace tegula {

/// Layout of the halo tiles, beside the stages (HaloTile.cpp).
struct HaloLayout {
  unsigned haloBuffers, bytesOfHalo, runs, terms, taps;
  llvm::SmallVector<std::pair<int64_t, int64_t>>
      pixels; ///< first and last of each stretch, from the tile's first

  unsigned bytes() const { return 0; } ///< of a stage
};

/// Layout of an operand in shared memory.
struct OperandLayout {
  std::string source; ///< the tensor that is read, or the number of operations that evaluate it
  std::variant<MmaSharedLayout, WgmmaSharedLayout, HaloLayout> tile;
  unsigned offset = 0;   ///< in a stage
  bool isCopied = false; ///< asynchronously; else through registers

  unsigned bytes() const {
    return std::visit([](const auto &one) { return one.bytes(); }, tile);
  }
};

struct ProductLayout {
  MmaType type;
  unsigned multiplications = 1; ///< MMAs for a product of values in split precision
  unsigned stages = 0;          ///< stages of the ring in shared memory
  OperandLayout a, b;
};

/// A device function that computes a tile for a block.
struct TileLayout {
  std::string function;
  TensorTile tile;
  bool usesWgmma = false, isWarpSpecialized = false, hasCopyProducers = false;
  unsigned sharedBytes = 0; ///< dynamic, of a block
  std::vector<ProductLayout> products;
};

/// Layout of a row cached in the shared memory of a block or a cluster (RowCache.cpp).
struct RowLayout {
  struct Slot {
    std::string source; ///< the tensor
    unsigned bytes;     ///< of a vector
    int64_t offset;     ///< in the dynamic shared memory of each block
  };
  std::string function;
  RowDistribution distribution;
  int64_t vectors, rounds;
  std::vector<Slot> slots;
};

/// Result of a kernel's setting `cluster` for a statement that caches rows.
struct ClusterAnswer {
  bool holds;
  std::string nearest; ///< the nearest setting that fits, and why, for people
};

/// The name of a tensor in the program.
std::string sourceName(mlir::Value tensor);

/// As text: which block and thread keeps which vectors, and where.
std::string drawLayout(const RowLayout &layout);
/// As text: who multiplies what, tiles in shared memory with the order of their chunks, and the
/// threads and registers that hold the sums.
std::string drawLayout(const TileLayout &layout);

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_TILELAYOUT_H
