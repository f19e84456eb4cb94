//===- CheckObligation.h - Obligations on sizes and bounds ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKOBLIGATION_H
#define TEGULA_FRONTEND_CHECK_CHECKOBLIGATION_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

enum class Bound {
  Proved,  // without the path
  OnPath,  // proved, or guarded, where the path conditions hold
  Runtime, // to be checked while running
  Guarded, // by a guard
  Wrong,   // reported
};

Bound requireInBounds(CheckContext &ctx, const IndexExpr &index, const IndexExpr &size,
                      const Obligation &what);
bool requireEqual(CheckContext &ctx, const IndexExpr &a, const IndexExpr &b, Span span,
                  const llvm::Twine &what, Code refuted,
                  llvm::function_ref<void(Report &)> addNotes = {});
bool requireNonNegative(CheckContext &ctx, const IndexExpr &size, Span span,
                        const llvm::Twine &what);
/// `violation` says what is wrong where no '/' is written.
bool requireDivides(CheckContext &ctx, const IndexExpr &numerator, const IndexExpr &denominator,
                    Span span, const llvm::Twine &violation = "");
/// Whether integers that are known before the launch may be divided by it: not where it varies
/// and may be zero, nor where only a condition around excludes zero, which does not keep the
/// division from running. Such quotients are data: by zero they give 0 [2.7].
bool isDivisor(CheckContext &ctx, const IndexExpr &divisor);
bool requireNonZero(CheckContext &ctx, const IndexExpr &divisor, Span span);
/// At least one value in lo <= v < hi.
bool requireNonEmpty(CheckContext &ctx, const IndexExpr &lo, const IndexExpr &hi, Span span,
                     const llvm::Twine &what);
void requireExact(CheckContext &ctx, llvm::ArrayRef<ExactDivision> divisions, Span span);
/// Whether what a guard would demand failed at every size tried, and no list of conditions says
/// where it might hold: an error like one that is refuted.
bool failsWhereTried(CheckContext &ctx, const Outcome &outcome, llvm::ArrayRef<Image> images);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKOBLIGATION_H
