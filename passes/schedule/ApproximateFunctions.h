//===- ApproximateFunctions.h - Functions of 16-bit elements ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has instructions for powers of two and reciprocals whose relative error is 2^-22
// or less. A polynomial with the error of f32, 2^-24, takes five times as many instructions. An
// element of bf16 has itself a relative error of 2^-9, one of f16 2^-12: what an element stands for
// is known less well than the function. The flag `afn` of an operation says so;
// codegen/math/LowerMath.cpp has the functions, and docs/math.md their errors.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_APPROXIMATEFUNCTIONS_H
#define TEGULA_PASSES_SCHEDULE_APPROXIMATEFUNCTIONS_H

#include "ir/tgl/Tgl.h"

namespace tegula {

/// Adds `afn` to exp, tanh and erf of f32 in the launch whose operands are computed of 16-bit
/// elements, and of nothing longer that varies as they do, and to divisions of what is computed
/// with these functions. Returns to how many.
unsigned approximateFunctions(tgl::LaunchOp launch);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_APPROXIMATEFUNCTIONS_H
