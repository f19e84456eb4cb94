//===- ChunkedFactors.h - Decays, keys, values and queries of chunks ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of decays between steps of a chunk are exponentials of differences of logarithms. Keys,
// values and queries are read where they are used, or kept for all steps, alone or times decays.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDFACTORS_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDFACTORS_H

#include "passes/chunks/ChunkedStatements.h"

namespace tegula {

class ChunkedFactors : public ChunkedStatements {
protected:
  /// Keys, values or queries: read where they are used, or kept for all steps.
  struct Operand {
    llvm::ArrayRef<mlir::Value> factors;
    std::optional<ChunkTensor> kept;
  };

  ChunkedFactors(LinearRecurrence &found, int64_t length);

  mlir::Type element; // of factors that are kept for products
  llvm::SmallVector<mlir::Value> decayAxes;
  mlir::Value logs; // null: the decay is 1

  /// Decays of each channel that readouts sum over stand inside of sums, at keys and queries.
  bool isChannelwise() const { return !decayTrailing.empty(); }
  /// The step behind the last one of a chunk, for decays.
  tgl::ValueExpr endOf(mlir::Value chunk) {
    return decayHasSteps ? tgl::ValueExpr(length) : stepsOf(chunk);
  }
  /// Logarithms of products of decays from a chunk's begin up to each step, and their codes.
  void writeDecays();
  /// The product of the decays of a chunk's steps from `from` to before `to`; null: it is 1.
  mlir::Value decayBetween(Place &place, const tgl::ValueExpr &from, const tgl::ValueExpr &to);
  /// A tensor over the axes along which the factors vary, or decays do, without its tensor.
  ChunkTensor axesFor(llvm::ArrayRef<mlir::Value> factors, llvm::ArrayRef<mlir::Value> axes,
                      llvm::ArrayRef<mlir::Value> axesByDim, bool isDecayed);
  /// The product of factors for all steps, if `isDecayed` times decays of the chunk's steps: those
  /// that follow up to its end, or, for a readout, all from its begin that it sees. Steps that the
  /// last chunk lacks have zeros.
  ChunkTensor keep(llvm::ArrayRef<mlir::Value> factors, llvm::ArrayRef<mlir::Value> axes,
                   llvm::ArrayRef<mlir::Value> axesByDim, bool isDecayed, llvm::StringRef name,
                   mlir::Type type = {}, const LinearReadout *readout = nullptr);
  /// What is one element of a tensor is read where it is used.
  Operand operandOf(llvm::ArrayRef<mlir::Value> factors, llvm::ArrayRef<mlir::Value> axes,
                    llvm::ArrayRef<mlir::Value> axesByDim, llvm::StringRef name,
                    mlir::Type type = {});
  mlir::Value valueOf(Place &place, const Operand &operand, const tgl::ValueExpr &step);

private:
  llvm::SmallVector<mlir::Value> decayLeading, decayTrailing; // of a batch; summed ones
  bool decayHasSteps = false, decayMayBeNegative = false;
  mlir::Value codes;

  /// Writes them by sums for each step, all of them at once.
  void sumDecays();
  /// Writes them step by step: channels are enough points that do so.
  void walkDecays();
  bool isDecayAxis(mlir::Value axis, llvm::ArrayRef<mlir::Value> axesByDim);
  void addDecay(Place &place, mlir::Value factor, mlir::Value &log, mlir::Value &code);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDFACTORS_H
