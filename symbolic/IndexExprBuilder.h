//===- IndexExprBuilder.h - The representation of IndexExpr ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_INDEXEXPRBUILDER_H
#define TEGULA_SYMBOLIC_INDEXEXPRBUILDER_H

#include "symbolic/IndexExpr.h"

namespace tegula {
struct IndexExpr::Storage {
  llvm::SmallVector<Term, 2> terms;
  bool overflow = false;
  size_t hash = 0;
  size_t length = 0; // variables and terms in its text
};

/// Makes expressions from unsorted terms, and holds what needs access to the representation.
struct IndexExprBuilder {
  using Term = IndexExpr::Term;
  using Atom = IndexExpr::Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  using Terms = llvm::SmallVector<Term, 2>;

  static IndexExpr overflow();
  static IndexExpr normalise(Terms terms);
  static IndexExpr atom(Atom atom);
  static IndexExpr power(const AtomPtr &base, unsigned exponent);
  static int compare(const Atom &lhs, const Atom &rhs);
  static int compareMonomials(const Term &lhs, const Term &rhs);
  static int compare(const IndexExpr &lhs, const IndexExpr &rhs);
  static std::optional<Term> multiply(const Term &lhs, const Term &rhs);
  static const IndexExpr::Storage *storage(const IndexExpr &expr) { return expr.storage.get(); }
  static IndexExpr ofFloats(llvm::ArrayRef<IndexExpr> steps);
  static IndexExpr extremum(IndexExpr::AtomKind kind, const IndexExpr &lhs, const IndexExpr &rhs);
};
} // namespace tegula

#endif // TEGULA_SYMBOLIC_INDEXEXPRBUILDER_H
