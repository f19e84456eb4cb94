//===- PrefetchSteps.h - Loads some steps of a loop ahead --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_LLVM_PREFETCHSTEPS_H
#define TEGULA_CODEGEN_LLVM_PREFETCHSTEPS_H

#include "llvm/IR/PassManager.h"

namespace tegula {

/// A loop whose steps threads take together, a state in their registers, waits in each step for
/// what the step loads. The pass loads that one or two steps ahead:
///
///   loop:                                      loop:
///     x = load p[t]              becomes         x = phi [load p[0]], next
///     ... shuffle, state = f(state, x)           next = load p[min(t + 1, last)]
///                                                ... shuffle, state = f(state, x)
///
/// It takes loads of what nothing in the launch writes (`!invariant.load`), from addresses that
/// move by the same distance in each step, of innermost loops that carry floats and hold an
/// operation of several threads; nothing beyond the last step is loaded. Its name, for --disable,
/// is `prefetch-steps`.
class PrefetchStepsPass : public llvm::PassInfoMixin<PrefetchStepsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_LLVM_PREFETCHSTEPS_H
