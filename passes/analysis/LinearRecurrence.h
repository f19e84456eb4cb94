//===- LinearRecurrence.h - Matches loops with a state that is linear in itself -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop of steps t whose state S is updated by a scale, the *decay*, and a product of two factors,
//
//   S[z, i, j] = decay[t, z] * S[z, i, j] + key[t, z, i] * value[t, z, j]
//
// and of which every step reads sums, the *readouts*: sum over i of query[t, z, i] * S[z, i, j].
// Linear attention, retention and Mamba-2 are such loops. In delta rules the value is corrected by
// a readout before the update, `value = base + scale * (sum over i of query * S)`, a temporary of
// the step. Dims of the state are of three kinds: summed ones (i), along which readouts sum; batch
// dims (z), along which the decay, keys or queries vary; columns (j), all others.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_LINEARRECURRENCE_H
#define TEGULA_PASSES_ANALYSIS_LINEARRECURRENCE_H

#include "passes/analysis/Matched.h"
#include "passes/analysis/Nest.h"

namespace tegula {

/// `sum over i of query * S`.
struct LinearReadout {
  tgl::ReduceOp reduce;
  tgl::ParallelOp statement;
  llvm::SmallVector<mlir::Value> query; ///< factors of the product, without the state
  llvm::SmallVector<mlir::Value> axes;  ///< by dim of the state, of the sum or the statement
  bool isNegative = false;              ///< the product's sign
  bool seesStep = false;                ///< the state is that after the step's update
};

/// A temporary of the step that takes part of the state's readout off the value.
struct ValueCorrection {
  tgl::ParallelOp statement;
  unsigned readout = 0;                       ///< among those of the recurrence
  llvm::SmallVector<mlir::Value> scale, base; ///< factors
  bool scaleIsNegative = false, baseIsNegative = false;
};

struct LinearRecurrence {
  enum class Dim { Batch, Summed, Column };

  tgl::ForOp loop;
  mlir::Value state;
  tgl::ParallelOp update;
  llvm::SmallVector<mlir::Value> axes;       ///< of the update, by dim of the state
  llvm::SmallVector<Dim> dims;               ///< of the state
  llvm::SmallVector<mlir::Value> decay;      ///< factors; none: the state is only added to
  llvm::SmallVector<mlir::Value> key, value; ///< factors of what is added
  bool isNegative = false;                   ///< what is added
  std::optional<ValueCorrection> correction; ///< `value` is a read of what its statement writes
  llvm::SmallVector<LinearReadout> readouts; ///< in the loop's order
  llvm::DenseSet<mlir::Operation *> readers; ///< statements that depend on the state

  /// Dims of the state along which one of the values varies, which are of the update (of the
  /// readout).
  llvm::SmallVector<unsigned> dimsOf(llvm::ArrayRef<mlir::Value> factors,
                                     llvm::ArrayRef<mlir::Value> axesByDim) const;
  llvm::SmallVector<unsigned> dimsOfKind(Dim kind) const;
};

Matched<LinearRecurrence> matchLinearRecurrence(tgl::ForOp loop);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_LINEARRECURRENCE_H
