//===- EmitIREqual.h - Values that are computed alike -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIREQUAL_H
#define TEGULA_FRONTEND_LOWER_EMITIREQUAL_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

/// How two values are compared.
struct Comparison {
  /// Of one statement a value is like itself, and what a let keeps is kept once. Of two, a let is
  /// its value, and only what is compared in full is alike.
  bool isOfOneStatement;
  llvm::function_ref<bool(const IndexExpr &, const IndexExpr &)> isSameIndex;
  llvm::function_ref<bool(const Tensor *)> isSameTensor; ///< at both places, element by element
};

/// Whether two values are made alike of the same elements. Reductions, scans, states and random
/// numbers are taken for different.
bool areAlike(const Expr *a, const Expr *b, const Comparison &how);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIREQUAL_H
