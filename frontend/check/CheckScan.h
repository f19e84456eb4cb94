//===- CheckScan.h - Scans --------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKSCAN_H
#define TEGULA_FRONTEND_CHECK_CHECKSCAN_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

bool requireOneRange(CheckContext &ctx, const checked::Var &var, Span span);
Value evalScan(CheckContext &ctx, const ast::Expr &e);
const Expr *renameVars(CheckContext &ctx, const Expr *expr);
IndexExpr renameVars(CheckContext &ctx, const IndexExpr &expr);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKSCAN_H
