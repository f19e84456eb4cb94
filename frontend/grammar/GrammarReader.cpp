//===- GrammarReader.cpp - ANTLR's notation ------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/grammar/Grammar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;

namespace tegula::grammar {

namespace {
/// Reads rules one after the other. The text is the compiler's own: what it cannot read is our
/// mistake.
class Reader {
public:
  explicit Reader(StringRef text) : rest(text) {}
  std::vector<Rule> run();

private:
  [[noreturn]] void fail(const Twine &expected) {
    report_fatal_error("Tegula.g4: expected " + expected + " before: " + rest.take_front(60),
                       false);
  }
  void skipBlanks();
  bool consume(StringRef mark) {
    skipBlanks();
    return rest.consume_front(mark);
  }
  void expect(StringRef mark) {
    if (!consume(mark))
      fail("'" + mark + "'");
  }
  std::string identifier();
  bool atIdentifier() {
    skipBlanks();
    return !rest.empty() && isAlpha(rest[0]);
  }
  char32_t character();
  Rule rule();
  Piece choice();
  Piece sequence();
  Piece element();
  Piece atom();
  Piece set();

  StringRef rest;
};
} // namespace

void Reader::skipBlanks() {
  for (;;) {
    rest = rest.ltrim();
    if (!rest.starts_with("//"))
      return;
    rest = rest.substr(rest.find('\n'));
  }
}

std::string Reader::identifier() {
  if (!atIdentifier())
    fail("a name");
  StringRef name = rest.take_while([](char c) { return isAlnum(c) || c == '_'; });
  rest = rest.drop_front(name.size());
  return name.str();
}

/// A character of a literal or a set, escapes resolved.
char32_t Reader::character() {
  if (rest.empty())
    fail("a character");
  char c = rest[0];
  rest = rest.drop_front();
  if (static_cast<unsigned char>(c) >= 0x80)
    fail("an escape instead of a character beyond ASCII");
  if (c != '\\')
    return c;
  c = rest[0];
  rest = rest.drop_front();
  switch (c) {
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  case 'f':
    return '\f';
  case '\'':
  case '\\':
  case ']':
  case '-':
    return c;
  case 'u': {
    unsigned value;
    if (rest.take_front(4).getAsInteger(16, value))
      fail("four hexadecimal digits");
    rest = rest.drop_front(4);
    return value;
  }
  default:
    fail("an escape that is known here");
  }
}

Piece Reader::set() {
  Piece result;
  result.kind = Piece::Set;
  while (!rest.consume_front("]")) {
    char32_t first = character(), last = first;
    if (rest.starts_with("-") && !rest.starts_with("-]")) {
      rest = rest.drop_front();
      last = character();
    }
    result.ranges.push_back({first, last});
  }
  return result;
}

Piece Reader::atom() {
  Piece result;
  if (consume("(")) {
    result = choice();
    expect(")");
  } else if (consume("'")) {
    result.kind = Piece::Literal;
    while (!rest.consume_front("'"))
      result.text += static_cast<char>(character());
  } else if (consume("~")) {
    expect("[");
    result = set();
    result.isNegated = true;
  } else if (consume("[")) {
    result = set();
  } else if (consume(".")) {
    result.kind = Piece::Set;
    result.isNegated = true; // nothing is left out: any character
  } else {
    result.kind = Piece::Name;
    result.text = identifier();
  }
  return result;
}

Piece Reader::element() {
  Piece body = atom();
  if (body.kind == Piece::Name && !StringRef(rest).starts_with("==") && consume("="))
    body = atom(); // `type=name`: the label is the parser's
  bool optional = consume("?"), star = !optional && consume("*");
  bool plus = !optional && !star && consume("+");
  if (!optional && !star && !plus)
    return body;
  Piece result;
  result.kind = Piece::Repeat;
  result.isOptional = optional || star;
  result.isMany = star || plus;
  result.parts.push_back(std::move(body));
  return result;
}

Piece Reader::sequence() {
  Piece result;
  for (;;) {
    skipBlanks();
    if (consume("#")) {
      identifier(); // the label of an alternative
      continue;
    }
    if (rest.empty() || rest[0] == '|' || rest[0] == ')' || rest[0] == ';' ||
        rest.starts_with("->"))
      break;
    result.parts.push_back(element());
  }
  if (result.parts.size() == 1)
    return std::move(result.parts[0]);
  return result;
}

Piece Reader::choice() {
  Piece result;
  result.kind = Piece::Choice;
  do
    result.parts.push_back(sequence());
  while (consume("|"));
  if (result.parts.size() == 1)
    return std::move(result.parts[0]);
  return result;
}

Rule Reader::rule() {
  Rule result;
  result.name = identifier();
  if (result.name == "fragment") {
    result.isFragment = true;
    result.name = identifier();
  }
  expect(":");
  result.body = choice();
  if (consume("->")) {
    result.isHidden = true;
    identifier();
    if (consume("(")) {
      identifier();
      expect(")");
    }
  }
  expect(";");
  return result;
}

std::vector<Rule> Reader::run() {
  std::vector<Rule> result;
  for (skipBlanks(); !rest.empty(); skipBlanks())
    result.push_back(rule());
  return result;
}

//===----------------------------------------------------------------------===//
// The grammar
//===----------------------------------------------------------------------===//

const Rule *Grammar::find(StringRef name) const {
  auto found = llvm::find_if(rules, [&](const Rule &rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

StringRef Grammar::literalOf(const Piece &piece) const {
  if (piece.kind == Piece::Literal)
    return piece.text;
  const Rule *rule = piece.kind == Piece::Name ? find(piece.text) : nullptr;
  return rule && rule->isToken() ? rule->literal() : StringRef();
}

std::vector<StringRef> Grammar::words() const {
  std::vector<StringRef> result;
  for (const Rule &rule : rules)
    if (rule.isToken() && !rule.literal().empty() && isAlpha(rule.literal()[0]))
      result.push_back(rule.literal());
  return result;
}

bool Grammar::isNameWord(StringRef word) const {
  return llvm::any_of(find("name")->body.parts,
                      [&](const Piece &piece) { return literalOf(piece) == word; });
}

static void collectNames(const Grammar &all, StringRef name, StringSet<> &names);

static void collectNames(const Grammar &all, const Piece &piece, StringSet<> &names) {
  if (piece.kind == Piece::Name)
    collectNames(all, piece.text, names);
  for (const Piece &part : piece.parts)
    collectNames(all, part, names);
}

static void collectNames(const Grammar &all, StringRef name, StringSet<> &names) {
  if (name == "EOF" || !names.insert(name).second)
    return;
  const Rule *rule = all.find(name);
  if (!rule)
    report_fatal_error("Tegula.g4: there is no rule '" + name + "'", false);
  collectNames(all, rule->body, names);
}

Grammar read(StringRef text) {
  // The lines '//=' are a text of their own.
  std::string exact;
  for (StringRef line : split(text, '\n'))
    if (line.consume_front("//="))
      exact += (line + "\n").str();
  text = text.substr(text.find("\ngrammar "));
  text = text.substr(text.find(';') + 1);
  Grammar all{Reader(text).run()};
  for (Rule &rule : Reader(exact).run()) {
    auto same = llvm::find_if(all.rules, [&](const Rule &one) { return one.name == rule.name; });
    if (same != all.rules.end())
      *same = std::move(rule);
    else
      all.rules.push_back(std::move(rule));
  }
  StringSet<> needed;
  collectNames(all, "file", needed);
  for (const Rule &rule : all.rules)
    if (rule.isHidden)
      collectNames(all, rule.name, needed);
  Grammar result;
  for (Rule &rule : all.rules)
    if (needed.contains(rule.name))
      result.rules.push_back(std::move(rule));
  return result;
}

} // namespace tegula::grammar
