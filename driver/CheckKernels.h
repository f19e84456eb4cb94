//===- CheckKernels.h - Checking a file as its declarations stand ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_CHECKKERNELS_H
#define TEGULA_DRIVER_CHECKKERNELS_H

#include "driver/Load.h"

namespace tegula {

/// Checks every kernel of the file, or the one named, unless there are syntax errors.
void checkKernels(LoadedFile &loaded, llvm::StringRef only = "");

} // namespace tegula

#endif // TEGULA_DRIVER_CHECKKERNELS_H
