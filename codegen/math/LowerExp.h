//===- LowerExp.h - Parts of exp that other functions use ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_LOWEREXP_H
#define TEGULA_CODEGEN_MATH_LOWEREXP_H

#include "codegen/math/MathBuilder.h"

namespace tegula {

/// exp(x) = (1 + tail) * 2^n; `shifted`: n in the low bits of a number whose other low bits are 0.
struct Power {
  llvm::Value *tail, *n, *shifted;
};
Power expParts(MathBuilder &m, llvm::Value *x);

/// p * 2^n for p near 1, rounded once even where the result is subnormal or overflows: the power is
/// applied in two halves, each a normal number.
llvm::Value *scale(MathBuilder &m, llvm::Value *p, llvm::Value *n);

} // namespace tegula

#endif // TEGULA_CODEGEN_MATH_LOWEREXP_H
