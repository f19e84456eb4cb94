//===- Outline.h - Outlines a value into a statement over its own axes -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inside `parallel (i, j) { ... reduce (k) { X } }` an op X that uses i alone is computed for all
// i, j and k. Its *own axes* are those that it, or what it is computed from, uses (with the axes
// that their bounds use). An Outline says where a new statement over the own axes can stand, and
// what must be copied into it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_OUTLINE_H
#define TEGULA_PASSES_ANALYSIS_OUTLINE_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Functions that cost tens of instructions: worth a temporary where they would run again and
/// again.
bool isCostly(mlir::Operation *op);

/// The largest expression around a costly op that varies along as many axes: its users in turn, as
/// long as there is one and it needs no more axes.
mlir::Operation *largestAlike(mlir::Operation *op, size_t numAxes);

/// The axes and ops around a value that it needs, up to the first sequential op.
struct Outline {
  /// The new statement goes before this op, inside which the value stands.
  mlir::Operation *anchor = nullptr;
  /// Own axes among those of `anchor` and the ops in it, outermost first.
  llvm::SmallVector<mlir::Value> axes;
  /// The axes between that the value does not use, and leaves.
  llvm::SmallVector<mlir::Value> left;
  /// Ops to clone, in order.
  llvm::SetVector<mlir::Operation *> ops;
};

enum class OutlineMode {
  /// Only if the value is now computed more than once per point of its own axes.
  IfRepeated,
  /// Always: the anchor stands among statements.
  Always,
};

/// Nothing where the value is where it should be, or may not move: it depends on a private
/// temporary, or on a tensor that the statement around it writes.
std::optional<Outline> outline(mlir::Operation *op, llvm::ArrayRef<mlir::Value> needs,
                               OutlineMode mode);

/// The outline of a value that is to be computed right before `anchor`, an op with axes around it.
std::optional<Outline> outlineTo(mlir::Operation *anchor, mlir::Operation *op,
                                 llvm::ArrayRef<mlir::Value> needs);

/// Lets `moved`, a copy outside of the axes `left`, access only what the original does where these
/// have no points: checked accesses report, and reads that nothing but a launch's guard keeps
/// inside their tensors happen, only where they have points. `map` tells what stands there for
/// values of the original place. An axis whose length is not known there counts as one that has
/// points.
void accessOnlyWithin(mlir::Operation *moved, llvm::ArrayRef<mlir::Value> left,
                      const mlir::IRMapping &map, Prover &prover);

/// A temporary with one dim for each axis, and the subscripts of the element of a point.
struct AxesTemp {
  mlir::Value tensor;
  llvm::SmallVector<mlir::Value> axes;
  /// Over `axes`.
  llvm::SmallVector<tgl::ValueExpr> subscripts;
  /// Over what `map` makes of the axes.
  llvm::SmallVector<tgl::ValueExpr> subscriptsIn(const mlir::IRMapping &map) const;
};

/// A temporary over axes, created before `anchor`. Nothing where an extent has no bound in sizes;
/// the size of a tile loop without one becomes `tileSize`.
std::optional<AxesTemp> makeAxesTemp(mlir::Operation *anchor, llvm::ArrayRef<mlir::Value> axes,
                                     mlir::Type elementType, llvm::StringRef name, Prover &prover,
                                     int64_t tileSize);

/// Computes the result of `op` in a new statement at `where`, into a temporary over its own axes;
/// every use of the result reads that. The op stays, unused. Nothing changes where the temporary
/// cannot be.
std::optional<AxesTemp> storeOutlined(mlir::Operation *op, const Outline &where,
                                      llvm::StringRef name, Prover &prover, int64_t tileSize);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_OUTLINE_H
