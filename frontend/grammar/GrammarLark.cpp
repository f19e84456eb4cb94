//===- GrammarLark.cpp - Lark's notation ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/grammar/Grammar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula::grammar {

namespace {
/// Lark itself, whose regular expressions are Python's, or llguidance, whose are Rust's: without
/// looking ahead, but with '&' and '~' between them.
enum class Dialect { Lark, Llguidance };

class Printer {
public:
  Printer(const Grammar &grammar, Dialect dialect) : grammar(grammar), dialect(dialect) {}
  std::string run();

private:
  std::string piece(const Piece &of, bool alone) const;
  std::string regex(const Piece &of) const;
  std::string token(const Rule &rule) const;
  bool startsWithDigit(const Piece &of) const;

  const Grammar &grammar;
  Dialect dialect;
};
} // namespace

/// `sizeDefinition` as `size_definition`: Lark has no capital letters in rules.
static std::string ruleName(StringRef name) {
  std::string result;
  for (char c : name) {
    if (isUpper(c))
      result += '_';
    result += toLower(c);
  }
  return result;
}

static StringRef suffix(const Piece &piece) {
  return !piece.isMany ? "?" : piece.isOptional ? "*" : "+";
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Without brackets where it stands `alone`, or needs none.
std::string Printer::piece(const Piece &of, bool alone) const {
  StringRef literal = grammar.literalOf(of);
  if (!literal.empty())
    return ("\"" + literal + "\"").str();
  switch (of.kind) {
  case Piece::Name: {
    const Rule *rule = grammar.find(of.text);
    return !rule ? "" : rule->isToken() ? of.text : ruleName(of.text); // EOF is no rule
  }
  case Piece::Repeat:
    return piece(of.parts[0], /*alone=*/false) + suffix(of).str();
  case Piece::Choice:
  case Piece::Sequence: {
    SmallVector<std::string> parts;
    for (const Piece &part : of.parts) {
      std::string text = piece(part, of.kind == Piece::Choice);
      if (!text.empty())
        parts.push_back(std::move(text));
    }
    std::string text = join(parts, of.kind == Piece::Choice ? " | " : " ");
    return alone || parts.size() < 2 ? text : "(" + text + ")";
  }
  default:
    llvm_unreachable("sets stand in tokens");
  }
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static std::string regexCharacter(char32_t c) {
  switch (c) {
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  case '\f':
    return "\\f";
  default:
    break;
  }
  if (c >= 0x80)
    return "\\u" + utohexstr(c, /*LowerCase=*/true, 4);
  std::string result(1, static_cast<char>(c));
  return StringRef(".*+?()[]{}|^$\\/#-&~").contains(c) ? "\\" + result : result;
}

std::string Printer::regex(const Piece &of) const {
  std::string result;
  switch (of.kind) {
  case Piece::Literal:
    for (char c : of.text)
      result += regexCharacter(static_cast<unsigned char>(c));
    return result;
  case Piece::Set:
    result = of.isNegated ? "[^" : "[";
    for (auto [first, last] : of.ranges)
      result += regexCharacter(first) + (first == last ? "" : "-" + regexCharacter(last));
    return result + "]";
  case Piece::Name:
    return regex(grammar.find(of.text)->body); // a fragment
  case Piece::Repeat: {
    const Piece &body = of.parts[0];
    bool simple = (body.kind == Piece::Literal && body.text.size() == 1) || body.kind == Piece::Set;
    result = regex(body);
    return (simple ? result : "(?:" + result + ")") + suffix(of).str();
  }
  case Piece::Sequence:
    for (const Piece &part : of.parts)
      result += part.kind == Piece::Choice ? "(?:" + regex(part) + ")" : regex(part);
    return result;
  case Piece::Choice:
    for (const Piece &part : of.parts)
      result += (result.empty() ? "" : "|") + regex(part);
    return result;
  }
  llvm_unreachable("every kind returns");
}

bool Printer::startsWithDigit(const Piece &of) const {
  switch (of.kind) {
  case Piece::Literal:
    return isDigit(of.text[0]);
  case Piece::Set:
    return !of.isNegated && of.ranges[0].first == '0';
  case Piece::Name:
    return startsWithDigit(grammar.find(of.text)->body);
  default:
    return !of.parts.empty() && startsWithDigit(of.parts[0]);
  }
}

std::string Printer::token(const Rule &rule) const {
  std::string pattern = regex(rule.body);
  SmallVector<StringRef> reserved;
  for (StringRef word : grammar.words())
    if (!grammar.isNameWord(word))
      reserved.push_back(word);
  if (dialect == Dialect::Llguidance) {
    // Lark prefers a word to the pattern that it matches as well; llguidance takes it for both.
    bool isIdentifier = rule.name == "IDENTIFIER";
    return "/" + pattern + "/" + (isIdentifier ? " & ~/" + join(grammar.words(), "|") + "/" : "");
  }
  if (!startsWithDigit(rule.body))
    return "/" + pattern + "/";
  // A number does not touch a name: `2x` is a mistake, not two tokens. (`3for` is two.)
  return "/(?:" + pattern + ")(?![0-9]|(?!(?:" + join(reserved, "|") +
         ")(?![A-Za-z_0-9]))[A-Za-z_])/";
}

std::string Printer::run() {
  std::string result = "// The grammar of Tegula, made from dsl/Tegula.g4.\n";
  result +=
      dialect == Dialect::Lark
          ? "// Lark(text, parser=\"earley\", lexer=\"basic\", start=\"file\")\n\n"
          : "// For llguidance.\n\n%llguidance {\"allow_initial_skip\": true}\n\nstart: file\n";
  for (const Rule &rule : grammar.rules)
    if (!rule.isToken())
      result += ruleName(rule.name) + ": " + piece(rule.body, /*alone=*/true) + "\n";
  result += "\n";
  for (const Rule &rule : grammar.rules)
    if (rule.isToken() && !rule.isFragment && rule.literal().empty())
      result += rule.name + ": " + token(rule) + "\n";
  result += "\n";
  for (const Rule &rule : grammar.rules)
    if (rule.isHidden)
      result += "%ignore " + rule.name + "\n";
  return result;
}

std::string printLark(const Grammar &grammar) { return Printer(grammar, Dialect::Lark).run(); }

std::string printLlguidance(const Grammar &grammar) {
  return Printer(grammar, Dialect::Llguidance).run();
}

} // namespace tegula::grammar
