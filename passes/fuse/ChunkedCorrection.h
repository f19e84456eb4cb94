//===- ChunkedCorrection.h - Corrected values in chunks ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of a chunk are solved for, for a state before it that is not known yet (the WY form):
// value = fixed + sum over i of turned[i] * state[i]. Then a loop over chunks gives values and
// states in turn.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_CHUNKEDCORRECTION_H
#define TEGULA_PASSES_FUSE_CHUNKEDCORRECTION_H

#include "passes/fuse/ChunkedReadouts.h"

namespace tegula {

class ChunkedCorrection : public ChunkedReadouts {
protected:
  using ChunkedReadouts::ChunkedReadouts;

  void writeCorrectedStates();

private:
  /// Forward substitution, step by step: x[l] = first(l) + scale * sum over m < l of
  /// scores[l, m] * x[m], over the columns.
  ChunkTensor solve(Scores &one, const Operand &scale, llvm::ArrayRef<mlir::Value> columns,
                    llvm::StringRef name, llvm::function_ref<mlir::Value(Place &)> first);
  mlir::Value signedProduct(Place &place, const Operand &operand, bool isNegative,
                            mlir::Value other = {});
  /// The same tensor in the type that products take.
  ChunkTensor rounded(const ChunkTensor &from);
  /// Axes of the readout are those of the update.
  void alignBack(Place &place, const LinearReadout &readout);
  /// Values of each chunk from the state before it, then the state behind it.
  void walkChunks(const LinearReadout &readout, const ChunkTensor &fixed,
                  const ChunkTensor &turned);
};

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_CHUNKEDCORRECTION_H
