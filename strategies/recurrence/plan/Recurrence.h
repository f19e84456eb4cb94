//===- Recurrence.h - Plans a persistent RNN over a cluster -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement whose points, *rows*, each walk a loop in which every step needs the whole state of
// the one before:
//
//   parallel (n) { temp next; for t { parallel (u) { next[u] = f(gx[t, n, u], sum over k of w[u, k]
//   * h[n, k]) };
//                                     parallel (u) { h[n, u] = next[u] } } }
//
// A cluster of blocks takes a row. What its sums multiply the state with does not change: threads
// keep it in registers, and what these have no room for in shared memory, from the first step to
// the last. Each block has the state in shared memory, twice: a step reads one and puts what it
// computes into the other, of all blocks; a barrier of the cluster ends it. So a step costs no
// launch, and no read of weights. Blocks of a cluster run at once, whatever else does: none waits
// for one that has not begun.
//
// The strategy `recurrence` writes the cluster's shape into the statement (attribute `recurrence`);
// code generation (strategies/recurrence/lower/PersistentRecurrence.h) reads it.
// tgl-gather-recurrences makes such statements of loops on the host.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_RECURRENCE_PLAN_RECURRENCE_H
#define TEGULA_STRATEGIES_RECURRENCE_PLAN_RECURRENCE_H

#include "passes/analysis/Matched.h"
#include "passes/analysis/Nest.h"

namespace tegula {

/// `sum over k of state[.., k] * weight[.., k]`.
struct RecurrenceSum {
  tgl::ReduceOp reduce;
  tgl::ReadOp state, weight;
  int64_t terms;
};

/// A nest of the loop, with one axis.
struct RecurrenceNest {
  tgl::ParallelOp op;
  int64_t points;
  llvm::SmallVector<RecurrenceSum> sums;
  int copied = -1; ///< the state that becomes what its `next` is: the nest does nothing else

  mlir::BlockArgument axis() const;
};

/// A tensor of which points read elements that other points have written.
struct RecurrenceState {
  mlir::Value tensor, next; ///< `next`: a private temporary
  tgl::WriteOp write;       ///< of the nest that copies
  unsigned dim;             ///< of the tensor, that points go along
  int64_t points;
};

/// A tensor of which a point reads and writes an element of its own.
struct RecurrencePrivate {
  mlir::Value tensor;
  unsigned nest;                                ///< the first that touches it
  llvm::SmallVector<tgl::ValueExpr> subscripts; ///< there
};

struct RecurrencePlan {
  tgl::ParallelOp op;
  tgl::ForOp loop;
  int64_t rows;
  llvm::SmallVector<RecurrenceNest> nests;
  llvm::SmallVector<RecurrenceState> states;
  llvm::SmallVector<RecurrencePrivate> privates;
  llvm::DenseSet<mlir::Value> changing; ///< tensors that the loop writes

  const RecurrenceState *stateOf(mlir::Value tensor) const;
  int privateOf(mlir::Value tensor) const; ///< -1: none
};

/// How to run the statement; nothing where it is something else.
Matched<RecurrencePlan> planRecurrence(tgl::ParallelOp op);

/// Blocks of a cluster and threads of a block.
struct RecurrenceShape {
  int64_t cluster, threads;
  /// Blocks of a cluster wait for the bytes of the values that they need, not for each other.
  bool countsBytes = false;

  /// Points of a nest that a block takes.
  int64_t pointsOfBlock(int64_t points) const { return llvm::divideCeil(points, cluster); }
  /// Threads, neighbours in a warp, that share a point; 0: a block has too few.
  int64_t lanesFor(int64_t points) const;
  /// Terms of a sum that each of them takes, four neighbours at a time.
  static constexpr int64_t together = 4;
  int64_t termsOfLane(const RecurrenceNest &nest, const RecurrenceSum &sum) const;
  /// Registers of a thread that weights have: half of what it can get. What does not fit is in
  /// shared memory.
  int64_t weightsInRegisters() const { return threads <= 256 ? 128 : 64; }
  /// Weights of a thread; nothing where a nest has more points than a block has threads for.
  std::optional<int64_t> weightsOfThread(const RecurrencePlan &plan) const;
  int64_t sharedBytes(int64_t weights) const {
    return std::max<int64_t>(0, weights - weightsInRegisters()) * threads * sizeof(float);
  }

  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "recurrence";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<RecurrenceShape> of(tgl::ParallelOp op);
};

/// Nothing where weights do not fit, or where launches for each step take less time. `maxBlocks`:
/// of a cluster. `asked`: its blocks, where that is a cluster that fits, and whatever time that
/// takes; 0: nothing is.
Matched<RecurrenceShape> chooseRecurrenceShape(const RecurrencePlan &plan, int64_t maxBlocks,
                                               int64_t asked = 0);

} // namespace tegula

#endif // TEGULA_STRATEGIES_RECURRENCE_PLAN_RECURRENCE_H
