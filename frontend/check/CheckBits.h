//===- CheckBits.h - Operators on bits, powers of integers ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKBITS_H
#define TEGULA_FRONTEND_CHECK_CHECKBITS_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

Value power(CheckContext &ctx, const Value &a, const Value &b, Span span);
Value complement(CheckContext &ctx, const Value &a, Span span, Span opSpan);
Value bitwise(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b, Span span,
              Span opSpan);
std::optional<std::pair<int64_t, int64_t>> bitsRange(CheckContext &ctx, const Expr *expr);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKBITS_H
