//===- Pieces.h - A batch, run in pieces ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a kernel computes of rows of a batch is compared, bit for bit, with what it computes where
// these rows are all there are.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_PIECES_H
#define TEGULA_BENCH_PIECES_H

#include "bench/Runner.h"

namespace tegula::bench {

/// A piece that got other bits, and where the first of them is.
struct OtherPiece {
  int64_t begin, end; // of the size
  unsigned argument;
  llvm::SmallVector<int64_t> place; // in the piece
};

/// What pieces were held against the whole.
struct PieceComparison {
  std::optional<OtherPiece> other;
  int64_t elements = 0; // of results of pieces that are less than the whole
};

struct PieceRequest {
  llvm::StringRef size; // that is cut
  int64_t extent = 0;   // of the whole
  unsigned rounds = 1;  // times that it is cut anew, at random places
  uint64_t seed = 0;    // of the places
  const std::map<std::string, ScalarSetting> &scalars;
  /// All sizes where the one that is cut has this extent.
  llvm::function_ref<llvm::Expected<SizeValues>(int64_t extent)> sizesAt;
};

/// `whole` has run, and `expected` is what its arguments `written` are after that. `watch` is told
/// of each run. Pieces begin at whole bytes of all tensors: of 4-bit elements at even ones.
llvm::Expected<PieceComparison> comparePieces(Runner &runner, const Launch &whole,
                                              llvm::ArrayRef<unsigned> written,
                                              llvm::ArrayRef<Tensor> expected,
                                              const PieceRequest &request, LaunchWatch *watch);

} // namespace tegula::bench

#endif // TEGULA_BENCH_PIECES_H
