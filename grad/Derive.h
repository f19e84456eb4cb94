//===- Derive.h - Reverse mode over a list of equations -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_DERIVE_H
#define TEGULA_GRAD_DERIVE_H

#include "grad/Builder.h"
#include "grad/SavedOutputs.h"
#include "llvm/ADT/StringSet.h"

namespace tegula::grad {

struct Derivation {
  /// What is computed again, in order, and the equations of the adjoints after it.
  std::vector<Equation> forward, backward;
  /// The adjoints of outputs, which are parameters, and of `wrt`, which are outputs.
  std::vector<const Tensor *> seeds, gradients;
  /// Outputs of the program that are read as they were computed.
  std::vector<const Tensor *> saved;
};

/// What equations use of the program.
struct UsedNames {
  llvm::DenseSet<const Tensor *> tensors;
  llvm::DenseSet<const checked::ScalarParam *> scalars;
  llvm::StringSet<> symbols;
};
UsedNames usedNames(const Builder &builder, const Derivation &derivation);

/// Differentiates the equations with respect to the tensors `wrt`; with `keepsZeros` those too
/// whose gradient is 0 everywhere. Nothing, with the reason, where a form has no rule.
std::optional<Derivation> derive(Builder &builder, std::vector<Equation> equations,
                                 llvm::ArrayRef<const Tensor *> wrt, bool keepsZeros,
                                 SavedOutputs saved, Refusal &refusal);

} // namespace tegula::grad

#endif // TEGULA_GRAD_DERIVE_H
