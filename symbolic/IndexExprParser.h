//===- IndexExprParser.h - Recursive descent over any token source ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The grammar of integer expressions, once: plain text (IndexExpr::parse) and textual IR, where a
// variable may be an SSA name (TglSyntax.cpp), differ only in where tokens come from.
//
// A Source has: `bool take(Tok)`, true when the next token is that one, which is then consumed;
// `std::optional<int64_t> takeInteger()` (no sign); `std::optional<IndexExpr> takeVariable()`,
// which does not see the words below; `bool takeWord(StringRef)` for `floordiv mod min max where
// float overflow`; `void error(StringRef)`, called once with what was expected.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_INDEXEXPRPARSER_H
#define TEGULA_SYMBOLIC_INDEXEXPRPARSER_H

#include "symbolic/IndexExpr.h"

namespace tegula {

enum class IndexTok {
  Plus,
  Minus,
  Star,
  SlashSlash,
  Percent,
  LParen,
  RParen,
  Comma,
  LE,
  LT,
  EQ,
  NE
};

template <typename Source> class IndexExprParser {
public:
  explicit IndexExprParser(Source &source) : source(source) {}

  std::optional<IndexExpr> parseSum() {
    // Deeper nesting is nobody's subscript; the bound keeps the stack safe.
    if (depth >= 200)
      return fail("less nesting in an integer expression");
    ++depth;
    auto result = parseSumInner();
    --depth;
    return result;
  }

private:
  std::nullopt_t fail(llvm::StringRef expected) {
    if (!failed)
      source.error(expected);
    failed = true;
    return std::nullopt;
  }

  std::optional<IndexExpr> parseSumInner() {
    auto lhs = parseProduct();
    while (lhs) {
      bool plus = source.take(IndexTok::Plus);
      if (!plus && !source.take(IndexTok::Minus))
        break;
      auto rhs = parseProduct();
      if (!rhs)
        return std::nullopt;
      lhs = plus ? *lhs + *rhs : *lhs - *rhs;
    }
    return lhs;
  }

  std::optional<IndexExpr> parseProduct() {
    bool negative = false;
    while (source.take(IndexTok::Minus))
      negative = !negative;
    auto lhs = parsePrimary();
    // The sign binds tighter than `//` and `%`, as in Python.
    if (lhs && negative)
      lhs = -*lhs;
    while (lhs) {
      enum { Times, Div, Mod } op = Times;
      if (source.take(IndexTok::Star))
        op = Times;
      else if (source.take(IndexTok::SlashSlash) || source.takeWord("floordiv"))
        op = Div;
      else if (source.take(IndexTok::Percent) || source.takeWord("mod"))
        op = Mod;
      else
        break;
      bool negate = false;
      while (source.take(IndexTok::Minus))
        negate = !negate;
      auto rhs = parsePrimary();
      if (!rhs)
        return std::nullopt;
      if (negate)
        rhs = -*rhs;
      lhs = op == Times ? *lhs * *rhs
            : op == Div ? IndexExpr::floorDiv(*lhs, *rhs)
                        : IndexExpr::mod(*lhs, *rhs);
    }
    return lhs;
  }

  std::optional<IndexExpr> parsePrimary() {
    if (source.take(IndexTok::LParen)) {
      auto inner = parseSum();
      if (!inner)
        return std::nullopt;
      if (!source.take(IndexTok::RParen))
        return fail("')' in an integer expression");
      return inner;
    }
    if (auto value = source.takeInteger())
      return IndexExpr(*value);
    if (source.takeWord("overflow"))
      return IndexExpr(INT64_MAX) + IndexExpr(1);
    if (source.takeWord("min"))
      return parseExtremum(&IndexExpr::min);
    if (source.takeWord("max"))
      return parseExtremum(&IndexExpr::max);
    if (source.takeWord("where"))
      return parseSelect();
    if (source.takeWord("float"))
      return parseFloats();
    if (auto variable = source.takeVariable())
      return variable;
    return fail("an integer expression");
  }

  std::optional<IndexExpr> parseExtremum(IndexExpr (*combine)(const IndexExpr &,
                                                              const IndexExpr &)) {
    if (!source.take(IndexTok::LParen))
      return fail("'(' after min or max");
    auto result = parseSum();
    while (result && source.take(IndexTok::Comma)) {
      auto next = parseSum();
      if (!next)
        return std::nullopt;
      result = combine(*result, *next);
    }
    if (result && !source.take(IndexTok::RParen))
      return fail("')' in an integer expression");
    return result;
  }

  /// `float(1, 4608308318706860032, 0, N, 2, 2)`: steps, each with its integer.
  std::optional<IndexExpr> parseFloats() {
    if (!source.take(IndexTok::LParen))
      return fail("'(' after float");
    llvm::SmallVector<std::pair<IndexExpr::FloatStep, IndexExpr>> steps;
    do {
      auto step = parseSum();
      std::optional<int64_t> kind = step ? step->asConstant() : std::nullopt;
      if (!kind || *kind < 0 || *kind > 2 || !source.take(IndexTok::Comma))
        return fail("0, 1 or 2 and an integer");
      auto with = parseSum();
      if (!with)
        return std::nullopt;
      steps.push_back({static_cast<IndexExpr::FloatStep>(*kind), *with});
    } while (source.take(IndexTok::Comma));
    if (!source.take(IndexTok::RParen))
      return fail("')' in an integer expression");
    return IndexExpr::ofFloats(steps);
  }

  std::optional<IndexExpr> parseSelect() {
    if (!source.take(IndexTok::LParen))
      return fail("'(' after where");
    auto lhs = parseSum();
    if (!lhs)
      return std::nullopt;
    IndexExpr::Cmp cmp;
    if (source.take(IndexTok::LE))
      cmp = IndexExpr::Cmp::LE;
    else if (source.take(IndexTok::LT))
      cmp = IndexExpr::Cmp::LT;
    else if (source.take(IndexTok::EQ))
      cmp = IndexExpr::Cmp::EQ;
    else if (source.take(IndexTok::NE))
      cmp = IndexExpr::Cmp::NE;
    else
      return fail("'<=', '<', '==' or '!=' in where");
    auto rhs = parseSum();
    if (!rhs)
      return std::nullopt;
    if (!source.take(IndexTok::Comma))
      return fail("',' in where");
    auto yes = parseSum();
    if (!yes)
      return std::nullopt;
    if (!source.take(IndexTok::Comma))
      return fail("',' in where");
    auto no = parseSum();
    if (!no)
      return std::nullopt;
    if (!source.take(IndexTok::RParen))
      return fail("')' in an integer expression");
    return IndexExpr::select(cmp, *lhs, *rhs, *yes, *no);
  }

  Source &source;
  unsigned depth = 0;
  bool failed = false;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_INDEXEXPRPARSER_H
