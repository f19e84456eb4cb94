//===- Arguments.h - The arguments of one call of the C interface ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CAPI_ARGUMENTS_H
#define TEGULA_RUNTIME_CAPI_ARGUMENTS_H

#include "runtime/capi/Handles.h"
#include <cstdlib>

namespace tegula::capi {

/// The caller's arguments as the runtime's. For sizes that were used before nothing here allocates:
/// arguments are views on the stack, and what follows from the sizes is found in the kernel's
/// cache.
class Arguments {
public:
  explicit Arguments(const tegula_kernel &kernel) : kernel(kernel), compiled(*kernel.compiled) {}

  /// Reads everything but what belongs to outputs; they get their shapes from the binding.
  llvm::Error read(llvm::ArrayRef<tegula_value> given);
  /// Finds or makes the binding; inputs and inouts have the shapes that it demands.
  llvm::Error bind();
  /// Reads memory of outputs, and their shapes where they are given.
  llvm::Error readOutputs();
  /// Makes the tensors that an observed kernel writes.
  llvm::Error makeObserved();
  /// A copy of one of these.
  std::vector<char> observed(unsigned argument) const;

  llvm::ArrayRef<LaunchArgument> views() const { return arguments; }
  const BindingCache::Entry &sizes() const { return binding; }

private:
  llvm::Error refuse(size_t index, const llvm::Twine &what) const;
  llvm::Error readTensor(size_t index, const tegula_value &given);

  const tegula_kernel &kernel;
  const CompiledKernel &compiled;
  llvm::SmallVector<LaunchArgument, 16> arguments;
  llvm::SmallVector<const tegula_value *, 16> values; // by argument of the code; null: observed
  llvm::SmallVector<int64_t, 48> dims;                // of inputs and inouts
  struct Free {
    void operator()(char *memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<char[], Free>> memory; // of what is observed, by argument of the code
  BindingCache::Entry binding;
};

} // namespace tegula::capi

#endif // TEGULA_RUNTIME_CAPI_ARGUMENTS_H
