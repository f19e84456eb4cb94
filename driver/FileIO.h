//===- FileIO.h - Reading inputs, writing outputs as a whole -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_FILEIO_H
#define TEGULA_DRIVER_FILEIO_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tegula {

/// The bytes of a file, or of standard input for "-"; never more than `limit` of them, so that an
/// endless device ends. The error says "cannot read 'PATH': REASON".
llvm::Expected<std::string> readFile(llvm::StringRef path, size_t limit);

/// Writes a file so that it is either all there or as it was: a temporary in the same folder,
/// synced and renamed, and removed on any failure and on Ctrl-C. Devices and pipes are written
/// directly; "-" is standard output. The error says "cannot write 'PATH': REASON".
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef contents);

} // namespace tegula

#endif // TEGULA_DRIVER_FILEIO_H
