//===- LoopCosts.h - When one launch for a loop pays ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_LOOPCOSTS_H
#define TEGULA_PASSES_SCHEDULE_LOOPCOSTS_H

#include "passes/schedule/IndependentAxes.h"
#include <string>

namespace tegula {

/// Why launches for each step of a loop on the host take less time than one launch over the
/// independent axes of its statements, for people; nothing where one launch does.
std::optional<std::string> whyLaunchEachStep(tgl::ForOp loop,
                                             llvm::ArrayRef<tgl::ParallelOp> statements,
                                             llvm::ArrayRef<IndependentAxis> axes);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_LOOPCOSTS_H
