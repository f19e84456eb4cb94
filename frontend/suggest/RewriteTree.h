//===- RewriteTree.h - Statements as other languages write them --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tolerant reader of expressions as PyTorch, NumPy and C write them, for the rewrites that
// diagnostics carry (Rewrite.h). It knows nothing of what is right.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_SUGGEST_REWRITETREE_H
#define TEGULA_FRONTEND_SUGGEST_REWRITETREE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tegula::rewrite {

struct Token {
  enum Kind { Name, Number, String, Op } kind;
  uint32_t begin, end; // bytes of the file
  bool firstOnLine;
  unsigned braces = 0, brackets = 0; // open before it
};

/// The tokens of bytes [begin, end); comments are passed over.
std::vector<Token> lex(llvm::StringRef file, uint32_t begin, uint32_t end);

struct Node;
using NodePtr = std::unique_ptr<Node>;

/// `k in lo:hi if c` after `for`.
struct Item {
  std::string index;
  NodePtr lo, hi, filter; // each may be null
};

struct Node {
  enum Kind {
    Number,    // text
    String,    // text without quotes
    Name,      // text
    Unary,     // text is the operator: - + not
    Binary,    // text is the operator
    Ternary,   // parts: condition, then, else
    Call,      // parts: callee, arguments; keywords; items of a comprehension
    Member,    // parts[0] . text
    Subscript, // parts: what, subscripts
    Slice,     // parts: lo, hi (null where left out)
    Ellipsis,
    Sequence,      // (a, b) or [a, b]
    Comprehension, // [e for k in R]: parts[0], items
  } kind;
  std::string text;
  std::vector<NodePtr> parts;
  std::vector<std::pair<std::string, NodePtr>> keywords;
  std::vector<Item> items;
  bool parenthesized = false;
  std::string range; // `i in RANGE` as a subscript
};

/// The expression that the tokens are, all of them; null where they are none.
NodePtr parseExpression(llvm::StringRef file, llvm::ArrayRef<Token> tokens);

/// A left side: names with or without subscripts, separated by commas; empty: none.
std::vector<NodePtr> parseTargets(llvm::StringRef file, llvm::ArrayRef<Token> tokens);

} // namespace tegula::rewrite

#endif // TEGULA_FRONTEND_SUGGEST_REWRITETREE_H
