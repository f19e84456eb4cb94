//===- AccessMetadata.h - What is known of an access to memory ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_LLVM_ACCESSMETADATA_H
#define TEGULA_CODEGEN_LLVM_ACCESSMETADATA_H

#include "llvm/ADT/StringRef.h"

namespace tegula {

/// Metadata of a load or an atomic operation that may find what nobody has written: the code looks
/// at the value before it relies on it. The emulator refuses all other such accesses.
inline constexpr llvm::StringLiteral mayBeUndefined = "tegula.may-be-undefined";

} // namespace tegula

#endif // TEGULA_CODEGEN_LLVM_ACCESSMETADATA_H
