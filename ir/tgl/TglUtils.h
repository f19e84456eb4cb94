//===- TglUtils.h - What passes ask of tgl IR ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGLUTILS_H
#define TEGULA_IR_TGL_TGLUTILS_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/SetVector.h"

namespace tegula::tgl {

//===----------------------------------------------------------------------===//
// Integer expressions of ops, in terms of values
//===----------------------------------------------------------------------===//

/// An integer value as an expression: looks through `tgl.index`, integer constants and casts
/// between index and i64.
ValueExpr getValueExpr(mlir::Value value);
/// A value of type index: the one that the expression is, a constant, or a new `tgl.index`.
mlir::Value materialize(mlir::OpBuilder &builder, mlir::Location loc, const ValueExpr &expr);

/// Replaces each expression of the op (subscripts, bounds, positions) by `rewrite` of it, or keeps
/// it where that is no formula (overflow). The op's own axes are values here like any other.
/// Rebuilds `indices`: distinct, each used, in order of use.
void rewriteExprs(IndexedOp op, llvm::function_ref<ValueExpr(const ValueExpr &)> rewrite);
/// `from` becomes `to` in the expressions of the op.
void replaceIndex(IndexedOp op, mlir::Value from, const ValueExpr &to);
/// Every use of `from` becomes `to`: in expressions directly, elsewhere through a `tgl.index` made
/// before the user.
void replaceAllUsesWithExpr(mlir::OpBuilder &builder, mlir::Value from, const ValueExpr &to);

/// Row-major offset of an access, in elements.
ValueExpr elementOffset(TglTensorType type, llvm::ArrayRef<ValueExpr> subscripts);
/// By how much an expression moves along an axis, where that is the same at every point of it.
std::optional<int64_t> stepAlong(const ValueExpr &expr, mlir::Value axis);

/// An op with axes, of whatever kind. It is a copy: methods of ops are not const.
inline AxesOp axesOfOp(mlir::Operation *op) { return llvm::cast<AxesOp>(op); }

struct AxisRange {
  ValueExpr lo, hi; // lo <= axis < hi
};
AxisRange getAxisRange(AxesOp op, unsigned axis);
llvm::SmallVector<AxisRange> getAxisRanges(AxesOp op);
/// Points of the box of these axes (of all axes); nothing where an extent is not known or the
/// product leaves 64 bits. Empty ranges count as 0.
std::optional<int64_t> knownPoints(AxesOp op, llvm::ArrayRef<unsigned> axes);
std::optional<int64_t> knownPoints(AxesOp op);
/// Bounds may use the op's earlier axes.
void setAxisRange(AxesOp op, unsigned axis, const ValueExpr &lo, const ValueExpr &hi);
llvm::StringRef getAxisName(AxesOp op, unsigned axis); // empty where it has none
AxisSpec getAxisSpec(AxesOp op, unsigned axis);
/// Adds an axis before `position`. Its bounds may use axes before it.
mlir::BlockArgument insertAxis(AxesOp op, unsigned position, const AxisSpec &axis);
/// Removes an axis that nothing uses.
void eraseAxis(AxesOp op, unsigned axis);

/// The range of an axis, of a loop variable, or of the bounds of a tile loop's current tile (the
/// lower in [lo, hi), the upper in [lo + 1, hi + 1)). Nothing for other block arguments.
std::optional<AxisRange> getRange(mlir::BlockArgument argument);

//===----------------------------------------------------------------------===//
// What values vary along
//===----------------------------------------------------------------------===//

/// In order of discovery, which is the order of the IR, hence the same in every run.
using AxisSet = llvm::SetVector<mlir::BlockArgument>;

/// The axes, loop variables and tile bounds that a value varies along, through all that it is
/// computed from. A private temporary varies along the axes of the `parallel`s around it; elements
/// of other tensors vary along the subscripts that they are read at.
AxisSet axesOf(mlir::Value value);
/// As above for all that happens in the op and its regions, its own axes left out.
AxisSet axesUsedBy(mlir::Operation *op);

/// True for a temporary of one point of a `parallel`.
bool isPrivate(TempOp temp);

/// Tensors that the op and what is nested in it reads and writes (`write add` does both; a call
/// reads inputs and writes outputs of its callee; unknown callees do both to all).
struct Accesses {
  llvm::SetVector<mlir::Value> reads, writes;
};
Accesses accessesOf(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// A sum of a product: `sum_k f_0 * f_1 * ...`, of two factors or more that vary along the sum's
/// axes.
struct Contraction {
  struct Factor {
    mlir::Value value; // inside the reduction's region or before it
    AxisSet axes;
  };
  ReduceOp reduce;
  llvm::SmallVector<Factor, 2> factors;
};
std::optional<Contraction> matchContraction(ReduceOp reduce);

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_TGLUTILS_H
