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
#include "frontend/check/Checked.h"

namespace tegula {

/// Checks every kernel of the file, or the one named; what is right goes to `programs`.
void checkKernels(LoadedFile &loaded, llvm::StringRef only = "",
                  std::vector<std::unique_ptr<checked::Program>> *programs = nullptr);

/// Prints the errors of a file that does not parse, with those of what could be understood; false
/// where it parses.
bool tellSyntaxErrors(LoadedFile &loaded);

} // namespace tegula

#endif // TEGULA_DRIVER_CHECKKERNELS_H
