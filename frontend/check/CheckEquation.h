//===- CheckEquation.h - Equations ------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKEQUATION_H
#define TEGULA_FRONTEND_CHECK_CHECKEQUATION_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

struct LeftSide;

void reportDefinedTwice(CheckContext &ctx, const ast::Target &target, Span first);
bool checkEquation(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                   bool isState);
/// Everything but the right side, which `value` gives once the indices are bound.
bool defineElements(CheckContext &ctx, LeftSide &left, llvm::function_ref<Value()> value);
/// Joins the conditions at the end of an equation in `guard`, and puts them on the path.
bool addFilters(CheckContext &ctx, const LeftSide &left, const Expr *&guard);
/// Notes that a tensor whose first value is weak has to hold values of a wider type.
void widenWeakTensor(CheckContext &ctx, const TensorInfo &info, const Value &value);
const Expr *storable(CheckContext &ctx, const Value &value, DType type, const llvm::Twine &what,
                     Span span);
/// An output of a called kernel whose generic type stands for integers takes the type of a float
/// that is its first value, as PyTorch's results do.
void promoteOutput(CheckContext &ctx, TensorInfo &info, const Value &value);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKEQUATION_H
