//===- RewriteViews.h - A value under other dims ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITEVIEWS_H
#define TEGULA_FRONTEND_SUGGEST_REWRITEVIEWS_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

Result permuted(Translator &translator, const Value &value, llvm::ArrayRef<int64_t> order);
Result shaped(Translator &translator, const Value &value, llvm::ArrayRef<std::string> to);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITEVIEWS_H
