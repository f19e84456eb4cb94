//===- SubscriptNames.h - Names that subscript the reads of an expression ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_AST_SUBSCRIPTNAMES_H
#define TEGULA_FRONTEND_AST_SUBSCRIPTNAMES_H

#include "frontend/ast/AST.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tegula::ast {

/// Calls `visit` on each subscript `...` and on each name inside of a subscript, with the range
/// that is written there (or null), in order of the text. Indices that reductions bind are left
/// out.
void forEachSubscriptName(const Expr &expr,
                          llvm::function_ref<void(const Subscript &, const Ident *)> visit);

} // namespace tegula::ast

#endif // TEGULA_FRONTEND_AST_SUBSCRIPTNAMES_H
