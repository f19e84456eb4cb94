//===- Solve.h - From what reads an element to the element ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An equation that reads x[s(i)] and has the adjoint a(i) there adds a(i) to the adjoint of x at
// s(i), for all points i. Where s(i) = m can be solved for indices of i, the adjoint at m is the
// sum over the others: a transposed product, a convolution, a window. Else the points are
// scattered: grad_x[s(i)] += a(i).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_SOLVE_H
#define TEGULA_GRAD_SOLVE_H

#include "grad/Builder.h"

namespace tegula::grad {

/// What one read of a tensor adds to the tensor's adjoint.
struct Contribution {
  /// Neither can be written: an index ranges over no size.
  bool isRefused = false;
  bool isScatter = false;
  /// Sum: the digits of each dim, one or more new axes, and the value in terms of these. None where
  /// one element of the dim alone is meant, that at `fixed`.
  llvm::SmallVector<llvm::SmallVector<const Var *, 1>, 4> layout;
  llvm::SmallDenseMap<unsigned, IndexExpr, 2> fixed;
  const Expr *value = nullptr;
  /// Scatter: all of it but the target.
  Equation scatter;
  /// Whether some elements get 0 because a condition excludes them.
  bool isMasked = false;
};

/// `read` has the adjoint `adjoint` where `condition` holds, at all points of `domain`, of which
/// the first `outer` are no indices of a reduction. `isInStep`: in a step of a loop, which adds to
/// the elements that it reads alone.
Contribution solve(Builder &builder, const Expr *read, const Expr *adjoint, const Expr *condition,
                   llvm::ArrayRef<const Var *> domain, unsigned outer, bool isInStep = false);

/// c of c*v + rest, where rest is free of v; nothing where the expression is not of that form.
std::optional<IndexExpr> coefficientOf(const IndexExpr &expr, unsigned var);

/// The members of a subscript that is a group, first one first: all of them indices from 0.
/// Empty where it is none, or its first member is no index.
llvm::SmallVector<unsigned, 4> digitsOf(const Builder &builder, const IndexExpr &subscript,
                                        const IndexExpr &first);

/// Whether these are equal, or every launch checks that they are.
bool areEqualSizes(const Builder &builder, const IndexExpr &a, const IndexExpr &b);

/// The first member of a group that makes up a whole dim; nothing where the subscript is none.
std::optional<IndexExpr> firstDigit(const Builder &builder, const IndexExpr &subscript,
                                    const IndexExpr &dim);

} // namespace tegula::grad

#endif // TEGULA_GRAD_SOLVE_H
