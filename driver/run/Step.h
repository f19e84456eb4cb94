//===- Step.h - Walking through a run -----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_RUN_STEP_H
#define TEGULA_DRIVER_RUN_STEP_H

#include "driver/run/Recording.h"

namespace tegula {

/// Obeys commands of standard input about a run (docs/step.md). `points`: lines that a `print`
/// shows at most.
ExitCode stepThrough(const Recording &recording, unsigned points);

} // namespace tegula

#endif // TEGULA_DRIVER_RUN_STEP_H
