//===- CheckStmt.h - Scalars, loops, schedules and topk ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKSTMT_H
#define TEGULA_FRONTEND_CHECK_CHECKSTMT_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// No statement is dropped in silence: what checks one says whether it is in the program. Where
/// it is not, checkBody asks whether an error was reported, and otherwise reports one.
void checkBody(CheckContext &ctx, llvm::ArrayRef<ast::StmtPtr> body);
Stmt *appendStmt(CheckContext &ctx, Stmt::Kind kind, Span span);

/// Finds the sizes that `invariant` of a kernel names, and keeps them in the program: those of a
/// called kernel are sizes of the entry [4.11].
void bindInvariantNames(CheckContext &ctx, Frame &of);
/// No sum of the program runs over such a size: what its order is would depend on the size.
void requireNoInvariantSums(CheckContext &ctx);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKSTMT_H
