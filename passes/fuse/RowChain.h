//===- RowChain.h - Reductions of one row that use each other --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of products over j, whose left factor is computed from *elements*, values at a row and a j,
// and from *values of the row*, which reductions of elements over the same j give:
//
//   m = max_j s[j];  l = sum_j exp(s[j] - m);  o[d] = sum_j bf16(exp(s[j] - m) / l) * v[j, d]
//
// A chain of such reductions takes a pass over j each. It takes one where what later reductions use
// of earlier ones comes out of their sums: a factor of each term comes out as it is, and of
// exp(s - r) what comes out is exp(t - r), t being the largest s so far, from which the loop
// measures distances. r may be any value of the row: the largest score, the larger of it and an
// attention sink, a logsumexp.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_ROWCHAIN_H
#define TEGULA_PASSES_FUSE_ROWCHAIN_H

#include "passes/analysis/Matched.h"
#include "passes/analysis/Nest.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

/// The one statement that defines a temporary: it writes an element for each of its points, and
/// nothing else.
struct TempDefinition {
  tgl::TempOp temp;
  tgl::ParallelOp statement;
  tgl::WriteOp write;

  static std::optional<TempDefinition> of(mlir::Value tensor);
  mlir::Type elementType() { return write.getTensorType().getElementType(); }
};

/// An element that is summed up, as a linear function of `inner`.
struct ChainTerm {
  /// An operation between the element and `inner`: the operand that leads there, the others being
  /// elements. Without an operation: the rounding of a temporary to its type.
  struct Step {
    mlir::Operation *op = nullptr;
    unsigned operand = 0;
    mlir::Type rounded = {};
  };
  /// What all terms are multiplied with, or divided by.
  struct Scale {
    mlir::Value value;
    bool divides;
  };
  mlir::Value value, inner;
  llvm::SmallVector<Step> steps;   ///< outermost first
  llvm::SmallVector<Scale> scales; ///< outermost first; known after the loop alone
  /// Where `inner` is exp(score - shift) with a shift that is known after the loop alone.
  mlir::Value score = {}, shift = {};
  bool isBase2 = false;
};

struct RowChain {
  tgl::ParallelOp product; ///< or a statement of values of rows alone
  tgl::ReduceOp sum;       ///< then the last of its reductions
  /// Of the sum's axis. Where data gives it, it may be empty, and leave what elements have.
  tgl::AxisRange range;
  mlir::StringAttr checked; ///< the text of a read of elements that leaves them
  std::optional<mlir::Location> checkedAt;
  mlir::Value left;           ///< factor
  mlir::BlockArgument column; ///< d; null where there is no product
  ChainTerm term;             ///< of the left factor
  /// Temporaries whose elements are computed where they are used.
  llvm::MapVector<mlir::Value, TempDefinition> inlined;
  /// Axes of their statements, and of reductions over j, in terms of the product's axes and the
  /// sum's.
  llvm::DenseMap<mlir::Value, tgl::ValueExpr> place;
  /// Reductions over j, and which of them are needed after the loop.
  llvm::SetVector<mlir::Operation *> reductions, needed;
  llvm::MapVector<mlir::Operation *, ChainTerm> sums; ///< terms of those that are sums
  llvm::SetVector<mlir::Value> kept;                  ///< temporaries that other statements read
  llvm::SmallVector<mlir::Operation *> readers;       ///< of these, which stand before the product

  mlir::Value sumAxis() const { return tgl::ReduceOp(sum).getAxes()[0]; }
  bool hasKnownRange() const { return range.lo.asConstant() && range.hi.asConstant(); }
  tgl::ValueExpr placed(const tgl::ValueExpr &expr) const;
  /// The definition of what a read gives, where it is inlined.
  const TempDefinition *definitionOf(mlir::Value read) const;
  /// The value behind reads of temporaries of f32.
  mlir::Value behind(mlir::Value value) const;
  /// Whether the value varies along j.
  bool isElement(mlir::Value value) const;
  /// Whether the value is known after a loop over j alone.
  bool isAfterLoop(mlir::Value value) const;
  /// Whether both are the same function of the row and j.
  bool areSame(mlir::Value a, mlir::Value b) const;
  bool areSame(const tgl::ValueExpr &a, const tgl::ValueExpr &b) const;
  /// Whether the left factor is made of exponentials, as a softmax is.
  bool hasPowers() const;
  /// Whether the sums are read in quotients alone, of the products by that of the powers. Where
  /// nothing counts these are 0/0, NaN, as distances from a largest score of -inf are.
  bool areQuotients = false;
  /// Whether distances are from the largest score, and nobody can tell it from the loop's.
  bool isImplied(const ChainTerm &term) const {
    return areQuotients && isLargest(term.shift, term.score);
  }
  /// Whether the value is the largest score.
  bool isLargest(mlir::Value value, mlir::Value score) const;
};

/// The chain that ends in the statement. Nothing where it is none, where something else reads its
/// elements (unless they may be `shared`), or where what they are made of changes before the
/// statement.
Matched<RowChain> matchRowChain(tgl::ParallelOp statement, bool shared = false);

/// The chain of a statement that has values of rows from several reductions of elements, such as a
/// logsumexp, and no product.
Matched<RowChain> matchRowValues(tgl::ParallelOp statement);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_ROWCHAIN_H
