//===- Describe.h - A compiled kernel as JSON ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_CAPI_DESCRIBE_H
#define TEGULA_RUNTIME_CAPI_DESCRIBE_H

#include "compiler/Compiler.h"

namespace tegula::capi {

/// One object of schema `tegula.kernel`, version 1 (docs/c-api.md).
std::string describe(const CompiledKernel &kernel);

} // namespace tegula::capi

#endif // TEGULA_RUNTIME_CAPI_DESCRIBE_H
