//===- RewriteFunction.h - Named operators, losses, library calls *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITEFUNCTION_H
#define TEGULA_FRONTEND_SUGGEST_REWRITEFUNCTION_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

/// `conv2d(x, w, padding=1)` as a call of this language, with the dims of its results.
std::optional<std::pair<std::string, std::vector<std::vector<Dim>>>>
evalKernel(Translator &translator, const Node &node);
/// The kernel that a call of the name is one of, or null.
const ast::Kernel *kernelOf(const Translator &translator, llvm::StringRef name);
Result evalChoice(Translator &translator, const CallForm &form, bool &known);
Result evalLoss(Translator &translator, const CallForm &form, bool &known);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITEFUNCTION_H
