//===- BypassDivisions.h - Divisions of small numbers in 32 bits -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_LLVM_BYPASSDIVISIONS_H
#define TEGULA_CODEGEN_LLVM_BYPASSDIVISIONS_H

#include "llvm/IR/PassManager.h"

namespace tegula {

/// Divisions of 64 bits by numbers that are not constant: in 32 bits where both fit, which is known
/// or asked at run time. Its name, for --disable, is `bypass-divisions`.
class BypassDivisionsPass : public llvm::PassInfoMixin<BypassDivisionsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_LLVM_BYPASSDIVISIONS_H
