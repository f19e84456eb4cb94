//===- Server.h - The language server ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_SERVER_H
#define TEGULA_LSP_SERVER_H

#include "lsp/Features.h"
#include "llvm/Support/raw_ostream.h"

namespace tegula {

/// What the command gives to the server, which knows the frontend alone.
struct ServerHooks {
  std::string version;
  /// Called before a text is looked at.
  std::function<void(llvm::StringRef path, llvm::StringRef text)> beforeText;
  /// The settings of the client; what they say of launches decides what the next answers with
  /// them.
  std::function<void(const llvm::json::Object &settings)> configure;
  LaunchText launches;
};

/// Serves the Language Server Protocol until the client says `exit` or goes away. False where it
/// says so without a `shutdown` before, or goes in the middle of a message.
bool serveEditor(ServerHooks hooks, int input, llvm::raw_ostream &output);

} // namespace tegula

#endif // TEGULA_LSP_SERVER_H
