//===- CheckEntry.h - Parameters of the entry kernel ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKENTRY_H
#define TEGULA_FRONTEND_CHECK_CHECKENTRY_H

#include "frontend/check/CheckContext.h"

namespace tegula {
inline namespace checker {

bool bindEntry(CheckContext &ctx, Frame &entry);

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKENTRY_H
