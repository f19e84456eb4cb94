//===- ParserTokens.cpp - Literals, brackets and limits ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/ParserTokens.h"

#include "TegulaLexer.h"
#include "frontend/parse/Parser.h"
#include "frontend/parse/ParserForeign.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include <algorithm>

using namespace llvm;
using Lexer = TegulaLexer;

namespace tegula {

std::optional<Diagnostics::Builder> SyntaxReporter::report(Code code, Span where,
                                                           std::string message) {
  auto builder = reportMended(code, where, std::move(message));
  wrong.push_back(where.begin);
  return builder;
}

bool SyntaxReporter::isWrong(uint32_t begin, uint32_t end) const {
  return count == limits::syntaxErrors || isSpoilt(begin, end) ||
         llvm::any_of(wrong, [&](uint32_t at) { return begin <= at && at < end; });
}

std::optional<Diagnostics::Builder> SyntaxReporter::reportMended(Code code, Span where,
                                                                 std::string message) {
  // A place that is spoilt has had its say, and after very many errors one more helps nobody.
  if (count == limits::syntaxErrors || isSpoilt(where.begin, where.end))
    return std::nullopt;
  ++count;
  return diagnostics.report(code, where, std::move(message));
}

void SyntaxReporter::spoil(uint32_t begin, uint32_t end) {
  // Only what is reported matters; and one line can be spoilt a thousand times.
  if (count == limits::syntaxErrors ||
      (!spoilt.empty() && spoilt.back().first <= begin && end <= spoilt.back().second))
    return;
  spoilt.push_back({begin, end});
}

bool SyntaxReporter::isSpoilt(uint32_t begin, uint32_t end) const {
  return llvm::any_of(spoilt,
                      [&](auto range) { return begin < range.second && range.first < end; });
}

bool isNameType(size_t type) {
  switch (type) {
  case Lexer::IDENTIFIER:
  case Lexer::KERNEL:
  case Lexer::FN:
  case Lexer::PARALLEL:
  case Lexer::STATE:
  case Lexer::TILES:
  case Lexer::PRECISION:
  case Lexer::SCHEDULE:
  case Lexer::REVERSE:
  case Lexer::DETERMINISTIC:
  case Lexer::DISTINCT:
  case Lexer::INVARIANT:
  case Lexer::INOUT:
  case Lexer::WHERE:
  case Lexer::MAX:
  case Lexer::MIN:
  case Lexer::PRINT:
  case Lexer::ASSERT:
    return true;
  default:
    return false;
  }
}

bool endsOperand(size_t type) {
  return isNameType(type) || type == Lexer::INTEGER || type == Lexer::FLOAT ||
         type == Lexer::STRING || type == Lexer::RPAREN || type == Lexer::RBRACKET ||
         type == Lexer::ELLIPSIS;
}

static bool isOpener(size_t type) {
  return type == Lexer::LPAREN || type == Lexer::LBRACKET || type == Lexer::LBRACE;
}

static bool isCloser(size_t type) {
  return type == Lexer::RPAREN || type == Lexer::RBRACKET || type == Lexer::RBRACE;
}

static size_t closerOf(size_t opener) {
  return opener == Lexer::LPAREN     ? Lexer::RPAREN
         : opener == Lexer::LBRACKET ? Lexer::RBRACKET
                                     : Lexer::RBRACE;
}

static StringRef spelling(size_t bracket) {
  switch (bracket) {
  case Lexer::LPAREN:
    return "(";
  case Lexer::RPAREN:
    return ")";
  case Lexer::LBRACKET:
    return "[";
  case Lexer::RBRACKET:
    return "]";
  case Lexer::LBRACE:
    return "{";
  default:
    return "}";
  }
}

static void reportTooDeep(const Token &token, SyntaxReporter &reporter) {
  reporter.report(Code::NestingTooDeep, reporter.span(token),
                  "expected at most 256 levels of brackets, unary operators and '**'");
}

static std::string quoted(StringRef text) { return ("'" + text + "'").str(); }

//===----------------------------------------------------------------------===//
// Literals
//===----------------------------------------------------------------------===//

std::optional<uint64_t> integerOf(StringRef text) {
  uint64_t value;
  bool isDecimal = text.size() < 2 || isDigit(text[1]); // leading zeros do not make it octal
  return text.getAsInteger(isDecimal ? 10 : 0, value) ? std::nullopt : std::optional(value);
}

void checkLiterals(ArrayRef<Token> tokens, SyntaxReporter &reporter) {
  for (const Token &token : tokens) {
    StringRef text = reporter.text(token);
    if (token.type == Lexer::INTEGER) {
      std::optional<uint64_t> value = integerOf(text);
      if (!value)
        if (auto error = reporter.report(Code::IntegerTooLarge, reporter.span(token),
                                         "expected an integer of at most 18446744073709551615"))
          error->note("a larger number can be written as a float: 1e20");
    } else if (token.type == Lexer::FLOAT) {
      APFloat value(APFloat::IEEEdouble());
      auto status = value.convertFromString(text, APFloat::rmNearestTiesToEven);
      if (!status) {
        consumeError(status.takeError());
        reporter.report(Code::SyntaxError, reporter.span(token), "expected a number");
      } else if (*status & APFloat::opOverflow) {
        if (auto error = reporter.report(Code::FloatTooLarge, reporter.span(token),
                                         "expected a number of at most 1.7976931348623157e308"))
          error->fix("write 'inf'", {{reporter.span(token), "inf"}});
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Brackets
//===----------------------------------------------------------------------===//

namespace {
/// Copies tokens, matching brackets as it goes. What it leaves behind is balanced.
class BracketRepair {
public:
  BracketRepair(ArrayRef<Token> tokens, SyntaxReporter &reporter)
      : tokens(tokens), reporter(reporter) {}
  /// Nothing where brackets nest too deep.
  std::optional<std::vector<Token>> run();

private:
  struct Open {
    size_t type;
    size_t at;        // in `out`
    size_t statement; // where its statement starts in `out`
  };
  bool startsDefinition(size_t at) const;
  bool startsStatement(size_t at) const;
  void reportUnclosed(const Open &open, StringRef before);
  void insertCloser(const Open &open, uint32_t offset);
  void closeAllBefore(size_t at, StringRef before);
  void dropBrokenStatement(size_t endAt);
  void close(size_t at);

  ArrayRef<Token> tokens;
  SyntaxReporter &reporter;
  std::vector<Token> out;
  std::vector<Open> stack;
  size_t statement = 0;
};
} // namespace

/// `kernel NAME (` or `fn NAME (` at the start of a line stands outside of all brackets.
bool BracketRepair::startsDefinition(size_t at) const {
  return (tokens[at].type == Lexer::KERNEL || tokens[at].type == Lexer::FN) &&
         tokens[at].firstOnLine && at + 2 < tokens.size() && isNameType(tokens[at + 1].type) &&
         tokens[at + 2].type == Lexer::LPAREN;
}

/// `NAME =` or `NAME[...] =` at the start of a line, where the line before could have ended.
bool BracketRepair::startsStatement(size_t at) const {
  if (!tokens[at].firstOnLine || !isNameType(tokens[at].type) || at + 1 == tokens.size() ||
      out.empty() || !endsOperand(out.back().type))
    return false;
  size_t next = at + 1;
  if (tokens[next].type == Lexer::LBRACKET) {
    int depth = 0;
    do {
      depth += isOpener(tokens[next].type) - isCloser(tokens[next].type);
      ++next;
    } while (depth > 0 && next < tokens.size() && !tokens[next].firstOnLine);
    if (next >= tokens.size())
      return false;
  }
  if (next + 1 < tokens.size() &&
      (tokens[next].type == Lexer::MAX || tokens[next].type == Lexer::MIN))
    ++next; // y[i] max= v
  return tokens[next].type == Lexer::ASSIGN || tokens[next].type == Lexer::ACCUMULATE;
}

void BracketRepair::reportUnclosed(const Open &open, StringRef before) {
  const Token &opener = out[open.at];
  reporter.report(Code::UnbalancedBracket, reporter.span(opener),
                  ("expected " + quoted(spelling(closerOf(open.type))) + " to close " +
                   quoted(spelling(open.type)) + ", found " + before)
                      .str());
}

void BracketRepair::insertCloser(const Open &open, uint32_t offset) {
  out.push_back({closerOf(open.type), offset, offset});
}

/// All brackets end where a definition begins or the file ends; the innermost brace is reported.
void BracketRepair::closeAllBefore(size_t at, StringRef before) {
  uint32_t offset = at < tokens.size() ? tokens[at].begin : reporter.text().size();
  if (!stack.empty() && stack.back().type != Lexer::LBRACE)
    dropBrokenStatement(at);
  if (!stack.empty())
    reportUnclosed(stack.back(), before);
  for (; !stack.empty(); stack.pop_back())
    insertCloser(stack.back(), offset);
}

/// Parentheses that are open where a brace closes: their statement cannot be understood. It is
/// taken out up to that brace.
void BracketRepair::dropBrokenStatement(size_t endAt) {
  std::string before =
      endAt < tokens.size() ? quoted(reporter.text(tokens[endAt])) : "the end of the file";
  reportUnclosed(stack.back(), before);
  size_t from = stack.back().at;
  while (!stack.empty() && stack.back().type != Lexer::LBRACE) {
    from = stack.back().statement;
    stack.pop_back();
  }
  uint32_t end = endAt < tokens.size() ? tokens[endAt].begin : reporter.text().size();
  if (from < out.size())
    reporter.spoil(out[from].begin, end);
  out.resize(from);
}

void BracketRepair::close(size_t at) {
  const Token &closer = tokens[at];
  StringRef text = reporter.text(closer);
  auto spoilLine = [&] {
    uint32_t from = closer.begin;
    for (size_t i = out.size(); i-- && !out[i].firstOnLine;)
      from = out[i].begin;
    if (!out.empty())
      from = std::min(from, out[std::min(statement, out.size() - 1)].begin);
    size_t end = reporter.text().find('\n', closer.end);
    reporter.spoil(from, end == StringRef::npos ? reporter.text().size() : end);
  };
  if (stack.empty()) {
    reporter.report(Code::UnbalancedBracket, reporter.span(closer),
                    quoted(text) + " closes nothing");
    spoilLine();
    return;
  }
  if (closer.type == Lexer::RBRACE && stack.back().type != Lexer::LBRACE &&
      llvm::any_of(stack, [](const Open &open) { return open.type == Lexer::LBRACE; }))
    dropBrokenStatement(at);
  Open &top = stack.back();
  if (closerOf(top.type) == closer.type) {
    out.push_back(closer);
    stack.pop_back();
    return;
  }
  if (top.type == Lexer::LBRACE) {
    reporter.report(Code::UnbalancedBracket, reporter.span(closer),
                    quoted(text) + " closes nothing");
    spoilLine();
    return;
  }
  StringRef expected = spelling(closerOf(top.type));
  auto error = reporter.report(
      Code::UnbalancedBracket, reporter.span(closer),
      ("expected '" + expected + "' to close '" + spelling(top.type) + "', found '" + text + "'")
          .str());
  if (error)
    error->note(("'" + spelling(top.type) + "' stands here").str(), reporter.span(out[top.at]));
  spoilLine();
  bool closesNext = stack.size() > 1 && closerOf(stack[stack.size() - 2].type) == closer.type;
  if (error)
    error->fix((closesNext ? "insert '" : "write '") + expected.str() + "'",
               {{closesNext ? reporter.span(closer.begin, closer.begin) : reporter.span(closer),
                 expected.str()}});
  insertCloser(top, closer.begin);
  stack.pop_back();
  if (closesNext) {
    out.push_back(closer);
    stack.pop_back();
  }
}

std::optional<std::vector<Token>> BracketRepair::run() {
  out.reserve(tokens.size());
  for (size_t at = 0; at != tokens.size(); ++at) {
    const Token &token = tokens[at];
    if (!stack.empty() && startsDefinition(at))
      closeAllBefore(at, quoted(reporter.text(token)));
    if (!stack.empty() && stack.back().type != Lexer::LBRACE && startsStatement(at) &&
        llvm::any_of(stack, [](const Open &open) { return open.type == Lexer::LBRACE; }))
      dropBrokenStatement(at);
    // Neither `->` nor `{` stands inside parentheses.
    if (token.type == Lexer::ARROW || token.type == Lexer::LBRACE)
      if (!stack.empty() && stack.back().type != Lexer::LBRACE) {
        reportUnclosed(stack.back(), quoted(reporter.text(token)));
        for (; !stack.empty() && stack.back().type != Lexer::LBRACE; stack.pop_back()) {
          reporter.spoil(out[stack.back().statement].begin, token.begin);
          insertCloser(stack.back(), token.begin);
        }
      }
    if (stack.empty() || stack.back().type == Lexer::LBRACE) {
      size_t last = out.empty() ? size_t(Lexer::SEMICOLON) : out.back().type;
      if (last == Lexer::SEMICOLON || last == Lexer::LBRACE || last == Lexer::RBRACE ||
          (token.firstOnLine && (isNameType(token.type) || token.type == Lexer::FOR) &&
           endsOperand(last)))
        statement = out.size();
    }
    if (isCloser(token.type)) {
      close(at);
      continue;
    }
    if (isOpener(token.type))
      stack.push_back({token.type, out.size(), statement});
    if (stack.size() > limits::nesting) {
      reportTooDeep(token, reporter);
      return std::nullopt;
    }
    out.push_back(token);
  }
  if (!stack.empty())
    closeAllBefore(tokens.size(), "the end of the file");
  return std::move(out);
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

/// What the recursion of parser, checker and printers depends on is bounded here. Without a
/// reporter nothing is said.
static bool checkLimits(std::vector<Token> &tokens, SyntaxReporter *reporter) {
  // For each open bracket, the unary operators and powers that its current operand stands under.
  std::vector<unsigned> operators = {0};
  unsigned depth = 0, braces = 0, inStatement = 0;
  std::vector<unsigned> brackets = {0};
  size_t last = Lexer::SEMICOLON;
  for (Token &token : tokens) {
    token.braces = braces;
    token.brackets = brackets.back();
    bool boundary = isNameType(token.type) && endsOperand(last);
    if (isOpener(token.type)) {
      operators.push_back(0);
      ++depth;
      if (token.type == Lexer::LBRACE) {
        ++braces;
        brackets.push_back(0);
        boundary = true;
      } else {
        ++brackets.back();
      }
    } else if (isCloser(token.type)) {
      depth -= operators.back() + 1;
      operators.pop_back();
      if (token.type == Lexer::RBRACE) {
        --braces;
        brackets.pop_back();
        boundary = true;
      } else {
        --brackets.back();
      }
    } else if (token.type == Lexer::NOT || token.type == Lexer::POWER ||
               token.type == Lexer::BITNOT ||
               ((token.type == Lexer::MINUS || token.type == Lexer::PLUS) && !endsOperand(last))) {
      ++operators.back();
      ++depth;
    } else if (!endsOperand(token.type) || boundary) {
      depth -= operators.back();
      operators.back() = 0;
    }
    if (depth > limits::nesting) {
      if (reporter)
        reportTooDeep(token, *reporter);
      return false;
    }
    boundary |= token.type == Lexer::SEMICOLON;
    // A signature may have as many parameters as a large module: each counts by itself.
    boundary |= token.type == Lexer::COMMA && braces == 0 && brackets.back() == 1;
    inStatement = boundary ? 0 : inStatement + 1;
    if (inStatement > limits::statementTokens) {
      if (!reporter)
        return false;
      if (auto error = reporter->report(Code::StatementTooLong, reporter->span(token),
                                        "expected a statement of at most 2,000 tokens"))
        error->note("name parts of it as temporaries");
      return false;
    }
    last = token.type;
  }
  return true;
}

bool checkTokens(std::vector<Token> &tokens, SyntaxReporter &reporter) {
  replaceForeignTokens(tokens, reporter);
  checkLiterals(tokens, reporter);
  std::optional<std::vector<Token>> repaired = BracketRepair(tokens, reporter).run();
  if (!repaired)
    return false;
  tokens = std::move(*repaired);
  return checkLimits(tokens, &reporter);
}

static bool isBalanced(ArrayRef<Token> tokens) {
  SmallVector<size_t> open;
  for (const Token &token : tokens) {
    if (isOpener(token.type))
      open.push_back(closerOf(token.type));
    else if (isCloser(token.type) && (open.empty() || open.pop_back_val() != token.type))
      return false;
  }
  return open.empty();
}

bool mayBeRight(std::vector<Token> &tokens) {
  return !hasForeignTokens(tokens) && isBalanced(tokens) && checkLimits(tokens, nullptr);
}

} // namespace tegula
