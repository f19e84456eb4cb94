//===- HoistSteps.h - Launches of a loop that its steps do not need ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch of a loop that reads nothing of what the loop changes, such as the powers of all decays
// of a step, is one launch for all steps before it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_HOISTSTEPS_H
#define TEGULA_PASSES_SCHEDULE_HOISTSTEPS_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Launches in the loop's body that read and write nothing that other steps do, in order.
llvm::SmallVector<tgl::LaunchOp> launchesWithoutState(tgl::ForOp loop);

/// Puts such launches before the loop; temporaries that they write get a dim for the step.
void hoistLaunches(tgl::ForOp loop, llvm::ArrayRef<tgl::LaunchOp> launches);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_HOISTSTEPS_H
