//===- BF16Terms.h - Values of f32 as terms of bf16 --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_BF16TERMS_H
#define TEGULA_CODEGEN_NVGPU_BF16TERMS_H

#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// The upper halves of two words (f32 or i32), which are numbers of bf16, as one word (i32), the
/// first in its lower half.
llvm::Value *upperHalves(llvm::IRBuilder<> &b, llvm::Value *first, llvm::Value *second);

/// What is left of an f32, or of each in a vector, when its upper half is taken off: exact, NaN of
/// an infinity.
llvm::Value *withoutUpperHalf(llvm::IRBuilder<> &b, llvm::Value *value);

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_BF16TERMS_H
