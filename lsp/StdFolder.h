//===- StdFolder.h - The library's text as files ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_STDFOLDER_H
#define TEGULA_LSP_STDFOLDER_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tegula {

/// The library is part of the command, and an editor shows files: those that it asks for are
/// written to a folder of their own, for reading, which goes when the server does.
class StdFolder {
public:
  StdFolder() = default;
  StdFolder(const StdFolder &) = delete;
  ~StdFolder();
  /// The URI of a file of the library (`std/norm.tgl`); empty where it cannot be written.
  std::string uriOf(llvm::StringRef name);

private:
  std::string folder; // empty: not made yet
  std::vector<std::string> written;
};

} // namespace tegula

#endif // TEGULA_LSP_STDFOLDER_H
