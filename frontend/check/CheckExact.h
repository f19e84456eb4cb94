//===- CheckExact.h - Formulas within 64 bits -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKEXACT_H
#define TEGULA_FRONTEND_CHECK_CHECKEXACT_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// Whether the polynomial, computed in 64 bits, is never another number than without end: at the
/// sizes that a launch admits, for which it may add a guard. Only then is it more than a number
/// to the prover.
bool isExact(CheckContext &ctx, const IndexExpr &expr);
/// Whether quotients, extremes and bits of the two may be formulas: not where an index between
/// bounds of data makes a number that wraps.
bool isFormula(CheckContext &ctx, const Value &a, const Value &b);
/// Reports a formula of sizes and indices that is not exact, or a part of one: a subscript, a
/// bound, or a side of a comparison. What data makes is another matter: it is checked while
/// running.
bool requireIn64Bits(CheckContext &ctx, const IndexExpr &expr, Span span);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKEXACT_H
