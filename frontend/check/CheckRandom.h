//===- CheckRandom.h - Random numbers ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKRANDOM_H
#define TEGULA_FRONTEND_CHECK_CHECKRANDOM_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Value evalRandom(CheckContext &ctx, const ast::Expr &e);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKRANDOM_H
