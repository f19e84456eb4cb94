//===- SettleObservations.h - Whether print and assert are part of a program ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_SETTLEOBSERVATIONS_H
#define TEGULA_FRONTEND_CHECK_SETTLEOBSERVATIONS_H

#include "frontend/check/Checked.h"

namespace tegula {

/// Removes the statements `print` and `assert` from a checked program. With `observe` their
/// equations take their place, and the tensors that these write become inouts of the entry, which
/// calls pass on.
void settleObservations(checked::Program &program, bool observe);

} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_SETTLEOBSERVATIONS_H
