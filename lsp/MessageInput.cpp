//===- MessageInput.cpp - Messages of the client --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/MessageInput.h"

#include <cerrno>
#include <poll.h>
#include <unistd.h>

using namespace llvm;

namespace tegula {

/// A message may hold a file of the language many times over, and no more.
static constexpr size_t longestMessage = size_t(64) << 20;

static bool inputWaits(int file) {
  pollfd one{file, POLLIN, 0};
  return poll(&one, 1, /*timeout=*/0) != 0;
}

/// Reads what there is, at least a byte; false at the end.
bool MessageInput::fill() {
  while (!inputWaits(file) && idle())
    ;
  buffer.erase(0, at);
  at = 0;
  constexpr size_t step = 65536;
  size_t size = buffer.size();
  buffer.resize(size + step);
  ssize_t count;
  do
    count = read(file, buffer.data() + size, step);
  while (count < 0 && errno == EINTR);
  buffer.resize(size + std::max<ssize_t>(count, 0));
  failed = count < 0;
  ended = count <= 0;
  return !ended;
}

/// The next line without its end; it is there until the next call.
bool MessageInput::readLine(StringRef &line) {
  size_t searched = at;
  while (true) {
    size_t end = buffer.find('\n', searched);
    if (end != std::string::npos) {
      line = StringRef(buffer).slice(at, end).rtrim("\r");
      at = end + 1;
      return true;
    }
    searched = buffer.size() - at; // fill moves the rest to the front
    if (!fill())
      return false;
  }
}

LogicalResult MessageInput::readStandardMessage(std::string &json) {
  size_t length = 0;
  StringRef line;
  while (true) {
    if (!readLine(line))
      return failure();
    if (line.empty() && length)
      break;
    if (line.consume_front_insensitive("content-length:") && line.trim().getAsInteger(10, length))
      length = 0;
  }
  if (length > longestMessage) {
    ended = true; // where the next one begins is not known
    return failure();
  }
  while (buffer.size() - at < length)
    if (!fill())
      return failure();
  json.assign(buffer, at, length);
  at += length;
  return success();
}

} // namespace tegula
