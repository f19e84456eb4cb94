//===- GrammarGbnf.cpp - Characters instead of tokens --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GBNF knows no tokens, so its rules say where blanks may stand: before each token, and between two
// words at least one. Whether a rule's first token follows a word depends on where the rule stands,
// so a rule is printed twice where both occur: `expression`, and `expression-spaced`, before which
// a word or a number may stand. What a rule ends with is not told apart (that would be nine copies,
// and a choice between them for a reader to carry along at each bracket): a word asks for a blank
// wherever one of the texts before it may end with a word.
//
//===----------------------------------------------------------------------===//
#include "frontend/grammar/Grammar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <map>

using namespace llvm;

namespace tegula::grammar {

namespace {
/// Whether what stands before may end with a word or a number.
enum Before : bool { Mark, WordOrNumber };

/// A token, or those alternatives of it that begin alike.
struct Lexeme {
  std::string text; // in GBNF
  bool beginsWord;
  Before ends;
};

class Printer {
public:
  explicit Printer(const Grammar &grammar) : grammar(grammar) {}
  std::string run();

private:
  std::vector<Lexeme> lexemes(const Piece &piece) const;
  bool isToken(const Piece &piece) const;
  Before ends(const Piece &piece, Before from) const;
  std::string build(const Piece &piece, Before from, bool alone);
  std::string rule(StringRef name, Before from);
  void printTokens();
  std::string blanks() const;

  const Grammar &grammar;
  std::map<std::pair<std::string, Before>, Before> endsOf; // by rule and what it follows
  std::map<std::string, std::string> bodies;               // by name of the printed rule
  std::vector<std::string> order;
};
} // namespace

static std::string kebab(StringRef name) {
  std::string result;
  for (char c : name) {
    if (isUpper(c) && !result.empty() && isLower(name.front()))
      result += '-';
    result += c == '_' ? '-' : toLower(c);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Characters
//===----------------------------------------------------------------------===//

static std::string character(char32_t c, bool inSet) {
  switch (c) {
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  case '\f':
    return "\\x0C";
  case '\\':
    return "\\\\";
  default:
    break;
  }
  if (c >= 0x80)
    return "\\u" + utohexstr(c, /*LowerCase=*/false, 4);
  return (StringRef(inSet ? "[]" : "\"").contains(c) ? "\\" : "") +
         std::string(1, static_cast<char>(c));
}

static std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text)
    result += character(static_cast<unsigned char>(c), /*inSet=*/false);
  return result + "\"";
}

/// '-' stands at the end, where it means itself; '^' must not begin.
static std::string set(const Piece &piece, bool negated) {
  std::string result = negated ? "[^" : "[", last;
  for (auto [first, end] : piece.ranges)
    if (first == end && (first == '-' || first == '^'))
      last.insert(first == '-' ? last.size() : 0, 1, static_cast<char>(first));
    else
      result += character(first, true) + (first == end ? "" : "-" + character(end, true));
  return result + last + "]";
}

static StringRef suffix(const Piece &piece) {
  return !piece.isMany ? "?" : piece.isOptional ? "*" : "+";
}

/// A token's own text, in which blanks do not stand.
static std::string spelled(const Grammar &grammar, const Piece &piece) {
  switch (piece.kind) {
  case Piece::Literal:
    return quoted(piece.text);
  case Piece::Set:
    return set(piece, piece.isNegated);
  case Piece::Name:
    return "(" + spelled(grammar, grammar.find(piece.text)->body) + ")";
  case Piece::Repeat: {
    bool simple = piece.parts[0].kind != Piece::Sequence && piece.parts[0].kind != Piece::Choice;
    std::string body = spelled(grammar, piece.parts[0]);
    return (simple ? body : "(" + body + ")") + suffix(piece).str();
  }
  case Piece::Sequence:
  case Piece::Choice: {
    SmallVector<std::string> parts;
    for (const Piece &part : piece.parts) {
      bool bracket = piece.kind == Piece::Sequence && part.kind == Piece::Choice;
      std::string text = spelled(grammar, part);
      parts.push_back(bracket ? "(" + text + ")" : text);
    }
    return join(parts, piece.kind == Piece::Choice ? " | " : " ");
  }
  }
  llvm_unreachable("every kind returns");
}

/// The characters that a token may begin with, of ASCII.
static std::string firstCharacters(const Grammar &grammar, const Piece &piece) {
  std::string result;
  switch (piece.kind) {
  case Piece::Literal:
    return piece.text.substr(0, 1);
  case Piece::Set:
    for (char32_t c = 0; c < 0x80; ++c)
      if (llvm::any_of(piece.ranges, [&](auto range) {
            return range.first <= c && c <= range.second;
          }) != piece.isNegated)
        result += static_cast<char>(c);
    return result;
  case Piece::Name:
    return firstCharacters(grammar, grammar.find(piece.text)->body);
  case Piece::Choice:
    for (const Piece &part : piece.parts)
      result += firstCharacters(grammar, part);
    return result;
  case Piece::Repeat:
  case Piece::Sequence:
    return firstCharacters(grammar, piece.parts[0]);
  }
  llvm_unreachable("every kind returns");
}

static bool isWordCharacter(char c) { return isAlnum(c) || c == '_'; }

/// The words of the pattern `first rest*` that are none of `words`, all of which begin with
/// `prefix`: what may follow the prefix.
static std::string otherWords(ArrayRef<StringRef> words, StringRef prefix, const Piece &first,
                              const Piece &rest) {
  std::string next, alternatives;
  bool isWord = false;
  for (StringRef word : words) {
    if (!word.starts_with(prefix))
      continue;
    if (word.size() == prefix.size())
      isWord = true;
    else if (!StringRef(next).contains(word[prefix.size()]))
      next += word[prefix.size()];
  }
  std::string more = set(rest, false) + "*";
  if (next.empty()) // the end of a word: another word goes on
    return set(rest, false) + "+";
  for (char c : next)
    alternatives +=
        quoted(StringRef(&c, 1)) + " " +
        ("(" + otherWords(words, (prefix + StringRef(&c, 1)).str(), first, rest) + ") | ");
  Piece others;
  others.kind = Piece::Set;
  std::string all = firstCharacters({}, prefix.empty() ? first : rest);
  for (char c : all)
    if (!StringRef(next).contains(c)) {
      if (!others.ranges.empty() && others.ranges.back().second + 1 == static_cast<char32_t>(c))
        others.ranges.back().second = c;
      else
        others.ranges.push_back({c, c});
    }
  alternatives += set(others, false) + " " + more;
  if (!prefix.empty() && !isWord)
    alternatives += " | \"\"";
  return alternatives;
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

/// A token whose alternatives begin with letters or digits here, with other characters there
/// (`1.5`, `.5`) is two.
std::vector<Lexeme> Printer::lexemes(const Piece &piece) const {
  StringRef literal = grammar.literalOf(piece);
  if (!literal.empty()) {
    bool word = isWordCharacter(literal[0]);
    return {{quoted(literal), word, Before(word)}};
  }
  std::string name = kebab(piece.text);
  std::string first = firstCharacters(grammar, grammar.find(piece.text)->body);
  std::vector<Lexeme> result;
  if (llvm::any_of(first, isWordCharacter))
    result.push_back({name, true, WordOrNumber});
  if (!llvm::all_of(first, isWordCharacter))
    result.push_back({result.empty() ? name : name + "-mark", false, WordOrNumber});
  return result;
}

void Printer::printTokens() {
  for (const Rule &rule : grammar.rules) {
    if (!rule.isToken() || rule.isFragment || rule.isHidden || !rule.literal().empty())
      continue;
    if (rule.name == "IDENTIFIER") {
      const Piece &first = rule.body.parts[0], &rest = rule.body.parts[1].parts[0];
      bodies[kebab(rule.name)] = otherWords(grammar.words(), "", first, rest);
      order.push_back(kebab(rule.name));
      continue;
    }
    Piece name;
    name.kind = Piece::Name;
    name.text = rule.name;
    for (const Lexeme &lexeme : lexemes(name)) {
      ArrayRef<Piece> parts =
          rule.body.kind == Piece::Choice ? ArrayRef(rule.body.parts) : rule.body;
      SmallVector<std::string> texts;
      for (const Piece &part : parts)
        if (isWordCharacter(firstCharacters(grammar, part)[0]) == lexeme.beginsWord)
          texts.push_back(spelled(grammar, part));
      bodies[lexeme.text] = join(texts, " | ");
      order.push_back(lexeme.text);
    }
  }
}

/// One blank or comment. A comment goes on to the end of its line.
std::string Printer::blanks() const {
  SmallVector<std::string> texts;
  for (const Rule &rule : grammar.rules) {
    if (!rule.isHidden)
      continue;
    // Blanks repeat where they stand: one by one they do so in one way.
    bool isMany = rule.body.kind == Piece::Repeat && rule.body.isMany;
    std::string text = spelled(grammar, isMany ? rule.body.parts[0] : rule.body);
    const Piece *last = rule.body.kind == Piece::Sequence ? &rule.body.parts.back() : nullptr;
    if (last && last->kind == Piece::Repeat && last->parts[0].isNegated)
      text += " " + set(last->parts[0], false);
    texts.push_back(text);
  }
  return join(texts, " | ");
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

bool Printer::isToken(const Piece &piece) const {
  return piece.kind == Piece::Literal ||
         (piece.kind == Piece::Name && piece.text != "EOF" && grammar.find(piece.text)->isToken());
}

/// What `piece` may end with where it follows `from`.
Before Printer::ends(const Piece &piece, Before from) const {
  if (isToken(piece))
    return lexemes(piece).front().ends;
  bool result = false;
  switch (piece.kind) {
  case Piece::Name: {
    auto known = endsOf.find({piece.text, from});
    return piece.text == "EOF" ? from : known == endsOf.end() ? Mark : known->second;
  }
  case Piece::Choice:
    for (const Piece &part : piece.parts)
      result |= ends(part, from);
    return Before(result);
  case Piece::Sequence:
    for (const Piece &part : piece.parts)
      from = ends(part, from);
    return from;
  case Piece::Repeat:
    result = ends(piece.parts[0], from);
    if (piece.isMany)
      result |= ends(piece.parts[0], Before(result));
    return Before(result || (piece.isOptional && from));
  default:
    llvm_unreachable("sets stand in tokens");
  }
}

/// A rule's name, which is then printed.
std::string Printer::rule(StringRef name, Before from) {
  std::string printed = kebab(name) + (from ? "-spaced" : "");
  if (bodies.try_emplace(printed).second) {
    order.push_back(printed);
    bodies[printed] = build(grammar.find(name)->body, from, /*alone=*/true);
  }
  return printed;
}

/// Without brackets where it stands `alone`, or needs none.
std::string Printer::build(const Piece &piece, Before from, bool alone) {
  SmallVector<std::string> parts;
  auto joined = [&](StringRef separator) {
    std::string text = join(parts, separator);
    return alone || parts.size() < 2 ? text : "(" + text + ")";
  };
  if (isToken(piece)) {
    for (const Lexeme &lexeme : lexemes(piece))
      parts.push_back((from && lexeme.beginsWord ? "blank " : "free ") + lexeme.text);
    std::string text = join(parts, " | ");
    return alone ? text : "(" + text + ")";
  }
  switch (piece.kind) {
  case Piece::Name:
    return piece.text == "EOF" ? "" : rule(piece.text, from);
  case Piece::Choice:
    for (const Piece &part : piece.parts)
      parts.push_back(build(part, from, /*alone=*/true));
    return joined(" | ");
  case Piece::Sequence:
    for (const Piece &part : piece.parts) {
      // A token needs no brackets here, unless it is a choice.
      bool single = isToken(part) && lexemes(part).size() == 1;
      std::string text = build(part, from, single);
      if (!text.empty())
        parts.push_back(std::move(text));
      from = ends(part, from);
    }
    return joined(" ");
  case Piece::Repeat: {
    const Piece &body = piece.parts[0];
    std::string once = build(body, from, /*alone=*/false);
    Before after = ends(body, from);
    if (!piece.isMany)
      return once + "?";
    if (after == from)
      return once + (piece.isOptional ? "*" : "+");
    std::string all = "(" + once + " " + build(body, after, /*alone=*/false) + "*)";
    return piece.isOptional ? all + "?" : all;
  }
  default:
    llvm_unreachable("sets stand in tokens");
  }
}

std::string Printer::run() {
  // What each rule can end with, until nothing is added any more.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Rule &rule : grammar.rules)
      for (Before from : {Mark, WordOrNumber})
        if (!rule.isToken()) {
          Before &known = endsOf.try_emplace({rule.name, from}, Mark).first->second;
          Before now = ends(rule.body, from);
          changed |= now != known;
          known = now;
        }
  }
  std::string file = rule("file", Mark);
  printTokens();
  // The last comment may end with the file.
  std::string open;
  for (const Rule &rule : grammar.rules)
    if (rule.isHidden && rule.body.kind == Piece::Sequence)
      open += " (" + spelled(grammar, rule.body) + ")?";
  std::string result = "# The grammar of Tegula, made from dsl/Tegula.g4.\n\n";
  result += "root ::= " + file + " free" + open + "\n";
  for (const std::string &name : order)
    result += name + " ::= " + bodies[name] + "\n";
  result += "free ::= (" + blanks() + ")*\nblank ::= (" + blanks() + ")+\n";
  return result;
}

std::string printGbnf(const Grammar &grammar) { return Printer(grammar).run(); }

} // namespace tegula::grammar
