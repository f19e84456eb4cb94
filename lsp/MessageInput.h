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

/// Reads messages from a file descriptor. While none waits it does other work, so that what is not
/// asked for (diagnostics of a text that is being typed) is done once for many messages.
class MessageInput final : public llvm::lsp::JSONTransportInput {
public:
  explicit MessageInput(int file) : file(file) {}

  /// `work` does a piece of it and says whether there was one.
  void whenIdle(std::function<bool()> work) { idle = std::move(work); }

  bool hasError() const override { return failed; }
  bool isEndOfInput() const override { return ended; }
  /// The end came inside of a message.
  bool isCutOff() const { return ended && at != buffer.size(); }
  llvm::LogicalResult readStandardMessage(std::string &json) override;
  llvm::LogicalResult readDelimitedMessage(std::string &json) override { return llvm::failure(); }

private:
  bool fill();
  bool readLine(llvm::StringRef &line);

  const int file;
  std::function<bool()> idle = [] { return false; };
  std::string buffer;
  size_t at = 0; // what is before it has been read
  bool failed = false, ended = false;
};

} // namespace tegula

#endif // TEGULA_LSP_MESSAGEINPUT_H
