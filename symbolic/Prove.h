//===- Prove.h - What holds for all sizes -------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides statements about integer expressions for all admissible sizes and all points of a domain:
// a subscript stays inside its dim, two sizes agree, pieces are disjoint and cover a tensor. A
// statement that holds is Proved (never wrongly); one that fails comes with sizes and a point.
//
// Everything is symbolic: polynomials over sizes and index variables, with floor divisions, minima,
// maxima and conditionals. A search over vertices and quotients answers the usual cases, linear
// arithmetic over monomials (MLIR's Presburger library, under caps) the rest; what neither proves
// is tried at small sizes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_PROVE_H
#define TEGULA_SYMBOLIC_PROVE_H

#include "symbolic/IndexExpr.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tegula {

/// A condition on integers.
struct Condition {
  enum Kind {
    NonNegative, // lhs >= 0
    Zero,        // lhs == 0
    NonZero,     // lhs != 0
    Divides,     // rhs != 0 and lhs is a multiple of rhs
  } kind = NonNegative;
  IndexExpr lhs, rhs;

  static Condition nonNegative(IndexExpr e) { return {NonNegative, std::move(e), {}}; }
  static Condition zero(IndexExpr e) { return {Zero, std::move(e), {}}; }
  static Condition nonZero(IndexExpr e) { return {NonZero, std::move(e), {}}; }
  static Condition divides(IndexExpr multiple, IndexExpr divisor) {
    return {Divides, std::move(multiple), std::move(divisor)};
  }
  static Condition lessThan(const IndexExpr &a, const IndexExpr &b) {
    return nonNegative(b - a - 1);
  }
  static Condition lessEqual(const IndexExpr &a, const IndexExpr &b) { return nonNegative(b - a); }
  static Condition equal(const IndexExpr &a, const IndexExpr &b) { return zero(a - b); }
  /// `M - N - 2 >= 0`.
  std::string str() const;
};

/// What is known of the sizes of a kernel. Size symbols are dims of tensors, hence >= 0, unless
/// `signedSymbols` names them (compile-time integers left open) or `definitions` defines them.
struct SizeFacts {
  /// Derived sizes in order of definition, each over earlier ones: `P = (H - KH)//2 + 1`. A derived
  /// size is not taken to be >= 0: a dim that shows one adds that as a fact (it is a guard).
  std::vector<std::pair<std::string, IndexExpr>> definitions;
  std::vector<std::string> signedSymbols;
  /// Conditions on sizes that hold: declared dims, launch guards already made.
  std::vector<Condition> facts;
};

/// Variables `d<position>` with lo <= d < hi. Bounds may use variables earlier in the list (and
/// unlisted dims).
struct RangedVar {
  unsigned position = 0;
  IndexExpr lo, hi;
};

/// The points that a statement is about. Dims that occur and are not listed are arbitrary integers
/// (values read from data).
struct Domain {
  llvm::SmallVector<RangedVar, 4> vars;
  /// Hold at every point considered: filters, `where` around a read.
  llvm::SmallVector<Condition, 2> conditions;

  void add(unsigned position, IndexExpr lo, IndexExpr hi) {
    vars.push_back({position, std::move(lo), std::move(hi)});
  }
};

enum class Verdict {
  Proved,  // holds for all admissible sizes at all points
  Refuted, // fails for all admissible sizes for which the domain has a point
  Depends, // fails for some sizes
  Unknown, // not proved, and no counterexample among small sizes
};

/// Sizes and a point where a statement fails.
struct Counterexample {
  /// Size symbols, derived ones included, in IndexVar order.
  std::vector<std::pair<std::string, int64_t>> sizes;
  /// Values of the dims: positions and values. For statements about two points, `other` is the
  /// second; for coverage, `point` is the subscripts left out, position = place of the subscript.
  std::vector<std::pair<unsigned, int64_t>> point, other;
  int64_t value = 0; // of the expression
  int64_t bound = 0; // InBounds: the size of the dim
};

struct Outcome {
  Verdict verdict = Verdict::Unknown;
  /// Set where Refuted and Depends.
  std::optional<Counterexample> counterexample;
  /// Where not Proved: conditions on sizes alone that together suffice, if a short list was found
  /// (empty otherwise). `necessary`: the statement also fails wherever one of them does and the
  /// domain has a point.
  std::vector<Condition> suffices;
  bool necessary = false;
  /// No sizes were found for which it holds at some point of the domain (it may be Depends all the
  /// same where failing for all sizes could not be shown).
  bool failsEverywhereTried = false;

  bool proved() const { return verdict == Verdict::Proved; }
};

/// The elements that one equation writes: `t[subscripts]` for all points of `domain`.
struct Image {
  Domain domain;
  std::vector<IndexExpr> subscripts;
};

/// Bounds that hold at every point of a domain, in sizes alone (and dims not in the domain).
struct Range {
  std::optional<IndexExpr> min, max; // inclusive
};

/// Answers questions about the sizes of one kernel. Not thread-safe; cheap to make.
class Prover {
public:
  explicit Prover(SizeFacts facts = {});
  ~Prover();
  Prover(Prover &&) noexcept;
  Prover &operator=(Prover &&) noexcept;

  /// Adds a fact about sizes (a guard that the program has from now on).
  void assume(const Condition &fact);
  void define(llvm::StringRef name, const IndexExpr &definition);
  const SizeFacts &facts() const;

  /// 0 <= expr < size at all points.
  Outcome inBounds(const IndexExpr &expr, const IndexExpr &size, const Domain &domain);
  Outcome holds(const Condition &condition, const Domain &domain = {});
  Outcome nonNegative(const IndexExpr &expr, const Domain &domain = {}) {
    return holds(Condition::nonNegative(expr), domain);
  }
  Outcome equal(const IndexExpr &a, const IndexExpr &b, const Domain &domain = {}) {
    return holds(Condition::equal(a, b), domain);
  }

  /// As above, without search for counterexamples: for passes.
  bool provesInBounds(const IndexExpr &expr, const IndexExpr &size, const Domain &domain);
  bool proves(const Condition &condition, const Domain &domain = {});

  /// No element is in both images. The dims of the two domains are separate (d0 of one is not d0 of
  /// the other) except those in `shared`, loop variables with the same value in both; these are
  /// listed with equal ranges in both domains.
  Outcome disjoint(const Image &a, const Image &b, llvm::ArrayRef<unsigned> shared = {});
  /// No two points of the domain give the same element.
  Outcome injective(const Image &image);
  /// The images together hold every element of a tensor of these dims.
  Outcome covers(llvm::ArrayRef<Image> pieces, llvm::ArrayRef<IndexExpr> dims);

  Range range(const IndexExpr &expr, const Domain &domain);
  /// The same values at every point of the domain (where it has one), with divisions, remainders,
  /// minima, maxima and conditionals that the ranges decide gone: `(g*E + e)//E` with 0 <= e < E
  /// is `g`. Derived sizes stay by name.
  IndexExpr simplify(const IndexExpr &expr, const Domain &domain);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_PROVE_H
