//===- Rules.h - The derivative of each function of elements ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_RULES_H
#define TEGULA_GRAD_RULES_H

#include "grad/Builder.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tegula::grad {

/// What flows back to an operand. Where the condition does not hold that is 0, whatever the value
/// is, so that nothing is computed of what the program did not choose.
struct Flow {
  const Expr *to = nullptr;
  const Expr *adjoint = nullptr;
  const Expr *condition = nullptr; // null: always
};

/// Whether a function of the elements can have a derivative that is not 0.
using IsActive = llvm::function_ref<bool(const Expr *)>;
/// A value in a form that is cheap to repeat.
using ValueOf = llvm::function_ref<const Expr *(const Expr *)>;

/// Gives what flows from `node`, whose adjoint is `adjoint` where `condition` holds, to its active
/// operands. False, with the reason, where the function has no rule.
bool applyRule(Builder &builder, const Expr *node, const Expr *adjoint, const Expr *condition,
               IsActive isActive, ValueOf valueOf, llvm::SmallVectorImpl<Flow> &flows,
               Refusal &refusal);

} // namespace tegula::grad

#endif // TEGULA_GRAD_RULES_H
