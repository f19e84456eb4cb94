//===- Load.h - From a path to a parsed program ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_LOAD_H
#define TEGULA_DRIVER_LOAD_H

#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"
#include <memory>

namespace tegula {

/// One source file with everything that is known of it. Stays where it was made.
struct LoadedFile {
  SourceManager sources;
  Diagnostics diagnostics{sources};
  std::unique_ptr<Module> module;
  uint32_t file = 0;

  /// Prints what has been found: JSON Lines to standard output, or text to standard error.
  void print(bool json) const;
};

/// Reads and parses; syntax errors are in `diagnostics`. Null, with the reason on standard error,
/// where the file cannot be read.
std::unique_ptr<LoadedFile> load(llvm::StringRef path);
/// Parses a text that is already there.
std::unique_ptr<LoadedFile> loadText(llvm::StringRef path, std::string text);

} // namespace tegula

#endif // TEGULA_DRIVER_LOAD_H
