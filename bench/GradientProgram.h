//===- GradientProgram.h - Derived backward passes beside autograd ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The program that `tegula grad` writes of a kernel, and autograd's backward pass of the kernel's
// reference: on the same inputs, weighted by the same adjoints of the outputs. Outputs of the
// forward pass that the program takes are the kernel's own. Only the backward passes are timed,
// autograd's over a graph that it has recorded.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_GRADIENTPROGRAM_H
#define TEGULA_BENCH_GRADIENTPROGRAM_H

#include "bench/Subject.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"

namespace tegula::bench {

class GradientProgram {
public:
  /// Differentiates one instance of a kernel with respect to `wrt` (empty: to all tensors that have
  /// a gradient) and compiles the program. Null where that is refused, with the reason in
  /// `refusal`.
  static llvm::Expected<std::unique_ptr<GradientProgram>>
  make(const Module &module, const ast::Kernel &kernel, const Instance &instance,
       const std::vector<std::string> &wrt, CompileOptions options, Diagnostics &diagnostics,
       std::string &refusal);

  const ast::Kernel &kernel() const { return *entry; }
  void setThreads(unsigned count) { runner->setThreads(count); }

  /// The backward pass at the sizes and inputs of `forward`, which is run once. Adjoints of outputs
  /// are filled as inputs `grad_NAME` are, those of inouts as `grad_NAME_after`; `inputs` has
  /// specs, scalars and the seed.
  llvm::Expected<std::unique_ptr<Subject>>
  subject(std::unique_ptr<Launch> forward, const Reference &reference, Launch::Inputs inputs) const;

private:
  GradientProgram() = default;
  static llvm::Expected<Tensor> adjointOf(const std::string &name, DType type,
                                          llvm::ArrayRef<int64_t> shape, const Launch &forward,
                                          const Launch::Inputs &inputs);

  const Module *forwardModule = nullptr;
  CompileOptions forwardOptions, options; // of the kernel, and of the program
  SourceManager sources;
  Diagnostics diagnostics{sources};
  std::unique_ptr<Module> module;
  const ast::Kernel *entry = nullptr;
  std::unique_ptr<Runner> runner;
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_GRADIENTPROGRAM_H
