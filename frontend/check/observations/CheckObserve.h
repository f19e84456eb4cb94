//===- CheckObserve.h - print and assert -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKOBSERVE_H
#define TEGULA_FRONTEND_CHECK_CHECKOBSERVE_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

bool checkObservation(CheckContext &ctx, const ast::Stmt &stmt);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKOBSERVE_H
