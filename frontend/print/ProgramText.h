//===- ProgramText.h - Parts of a checked program as text -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PRINT_PROGRAMTEXT_H
#define TEGULA_FRONTEND_PRINT_PROGRAMTEXT_H

#include "frontend/check/Checked.h"

namespace tegula {

/// An integer expression of the program with the names that its text has; sizes without a name are
/// shown as what they are.
std::string textOf(const checked::Program &program, IndexExpr expr);

/// `0 <= 2*i < M for i in 0:N where N - i - 1 >= 0`.
std::string conditionOf(const checked::Program &program, const checked::Guard &guard);

} // namespace tegula

#endif // TEGULA_FRONTEND_PRINT_PROGRAMTEXT_H
