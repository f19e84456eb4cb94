//===- CheckSizes.h - Derived sizes -----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKSIZES_H
#define TEGULA_FRONTEND_CHECK_CHECKSIZES_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

std::string uniqueSymbol(CheckContext &ctx, llvm::StringRef base);
/// The size with its divisions, minima, ... of sizes replaced by derived size symbols.
IndexExpr named(CheckContext &ctx, const IndexExpr &expr);
/// As `named`; a `where` name goes to the symbol where it makes one.
IndexExpr defineSize(CheckContext &ctx, llvm::StringRef name, const IndexExpr &definition);
/// In sizes that the program names: without those of called kernels and those that have no name.
IndexExpr asWritten(CheckContext &ctx, const IndexExpr &expr);
/// As the user wrote it: index names, derived sizes expanded.
std::string show(CheckContext &ctx, const IndexExpr &expr);
std::string show(CheckContext &ctx, const Condition &condition);
std::string showSizes(CheckContext &ctx, const Counterexample &example);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKSIZES_H
