//===- CheckDomain.h - Domains of expressions -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKDOMAIN_H
#define TEGULA_FRONTEND_CHECK_CHECKDOMAIN_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// The points of the indices that the expressions use; with what the path demands, and with the
/// sequential loops around. Other indices do not count, even where their ranges are empty: what
/// does not vary along an index is computed once for all of its points, or for none.
Domain domainOf(CheckContext &ctx, llvm::ArrayRef<IndexExpr> exprs, bool withLoops, bool withPath);
bool pathIsComplete(CheckContext &ctx);
void collectConditions(CheckContext &ctx, const Expr *condition, bool isTrue,
                       llvm::SmallVectorImpl<Condition> &conditions, bool &complete);
bool usesData(CheckContext &ctx, const IndexExpr &expr);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKDOMAIN_H
