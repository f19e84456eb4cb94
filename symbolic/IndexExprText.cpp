//===- IndexExprText.cpp - Printing and parsing integer expressions --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "symbolic/IndexExpr.h"
#include "symbolic/IndexExprParser.h"
#include "llvm/ADT/StringExtras.h"
#include <bit>
#include <charconv>

using namespace tegula;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// `d0`, `d17`: what a dim looks like.
static bool looksLikeDim(StringRef name) {
  return name.size() > 1 && name[0] == 'd' && llvm::all_of(name.drop_front(), llvm::isDigit);
}

static bool isPlainSymbol(StringRef name) {
  if (name.empty() || !(llvm::isAlpha(name[0]) || name[0] == '_') || looksLikeDim(name))
    return false;
  for (StringRef word : {"overflow", "floordiv", "mod", "min", "max", "where", "float"})
    if (name == word)
      return false;
  return llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

namespace {
/// Prints one expression; `dim` spells positional variables.
struct Printer {
  llvm::raw_ostream &os;
  llvm::function_ref<void(llvm::raw_ostream &, unsigned)> dim;
  IndexExpr::Syntax syntax;

  void variable(const IndexVar &var) {
    if (!var.isSymbol())
      return dim(os, var.position());
    if (isPlainSymbol(var.name())) {
      os << var.name();
      return;
    }
    os << '"';
    llvm::printEscapedString(var.name(), os);
    os << '"';
  }

  void list(StringRef name, llvm::ArrayRef<IndexExpr> operands) {
    os << name << '(';
    llvm::interleaveComma(operands, os, [&](const IndexExpr &operand) { sum(operand); });
    os << ')';
  }

  /// In parentheses where it is more than one variable or number.
  void primary(const IndexExpr &expr) {
    std::optional<int64_t> constant = expr.asConstant();
    bool bare = (constant && *constant >= 0) || expr.asVariable();
    if (!bare)
      os << '(';
    sum(expr);
    if (!bare)
      os << ')';
  }

  void atom(const IndexExpr::Atom &atom) {
    switch (atom.kind) {
    case IndexExpr::AtomKind::Variable:
      return variable(atom.var);
    case IndexExpr::AtomKind::FloorDiv:
      primary(atom.operands[0]);
      os << (syntax == IndexExpr::Syntax::IR ? " floordiv " : "//");
      return primary(atom.operands[1]);
    case IndexExpr::AtomKind::Min:
      return list("min", atom.operands);
    case IndexExpr::AtomKind::Max:
      return list("max", atom.operands);
    case IndexExpr::AtomKind::Float:
      return floats(atom);
    case IndexExpr::AtomKind::Select:
      os << "where(";
      sum(atom.operands[0]);
      if (syntax == IndexExpr::Syntax::IR)
        os << (atom.cmp == IndexExpr::Cmp::EQ ? " eq " : " le ");
      else
        os << (atom.cmp == IndexExpr::Cmp::EQ ? " == " : " <= ");
      sum(atom.operands[1]);
      os << ", ";
      sum(atom.operands[2]);
      os << ", ";
      sum(atom.operands[3]);
      os << ')';
      return;
    }
  }

  /// `int(1.25*N/E)` for readers, the steps for the parser.
  void floats(const IndexExpr::Atom &atom) {
    if (syntax == IndexExpr::Syntax::IR)
      return list("float", atom.operands);
    static constexpr llvm::StringLiteral names[] = {
        "+",   "-",     "*",    "/",     "//",    "%",    "**",  "maximum", "minimum", "-",
        "abs", "floor", "ceil", "round", "trunc", "sqrt", "exp", "exp2",    "log",     "log2"};
    llvm::SmallVector<std::string, 8> stack;
    for (size_t at = 0; at + 1 < atom.operands.size(); at += 2) {
      auto step = static_cast<IndexExpr::FloatStep>(*atom.operands[at].asConstant());
      const IndexExpr &with = atom.operands[at + 1];
      std::string text;
      llvm::raw_string_ostream stream(text);
      if (step == IndexExpr::FloatStep::Push) {
        Printer{stream, dim, syntax}.primary(with);
      } else if (step == IndexExpr::FloatStep::Number) {
        char digits[32]; // the fewest that are this number
        auto [end, error] =
            std::to_chars(digits, std::end(digits), std::bit_cast<double>(*with.asConstant()));
        stream << StringRef(digits, end - digits);
      } else {
        int64_t op = *with.asConstant();
        std::string right = stack.pop_back_val();
        if (op < int64_t(IndexExpr::FloatOp::Max))
          stream << '(' << stack.pop_back_val() << names[op] << right << ')';
        else if (op < int64_t(IndexExpr::FloatOp::Neg))
          stream << names[op] << '(' << stack.pop_back_val() << ", " << right << ')';
        else
          stream << names[op] << '(' << right << ')';
      }
      stack.push_back(std::move(text));
    }
    os << "int(" << stack.back() << ')';
  }

  /// The term without its sign. `-a//b` would read as `(-a)//b`, hence `negated`.
  void term(const IndexExpr::Term &term, bool negated = false) {
    bool first = true;
    uint64_t magnitude =
        term.coefficient < 0 ? 0 - uint64_t(term.coefficient) : uint64_t(term.coefficient);
    if (magnitude != 1 || term.factors.empty()) {
      os << magnitude;
      first = false;
    }
    for (const auto &[factor, power] : term.factors) {
      for (unsigned i = 0; i < power; ++i) {
        if (!first)
          os << '*';
        // `a*b//c` would read as `(a*b)//c`.
        bool parens = factor->kind == IndexExpr::AtomKind::FloorDiv &&
                      (negated || !first || term.factors.size() > 1 || power > 1);
        if (parens)
          os << '(';
        atom(*factor);
        if (parens)
          os << ')';
        first = false;
      }
    }
  }

  void sum(const IndexExpr &expr) {
    if (expr.isOverflow()) {
      os << "overflow";
      return;
    }
    llvm::ArrayRef<IndexExpr::Term> terms = expr.terms();
    if (terms.empty()) {
      os << 0;
      return;
    }
    // `M - i - 1` rather than `-i + M - 1`.
    const IndexExpr::Term *lead =
        llvm::find_if(terms, [](const IndexExpr::Term &t) { return t.coefficient > 0; });
    if (lead == terms.end())
      lead = terms.begin();
    if (lead->coefficient < 0)
      os << '-';
    term(*lead, lead->coefficient < 0);
    for (const IndexExpr::Term &next : terms) {
      if (&next == lead)
        continue;
      os << (next.coefficient < 0 ? " - " : " + ");
      term(next);
    }
  }
};
} // namespace

void IndexExpr::print(llvm::raw_ostream &os,
                      llvm::function_ref<void(llvm::raw_ostream &, unsigned)> printDim,
                      Syntax syntax) const {
  Printer{os, printDim, syntax}.sum(*this);
}

void IndexExpr::print(llvm::raw_ostream &os) const {
  print(os, [](llvm::raw_ostream &os, unsigned position) { os << 'd' << position; });
}

std::string IndexExpr::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {
/// Tokens of plain text, for IndexExprParser.
struct TextSource {
  StringRef rest;
  bool failed = false;

  bool take(IndexTok tok) {
    rest = rest.ltrim();
    switch (tok) {
    case IndexTok::Plus:
      return rest.consume_front("+");
    case IndexTok::Minus:
      return rest.consume_front("-");
    case IndexTok::Star:
      return rest.consume_front("*");
    case IndexTok::SlashSlash:
      return rest.consume_front("//");
    case IndexTok::Percent:
      return rest.consume_front("%");
    case IndexTok::LParen:
      return rest.consume_front("(");
    case IndexTok::RParen:
      return rest.consume_front(")");
    case IndexTok::Comma:
      return rest.consume_front(",");
    case IndexTok::LE:
      return rest.consume_front("<=");
    case IndexTok::LT:
      return rest.consume_front("<");
    case IndexTok::EQ:
      return rest.consume_front("==");
    case IndexTok::NE:
      return rest.consume_front("!=");
    }
    return false;
  }

  StringRef peekWord() {
    rest = rest.ltrim();
    if (rest.empty() || !(llvm::isAlpha(rest[0]) || rest[0] == '_'))
      return {};
    return rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  }
  bool takeWord(StringRef word) {
    if (peekWord() != word)
      return false;
    rest = rest.drop_front(word.size());
    return true;
  }

  std::optional<int64_t> takeInteger() {
    rest = rest.ltrim();
    StringRef digits = rest.take_while(llvm::isDigit);
    int64_t value;
    if (digits.empty() || digits.getAsInteger(10, value))
      return std::nullopt;
    rest = rest.drop_front(digits.size());
    return value;
  }

  std::optional<IndexExpr> takeVariable() {
    rest = rest.ltrim();
    if (rest.consume_front("\"")) {
      // The escapes of printEscapedString: `\\` and two hexadecimal digits.
      std::string name;
      while (!rest.empty() && rest[0] != '"') {
        if (rest.consume_front("\\\\")) {
          name += '\\';
        } else if (rest[0] == '\\') {
          unsigned code;
          if (rest.size() < 3 || rest.substr(1, 2).getAsInteger(16, code))
            return std::nullopt;
          name += char(code);
          rest = rest.drop_front(3);
        } else {
          name += rest[0];
          rest = rest.drop_front();
        }
      }
      if (name.empty() || !rest.consume_front("\""))
        return std::nullopt;
      return IndexExpr::symbol(name);
    }
    StringRef word = peekWord();
    if (word.empty())
      return std::nullopt;
    rest = rest.drop_front(word.size());
    unsigned position;
    if (looksLikeDim(word)) {
      if (word.drop_front().getAsInteger(10, position))
        return std::nullopt;
      return IndexExpr::dim(position);
    }
    return IndexExpr::symbol(word);
  }

  void error(StringRef) { failed = true; }
};
} // namespace

std::optional<IndexExpr> IndexExpr::parse(StringRef text) {
  TextSource source{text};
  std::optional<IndexExpr> result = IndexExprParser<TextSource>(source).parseSum();
  if (!result || source.failed || !source.rest.ltrim().empty())
    return std::nullopt;
  return result;
}
