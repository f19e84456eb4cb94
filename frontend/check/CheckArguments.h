//===- CheckArguments.h - Arguments of calls, and what they bind *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKARGUMENTS_H
#define TEGULA_FRONTEND_CHECK_CHECKARGUMENTS_H

#include "frontend/check/CheckContext.h"
#include "frontend/check/CheckInstance.h"

namespace tegula {
inline namespace checker {

bool mapArguments(CheckContext &ctx, const ast::Expr &call, const ast::Kernel &kernel,
                  llvm::SmallVectorImpl<const ast::Expr *> &arguments);
TensorInfo *tensorArgument(CheckContext &ctx, const ast::Expr &argument, llvm::StringRef parameter,
                           llvm::StringRef kernel);
bool boolOption(CheckContext &ctx, const ast::Expr &e, llvm::StringRef keyword, bool fallback);
bool checkKeywords(CheckContext &ctx, const ast::Expr &e, llvm::ArrayRef<llvm::StringRef> known);
const ast::Expr *keywordArgument(const ast::Expr &e, llvm::StringRef name);
/// The default of a scalar parameter; nothing where it does not fit the type, which is reported.
std::optional<Value> defaultOf(CheckContext &ctx, const ast::Param &param, DType type);
/// A run-time scalar for the parameter, and its value.
std::pair<checked::ScalarParam *, Value> addScalar(CheckContext &ctx, const ast::Param &param,
                                                   DType type);
/// Binds all parameters of the current frame; `given` is in their order.
bool bindParams(CheckContext &ctx, llvm::ArrayRef<Given> given, checked::Callee *callee);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKARGUMENTS_H
