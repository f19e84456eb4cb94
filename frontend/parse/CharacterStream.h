//===- CharacterStream.h - UTF-8 text as ANTLR's lexer reads it --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ANTLR counts characters, everything else here counts bytes: this stream knows both. (ANTLR's own
// ANTLRInputStream has thread-local variables that Debian's static library makes unfit for
// libtegula.)
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_CHARACTERSTREAM_H
#define TEGULA_FRONTEND_PARSE_CHARACTERSTREAM_H

#include "antlr4-runtime.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace tegula {

class CharacterStream final : public antlr4::CharStream {
public:
  /// `text` is valid UTF-8 and outlives the stream. A byte order mark at its begin is skipped.
  explicit CharacterStream(llvm::StringRef text) : text(text) {
    constexpr llvm::StringRef mark = "\xEF\xBB\xBF";
    for (size_t i = text.starts_with(mark) ? mark.size() : 0; i < text.size();) {
      unsigned char lead = text[i];
      unsigned length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      char32_t value = length == 1 ? lead : lead & (0x7F >> length);
      for (unsigned k = 1; k < length; ++k)
        value = value << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
      characters.push_back(value);
      offsets.push_back(static_cast<uint32_t>(i));
      i += length;
    }
    offsets.push_back(static_cast<uint32_t>(text.size()));
  }

  /// The byte where a character begins; of the end the number of bytes.
  uint32_t byteOf(size_t character) const { return offsets[character]; }

  void consume() override {
    if (position == characters.size())
      throw antlr4::IllegalStateException("cannot consume the end of the text");
    ++position;
  }
  size_t LA(ssize_t distance) override {
    ssize_t at = static_cast<ssize_t>(position) + (distance > 0 ? distance - 1 : distance);
    if (distance == 0)
      return 0; // undefined by ANTLR
    if (at < 0 || at >= static_cast<ssize_t>(characters.size()))
      return antlr4::IntStream::EOF;
    return characters[at];
  }
  ssize_t mark() override { return -1; }
  void release(ssize_t) override {}
  size_t index() override { return position; }
  void seek(size_t index) override { position = std::min(index, characters.size()); }
  size_t size() override { return characters.size(); }
  std::string getSourceName() const override { return UNKNOWN_SOURCE_NAME; }
  std::string getText(const antlr4::misc::Interval &interval) override {
    size_t begin = std::min<size_t>(interval.a, characters.size());
    size_t end = std::min<size_t>(interval.b + 1, characters.size());
    return begin < end ? text.slice(offsets[begin], offsets[end]).str() : std::string();
  }
  std::string toString() const override { return text.str(); }

private:
  llvm::StringRef text;
  std::vector<char32_t> characters;
  std::vector<uint32_t> offsets; // by character, and of the end
  size_t position = 0;
};

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_CHARACTERSTREAM_H
