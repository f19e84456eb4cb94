//===- CheckGuard.h - Guards and facts --------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKGUARD_H
#define TEGULA_FRONTEND_CHECK_CHECKGUARD_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// Adds a guard, once; the one added or there already.
checked::Guard &addGuard(CheckContext &ctx, checked::Guard::Kind kind, IndexExpr lhs, IndexExpr rhs,
                         std::string message, Span span, const Domain *domain = nullptr);
/// Adds a guard for a condition on sizes, which is a fact from here on.
void requireAtLaunch(CheckContext &ctx, const Condition &condition, std::string message, Span span);
/// A warning about a guard, once; null where it would be a repetition or inside the library.
std::optional<Report> warnGuard(CheckContext &ctx, Code code, Span span, const llvm::Twine &message,
                                bool evenInLibrary);
/// A fact from here on: a guard says so.
void assume(CheckContext &ctx, const Condition &fact);
bool isAssumed(const CheckContext &ctx, const Condition &fact);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKGUARD_H
