//===- ParserForeign.h - Forms of other languages in the token stream --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Internal to the parser. Foreign tokens with one meaning (`&&`) are reported and replaced before
// parsing, so that parsing goes on; foreign forms (`x[i][j]`, `if c:`) are recognised where the
// grammar fails.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_PARSE_PARSERFOREIGN_H
#define TEGULA_FRONTEND_PARSE_PARSERFOREIGN_H

#include "frontend/parse/ParserTokens.h"
#include "llvm/ADT/ArrayRef.h"

namespace tegula {

/// Whether there is a token that no program contains. ('//' that was meant to begin a comment is
/// none: whether it is a division is known when the grammar has read on.)
bool hasForeignTokens(llvm::ArrayRef<Token> tokens);
/// Comments, characters and operators of other languages: reported, then removed or replaced.
void replaceForeignTokens(std::vector<Token> &tokens, SyntaxReporter &reporter);

/// Where the grammar failed.
struct SyntaxPlace {
  enum Context { TopLevel, Head, Block, Statement, FunctionBlock } context;
  size_t start; // position of the definition's or statement's first token
  size_t at;    // position of the token that does not fit; the number of tokens at the end
};

/// Reports the foreign form that stands there, if it is one.
bool reportForeignForm(llvm::ArrayRef<Token> tokens, const SyntaxPlace &place,
                       SyntaxReporter &reporter);

} // namespace tegula

#endif // TEGULA_FRONTEND_PARSE_PARSERFOREIGN_H
