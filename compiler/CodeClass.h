//===- CodeClass.h - Launches that have one code ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_CODECLASS_H
#define TEGULA_COMPILER_CODECLASS_H

#include "compiler/Compiler.h"

namespace tegula {

/// What code for sizes depends on, of a size that is `value`: the value, or, of a size that
/// `invariant` names, its class. Code for one launch is code for all whose sizes have equal ones.
int64_t codeClass(const CompiledKernel &kernel, llvm::StringRef size, int64_t value);

} // namespace tegula

#endif // TEGULA_COMPILER_CODECLASS_H
