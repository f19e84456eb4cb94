//===- RewriteReduce.h - Reductions, scans and contractions -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITEREDUCE_H
#define TEGULA_FRONTEND_SUGGEST_REWRITEREDUCE_H

#include "frontend/suggest/RewriteValue.h"

namespace tegula::rewrite {

/// The results of `torch.max(x, dim=1)`, `x.sort()`, ...: values and places.
std::vector<Value> evalPair(Translator &translator, const Node &node);
Result evalReduction(Translator &translator, const CallForm &form, bool &known);
Result evalAlong(Translator &translator, const CallForm &form, bool &known);
Result evalProduct(Translator &translator, const CallForm &form, bool &known);
Result reduce(Translator &translator, llvm::StringRef name, const Value &value,
              std::optional<std::vector<int64_t>> dims, bool keep, llvm::StringRef options = "");
Result matmul(Translator &translator, const Value &a, const Value &b);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITEREDUCE_H
