//===- WalkTogether.h - Loops of a point's rows as one loop over states -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A point that walks several recurrences, and then reduces over them at each step,
//
//   temp r[N, T]; parallel (n) { for t iter (h) { h = ..; r[n, t] = h } }
//   parallel (t) { y[t] = .. reduce (n) r[n, t] .. }
//
// keeps all steps of all of them. In one loop it keeps one step:
//
//   temp s[N]; parallel (n) { s[n] = init }
//   for t { parallel (n) { s[n] = .. s[n] .. }; y[t] = .. reduce (n) s[n] .. }
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_WALKTOGETHER_H
#define TEGULA_PASSES_SCHEDULE_WALKTOGETHER_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Does this to the nests in a statement's points whose rows no registers or shared memory hold.
/// Returns how many loops became one.
unsigned walkTogether(tgl::ParallelOp points);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_WALKTOGETHER_H
