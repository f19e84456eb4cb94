//===- Grammar.h - The grammar as data and in other notations ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tools that hold a model's output to a grammar (`tegula grammar`). The source is dsl/Tegula.g4
// alone, in ANTLR's notation, with its lines '//=' in the place of the rules that take more than
// the language.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_GRAMMAR_GRAMMAR_H
#define TEGULA_FRONTEND_GRAMMAR_GRAMMAR_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tegula::grammar {

/// A part of a rule.
struct Piece {
  enum Kind {
    Choice,   // of `parts`
    Sequence, // of `parts`, none for the empty text
    Repeat,   // `parts[0]`, optional where `isOptional`, several times where `isMany`
    Name,     // the rule or token `text`
    Literal,  // the characters `text`
    Set,      // one character out of `ranges`, or where `isNegated` of all others
  } kind = Sequence;
  std::vector<Piece> parts;
  std::string text;
  std::vector<std::pair<char32_t, char32_t>> ranges; // both ends are in it
  bool isOptional = false, isMany = false, isNegated = false;
};

/// Parser rules begin with a small letter, tokens with a capital one.
struct Rule {
  std::string name;
  Piece body;
  bool isFragment = false;
  bool isHidden = false; // blanks and comments: `-> skip`, `-> channel(HIDDEN)`

  bool isToken() const { return name[0] >= 'A' && name[0] <= 'Z'; }
  /// The token's only text, empty where it has several.
  llvm::StringRef literal() const {
    return body.kind == Piece::Literal ? llvm::StringRef(body.text) : llvm::StringRef();
  }
};

/// The rules that `file` needs, and the hidden tokens; in the order of the text.
struct Grammar {
  std::vector<Rule> rules;

  const Rule *find(llvm::StringRef name) const;
  /// A token's literal text, or the characters of a literal piece; empty for anything else.
  llvm::StringRef literalOf(const Piece &piece) const;
  /// The words of the language, of which some are names elsewhere: no IDENTIFIER is one of them.
  std::vector<llvm::StringRef> words() const;
  /// Whether a name can be this word (`name` lists it).
  bool isNameWord(llvm::StringRef word) const;
};

/// Reads the notation as far as Tegula.g4 uses it; anything else ends the process with a message.
Grammar read(llvm::StringRef text);

/// For Lark with `parser="earley", lexer="basic", start="file"`.
std::string printLark(const Grammar &grammar);
/// For llguidance, which reads Lark's notation with other regular expressions.
std::string printLlguidance(const Grammar &grammar);
/// GBNF of llama.cpp, which has no tokens: characters, with blanks and comments wherever they may
/// stand.
std::string printGbnf(const Grammar &grammar);

} // namespace tegula::grammar

#endif // TEGULA_FRONTEND_GRAMMAR_GRAMMAR_H
