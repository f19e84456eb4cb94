//===- CheckParallel.h - Parallel blocks, states and tile loops -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKPARALLEL_H
#define TEGULA_FRONTEND_CHECK_CHECKPARALLEL_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

bool checkParallel(CheckContext &ctx, const ast::Stmt &stmt);
BlockAccess &noteBlockAccess(CheckContext &ctx, TensorInfo &info, bool isWrite, Span span,
                             llvm::ArrayRef<Subscript> subscripts);
IndexExpr inBlock(CheckContext &ctx, const IndexExpr &index);
bool checkTilesLoop(CheckContext &ctx, const ast::Stmt &stmt);
bool checkState(CheckContext &ctx, const ast::Stmt &stmt);
bool checkUpdate(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                 StateInfo &info);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKPARALLEL_H
