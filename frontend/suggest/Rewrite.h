//===- Rewrite.h - What a wrong statement says in this language --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement with an error is read once more as PyTorch, NumPy or C would write it. Where all of
// it makes sense as such, the equation that means the same is the first fix of its first
// diagnostic: `y = torch.softmax(x, dim=1)` becomes `y[i, j] = softmax(x[i, j], over=j)`.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITE_H
#define TEGULA_FRONTEND_SUGGEST_REWRITE_H

#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"

namespace tegula {

/// For the errors of `file` from record `first` on.
void suggestRewrites(Diagnostics &diagnostics, size_t first, uint32_t file, const Module &module);

} // namespace tegula

#endif // TEGULA_FRONTEND_SUGGEST_REWRITE_H
