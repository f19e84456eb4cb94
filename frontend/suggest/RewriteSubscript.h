//===- RewriteSubscript.h - Subscripts and slices of tensors ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITESUBSCRIPT_H
#define TEGULA_FRONTEND_SUGGEST_REWRITESUBSCRIPT_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

Result evalSubscript(Translator &translator, const Node &node);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITESUBSCRIPT_H
