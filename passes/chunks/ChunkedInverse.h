//===- ChunkedInverse.h - Inverses of triangular matrices of chunks --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of a chunk that correct each other solve (I - A) x = right, where A is 0 on and above its
// diagonal. The inverse of I - A is made in blocks: those on the diagonal by forward substitution,
// a thread for each of their columns, then those beside it by products,
//
//   inverse([I - A, 0; -C, I - B]) = [inverse(I - A), 0; inverse(I - B) C inverse(I - A), inverse(I
//   - B)]
//
// from blocks of 32 steps to 64 and the whole chunk. All of it is of f32.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDINVERSE_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDINVERSE_H

#include "passes/chunks/ChunkedReadouts.h"

namespace tegula {

/// The most steps that a thread solves for, one after the other. The compiler expects blocks of 16,
/// and products that join two of them, to take 100 us longer for gated_delta_rule on an H200.
inline constexpr int64_t stepsOfSubstitution = 32;

class ChunkedInverse : public ChunkedReadouts {
protected:
  using ChunkedReadouts::ChunkedReadouts;

  /// The inverse of I - A for each chunk.
  ChunkTensor writeInverse(const ChunkTensor &matrix);

private:
  /// Writes 0 right of the blocks of `size` steps on the diagonal.
  void clearAbove(const ChunkTensor &inverse, int64_t size);
  /// Inverses of the blocks of `size` steps on the diagonal.
  void invertBlocks(const ChunkTensor &matrix, const ChunkTensor &inverse, int64_t size);
  /// Inverses of blocks of `size` steps become those of twice as many.
  void joinBlocks(const ChunkTensor &matrix, const ChunkTensor &inverse, int64_t size);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDINVERSE_H
