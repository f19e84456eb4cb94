//===- ChunkedCorrection.h - Corrected values in chunks ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values of a chunk are solved for, for a state before it that is not known yet (the WY form):
// value = fixed + sum over i of turned[i] * state[i]. Both are products of an inverse
// (ChunkedInverse.h): with what is added to the readout, and with its queries. Then a loop over
// chunks gives values and states in turn.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDCORRECTION_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDCORRECTION_H

#include "passes/chunks/ChunkedInverse.h"

namespace tegula {

class ChunkedCorrection : public ChunkedInverse {
protected:
  using ChunkedInverse::ChunkedInverse;

  void writeCorrectedStates();

private:
  /// `value` times the weight at a step, or times -1 of that; a weight without factors is 1.
  mlir::Value signedProduct(Place &place, const Operand &weight, const tgl::ValueExpr &step,
                            bool isNegative, mlir::Value value);
  /// The inverse in the type that products take, its columns times what `weigh` says for their
  /// steps, and 0 above its diagonal.
  ChunkTensor weighted(const ChunkTensor &inverse,
                       llvm::function_ref<mlir::Value(Place &, mlir::Value, mlir::Value)> weigh);
  /// x[l] = sum over m of matrix[l, m] * right[m], over the columns.
  ChunkTensor solve(const LinearReadout &readout, const ChunkTensor &matrix, const Operand &right,
                    llvm::ArrayRef<mlir::Value> columns, llvm::StringRef name, mlir::Type type);
  /// Axes of the readout are those of the update.
  void alignBack(Place &place, const LinearReadout &readout);
  /// Values of each chunk from the state before it, then the state behind it.
  void walkChunks(const LinearReadout &readout, const ChunkTensor &fixed,
                  const ChunkTensor &turned);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDCORRECTION_H
