//===- CheckBuild.h - Typed expression nodes of the checker -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKBUILD_H
#define TEGULA_FRONTEND_CHECK_CHECKBUILD_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Expr *makeExpr(CheckContext &ctx, Expr::Kind kind, DType type, Span span);
/// Sets `axes` from operands and the rest; the last step of making a node.
const Expr *finishExpr(CheckContext &ctx, Expr *expr);
void addAxes(CheckContext &ctx, std::vector<unsigned> &axes, const IndexExpr &expr);
void addAxes(std::vector<unsigned> &axes, const Expr *expr);
const Expr *constantNode(CheckContext &ctx, double value, DType type, Span span);
const Expr *booleanNode(CheckContext &ctx, bool value, Span span);
const Expr *indexNode(CheckContext &ctx, const IndexExpr &index, Span span);
Value indexValue(CheckContext &ctx, const IndexExpr &index, Span span);
Value floatLiteral(CheckContext &ctx, double value, Span span);
const Expr *binaryNode(CheckContext &ctx, checked::Binary op, const Expr *a, const Expr *b,
                       DType type, Span span, bool isClamp = false);
const Expr *unaryNode(CheckContext &ctx, checked::Unary op, const Expr *a, DType type, Span span);
/// The value in `type`, a compute type at least as wide as the value's own (weak: any).
const Expr *coerce(CheckContext &ctx, const Value &value, DType type);
const Expr *widen(CheckContext &ctx, const Expr *expr, DType type);
/// The value alone: weak ones as f32 or i64.
const Expr *settle(CheckContext &ctx, const Value &value);
DType typeAlone(const Value &value);
/// The type in which two values meet, and whether the result is weak.
std::pair<DType, bool> meet(CheckContext &ctx, const Value &a, const Value &b, Span span);
std::optional<double> constantOf(const Expr *expr);
std::optional<bool> boolOf(const Expr *expr);
inline Value strong(const Expr *expr) { return Value{expr, false, std::nullopt, {}}; }

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKBUILD_H
