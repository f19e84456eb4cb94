//===- UnifiedDiff.h - Two texts as a patch ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_UNIFIEDDIFF_H
#define TEGULA_DRIVER_UNIFIEDDIFF_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace tegula {

/// Prints what `patch` takes, with three lines around each change; nothing where the texts are
/// equal.
void printUnifiedDiff(llvm::raw_ostream &os, llvm::StringRef path, llvm::StringRef before,
                      llvm::StringRef after);

} // namespace tegula

#endif // TEGULA_DRIVER_UNIFIEDDIFF_H
