//===- Nest.h - Utilities for loop nests, bounds and subscripts -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers for nests of `parallel`s, reductions and loops that several passes use: bounds and
// subscripts over values, copies of axes, removal of what is unused.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_NEST_H
#define TEGULA_PASSES_ANALYSIS_NEST_H

#include "ir/tgl/Tgl.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/IRMapping.h"
#include "symbolic/Prove.h"
#include "llvm/ADT/SetVector.h"

namespace tegula {

/// On a reduction that came from a called kernel with its own precision: that precision.
inline constexpr llvm::StringLiteral precisionAttrName = "precision";

/// The bounds of an axis, a block argument of a parallel, reduce or scan.
tgl::ValueExpr lowOf(mlir::Value axis);
tgl::ValueExpr highOf(mlir::Value axis);
/// The name that the user gave an axis, or empty.
llvm::StringRef nameOf(mlir::Value axis);
/// The op whose axis `value` is, or null.
tgl::AxesOp axesOpOf(mlir::Value value);

/// The expression behind an integer value of any width (arithmetic is taken to be exact), seen
/// through tgl.index, casts and integer arithmetic. Nothing where an integer that is not an index
/// is data.
std::optional<tgl::ValueExpr> integerExprOf(mlir::Value value);

/// The number of points of a box whose bounds do not use its own axes.
std::optional<tgl::ValueExpr> boxVolume(tgl::AxesOp op);

/// A parallel over copies of `axes`, which may be of different ops and stand in an order in which
/// bounds use earlier ones. Other values in bounds are looked up in `map`; the copies are added to
/// it.
tgl::ParallelOp copyAxes(mlir::OpBuilder &builder, mlir::Location loc,
                         llvm::ArrayRef<mlir::Value> axes, mlir::IRMapping &map);

/// The parallel statements of a kernel that stand in no other: each is a launch of a GPU.
llvm::SmallVector<tgl::ParallelOp> outermostStatements(tgl::KernelOp kernel);

/// Erases the ops of a block whose results are unused and that write nothing, nested blocks
/// included. Returns how many.
unsigned eraseUnusedOps(mlir::Block &block);

/// Replaces axes of one point by the point, as long as another axis is left, in the op and all that
/// is in it: statements over the same points then have the same axes, as a convolution of one group
/// has with what follows it. A loop needs no other axis: what takes its steps has lost that of its
/// only row too. Returns how many.
unsigned dropSinglePoints(mlir::Operation *root);

/// Makes the `indices` of an op distinct values that its expressions use, with integer arithmetic
/// folded in. Returns the number of folded ones.
unsigned foldIndices(tgl::IndexedOp op);
/// Gives a read, a write or a sort without further expressions other subscripts.
void setSubscripts(mlir::Operation *access, llvm::ArrayRef<tgl::ValueExpr> subscripts);
/// Whether foldIndices has something to do: not where a formula would be too large.
bool hasFoldableIndices(tgl::IndexedOp op);

/// Elements of a row from where on no cluster of blocks keeps it.
inline constexpr int64_t veryLongRow = 1 << 20;

/// Whether neighbours of the reduction are neighbours in memory, in most of the reads that vary
/// along the most axes.
bool runsAlongRows(tgl::ReduceOp reduce);

/// By how many elements an access moves along an axis, if that is the same everywhere.
std::optional<int64_t> strideAlong(tgl::TglTensorType type,
                                   llvm::ArrayRef<tgl::ValueExpr> subscripts, mlir::Value axis);
/// Whether neighbouring points of the statement, along its last axis, touch memory side by side.
bool neighboursAreNear(tgl::ParallelOp statement);

/// The length of a range where all axes that its bounds use are at their lows: of the first piece
/// of a cut one.
std::optional<int64_t> lengthOfFirst(const tgl::AxisRange &range);

/// The length of pieces of about extent / parts: where there is one, a divisor that vectors divide.
int64_t pieceLength(int64_t extent, int64_t parts);

/// Values defined above the op that its regions use, and its operands.
llvm::SetVector<mlir::Value> valuesUsedBy(mlir::Operation *op);

/// Whether an op from `first` to `last`, both included and in one block, writes one of the tensors.
bool writesOneOf(const llvm::SetVector<mlir::Value> &tensors, mlir::Operation *first,
                 mlir::Operation *last);
/// The same for what `reader` reads.
bool writesInputsOf(mlir::Operation *reader, mlir::Operation *first, mlir::Operation *last);

/// Whether it is the constant 0.
bool isZero(mlir::Value value);
/// Whether `value` is 0 where the read gives 0.
bool vanishesWith(mlir::Value value, tgl::ReadOp read);

/// Ops that run code in order, or are statements, around axes: for, tiles, launch, kernel.
bool isSequential(mlir::Operation *op);

/// Expressions at one place in a kernel, as a prover sees them: every value has a position, axes
/// and loop variables around the place have ranges.
///
/// A proof uses the ranges of those axes alone that its expressions use. Another axis around the
/// place may have no points, from which anything would follow; but a value that does not use the
/// axis may be computed outside of it (tgl-distribute, tgl-fuse), where there are points.
class AxisScope {
public:
  AxisScope(Prover &prover, mlir::Operation *place);

  /// The ranges of all axes around: of what stays where it is.
  const Domain &domain() const { return ranges; }
  IndexExpr toDims(const tgl::ValueExpr &expr);
  tgl::ValueExpr toValues(const IndexExpr &expr) const;
  /// Adds the range of a variable that is not around the place.
  void addAxis(mlir::Value axis, const tgl::ValueExpr &lo, const tgl::ValueExpr &hi);

  /// A condition that holds at the place.
  void assume(Condition condition) { ranges.conditions.push_back(std::move(condition)); }

  bool proves(const Condition &condition) {
    return prover.proves(condition, rangesFor({condition.lhs, condition.rhs}));
  }
  bool provesInBounds(const tgl::ValueExpr &subscript, const IndexExpr &size) {
    IndexExpr expr = toDims(subscript);
    return prover.provesInBounds(expr, size, rangesFor({expr, size}));
  }
  /// The expression in a simpler form, which uses every axis of it that may have no points, unless
  /// one of `kept` does: what an axis without points implies is no reason to leave that axis.
  tgl::ValueExpr simplify(const tgl::ValueExpr &expr, llvm::ArrayRef<tgl::ValueExpr> kept = {}) {
    tgl::ValueExpr simpler = simplerInside(expr);
    llvm::SmallVector<tgl::ValueExpr> all(kept);
    all.push_back(simpler);
    return hasPoints(expr, all) ? simpler : expr;
  }
  /// A simpler form for an expression that stays inside of all axes that it uses.
  tgl::ValueExpr simplerInside(const tgl::ValueExpr &expr) {
    IndexExpr dims = toDims(expr);
    return toValues(prover.simplify(dims, rangesFor({dims})));
  }
  Range rangeOf(const tgl::ValueExpr &expr) {
    IndexExpr dims = toDims(expr);
    return prover.range(dims, rangesFor({dims}));
  }
  /// Whether every axis that the expression uses, through bounds of others too, has points, or is
  /// one that `kept` uses: what uses that stays inside of it.
  bool hasPoints(const tgl::ValueExpr &expr, llvm::ArrayRef<tgl::ValueExpr> kept);
  /// An upper bound of the expression, in sizes.
  std::optional<IndexExpr> maxOf(const tgl::ValueExpr &expr);

private:
  unsigned dimOf(mlir::Value value);
  /// Positions of the variables that expressions use, through the bounds of variables too.
  llvm::DenseSet<unsigned> usedBy(llvm::ArrayRef<IndexExpr> exprs) const;
  /// The conditions, and the ranges that they and the expressions use.
  Domain rangesFor(llvm::ArrayRef<IndexExpr> exprs) const;
  Prover &prover;
  Domain ranges;
  llvm::SmallVector<mlir::Value> values;
};

/// Whether the expression may wrap in 64 bits: a multiple of an axis whose bounds are data, which
/// lie within 2^61. Of all other axes formulas are exact [frontend/check/sizes/CheckExact.cpp]; for
/// data ranges say nothing.
bool mayWrap(const tgl::ValueExpr &expr);

/// Facts about the sizes of a kernel: definitions, guards, dims.
SizeFacts sizeFacts(tgl::KernelOp kernel);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_NEST_H
