//===- CheckResult.h - Results of calls -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKRESULT_H
#define TEGULA_FRONTEND_CHECK_CHECKRESULT_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

bool storeResult(CheckContext &ctx, const ast::Target &target, TensorInfo *result, Span span);
/// `to[..., offset + i, ...] = from[..., i, ...]`, the offset along `dim`.
bool copyTensor(CheckContext &ctx, TensorInfo *from, TensorInfo *to, unsigned dim,
                const IndexExpr &offset, Span span);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKRESULT_H
