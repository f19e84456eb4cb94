//===- Ablate.h - tegula bench --ablate --------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_ABLATE_H
#define TEGULA_DRIVER_ABLATE_H

#include "bench/Study.h"
#include "driver/ExitCode.h"

namespace tegula {

/// Prints what each pass is worth for the cases of all files: a table for each case, and where
/// there are several one over all. `passes`: of these alone, where any are named. `json`: one
/// object a line instead.
ExitCode runAblation(llvm::ArrayRef<std::string> paths, const bench::StudyOptions &options,
                     llvm::ArrayRef<llvm::StringRef> passes, double deadline, bool json);

} // namespace tegula

#endif // TEGULA_DRIVER_ABLATE_H
