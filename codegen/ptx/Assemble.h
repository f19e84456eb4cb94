//===- Assemble.h - PTX to cubin --------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's assembler is not part of Tegula: it is found when first needed, as libnvJitLink (in
// process, what long-lived users want) or as the `ptxas` command (for one compilation, where
// loading the 100 MB library costs more than a process).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_PTX_ASSEMBLE_H
#define TEGULA_CODEGEN_PTX_ASSEMBLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tegula {

enum class Assembler { Any, NvJitLink, Ptxas };

/// The error for a missing assembler: the caller's exit code says "missing", not "wrong".
class MissingToolError : public llvm::ErrorInfo<MissingToolError> {
public:
  static char ID;
  explicit MissingToolError(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(std::errc::no_such_file_or_directory);
  }

private:
  std::string message;
};

struct Cubin {
  std::vector<char> image;
  /// Registers, spills and warnings as the assembler printed them.
  std::string log;
  /// Which assembler made it, with its version: part of every cache key.
  std::string assembler;
};

/// Assembles `ptx` for `arch` (`sm_90a`), or finds what the same assembler made of it before
/// (support/DiskCache.h). `Any` takes ptxas if there is one, else nvJitLink. ptxas is looked for in
/// $TEGULA_PTXAS, $CUDA_HOME/bin, $PATH, /usr/local/cuda/bin; nvJitLink in $TEGULA_NVJITLINK, the
/// loader's path, $CUDA_HOME/lib64, /usr/local/cuda/lib64.
llvm::Expected<Cubin> assemble(llvm::StringRef ptx, llvm::StringRef arch,
                               Assembler which = Assembler::Any);

/// A program of the CUDA toolkit (`nvdisasm`): beside $TEGULA_PTXAS, in $CUDA_HOME/bin, $PATH,
/// /usr/local/cuda/bin; empty where there is none.
std::string findCudaTool(llvm::StringRef name);

} // namespace tegula

#endif // TEGULA_CODEGEN_PTX_ASSEMBLE_H
