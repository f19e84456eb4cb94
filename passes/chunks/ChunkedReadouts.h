//===- ChunkedReadouts.h - Readouts of a state in chunks --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A readout at a step is one of the state before the chunk, and a sum of the scores of the chunk's
// steps that it sees, times their values.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDREADOUTS_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDREADOUTS_H

#include "passes/chunks/ChunkedScores.h"

namespace tegula {

class ChunkedReadouts : public ChunkedScores {
protected:
  using ChunkedScores::ChunkedScores;

  ChunkTensor states; // before each chunk
  Operand values;

  void writeReadouts(tgl::ParallelOp statement);

private:
  /// Axes of the readout's statement: columns behind the step, all others before it.
  ChunkTensor makeResult(const LinearReadout &readout, llvm::StringRef name);
  Place openResult(const ChunkTensor &made, const LinearReadout &readout);
  /// The readout of the state before the chunk.
  ChunkTensor writeBefore(Scores &one);
  /// The readout at the place's step: of the state before the chunk, and of the chunk's own steps.
  mlir::Value resultOf(Place &place, Scores &one);
  /// The readouts of all steps, and of those that the last chunk lacks.
  ChunkTensor writeResult(Scores &one);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDREADOUTS_H
