//===- Jit.h - Machine code of the host, in process ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_JIT_H
#define TEGULA_CODEGEN_CPU_JIT_H

#include "codegen/cpu/HostTarget.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class MemoryBuffer;
class Module;
} // namespace llvm

namespace tegula {

/// Assembles a module whose target was applied to an object file, or to assembler text.
std::unique_ptr<llvm::MemoryBuffer> emitObject(llvm::Module &module, llvm::TargetMachine &machine);
std::string emitAssembly(llvm::Module &module, llvm::TargetMachine &machine);

/// Code loaded into this process. Besides its own symbols it finds only those of a few C library
/// functions that LLVM may call (memcpy and the like, fma).
class LoadedCode {
public:
  static llvm::Expected<std::unique_ptr<LoadedCode>>
  load(std::unique_ptr<llvm::MemoryBuffer> object);
  /// Objects that refer to each other.
  static llvm::Expected<std::unique_ptr<LoadedCode>>
  load(std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects);
  ~LoadedCode();

  llvm::Expected<void *> lookup(llvm::StringRef symbol);

private:
  LoadedCode();
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_JIT_H
