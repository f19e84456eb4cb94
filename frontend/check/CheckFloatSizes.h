//===- CheckFloatSizes.h - Sizes of float arithmetic ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKFLOATSIZES_H
#define TEGULA_FRONTEND_CHECK_CHECKFLOATSIZES_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// A value of float arithmetic on sizes as a size: where it is whole by its form, or truncated.
std::optional<IndexExpr> sizeOf(CheckContext &ctx, const Value &value, bool truncates);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKFLOATSIZES_H
