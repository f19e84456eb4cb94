//===- CheckIndex.h - Integers for subscripts and sizes ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKINDEX_H
#define TEGULA_FRONTEND_CHECK_CHECKINDEX_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// An expression as an integer for a size, bound or constant: no data, no vars but those visible.
std::optional<IndexExpr> evalSize(CheckContext &ctx, const ast::Expr &e, const llvm::Twine &what);
/// Any integer: what is read from data becomes a Data var.
std::optional<Subscript> evalIndex(CheckContext &ctx, const ast::Expr &e, const llvm::Twine &what,
                                   Code code = Code::NotAnInteger);
std::optional<Subscript> toSubscript(CheckContext &ctx, const Value &value, Span span,
                                     const llvm::Twine &what, Code code = Code::NotAnInteger);
std::optional<IndexExpr> toIndex(CheckContext &ctx, const Expr *expr);
const Var *dataVar(CheckContext &ctx, const Expr *expr);
std::optional<std::pair<IndexExpr, IndexExpr>> rangeOf(CheckContext &ctx, const Expr *expr);
unsigned keyOf(CheckContext &ctx, const Expr *expr);
void forgetValues(CheckContext &ctx);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKINDEX_H
