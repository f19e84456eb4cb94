//===- MessageInput.h - Messages of the client ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_MESSAGEINPUT_H
#define TEGULA_LSP_MESSAGEINPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LSP/Transport.h"
#include <functional>

namespace tegula {

/// Reads messages from a file descriptor. While none waits it calls `idle`, so that what is not
/// asked for (diagnostics of a text that is being typed) is done once for many messages.
class MessageInput final : public llvm::lsp::JSONTransportInput {
public:
  /// `idle` does a piece of work and says whether there was one.
  MessageInput(int file, std::function<bool()> idle) : file(file), idle(std::move(idle)) {}

  bool hasError() const override { return failed; }
  bool isEndOfInput() const override { return ended; }
  llvm::LogicalResult readStandardMessage(std::string &json) override;
  llvm::LogicalResult readDelimitedMessage(std::string &json) override { return llvm::failure(); }

private:
  bool fill();
  bool readLine(llvm::StringRef &line);

  const int file;
  std::function<bool()> idle;
  std::string buffer;
  size_t at = 0; // what is before it has been read
  bool failed = false, ended = false;
};

} // namespace tegula

#endif // TEGULA_LSP_MESSAGEINPUT_H
