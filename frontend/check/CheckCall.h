//===- CheckCall.h - Calls of kernels ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKCALL_H
#define TEGULA_FRONTEND_CHECK_CHECKCALL_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// Checks a call of a kernel and appends its statement. The results, new temporaries, or nothing
/// (reported).
std::optional<std::vector<TensorInfo *>> callKernel(CheckContext &ctx, const ast::Expr &call);
bool checkCallAssign(CheckContext &ctx, const ast::Stmt &stmt);
bool checkCallStatement(CheckContext &ctx, const ast::Stmt &stmt);
TensorInfo *newTemporary(CheckContext &ctx, llvm::StringRef name, DType type,
                         std::vector<IndexExpr> dims, Span span);
bool isKernelCall(CheckContext &ctx, const ast::Expr &e);
std::string signatureOf(CheckContext &ctx, const ast::Kernel &kernel);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKCALL_H
