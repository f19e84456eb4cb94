//===- LowerMath.h - Elementary functions in plain arithmetic -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Our own polynomials for the elementary functions, as LLVM IR on f32 and f64, scalar or vector,
// for CPU and NVPTX alike: no library is called, and one set of measured errors (docs/math.md)
// holds on every target. Correct at zeros, infinities, NaN, subnormals and huge arguments.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_LOWERMATH_H
#define TEGULA_CODEGEN_MATH_LOWERMATH_H

#include "llvm/ADT/StringRef.h"

namespace llvm {
class Function;
class Module;
class Type;
} // namespace llvm

namespace tegula {

/// ExpLow is exp for arguments of at most maxExpLow, Log1pExp is log1p(exp(-|x|)), to the bit. On a
/// device, ...Short functions of f32 are made of its approximate power of two, for what is computed
/// of 16-bit elements (docs/math.md); elsewhere they are the others.
enum class MathFunction {
  Exp,
  ExpLow,
  ExpShort,
  Exp2,
  Expm1,
  Log,
  Log2,
  Log10,
  Log1p,
  Log1pExp,
  Log1pExpShort,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Atan2,
  Sinh,
  Cosh,
  Tanh,
  TanhShort,
  Asinh,
  Acosh,
  Atanh,
  Erf,
  ErfShort,
  Erfc,
  Erfinv,
  Lgamma,
  Digamma,
  Pow,
  Rsqrt,
  Fmod
};

/// exp of it and what is less is far from the largest number.
inline constexpr double maxExpLow = 40;

llvm::StringRef toString(MathFunction function);
inline unsigned numArguments(MathFunction function) {
  bool isBinary = function == MathFunction::Pow || function == MathFunction::Fmod ||
                  function == MathFunction::Atan2;
  return isBinary ? 2 : 1;
}

/// The function `tegula.<name>.<type>` of `module`, made on first use: internal, inlined (on the
/// CPU where it is short), without side effects. `type` is float, double or a fixed vector of them,
/// for all arguments and the result.
llvm::Function *getMathFunction(llvm::Module &module, MathFunction function, llvm::Type *type);

} // namespace tegula

#endif // TEGULA_CODEGEN_MATH_LOWERMATH_H
