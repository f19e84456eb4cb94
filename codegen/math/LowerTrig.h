//===- LowerTrig.h - sin, cos and tan in plain arithmetic ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reduction modulo pi/2 in three steps of fused multiply-add; arguments too large for that take a
// branch to a function that multiplies by 1280 bits of 2/pi (Payne and Hanek).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_LOWERTRIG_H
#define TEGULA_CODEGEN_MATH_LOWERTRIG_H

namespace llvm {
class Value;
}

namespace tegula {

class MathBuilder;

/// These may leave the builder in a new basic block.
llvm::Value *emitSin(MathBuilder &m, llvm::Value *x);
llvm::Value *emitCos(MathBuilder &m, llvm::Value *x);
llvm::Value *emitTan(MathBuilder &m, llvm::Value *x);

} // namespace tegula

#endif // TEGULA_CODEGEN_MATH_LOWERTRIG_H
