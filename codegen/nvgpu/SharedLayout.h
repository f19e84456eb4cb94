//===- SharedLayout.h - Layouts of shared memory and rows -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How operands of products lie in shared memory, and rows in threads, as numbers: what plans,
// drawings and reports need without LLVM's IR. Mma.h, Wgmma.h and Fragments.h emit code for them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_SHAREDLAYOUT_H
#define TEGULA_CODEGEN_NVGPU_SHAREDLAYOUT_H

#include <cstdint>

namespace tegula {

/// An operand's tile in shared memory for mma.sync (Mma.h).
struct MmaSharedLayout {
  bool kMajor;
  unsigned elementBytes; ///< 2 or 4; or 1, along the sum
  unsigned extent;       ///< rows (or columns), a multiple of 16
  static constexpr unsigned depthBytes = 128;
  static constexpr unsigned exchangedLines = 8; ///< period of the swizzle, in lines

  unsigned depth() const { return depthBytes / elementBytes; } ///< points of the sum
  unsigned lineLength() const { return kMajor ? depth() : extent; }
  unsigned lines() const { return kMajor ? extent : depth(); }
  unsigned pitch() const { return lineLength() * elementBytes; }
  unsigned bytes() const { return extent * depthBytes; }
};

/// Swizzled layout of an operand's tile in shared memory for wgmma (Wgmma.h).
struct WgmmaSharedLayout {
  bool kMajor;     ///< whether a line is a row of A (column of B); else it is a point of k
  unsigned terms;  ///< 16-bit terms of an element, beside each other in a line: 1, or 2 if K-major
  unsigned extent; ///< rows (or columns), a multiple of 64
  unsigned elementBytes = 2; ///< or 1, along the sum
  /// `lineElements` and `chunk` count 16-bit elements.
  static constexpr unsigned lineBytes = 128, lineElements = 64, chunkBytes = 16, chunk = 8,
                            alignment = 1024;

  unsigned depth() const { return lineBytes / elementBytes / terms; } ///< points of the sum
  unsigned bytes() const { return extent * lineBytes; }
  unsigned chunkElements() const { return chunkBytes / elementBytes; }
  /// Chunks of 16 bytes in a line and in the tile.
  unsigned chunksPerLine() const { return (kMajor ? depth() : extent) / chunkElements(); }
  unsigned chunks() const { return extent * depth() / chunkElements(); }
};

/// Distribution of a row's vectors, in rounds, over the threads of a block or of a cluster that
/// caches it.
struct RowDistribution {
  int64_t threads;                                   ///< of a block
  unsigned cluster = 1;                              ///< blocks
  int64_t each() const { return threads * cluster; } ///< vectors of a round
};

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_SHAREDLAYOUT_H
