//===- LogSumExps.h - Logarithms of sums of exponentials in one pass -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An accumulator is the largest value m and the sum of exp(value - m), to which a larger value is
// another origin (M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018).
// Where all values are -inf the origin is 0 and the sum too; beside inf the sum is no number, and
// nobody asks for it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_LOGSUMEXPS_H
#define TEGULA_CODEGEN_COMMON_LOGSUMEXPS_H

#include "codegen/common/Accumulators.h"

namespace tegula {

Accumulator combineExponentials(ScalarEmitter &e, const Accumulator &lhs, const Accumulator &rhs);
llvm::Value *logarithmOf(ScalarEmitter &e, const Accumulator &exponentials);
/// What is taken from values of which this is the largest: a number where all are -inf.
llvm::Value *originOfExponentials(ScalarEmitter &e, llvm::Value *largest);
/// exp(value - origin), for values up to the origin.
llvm::Value *exponentialFrom(ScalarEmitter &e, llvm::Value *value, llvm::Value *origin);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_LOGSUMEXPS_H
