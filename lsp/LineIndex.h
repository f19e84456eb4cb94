//===- LineIndex.h - Bytes and the positions of the protocol ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_LSP_LINEINDEX_H
#define TEGULA_LSP_LINEINDEX_H

#include "frontend/ast/AST.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LSP/Protocol.h"
#include <vector>

namespace tegula {

/// Maps bytes of a text to lines and UTF-16 code units, and back. A line ends with `\n`, `\r\n` or
/// `\r`, as the protocol has it.
class LineIndex {
public:
  /// `text` must live as long.
  explicit LineIndex(llvm::StringRef text);

  llvm::lsp::Position position(uint32_t offset) const;
  llvm::lsp::Range range(uint32_t begin, uint32_t end) const {
    return {position(begin), position(end)};
  }
  llvm::lsp::Range range(Span span) const { return range(span.begin, span.end); }
  /// What lies behind a line or the text is taken for its end, the middle of a character for its
  /// start.
  uint32_t offset(llvm::lsp::Position position) const;

private:
  llvm::StringRef line(size_t number) const;
  llvm::StringRef text;
  std::vector<uint32_t> starts;
};

} // namespace tegula

#endif // TEGULA_LSP_LINEINDEX_H
