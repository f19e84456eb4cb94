//===- CheckKernel.h - One kernel, from its signature to its last statement *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKKERNEL_H
#define TEGULA_FRONTEND_CHECK_CHECKKERNEL_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

/// Checks the kernel that the options name; null where an error was reported.
std::unique_ptr<checked::Program> checkKernel(CheckContext &ctx);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKKERNEL_H
