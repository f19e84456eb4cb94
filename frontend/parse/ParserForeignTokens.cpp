//===- ParserForeignTokens.cpp - Tokens of other languages ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Comments, numbers, characters and operators of other languages are reported before parsing, and
// removed or replaced by what they mean.
//
//===----------------------------------------------------------------------===//

#include "frontend/parse/ParserForeign.h"

#include "TegulaLexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using Lexer = TegulaLexer;

namespace tegula {

static bool isWord(const Token &token) {
  return isNameType(token.type) || (token.type >= Lexer::FOR && token.type <= Lexer::RETURN);
}

/// `word` with the blanks that it needs between its neighbours.
static std::string padded(StringRef text, const Token &token, StringRef word) {
  if (!isAlpha(word.front()))
    return word.str();
  std::string result = word.str();
  auto joins = [](char c) { return isAlnum(c) || c == '_' || c == ')' || c == ']'; };
  if (token.begin > 0 && joins(text[token.begin - 1]))
    result = " " + result;
  if (token.end < text.size() && (isAlnum(text[token.end]) || text[token.end] == '_'))
    result += " ";
  return result;
}

namespace {
struct Replacement {
  StringRef text;  // empty: none
  size_t type = 0; // of the token that takes its place; 0: none
};

class ForeignTokens {
public:
  ForeignTokens(ArrayRef<Token> tokens, SyntaxReporter &reporter)
      : tokens(tokens), reporter(reporter), text(reporter.text()) {}
  std::vector<Token> run();

private:
  bool comment();
  bool numberSuffix();
  bool character();
  bool foreignOperator();
  bool isLineComment() const;
  bool isObservedText() const;
  uint32_t lineEnd(uint32_t offset) const {
    return static_cast<uint32_t>(std::min(text.find('\n', offset), text.size()));
  }

  ArrayRef<Token> tokens;
  SyntaxReporter &reporter;
  StringRef text;
  std::vector<Token> out;
  size_t at = 0;
};
} // namespace

/// `//` is floor division unless what follows cannot be an operand (two words side by side, a full
/// stop), or the line is no continuation.
bool ForeignTokens::isLineComment() const {
  const Token &token = tokens[at];
  if (token.firstOnLine && (out.empty() || !endsOperand(out.back().type)))
    return true;
  uint32_t end = lineEnd(token.end);
  size_t last = at;
  while (last + 1 < tokens.size() && tokens[last + 1].begin < end)
    ++last;
  for (size_t i = at + 1; i < last; ++i)
    if (tokens[i].type == Lexer::IDENTIFIER && tokens[i + 1].type == Lexer::IDENTIFIER &&
        !touches(tokens[i], tokens[i + 1]))
      return true;
  return tokens[last].type == Lexer::FOREIGN && reporter.text(tokens[last]) == ".";
}

bool ForeignTokens::comment() {
  const Token &token = tokens[at];
  uint32_t end;
  if (token.type == Lexer::FLOORDIV && isLineComment()) {
    end = lineEnd(token.begin);
    if (auto error = reporter.reportMended(Code::ForeignComment, reporter.span(token),
                                           "expected '#' to start a comment, found '//'"))
      error->fix("write '#'", {{reporter.span(token), "#"}}, Applicability::Safe);
  } else if (token.type == Lexer::SLASH && at + 1 < tokens.size() &&
             touches(token, tokens[at + 1]) &&
             (tokens[at + 1].type == Lexer::STAR || tokens[at + 1].type == Lexer::POWER)) {
    size_t close = text.find("*/", token.end + 1);
    end = static_cast<uint32_t>(close == StringRef::npos ? text.size() : close + 2);
    if (auto error = reporter.reportMended(Code::ForeignComment,
                                           reporter.span(token.begin, tokens[at + 1].end),
                                           "expected '#' to start a comment, found '/*'")) {
      StringRef body = text.slice(token.begin + 2, end - (close == StringRef::npos ? 0 : 2));
      bool alone = text.slice(end, lineEnd(end)).trim().empty() && !body.contains('\n');
      if (alone)
        error->fix("write '#'",
                   {{reporter.span(token.begin, end), ("# " + body.trim("* \t")).str()}},
                   Applicability::Safe);
    }
  } else {
    return false;
  }
  while (at < tokens.size() && tokens[at].begin < end)
    ++at;
  return true;
}

/// `1.0f`, `0x1G`, `1_000`, `2x`. (`3for` is two tokens.)
static bool isNumberSuffix(ArrayRef<Token> tokens, size_t at) {
  auto isNumber = [&](size_t i) {
    return tokens[i].type == Lexer::INTEGER || tokens[i].type == Lexer::FLOAT;
  };
  return isNumber(at) && at + 1 != tokens.size() && touches(tokens[at], tokens[at + 1]) &&
         (isNameType(tokens[at + 1].type) || isNumber(at + 1));
}

bool ForeignTokens::numberSuffix() {
  if (!isNumberSuffix(tokens, at))
    return false;
  const Token &token = tokens[at], &next = tokens[at + 1];
  Span both = reporter.span(token.begin, next.end);
  StringRef suffix = reporter.text(next);
  if (reporter.text(token).ends_with(".") && suffix.starts_with(".")) {
    StringRef lo = reporter.text(token).drop_back(), hi = suffix.drop_front();
    if (auto error = reporter.report(Code::ForeignOperator, both,
                                     "expected a range 'lo:hi', found 'lo..hi'"))
      error->fix("write ':'", {{both, (lo + ":" + hi).str()}}, Applicability::Safe);
    out.push_back(token);
    Token colon = next;
    colon.type = Lexer::COLON;
    out.push_back(colon);
    out.push_back(next);
    at += 2;
    return true;
  }
  bool isSuffix = StringSwitch<bool>(suffix.lower())
                      .Cases({"f", "l", "u", "ul", "h", "ull"}, true)
                      .Default(false);
  if (auto error = reporter.report(
          Code::SyntaxError, both,
          ("expected a number, found '" + text.slice(both.begin, both.end) + "'").str())) {
    if (isSuffix)
      error->note("numbers take the type of what they meet")
          .fix("leave the suffix out", {{reporter.span(next), ""}}, Applicability::Safe);
    else if (suffix.starts_with("_") &&
             all_of(suffix, [](char c) { return c == '_' || isDigit(c); }))
      error->fix("leave the underscores out",
                 {{reporter.span(next),
                   [&] {
                     std::string digits;
                     for (char c : suffix)
                       if (c != '_')
                         digits += c;
                     return digits;
                   }()}},
                 Applicability::Safe);
    else if (next.type == Lexer::IDENTIFIER && !suffix.starts_with("x") && !suffix.starts_with("_"))
      error->fix("multiply with '*'", {{reporter.span(next.begin, next.begin), "*"}});
  }
  out.push_back(token);
  at += 2;
  return true;
}

/// Characters that look like operators, and those that are nothing.
bool ForeignTokens::character() {
  if (tokens[at].type != Lexer::UNKNOWN)
    return false;
  uint32_t begin = tokens[at].begin;
  Replacement known = StringSwitch<Replacement>(reporter.text(tokens[at]))
                          .Cases({"×", "·", "∗", "⋅"}, {"*", Lexer::STAR})
                          .Cases({"−", "–", "—"}, {"-", Lexer::MINUS})
                          .Case("÷", {"/", Lexer::SLASH})
                          .Cases({"≤", "⩽"}, {"<=", Lexer::LESSEQUAL})
                          .Cases({"≥", "⩾"}, {">=", Lexer::GREATEREQUAL})
                          .Case("≠", {"!=", Lexer::NOTEQUAL})
                          .Case("→", {"->", Lexer::ARROW})
                          .Case("∞", {"inf", Lexer::IDENTIFIER})
                          .Case("π", {"pi", Lexer::IDENTIFIER})
                          .Case("∧", {"and", Lexer::AND})
                          .Case("∨", {"or", Lexer::OR})
                          .Case("¬", {"not", Lexer::NOT})
                          .Case("…", {"...", Lexer::ELLIPSIS})
                          .Case("，", {",", Lexer::COMMA})
                          .Case("；", {";", Lexer::SEMICOLON})
                          .Case("：", {":", Lexer::COLON})
                          .Case("（", {"(", Lexer::LPAREN})
                          .Case("）", {")", Lexer::RPAREN})
                          .Default({});
  // `kernel π(` wants a name of its own.
  if (known.type == Lexer::IDENTIFIER && !out.empty() && isNameType(out.back().type))
    known = {};
  if (known.type) {
    Token token = tokens[at++];
    if (auto error = reporter.report(
            Code::UnexpectedCharacter, reporter.span(token),
            ("expected '" + known.text + "', found '" + reporter.text(token) + "'").str()))
      error->fix(("write '" + known.text + "'").str(),
                 {{reporter.span(token), padded(text, token, known.text)}}, Applicability::Safe);
    token.type = known.type;
    out.push_back(token);
    return true;
  }
  bool firstOnLine = tokens[at].firstOnLine;
  StringRef first = reporter.text(tokens[at]);
  while (at < tokens.size() && tokens[at].type == Lexer::UNKNOWN && tokens[at].begin >= begin &&
         (tokens[at].begin == begin || touches(tokens[at - 1], tokens[at])))
    ++at;
  Span span = reporter.span(begin, tokens[at - 1].end);
  if (StringSwitch<bool>(first).Cases({"“", "”", "‘", "’", "„", "`"}, true).Default(false)) {
    reporter.report(Code::StringLiteral, span, "the language has no strings and no quotes");
  } else if (first == "\\" && text.slice(span.end, lineEnd(span.end)).trim().empty()) {
    if (auto error = reporter.report(Code::UnexpectedCharacter, span,
                                     "expected no '\\': lines continue by themselves"))
      error->fix("leave it out", {{span, ""}}, Applicability::Safe);
  } else {
    // Letters of other scripts: the name that they stand in, whole.
    bool inName = (!out.empty() && out.back().end == begin && isWord(out.back())) ||
                  (at < tokens.size() && tokens[at].begin == span.end && isWord(tokens[at]) &&
                   static_cast<unsigned char>(first[0]) >= 0x80);
    StringRef found = text.slice(span.begin, span.end).take_front(32);
    std::string message = ("expected no '" + found + "'").str();
    if (found.size() == 1 && !isPrint(found[0]))
      message = "expected no control character 0x" + utohexstr(static_cast<uint8_t>(found[0]));
    auto error = reporter.report(Code::UnexpectedCharacter, span, message);
    // What is left of the line without it is guesswork.
    reporter.spoil(static_cast<uint32_t>(text.rfind('\n', begin) + 1), lineEnd(begin));
    if (error && inName)
      error->note("names consist of the letters a-z and A-Z, digits and '_'");
    if (inName && at < tokens.size() && tokens[at].begin == span.end && isWord(tokens[at]) &&
        !out.empty() && out.back().end == begin)
      ++at; // the name's rest
  }
  if (firstOnLine && at < tokens.size() && tokens[at].begin < lineEnd(span.end)) {
    out.push_back(tokens[at++]);
    out.back().firstOnLine = true;
  }
  return true;
}

bool ForeignTokens::foreignOperator() {
  const Token &token = tokens[at];
  if (token.type != Lexer::FOREIGN)
    return false;
  StringRef spelled = reporter.text(token);
  Replacement known = StringSwitch<Replacement>(spelled)
                          .Case("&&", {"and", Lexer::AND})
                          .Case("||", {"or", Lexer::OR})
                          .Case("!", {"not", Lexer::NOT})
                          .Case(":=", {"=", Lexer::ASSIGN})
                          .Case("===", {"==", Lexer::EQUAL})
                          .Cases({"!==", "<>"}, {"!=", Lexer::NOTEQUAL})
                          .Default({});
  if (!known.type)
    return false; // the parser sees what it stands in
  auto error =
      reporter.reportMended(Code::ForeignOperator, reporter.span(token),
                            ("expected '" + known.text + "', found '" + spelled + "'").str());
  if (error)
    error->fix(("write '" + known.text + "'").str(),
               {{reporter.span(token), padded(text, token, known.text)}}, Applicability::Safe);
  Token replaced = token;
  replaced.type = known.type;
  out.push_back(replaced);
  ++at;
  return true;
}

/// A whole string that stands alone between the commas of a statement `print(...)` or
/// `assert(...)`.
bool ForeignTokens::isObservedText() const {
  StringRef string = reporter.text(tokens[at]);
  auto typeAt = [&](size_t i) { return i < tokens.size() ? tokens[i].type : size_t(0); };
  size_t next = typeAt(at + 1);
  if (string.size() < 2 || string.front() != string.back() || out.empty() ||
      (out.back().type != Lexer::LPAREN && out.back().type != Lexer::COMMA) ||
      (next != Lexer::COMMA && next != Lexer::RPAREN && next != Lexer::FOR))
    return false;
  size_t open = out.size();
  for (unsigned depth = 1; depth && open--;) {
    size_t type = out[open].type;
    if (type == Lexer::LBRACE || type == Lexer::RBRACE)
      return false;
    depth += type == Lexer::RPAREN || type == Lexer::RBRACKET;
    depth -= type == Lexer::LPAREN || type == Lexer::LBRACKET;
  }
  if (open == 0 || open >= out.size() || out[open].type != Lexer::LPAREN ||
      (out[open - 1].type != Lexer::PRINT && out[open - 1].type != Lexer::ASSERT))
    return false;
  size_t before = open > 1 ? out[open - 2].type : size_t(Lexer::LBRACE);
  return endsOperand(before) || before == Lexer::LBRACE || before == Lexer::RBRACE ||
         before == Lexer::SEMICOLON || before == Lexer::DETERMINISTIC;
}

std::vector<Token> ForeignTokens::run() {
  out.reserve(tokens.size());
  while (at < tokens.size()) {
    if (comment() || numberSuffix() || character() || foreignOperator())
      continue;
    if (tokens[at].type == Lexer::STRING && !isObservedText())
      if (auto error = reporter.report(Code::StringLiteral, reporter.span(tokens[at]),
                                       "the language has no strings"))
        error->note(reporter.text(tokens[at]).trim("\"'") == "same"
                        ? "the padding is a number: 1 for 3 taps, 2 for 5; an even number of taps "
                          "K has one more on the "
                          "right: 'y[n, o, p] = sum(x[n, c, p + r - (K - 1)//2, fill=0]*w[o, c, r] "
                          "for c, r)'"
                        : "modes of PyTorch functions are kernels of their own: 'gelu_tanh(v)'; "
                          "losses give the mean");
    out.push_back(tokens[at++]);
  }
  return std::move(out);
}

bool hasForeignTokens(ArrayRef<Token> tokens) {
  for (size_t at = 0; at != tokens.size(); ++at)
    if (tokens[at].type == Lexer::FOREIGN || tokens[at].type == Lexer::UNKNOWN ||
        tokens[at].type == Lexer::STRING || isNumberSuffix(tokens, at))
      return true;
  return false;
}

void replaceForeignTokens(std::vector<Token> &tokens, SyntaxReporter &reporter) {
  tokens = ForeignTokens(tokens, reporter).run();
}

} // namespace tegula
