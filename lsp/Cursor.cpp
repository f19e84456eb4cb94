//===- Cursor.cpp - What a half-typed text says of the place where it ends ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/Cursor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tegula {

static bool isNameCharacter(char c) { return isAlnum(c) || c == '_'; }

Cursor::Cursor(StringRef text, uint32_t offset)
    : offset(std::min<uint32_t>(offset, static_cast<uint32_t>(text.size()))) {
  scan(text.take_front(this->offset));
  if (inText)
    return;
  findDefinition();
  findCall();
  where = inNumber ? Nowhere : findPlace();
}

StringRef Cursor::wordAt(size_t position) const {
  return position < words.size() ? words[position].text : StringRef();
}

/// Splits the text into words and keeps the brackets that are open at its end.
void Cursor::scan(StringRef text) {
  bool firstOnLine = true;
  for (size_t at = 0; at != text.size();) {
    char c = text[at];
    if (c == '\n')
      firstOnLine = true;
    if (isSpace(c)) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (c == '#' || c == '"' || c == '\'') {
      end = text.find_if([&](char one) { return one == '\n' || (c != '#' && one == c); }, at + 1);
      if (end == StringRef::npos) {
        inText = true;
        return;
      }
      end += text[end] != '\n';
      if (c == '#') {
        at = end;
        continue;
      }
    } else if (isNameCharacter(c)) {
      // A number takes its letters and point, as `1e-5` and `0.5`.
      bool isNumber = isDigit(c);
      while (end != text.size() && (isNameCharacter(text[end]) || (isNumber && text[end] == '.')))
        ++end;
      if (end == text.size()) {
        typed = isNumber ? StringRef() : text.slice(at, end);
        inNumber = isNumber;
        atFreshLine = firstOnLine;
        return;
      }
    } else if (c == '(' || c == '[' || c == '{') {
      open.push_back({c, words.size()});
    } else if (c == ')' || c == ']' || c == '}') {
      char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      // One that is missing spoils no more than what it was to hold.
      size_t found = open.size();
      while (found && open[found - 1].bracket != partner && open[found - 1].bracket != '{')
        --found;
      if (found && open[found - 1].bracket == partner)
        open.truncate(found - 1);
    } else if (text.substr(at).starts_with("->")) {
      ++end;
    }
    words.push_back({text.slice(at, end), static_cast<uint32_t>(at),
                     isNameCharacter(c) && !isDigit(c), firstOnLine});
    firstOnLine = false;
    at = end;
  }
  atFreshLine = firstOnLine;
}

void Cursor::findDefinition() {
  for (size_t at = words.size(); at-- > 0;)
    if ((words[at].text == "kernel" || words[at].text == "fn") && words[at].firstOnLine) {
      firstWord = at;
      definition = words[at].begin;
      inFunction = words[at].text == "fn";
      name = wordAt(at + 1);
      break;
    }
  for (size_t at = firstWord; at < words.size(); ++at)
    if (words[at].isName)
      around.push_back(words[at].text);
}

/// `(` of the parameters of a definition, or of a kernel's outputs.
bool Cursor::isHeadList(const Open &one) const {
  if (one.bracket != '(' || !one.word)
    return false;
  StringRef before = wordAt(one.word - 1);
  if (before == "->")
    return true;
  StringRef first = one.word > 1 ? wordAt(one.word - 2) : StringRef();
  return (first == "kernel" || first == "fn") && words[one.word - 1].isName;
}

void Cursor::findCall() {
  for (const Open &one : llvm::reverse(open)) {
    if (one.bracket == '{' || isHeadList(one))
      return;
    if (one.bracket != '(' || !one.word || !words[one.word - 1].isName)
      continue;
    StringRef function = wordAt(one.word - 1);
    if (is_contained({"for", "in", "if", "and", "or", "not", "return"}, function))
      continue;
    inCall = true;
    innermost.function = function;
    unsigned depth = 0;
    size_t argumentBegin = one.word + 1;
    for (size_t at = one.word + 1; at < words.size(); ++at) {
      StringRef text = words[at].text;
      depth += text == "(" || text == "[";
      if (depth && (text == ")" || text == "]"))
        --depth;
      else if (!depth && text == ",") {
        ++innermost.argument;
        argumentBegin = at + 1;
      } else if (!depth && text == "=" && at == argumentBegin + 1) {
        innermost.given.push_back(wordAt(argumentBegin));
      }
    }
    if (wordAt(argumentBegin + 1) == "=" && words[argumentBegin].isName)
      innermost.keyword = wordAt(argumentBegin);
    innermost.isArgumentStart = argumentBegin == words.size();
    return;
  }
}

Cursor::Place Cursor::placeInHead(const Open &list) const {
  if (open.back().bracket == '[')
    return DeclaredDim;
  if (&open.back() != &list)
    return Expression; // in a call of a default
  bool isFunction = wordAt(list.word - 2) == "fn";
  StringRef before = words.back().text;
  if (before == ":" || (before == "inout" && words.size() > 1 && wordAt(words.size() - 2) == ":"))
    return isFunction ? Nowhere : Type;
  if (before == "(" || before == ",")
    return Nowhere; // a new name
  return Expression;
}

/// Whether a statement may begin at the word, or behind the last one.
bool Cursor::beginsStatement(size_t word) const {
  if (word == 0)
    return true;
  StringRef before = words[word - 1].text;
  if (before == "{" || before == ";" || before == "}")
    return true;
  bool isFirst = word < words.size() ? words[word].firstOnLine : atFreshLine;
  static constexpr StringLiteral continuing[] = {"=",  "+",  "-",   "*",   "/",  "%",  "<", ">",
                                                 "&",  "|",  "^",   ",",   "(",  "[",  ":", "->",
                                                 "in", "if", "for", "and", "or", "not"};
  return isFirst && !is_contained(continuing, before);
}

Cursor::Place Cursor::findPlace() const {
  for (const Open &one : llvm::reverse(open)) {
    if (one.bracket == '{')
      break;
    if (isHeadList(one))
      return placeInHead(one);
  }
  if (open.empty()) {
    if (words.empty() || firstWord == words.size() || wordAt(words.size() - 1) == "}")
      return TopLevel;
    StringRef last = words.back().text;
    if (last == "kernel" || last == "fn")
      return Nowhere;
    if (!name.empty() && words[firstWord].text == "kernel")
      return last == ")" || last == "where" || last == "," || last == "=" ? Head : Expression;
    return inFunction ? Expression : TopLevel;
  }
  StringRef last = words.back().text;
  const Open &inner = open.back();
  if (inner.bracket == '{' && inner.word && wordAt(inner.word - 1) == "schedule")
    return Setting;
  if (last == "precision")
    return PrecisionName;
  if (inner.bracket == '{' && last == ":" && words.size() > 1 && beginsStatement(words.size() - 2))
    return Type;
  if (inner.bracket == '{' && beginsStatement(words.size()))
    return Statement;
  return Expression;
}

} // namespace tegula
