//===- CheckCondition.h - Comparisons, logic and where ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKCONDITION_H
#define TEGULA_FRONTEND_CHECK_CHECKCONDITION_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Value evalLogic(CheckContext &ctx, const ast::Expr &e);
Value evalCompare(CheckContext &ctx, const ast::Expr &e);
Value evalWhere(CheckContext &ctx, const ast::Expr &e);
Value compare(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b, Span span);
const Expr *asCondition(CheckContext &ctx, const Value &value, Span span, llvm::StringRef what,
                        Code code = Code::NotABool);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKCONDITION_H
