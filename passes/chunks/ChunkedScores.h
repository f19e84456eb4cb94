//===- ChunkedScores.h - Scores of a chunk's steps with each other --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The score of two steps of a chunk is the product of the decays between them and of a query with a
// key. Where each channel has a decay of its own, no product of two matrices gives all scores: the
// decay from the chunk's begin on has an inverse that overflows. But for steps on two sides of a
// border it does: queries times their decays from the border on, by keys times theirs up to it. So
// blocks beside the diagonal are products, from 16 steps to half of the chunk, and scalar code
// computes blocks of 16 steps on the diagonal.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDSCORES_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDSCORES_H

#include "passes/chunks/ChunkedFactors.h"

namespace tegula {

/// The most steps of a block of scores with decays of channels that scalar code computes.
inline constexpr int64_t stepsOfScalarScores = 16;

class ChunkedScores : public ChunkedFactors {
protected:
  /// What the sums of a statement become.
  struct Scores {
    LinearReadout *readout;
    Operand query;
    ChunkTensor scores, before;
    std::optional<ChunkTensor> result; ///< where steps are missing in the last chunk
  };
  /// Changes the score of a step.
  using Finish =
      llvm::function_ref<mlir::Value(Place &, const tgl::ValueExpr &step, mlir::Value score)>;

  using ChunkedFactors::ChunkedFactors;

  Operand keys;

  Scores writeScores(LinearReadout &readout, mlir::Type type, Finish finish = nullptr);

private:
  void writeAllScores(Scores &made, Finish finish);
  /// Scores of steps that a step does not see are 0.
  void writeNoScores(const Scores &made);
  /// Scores within blocks of `size` steps, with decays of channels, by scalar code.
  void writeBlocks(Scores &made, int64_t size, Finish finish);
  /// Scores of the second with the first block of each pair of blocks of `size` steps, with decays
  /// of channels, as products.
  void writeBesideBlocks(Scores &made, int64_t size, Finish finish);
  /// Factors of the second blocks of pairs, of a readout, or of the first ones, times decays
  /// between each step and the border of the two.
  ChunkTensor keepToBorder(const Operand &operand, llvm::ArrayRef<mlir::Value> axes,
                           llvm::ArrayRef<mlir::Value> axesByDim, int64_t size,
                           const LinearReadout *readout);
  /// The sum of terms over the axes that readouts sum over, with the score's sign.
  mlir::Value sumOverChannels(Place &place, LinearReadout &readout,
                              llvm::function_ref<mlir::Value(Place &)> term);
  void writeScore(Place &place, Scores &made, const tgl::ValueExpr &step,
                  const tgl::ValueExpr &from, mlir::Value score);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDSCORES_H
