//===- Compare.h - How far a result is from the truth -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's output, libtorch's own on the same inputs, and the reference evaluated in float64. The
// kernel is right where it is about as near to the last as libtorch is, or as near as its type and
// the depth of its reductions let anyone be; one constant tolerance would fail honest bf16 kernels
// and pass wrong f32 ones.
//
// Error is measured in two ways, each relative to the size of the result:
//   norm   ||kernel - exact|| / ||exact||
//   worst  max |kernel[i] - exact[i]| / max(|exact[i]|, rms(exact))
// Each must be at most 2 times libtorch's, or at most
//   norm   u + 2 s    worst  u + 16 s    with s = 2^-24 (2^-53 for f64) * sqrt(1 + depth),
// u being the unit roundoff of the output's type. Where bounds on the errors of all elements are
// given that roundings alone may make (ErrorBounds.h), a result within all of them is right, too.
// An element that is not finite must be so in the same way as the exact value rounded to that type,
// or as libtorch's. Integers and booleans must equal the exact or libtorch's value.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_COMPARE_H
#define TEGULA_BENCH_COMPARE_H

#include "bench/reference/Tensor.h"
#include <array>
#include <string>

namespace tegula::bench {

struct ErrorMeasure {
  double norm = 0, worst = 0;
  int64_t worstAt = -1; // element, -1: none differs
  /// Elements by distance in units in the last place of the output's type, from the exact value
  /// rounded to it: 0, 1, 2, up to 4, 8, 16, 64, 1024, more.
  std::array<int64_t, 9> ulps = {};
};
extern const std::array<const char *, 9> ulpLabels;

struct Comparison {
  bool passed = false;
  /// Why not: `worst element 17 [0, 17]: kernel 0.5, exact 0.25, ...`.
  std::string reason;
  ErrorMeasure kernel, libtorch;
  double normBound = 0, worstBound = 0; // what was allowed
  bool isFar = false;                   // failed for its error's size alone
  bool isBounded = false;               // beyond the above, and within bounds of all elements
  /// KernelBench's rule: allclose to libtorch's result with rtol = atol = 1e-4 (f32) or 1e-2.
  bool kernelBench = false;
};

/// `depth`: how many terms are added up for one element; 1 where there is no reduction.
/// `roundings`: to the output's type, between the exact value and the kernel's; 2 where `exact` is
/// another kernel's result, rounded itself. `bounds`: on each element's error; none where empty.
Comparison compare(const Tensor &kernel, const Tensor &libtorch, const Tensor &exact, double depth,
                   bool bitExact, unsigned roundings = 1, llvm::ArrayRef<double> bounds = {});

} // namespace tegula::bench

#endif // TEGULA_BENCH_COMPARE_H
