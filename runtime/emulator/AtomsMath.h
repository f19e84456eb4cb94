//===- AtomsMath.h - Arithmetic of the device, on the host -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The approximate instructions have results that differ from these in the last bits, within the
// errors that the PTX manual gives.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_ATOMSMATH_H
#define TEGULA_RUNTIME_EMULATOR_ATOMSMATH_H

#include "runtime/emulator/Atoms.h"
#include <cmath>

namespace tegula::emulator {

inline float reciprocal(float x) { return 1 / x; }
inline float reciprocalRoot(float x) { return 1 / std::sqrt(x); }
inline float quotient(float x, float y) { return x / y; }

/// Instructions with .ftz take a subnormal number for zero, and give none.
inline float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

template <float (*function)(float)> void ofOne(AtomCall &call) {
  call.result<float>(0, function(call.operand<float>(0)));
}
template <float (*function)(float)> void ofOneFlushed(AtomCall &call) {
  call.result<float>(0, flush(function(flush(call.operand<float>(0)))));
}
template <float (*function)(float, float)> void ofTwo(AtomCall &call) {
  call.result<float>(0, function(call.operand<float>(0), call.operand<float>(1)));
}
template <float (*function)(float, float)> void ofTwoFlushed(AtomCall &call) {
  call.result<float>(0,
                     flush(function(flush(call.operand<float>(0)), flush(call.operand<float>(1)))));
}

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_ATOMSMATH_H
