//===- PassGate.h - LLVM's passes, left out by name ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both of LLVM's pass managers ask a gate that hangs at the context before they run a pass that
// code generation can do without: the middle end, which we put together, and the passes that a
// target adds of its own (for NVPTX separate-const-offset-from-gep, infer-address-spaces and
// speculative-execution, which began in gpucc; Ptx.cpp asks for two more, which it leaves out by
// itself, and for the alias analysis). So no global option of LLVM is needed, which would hold for
// every compilation of a process.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_LLVM_PASSGATE_H
#define TEGULA_CODEGEN_LLVM_PASSGATE_H

#include "support/PassRuns.h"
#include "llvm/IR/OptBisect.h"
#include "llvm/IR/PassInstrumentation.h"
#include <memory>

namespace llvm {
class LLVMContext;
} // namespace llvm

namespace tegula {

class PassGate : public llvm::OptPassGate {
public:
  /// Lets `runs` decide for all compilations in `context`, which it must outlive. Null: every pass
  /// runs.
  PassGate(llvm::LLVMContext &context, PassRuns *runs);

  bool isEnabled() const override { return runs != nullptr; }
  /// `name`: the pass's, or the text by which the older pass manager calls it.
  bool shouldRunPass(llvm::StringRef name, llvm::StringRef where) const override;

private:
  PassRuns *runs;
};

/// The gate as the newer pass manager takes it; null where the context has none.
std::unique_ptr<llvm::PassInstrumentationCallbacks> gateCallbacks(llvm::LLVMContext &context);

} // namespace tegula

#endif // TEGULA_CODEGEN_LLVM_PASSGATE_H
