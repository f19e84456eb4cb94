//===- LineIndex.cpp - Bytes and the positions of the protocol ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/LineIndex.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula {

LineIndex::LineIndex(StringRef text) : text(text), starts{0} {
  for (size_t at = 0; at != text.size(); ++at)
    if (text[at] == '\n' || (text[at] == '\r' && !text.drop_front(at + 1).starts_with("\n")))
      starts.push_back(static_cast<uint32_t>(at + 1));
}

/// The line without what ends it.
StringRef LineIndex::line(size_t number) const {
  size_t end = number + 1 < starts.size() ? starts[number + 1] : text.size();
  StringRef line = text.slice(starts[number], end);
  if (number + 1 < starts.size()) {
    line.consume_back("\n");
    line.consume_back("\r");
  }
  return line;
}

/// UTF-16 code units of the character that begins with this byte; none of a byte inside of one.
static int unitsOf(char byte) {
  auto bits = static_cast<unsigned char>(byte);
  if ((bits & 0xC0) == 0x80)
    return 0;
  return bits >= 0xF0 ? 2 : 1;
}

lsp::Position LineIndex::position(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(text.size()));
  size_t number = std::distance(starts.begin(), llvm::upper_bound(starts, offset)) - 1;
  int units = 0;
  for (char byte : text.slice(starts[number], offset))
    units += unitsOf(byte);
  return {static_cast<int>(number), units};
}

uint32_t LineIndex::offset(lsp::Position position) const {
  if (position.line < 0)
    return 0;
  auto number = static_cast<size_t>(position.line);
  if (number >= starts.size())
    return static_cast<uint32_t>(text.size());
  StringRef rest = line(number);
  int units = 0;
  size_t at = 0;
  while (at != rest.size()) {
    units += unitsOf(rest[at]);
    if (units > position.character)
      break;
    ++at;
  }
  return starts[number] + static_cast<uint32_t>(at);
}

} // namespace tegula
