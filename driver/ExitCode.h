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

/// What a command exits with that met `before` and then `now`. What is known to be wrong counts
/// more than what is not decided, and what could not be asked more than either: the numbers are
/// names, and in no order. Of two that count alike the first one stays.
inline ExitCode worse(ExitCode before, ExitCode now) {
  auto weight = [](ExitCode code) {
    switch (code) {
    case ExitSuccess:
      return 0;
    case ExitUndecided:
      return 1;
    case ExitWrongResult:
      return 2;
    case ExitWrongProgram:
    case ExitWrongCall:
    case ExitMissingResource:
      return 3;
    case ExitInternalError:
      return 4;
    }
    return 4;
  };
  return weight(now) > weight(before) ? now : before;
}

} // namespace tegula

#endif // TEGULA_DRIVER_EXITCODE_H
