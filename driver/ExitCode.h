//===- ExitCode.h - What `tegula` exits with ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_EXITCODE_H
#define TEGULA_DRIVER_EXITCODE_H

namespace tegula {

enum ExitCode {
  ExitSuccess = 0,
  ExitWrongProgram = 1,    ///< a diagnostic says what is wrong with the Tegula text
  ExitWrongCall = 2,       ///< wrong options, or an input that cannot be read
  ExitMissingResource = 3, ///< no device, no memory, no tool, an output that cannot be written
  ExitWrongResult = 4,     ///< a comparison failed
  ExitUndecided = 5,       ///< neither proved nor refuted
  ExitInternalError = 70,  ///< a mistake of the compiler; a reproducer has been written
};

} // namespace tegula

#endif // TEGULA_DRIVER_EXITCODE_H
