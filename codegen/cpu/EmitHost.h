//===- EmitHost.h - Host code of a scheduled kernel -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_EMITHOST_H
#define TEGULA_CODEGEN_CPU_EMITHOST_H

#include "codegen/common/Emitter.h"
#include "llvm/Support/Error.h"

namespace tegula {

/// A global temporary: the runtime allocates it and passes it after the arguments.
struct TemporaryInfo {
  std::string name;
  tgl::TglTensorType type;
};

struct HostCode {
  std::string function; // a KernelFunction (HostAbi.h)
  std::vector<TemporaryInfo> temporaries;
  std::vector<ErrorSite> sites;
};

/// Adds the kernel to `module` as host code. Fails only on IR that passes should not have made.
llvm::Expected<HostCode> emitHost(tgl::KernelOp kernel, llvm::Module &module,
                                  const EmitterOptions &options);

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_EMITHOST_H
