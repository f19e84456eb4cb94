//===- ParserTokens.h - What happens between lexer and parser ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to the parser. Tokens are checked before the grammar sees them: literals, brackets,
// nesting and length, so that a recursive parser is safe; brackets are repaired, so that one that
// is missing spoils its own statement alone.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_PARSERTOKENS_H
#define TEGULA_FRONTEND_PARSE_PARSERTOKENS_H

#include "frontend/diagnostics/Diagnostics.h"
#include <vector>

namespace tegula {

struct Token {
  size_t type; // of TegulaLexer
  uint32_t begin, end;
  bool firstOnLine = false;
  unsigned braces = 0;   // `{` open before it
  unsigned brackets = 0; // `(` and `[` open before it, since the last `{`
};

/// Reports syntax errors: at most limits::syntaxErrors, and none in lines that are already known to
/// be spoilt.
class SyntaxReporter {
public:
  SyntaxReporter(SourceManager &sources, uint32_t file, Diagnostics &diagnostics)
      : sources(sources), file(file), diagnostics(diagnostics) {}

  Span span(uint32_t begin, uint32_t end) const { return {file, begin, end}; }
  Span span(const Token &token) const { return span(token.begin, token.end); }
  llvm::StringRef text() const { return sources.text(file); }
  llvm::StringRef text(const Token &token) const { return text().slice(token.begin, token.end); }

  /// Null where nothing more is to be reported.
  std::optional<Diagnostics::Builder> report(Code code, Span where, std::string message);
  /// As `report`, of what is read as if it were right.
  std::optional<Diagnostics::Builder> reportMended(Code code, Span where, std::string message);
  /// From now on nothing is reported in these bytes.
  void spoil(uint32_t begin, uint32_t end);
  bool isSpoilt(uint32_t begin, uint32_t end) const;
  bool anyReported() const { return count != 0; }
  unsigned numReported() const { return count; }
  /// Whether an error was found in these bytes that the tokens were not mended of, or they are
  /// spoilt; all of a text is wrong where there were too many errors.
  bool isWrong(uint32_t begin, uint32_t end) const;

private:
  SourceManager &sources;
  uint32_t file;
  Diagnostics &diagnostics;
  unsigned count = 0;
  std::vector<std::pair<uint32_t, uint32_t>> spoilt;
  std::vector<uint32_t> wrong; // where errors begin
};

/// The value of `128`, `0xff` or `0b101`; nothing beyond 64 bits.
std::optional<uint64_t> integerOf(llvm::StringRef text);

inline bool touches(const Token &a, const Token &b) { return a.end == b.begin; }
/// Whether a token of the type is a name, words of the language that can be names included.
bool isNameType(size_t type);
/// Whether an operand can end with it: after one, a name starts a new statement.
bool endsOperand(size_t type);

/// Whether the tokens (without end of file) may be a program as they stand: none is foreign,
/// brackets have their partners, nothing is too deep or too long. Reports nothing.
bool mayBeRight(std::vector<Token> &tokens);
/// Reports numbers that are too large.
void checkLiterals(llvm::ArrayRef<Token> tokens, SyntaxReporter &reporter);
/// Checks and repairs tokens that are no program as they stand. False: they must not be parsed.
bool checkTokens(std::vector<Token> &tokens, SyntaxReporter &reporter);

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_PARSERTOKENS_H
