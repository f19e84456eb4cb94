//===- CheckRead.h - Subscripts, groups and reads ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKREAD_H
#define TEGULA_FRONTEND_CHECK_CHECKREAD_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Value evalRead(CheckContext &ctx, const ast::Expr &e);
std::optional<Subscript> evalGroup(CheckContext &ctx, const ast::Subscript &group,
                                   const IndexExpr &dim, const TensorInfo *info);
const Expr *readTensor(CheckContext &ctx, TensorInfo &info, llvm::ArrayRef<Subscript> subscripts,
                       const Expr *fill, Span span);
/// The value of an element that was read.
Value ofElement(const TensorInfo &info, const Expr *read);
const Expr *pathGuard(CheckContext &ctx);
void requireReadable(CheckContext &ctx, TensorInfo &info, Span span,
                     llvm::ArrayRef<Subscript> subscripts);
void rankMismatch(CheckContext &ctx, const TensorInfo &info, size_t given, Span span);
std::string showDims(CheckContext &ctx, const TensorInfo &info);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKREAD_H
