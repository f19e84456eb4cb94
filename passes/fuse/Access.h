//===- Access.h - Accesses of statements ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fusion asks of two statements which of their axes they share: pairs of axes such that, wherever
// the two touch the same element of a tensor (and one writes it), the axes have the same value. A
// nest over such pairs keeps every dependence inside one point.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_ACCESS_H
#define TEGULA_PASSES_FUSE_ACCESS_H

#include "passes/analysis/Nest.h"
#include <memory>

namespace tegula {

/// One access to a tensor that is defined outside the statement.
struct Access {
  mlir::Operation *op = nullptr;
  mlir::Value tensor;
  bool writes = false;
  /// Nothing stands for the whole extent of a dim.
  llvm::SmallVector<std::optional<tgl::ValueExpr>> subscripts;
};

/// All accesses in an op, nested ones included, to tensors from outside.
llvm::SmallVector<Access> accessesIn(mlir::Operation *statement);

/// Whether one op writes what the other touches.
bool conflict(mlir::Operation *a, mlir::Operation *b);

/// An axis of one parallel and the axis of another that it equals.
struct AxisPair {
  mlir::Value first, second;
  bool operator==(const AxisPair &other) const = default;
};

/// The axes that two parallels share; `flow` says whether tensors that one of them writes decide
/// it, else tensors that both read do.
struct SharedAxes {
  llvm::SmallVector<AxisPair> pairs; // in the order of the first one's axes
  bool flow = false;
};

/// Tells the axes that statements share. Keeps what it found of statements and of pairs while they
/// stand as they are: who changes one says so.
class AxisSharing {
public:
  explicit AxisSharing(Prover &prover);
  ~AxisSharing();
  /// Valid until the next call.
  const SharedAxes &of(tgl::ParallelOp first, tgl::ParallelOp second);
  void forget(tgl::ParallelOp statement);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Whether nothing in the expression varies inside `op`.
bool isDefinedOutside(const tgl::ValueExpr &expr, mlir::Operation *op);

/// E where `subscript` is `E*axis + rest`, rest without the axis.
std::optional<IndexExpr> weightIn(const tgl::ValueExpr &subscript, mlir::Value axis);

/// E where `subscript` is `E*axis + rest` and 0 <= rest < E wherever `place` runs; 1 where it is
/// the axis itself (plus what does not vary inside the axis's op). Axis and rest are then functions
/// of the subscript.
std::optional<IndexExpr> digitOf(const tgl::ValueExpr &subscript, mlir::Value axis,
                                 mlir::Operation *place, Prover &prover);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_ACCESS_H
