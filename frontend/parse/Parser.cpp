//===- Parser.cpp - Text to syntax tree --------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/Parser.h"

#include "TegulaLexer.h"
#include "TegulaParser.h"
#include "antlr4-runtime.h"
#include "frontend/parse/AstBuilder.h"
#include "frontend/parse/CharacterStream.h"
#include "frontend/parse/ParserErrors.h"
#include "frontend/parse/ParserTokens.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include <mutex>

using namespace llvm;

namespace tegula {

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

/// Whether the bytes are text that the lexer can take: not too many, UTF-8, no NUL.
static bool checkEncoding(SourceManager &sources, Span slice, Diagnostics &diagnostics) {
  StringRef text = sources.text(slice);
  auto at = [&](size_t offset) {
    uint32_t begin = slice.begin + static_cast<uint32_t>(offset);
    return Span{slice.file, begin, begin + 1};
  };
  if (text.size() > limits::fileBytes) {
    diagnostics.report(Code::FileTooLarge, at(limits::fileBytes),
                       "expected a file of at most 1 MiB, found " + std::to_string(text.size()) +
                           " bytes");
    return false;
  }
  size_t nul = text.find('\0');
  const UTF8 *cursor = reinterpret_cast<const UTF8 *>(text.data());
  size_t bad = StringRef::npos;
  if (!isLegalUTF8String(&cursor, cursor + text.size()))
    bad = reinterpret_cast<const char *>(cursor) - text.data();
  if (bad == StringRef::npos && nul == StringRef::npos)
    return true;
  size_t first = std::min(bad, nul);
  auto error = diagnostics.report(Code::InvalidEncoding, at(first),
                                  "expected UTF-8 text, found the byte 0x" +
                                      utohexstr(static_cast<uint8_t>(text[first]), false, 2));
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ||
      (first < 4 && text[first] == '\0'))
    error.note("the file looks like UTF-16; save it as UTF-8");
  return false;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static std::vector<Token> lex(SourceManager &sources, Span slice,
                              std::vector<ast::Comment> &comments) {
  CharacterStream input(sources.text(slice));
  TegulaLexer lexer(&input);
  lexer.removeErrorListeners();
  std::vector<Token> tokens;
  uint32_t lastEnd = 0;
  bool firstOnLine = true;
  for (;;) {
    std::unique_ptr<antlr4::Token> next = lexer.nextToken();
    if (next->getType() == antlr4::Token::EOF)
      return tokens;
    Token token{next->getType(), slice.begin + input.byteOf(next->getStartIndex()),
                slice.begin + input.byteOf(next->getStopIndex() + 1)};
    firstOnLine |= sources.text(slice.file).slice(lastEnd, token.begin).contains('\n');
    lastEnd = token.end;
    if (token.type == TegulaLexer::COMMENT) {
      comments.push_back({{slice.file, token.begin, token.end}, firstOnLine});
      continue;
    }
    token.firstOnLine = firstOnLine;
    firstOnLine = false;
    tokens.push_back(token);
  }
}

//===----------------------------------------------------------------------===//
// Grammar
//===----------------------------------------------------------------------===//

/// The checked tokens as ANTLR's, in its own stream.
static std::unique_ptr<antlr4::ListTokenSource> tokenSource(ArrayRef<Token> tokens) {
  std::vector<std::unique_ptr<antlr4::Token>> list;
  list.reserve(tokens.size() + 1);
  for (const Token &token : tokens) {
    auto copy = std::make_unique<antlr4::CommonToken>(token.type);
    copy->setText(""); // texts are read from the source
    list.push_back(std::move(copy));
  }
  list.push_back(std::make_unique<antlr4::CommonToken>(antlr4::Token::EOF, "<EOF>"));
  return std::make_unique<antlr4::ListTokenSource>(std::move(list));
}

namespace {
/// The generated parser on a list of tokens. Everything that ANTLR throws ends here.
class Grammar {
public:
  explicit Grammar(ArrayRef<Token> tokens)
      : source(tokenSource(tokens)), stream(source.get()), parser(&stream) {
    parser.removeErrorListeners();
  }

  /// Null where the grammar refuses the tokens. A right program passes with prediction that ignores
  /// the calling context and stops at the first failure; it is the faster way, and any program that
  /// it accepts has the same tree both ways.
  TegulaParser::FileContext *accept() {
    setMode(antlr4::atn::PredictionMode::SLL);
    parser.setErrorHandler(std::make_shared<antlr4::BailErrorStrategy>());
    try {
      return parser.file();
    } catch (const antlr4::ParseCancellationException &) {
      return nullptr;
    }
  }

  /// Reports what is wrong and goes on behind it.
  TegulaParser::FileContext *recover(ArrayRef<Token> tokens, SyntaxReporter &reporter) {
    stream.seek(0);
    parser.reset();
    setMode(antlr4::atn::PredictionMode::LL);
    parser.setErrorHandler(std::make_shared<ErrorStrategy>(tokens, reporter));
    return parser.file();
  }

private:
  void setMode(antlr4::atn::PredictionMode mode) {
    parser.getInterpreter<antlr4::atn::ParserATNSimulator>()->setPredictionMode(mode);
  }

  std::unique_ptr<antlr4::ListTokenSource> source;
  antlr4::CommonTokenStream stream;
  TegulaParser parser;
};
} // namespace

/// Parses and builds `file`, or what of it is right. What the grammar accepts is taken as it
/// stands; forms of other languages and brackets that were forgotten are looked for only in what it
/// refuses.
static void parseTokens(std::vector<Token> tokens, SyntaxReporter &reporter, ast::File &file) {
  bool refused = false;
  if (mayBeRight(tokens)) {
    Grammar grammar(tokens);
    if (TegulaParser::FileContext *tree = grammar.accept()) {
      checkLiterals(tokens, reporter);
      AstBuilder(tokens, tokens, reporter).build(tree, file);
      return;
    }
    refused = true;
  }
  std::vector<Token> written = tokens;
  if (!checkTokens(tokens, reporter))
    return;
  Grammar grammar(tokens);
  // Tokens of which nothing was reported are the same as before.
  TegulaParser::FileContext *tree = refused && !reporter.anyReported() ? nullptr : grammar.accept();
  if (!tree)
    tree = grammar.recover(tokens, reporter);
  AstBuilder(tokens, written, reporter).build(tree, file);
}

std::unique_ptr<ast::File> parseSlice(SourceManager &sources, Span slice,
                                      Diagnostics &diagnostics) {
  auto file = std::make_unique<ast::File>();
  file->id = slice.file;
  if (!checkEncoding(sources, slice, diagnostics))
    return file;
  size_t reportedBefore = diagnostics.all().size();
  // ANTLR's automata grow while they run, and all parsers share them.
  static std::mutex antlr;
  std::lock_guard<std::mutex> lock(antlr);
  std::vector<Token> tokens = lex(sources, slice, file->comments);
  SyntaxReporter reporter(sources, slice.file, diagnostics);
  parseTokens(std::move(tokens), reporter, *file);
  diagnostics.sort(reportedBefore);
  return file;
}

std::unique_ptr<ast::File> parse(SourceManager &sources, uint32_t file, Diagnostics &diagnostics) {
  unsigned errorsBefore = diagnostics.numErrors();
  uint32_t size = static_cast<uint32_t>(sources.text(file).size());
  auto result = parseSlice(sources, {file, 0, size}, diagnostics);
  if (diagnostics.numErrors() == errorsBefore && result->kernels.empty()) {
    Span where = result->fns.empty() ? Span{file, 0, std::min(size, 1u)} : result->fns.back()->span;
    diagnostics.report(Code::EmptyFile, where, "expected a kernel in the file");
  }
  return result;
}

} // namespace tegula
