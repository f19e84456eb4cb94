//===- LowerSpecial.h - Inverse, hyperbolic and special functions -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_LOWERSPECIAL_H
#define TEGULA_CODEGEN_MATH_LOWERSPECIAL_H

#include "codegen/math/LowerMath.h"
#include "codegen/math/MathBuilder.h"

namespace tegula {

//===--- LowerInverse.cpp ---===//

/// Calls an elementary function of the module.
llvm::Value *call(MathBuilder &m, MathFunction function, llvm::Value *x);
llvm::Value *emitAtan(MathBuilder &m, llvm::Value *x);
llvm::Value *emitAtan2(MathBuilder &m, llvm::Value *y, llvm::Value *x);
llvm::Value *emitAsin(MathBuilder &m, llvm::Value *x);
llvm::Value *emitAcos(MathBuilder &m, llvm::Value *x);
llvm::Value *emitSinh(MathBuilder &m, llvm::Value *x);
llvm::Value *emitCosh(MathBuilder &m, llvm::Value *x);
llvm::Value *emitAsinh(MathBuilder &m, llvm::Value *x);
llvm::Value *emitAcosh(MathBuilder &m, llvm::Value *x);
llvm::Value *emitAtanh(MathBuilder &m, llvm::Value *x);

//===--- LowerGamma.cpp ---===//

llvm::Value *emitErfc(MathBuilder &m, llvm::Value *x);
llvm::Value *emitErfinv(MathBuilder &m, llvm::Value *x);
llvm::Value *emitLgamma(MathBuilder &m, llvm::Value *x);
llvm::Value *emitDigamma(MathBuilder &m, llvm::Value *x);

/// `function` in doubles, whose rounding to f32 is the nearest number but for near-ties.
llvm::Value *inDoubles(MathBuilder &m, llvm::Value *x,
                       llvm::function_ref<llvm::Value *(MathBuilder &, llvm::Value *)> function);

} // namespace tegula

#endif // TEGULA_CODEGEN_MATH_LOWERSPECIAL_H
