//===- CheckExpr.h - Names and arithmetic -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKEXPR_H
#define TEGULA_FRONTEND_CHECK_CHECKEXPR_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Value eval(CheckContext &ctx, const ast::Expr &e);
Value arith(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b, Span span);
/// `isClamp`: `b` is a bound of `clamp`.
Value extremum(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b, Span span,
               bool isClamp = false);
/// A function of two floats, to which integers are converted.
Value ofFloats(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b, Span span);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKEXPR_H
