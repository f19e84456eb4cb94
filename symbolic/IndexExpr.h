//===- IndexExpr.h - Integer expressions over sizes and axes ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes, subscripts and loop bounds are all integer expressions of the same kind: polynomials with
// 64-bit coefficients over *variables*, floor divisions, minima, maxima and conditionals. An
// IndexExpr is an immutable value kept in canonical form, so that equal polynomials compare equal
// (`(A+B)*2` and `2*B + 2*A`; `x % 4` is `x - 4*(x // 4)`).
//
// A variable is either a size symbol, known by name for a whole kernel (`M`), or a positional
// argument `d0, d1, ...` that stands for the operand of the operation that holds the expression
// (an axis, a loop variable, or an integer read from data).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_INDEXEXPR_H
#define TEGULA_SYMBOLIC_INDEXEXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tegula {

/// A variable of an IndexExpr: a named size symbol, or the positional argument `d<position>`.
class IndexVar {
public:
  static IndexVar symbol(llvm::StringRef name) { return IndexVar(name.str(), 0); }
  static IndexVar dim(unsigned position) { return IndexVar(std::string(), position); }
  bool isSymbol() const { return !symbolName.empty(); }
  llvm::StringRef name() const { return symbolName; }
  unsigned position() const { return dimPosition; }
  bool operator==(const IndexVar &other) const = default;
  /// Dims before symbols; dims by position, symbols by name. Fixes the order of printing.
  bool operator<(const IndexVar &other) const;

private:
  IndexVar(std::string name, unsigned position)
      : symbolName(std::move(name)), dimPosition(position) {}
  std::string symbolName;
  unsigned dimPosition;
};

class IndexExpr {
public:
  enum class Cmp { EQ, NE, LT, LE };

  IndexExpr() : IndexExpr(0) {}
  IndexExpr(int64_t constant);
  static IndexExpr symbol(llvm::StringRef name) { return variable(IndexVar::symbol(name)); }
  static IndexExpr dim(unsigned position) { return variable(IndexVar::dim(position)); }
  static IndexExpr variable(const IndexVar &var);

  friend IndexExpr operator+(const IndexExpr &, const IndexExpr &);
  friend IndexExpr operator-(const IndexExpr &, const IndexExpr &);
  friend IndexExpr operator*(const IndexExpr &, const IndexExpr &);
  IndexExpr operator-() const;
  /// Floored quotient and remainder (Python's). Simplified where that is exact for all values:
  /// constants; `(c*e + r) // c` for a constant c with every coefficient of c*e divisible;
  /// `(E*x) // E` for a symbol E is *not* simplified, since E may be 0.
  static IndexExpr floorDiv(const IndexExpr &lhs, const IndexExpr &rhs);
  static IndexExpr mod(const IndexExpr &lhs, const IndexExpr &rhs);
  static IndexExpr min(const IndexExpr &lhs, const IndexExpr &rhs);
  static IndexExpr max(const IndexExpr &lhs, const IndexExpr &rhs);
  /// `lhs cmp rhs ? yes : no`.
  static IndexExpr select(Cmp cmp, const IndexExpr &lhs, const IndexExpr &rhs, const IndexExpr &yes,
                          const IndexExpr &no);

  /// A whole number that is computed in f64, as Python computes it: a program for a stack, in pairs
  /// of what to do and with what. Nothing (overflow) where it is known not to be whole, or beyond
  /// 2^53.
  enum class FloatStep { Push, Number, Apply }; // an integer; the bits of a double; a FloatOp
  enum class FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Max,
    Min,
    Neg,
    Abs,
    Floor,
    Ceil,
    Round,
    Trunc,
    Sqrt,
    Exp,
    Exp2,
    Log,
    Log2
  };
  static IndexExpr ofFloats(llvm::ArrayRef<std::pair<FloatStep, IndexExpr>> steps);
  /// What such a program gives, its integers being known.
  static std::optional<int64_t> runFloats(llvm::ArrayRef<int64_t> steps);

  bool operator==(const IndexExpr &other) const;
  bool operator!=(const IndexExpr &other) const { return !(*this == other); }
  /// A total order on canonical forms, for sorting and maps; no meaning beyond that.
  bool operator<(const IndexExpr &other) const;
  friend llvm::hash_code hash_value(const IndexExpr &expr);

  /// A coefficient left the 64-bit range, a power 63, the number of terms or the length of the text
  /// a bound of some thousands, while the expression was built. Such an expression is equal only to
  /// another of its kind, evaluates to nothing and prints as `overflow`; users report it.
  bool isOverflow() const;
  std::optional<int64_t> asConstant() const;
  /// The variable when the expression is exactly one variable.
  std::optional<IndexVar> asVariable() const;
  /// True when no dim occurs: the expression is a size.
  bool isSize() const;
  bool uses(const IndexVar &var) const;
  /// Distinct variables, in IndexVar order.
  llvm::SmallVector<IndexVar> variables() const;

  /// Value under an assignment; nothing on overflow, division by zero or an unassigned variable.
  std::optional<int64_t>
  evaluate(llvm::function_ref<std::optional<int64_t>(const IndexVar &)> value) const;
  /// Every variable for which `replacement` gives an expression is replaced, simultaneously.
  IndexExpr
  substitute(llvm::function_ref<std::optional<IndexExpr>(const IndexVar &)> replacement) const;

  /// Structure, for provers and code generators: the expression is a sum of terms, each a
  /// coefficient times a product of atoms with positive powers.
  struct Atom;
  struct Term {
    int64_t coefficient;
    llvm::SmallVector<std::pair<std::shared_ptr<const Atom>, unsigned>, 2> factors; // atom, power
  };
  llvm::ArrayRef<Term> terms() const;
  enum class AtomKind { Variable, FloorDiv, Min, Max, Select, Float };

  /// Tegula's own syntax: `3*C`, `pad + (H - KH)//2 + 1`, `d0 + 4*d1 - 1`,
  /// `min(a, b)`, `where(a <= b, c, d)`. A symbol whose name could be taken for something else
  /// (`d0`, `min`) is quoted. parse(print(e)) == e.
  void print(llvm::raw_ostream &os) const;
  /// In textual IR `//` starts a comment and `<` opens a bracket: floor division is spelled
  /// `floordiv`, comparisons are `le` and `eq`.
  enum class Syntax { Tegula, IR };
  /// As above, dims spelled by the callback (the operand's SSA name or the user's index name).
  void print(llvm::raw_ostream &os,
             llvm::function_ref<void(llvm::raw_ostream &, unsigned position)> printDim,
             Syntax syntax = Syntax::Tegula) const;
  std::string str() const;
  /// Identifiers `d<number>` are dims, all others symbols; both spellings of floor division, and
  /// `%` (in textual IR `mod`). Nothing on a syntax error or where nesting exceeds a few hundred.
  static std::optional<IndexExpr> parse(llvm::StringRef text);

private:
  struct Storage;
  explicit IndexExpr(std::shared_ptr<const Storage> storage) : storage(std::move(storage)) {}
  std::shared_ptr<const Storage> storage;
  friend struct IndexExprBuilder;
};

/// An indivisible factor of a term.
struct IndexExpr::Atom {
  AtomKind kind;
  IndexVar var = IndexVar::dim(0); // Variable
  Cmp cmp = Cmp::EQ;               // Select
  /// FloorDiv: numerator, denominator. Min, Max: two or more, distinct and sorted. Select: lhs,
  /// rhs, yes, no; its cmp is EQ or LE, lhs and rhs without common terms. Float: a FloatStep and
  /// its integer, in turn.
  llvm::SmallVector<IndexExpr, 2> operands;
  size_t hash = 0;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const IndexExpr &expr) {
  expr.print(os);
  return os;
}

} // namespace tegula

#endif // TEGULA_SYMBOLIC_INDEXEXPR_H
