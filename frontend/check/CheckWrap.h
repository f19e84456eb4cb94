//===- CheckWrap.h - Integers that may wrap ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKWRAP_H
#define TEGULA_FRONTEND_CHECK_CHECKWRAP_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// What an integer can be, computed without end: of its type where nothing more is known.
Interval intervalOf(CheckContext &ctx, const Expr *expr);
Interval intervalOf(CheckContext &ctx, const IndexExpr &expr);
/// Whether arithmetic in `expr` on integers narrower than 64 bits may wrap.
bool mayWrap(CheckContext &ctx, const Expr *expr);
/// The integer as subscripts, bounds and comparisons compute it: in 64 bits, where its own type
/// may wrap.
const Expr *in64Bits(CheckContext &ctx, const Expr *expr);
/// As evalIndex, for the bound of a range: what may wrap is a value of its own, with no formula.
std::optional<Subscript> evalBound(CheckContext &ctx, const ast::Expr &e, const llvm::Twine &what,
                                   Code code);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKWRAP_H
