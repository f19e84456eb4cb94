//===- CheckDims.h - Dims that bind a size by a formula ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKDIMS_H
#define TEGULA_FRONTEND_CHECK_CHECKDIMS_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// Binds sizes that no tensor shows bare, where one is left in a dim that is linear in it.
bool bindLinearDims(CheckContext &ctx);
/// Whether the name is a parameter's, or of a `where` size.
bool declares(const ast::Kernel &kernel, llvm::StringRef name);
/// The value that the caller of the checker knows the size to have; a guard says so.
std::optional<IndexExpr> fixedSize(CheckContext &ctx, llvm::StringRef name, Span span);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKDIMS_H
