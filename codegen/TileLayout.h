//===- TileLayout.h - Where blocks keep matrix products and rows --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code generation notes here what it emitted code for; drawings ask its own functions for each place
// (TensorCore::offset, Warpgroup::place, Fragments.h), so that a drawing cannot differ from the code.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILELAYOUT_H
#define TEGULA_CODEGEN_TILELAYOUT_H

#include "codegen/Fragments.h"
#include "codegen/TensorCore.h"
#include "codegen/Warpgroup.h"
#include <string>
#include <variant>
#include <vector>

namespace tegula {

/// Windows of a tile as one copy of the image, beside the stages (ShiftedWindows.cpp).
struct PatchLayout {
  unsigned patches, bytesOfPatch, runs, planes, taps;
  llvm::SmallVector<std::pair<int64_t, int64_t>> pixels; ///< first and last of each stretch, from the tile's first

  unsigned bytes() const { return 0; } ///< of a stage
};

/// One side of a product in shared memory.
struct OperandLayout {
  std::string source; ///< what is read, or how many operations evaluate it
  std::variant<SharedTile, PlaneTile, PatchLayout> tile;
  unsigned offset = 0; ///< in a stage
  bool isCopied = false; ///< asynchronously; else through registers

  unsigned bytes() const {
    return std::visit([](const auto &one) { return one.bytes(); }, tile);
  }
};

struct ProductLayout {
  Multiplicand type;
  unsigned multiplications = 1; ///< for one of values that are sums of two numbers
  unsigned stages = 0;  ///< of the ring in shared memory
  OperandLayout row, column;
};

/// A device function that computes a tile for a block.
struct TileLayout {
  std::string function;
  TensorTile tile;
  bool byWarpgroups = false, hasRoles = false, hasCopiers = false;
  unsigned sharedBytes = 0; ///< dynamic, of a block
  std::vector<ProductLayout> products;
};

/// A row that several nests of a statement read, in the shared memory of a block or a cluster (DeviceRows.cpp).
struct RowLayout {
  struct Slot {
    std::string source; ///< the tensor
    unsigned bytes;     ///< of a vector
    int64_t offset;     ///< in the dynamic shared memory of each block
  };
  std::string function;
  RowDeal deal;
  int64_t vectors, rounds;
  std::vector<Slot> slots;
};

/// What becomes of a kernel's setting `cluster` in a statement that keeps rows.
struct ClusterAnswer {
  bool holds;
  std::string nearest; ///< that fits, and why, for people
};

/// What a tensor is called in the program.
std::string sourceName(mlir::Value tensor);

/// As text: which block and thread keeps which vectors, and where.
std::string drawLayout(const RowLayout &layout);
/// As text: who multiplies what, tiles in shared memory with the order of their chunks, and the threads and registers
/// that hold the sums.
std::string drawLayout(const TileLayout &layout);

} // namespace tegula

#endif // TEGULA_CODEGEN_TILELAYOUT_H
