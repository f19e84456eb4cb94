//===- Crash.h - Our own mistakes --------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_CRASH_H
#define TEGULA_DRIVER_CRASH_H

#include "llvm/ADT/StringRef.h"

namespace tegula {

/// From now on a crash, a failed assertion or a fatal error of LLVM writes a reproducer,
/// `tegula-crash-PID.tgl` in the current folder or else in /tmp, says so, and exits with 70.
void installCrashHandler(int argc, const char *const *argv);

/// The program that is being compiled; it goes into the reproducer.
void setCrashProgram(llvm::StringRef path, llvm::StringRef text);

} // namespace tegula

#endif // TEGULA_DRIVER_CRASH_H
