//===- HostTarget.h - The target of CPU code --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_HOSTTARGET_H
#define TEGULA_CODEGEN_CPU_HOSTTARGET_H

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>

namespace llvm {
class Module;
class Target;
class TargetMachine;
} // namespace llvm

namespace tegula {

struct HostTarget {
  std::string triple, cpu, features;
  unsigned vectorBytes = 16; ///< of the widest vector register in use
  unsigned vectorRegisters = 16;
  bool hasMasks = false; ///< masked loads and stores of every element type (AVX-512BW/VL)
  bool hasHalf = false;  ///< f16 <-> f32 conversion instructions
  bool hasFma = false;
  unsigned l1Bytes = 32 << 10, l2Bytes = 512 << 10;

  /// The machine that the process runs on, found once.
  static const HostTarget &get();
  /// A processor by LLVM's name for it, such as `x86-64-v3`; nothing where LLVM knows none of that
  /// name. Caches are this machine's.
  static std::optional<HostTarget> named(llvm::StringRef cpu);

  std::unique_ptr<llvm::TargetMachine> createMachine() const;

private:
  HostTarget(std::string cpu, std::string features);
  const llvm::Target &lookup() const;
};

/// Sets triple and data layout of the module and the target attributes of all its functions.
void applyTarget(llvm::Module &module, const HostTarget &target, llvm::TargetMachine &machine);

/// Runs LLVM's middle end. Vector code comes from us, so the loop and SLP vectorisers stay off.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_HOSTTARGET_H
