//===- StagePoints.h - A point's part of inputs in a temporary --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `parallel (b) { parallel (i, j) { reduce (k) a[i, k]*x[b, k, j] } }` reads each element of the
// point's x[b] for all i. In `parallel (b) { temp s; parallel (k, j) { s[k, j] = x[b, k, j] };
// parallel (i, j) { reduce (k) a[i, k]*s[k, j] } }` all of it is on its way from memory at once,
// in whole vectors, and narrow floats are converted once.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_STAGEPOINTS_H
#define TEGULA_PASSES_SCHEDULE_STAGEPOINTS_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Does this for tensors of which sums of the statement's nests read a point's part again and
/// again, as far as so many bytes go. Returns how many.
unsigned stageInputs(tgl::ParallelOp statement, int64_t bytes, Prover &prover);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_STAGEPOINTS_H
