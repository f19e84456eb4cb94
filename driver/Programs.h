//===- Programs.h - The files that a command is given ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_PROGRAMS_H
#define TEGULA_DRIVER_PROGRAMS_H

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace tegula {

/// The files that are named, and the programs (.tgl) in the folders that are, each file once, in
/// the order of their names. Links to folders are not followed. With `withReference` programs in
/// folders count that have a reference beside them (FILE.ref.py). False, with the reason on
/// standard error, where a folder cannot be read or holds none.
bool findPrograms(llvm::ArrayRef<std::string> paths, std::vector<std::string> &files,
                  bool withReference = false);

} // namespace tegula

#endif // TEGULA_DRIVER_PROGRAMS_H
