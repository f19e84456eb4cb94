//===- EmitIRConvolution.cpp - Which sums are convolutions ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tells a convolution from other products is that one factor, the image, slides past the
// other: it is read through a window, `x[p + r]` with r summed and p not, and the other, the
// weights, is the same at all p. Both halves are needed. Without the second `q[(h, d)]*k[(h, d)]`
// written out as `q[h*D + d]*k[h*D + d]`, and offsets into what each row reads alone, would count;
// without the rule that the image varies along r by windows alone, so would attention whose scores
// have a relative bias: `exp(s[i, j] + b[i - j])*v[j, d]`.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRAnalysis.h"

using namespace tegula;
using namespace tegula::emit;

/// The factors of a product, through names, signs and widening. A quotient's are those of what is
/// divided, and its divisor; of `where(c, v, 0)` those of v, as a mask leaves a product one.
static void collectFactors(const Expr *value, llvm::SmallVectorImpl<const Expr *> &factors) {
  using checked::Binary;
  auto isZero = [](const Expr *expr) {
    return expr->kind == Expr::Constant &&
           (isFloat(expr->type) ? expr->floatValue == 0 : expr->intValue == 0);
  };
  switch (value->kind) {
  case Expr::Let:
    return collectFactors(value->let->value, factors);
  case Expr::Widen:
    return collectFactors(value->operands[0], factors);
  case Expr::Unary:
    if (value->unary == checked::Unary::Neg)
      return collectFactors(value->operands[0], factors);
    break;
  case Expr::Binary:
    if (value->binary != Binary::Mul && value->binary != Binary::Div)
      break;
    collectFactors(value->operands[0], factors);
    if (value->binary == Binary::Mul)
      return collectFactors(value->operands[1], factors);
    factors.push_back(value->operands[1]);
    return;
  case Expr::Where:
    if (isZero(value->operands[2]))
      return collectFactors(value->operands[1], factors);
    if (isZero(value->operands[1]))
      return collectFactors(value->operands[2], factors);
    break;
  default:
    break;
  }
  factors.push_back(value);
}

/// The reads that make up a value; not those of conditions and subscripts, which choose among them.
static void collectReads(const Expr *value, llvm::SmallVectorImpl<const Expr *> &reads) {
  if (value->kind == Expr::Read)
    reads.push_back(value);
  if (value->kind == Expr::Let)
    collectReads(value->let->value, reads);
  for (const Expr *operand : llvm::ArrayRef(value->operands).drop_front(value->kind == Expr::Where))
    collectReads(operand, reads);
}

/// The axis times a size.
static bool isMultiple(const IndexExpr::Term &term, const IndexVar &axis) {
  unsigned power = 0;
  for (const auto &[atom, count] : term.factors) {
    bool isVariable = atom->kind == IndexExpr::AtomKind::Variable;
    if (isVariable && atom->var == axis)
      power += count;
    else if (isVariable
                 ? !atom->var.isSymbol()
                 : !llvm::all_of(atom->operands, [](const IndexExpr &e) { return e.isSize(); }))
      return false;
  }
  return power == 1;
}

/// Whether the expression, or one that it divides or takes the least of, is a sum with multiples of
/// both axes: `2*p + r - 1`, `(p - r)//2`, `max(p + r, 0)`.
static bool adds(const IndexExpr &expr, const IndexVar &one, const IndexVar &other) {
  auto has = [&](const IndexVar &axis) {
    return llvm::any_of(expr.terms(), [&](const auto &term) { return isMultiple(term, axis); });
  };
  if (has(one) && has(other))
    return true;
  return llvm::any_of(expr.terms(), [&](const IndexExpr::Term &term) {
    return llvm::any_of(term.factors, [&](const auto &factor) {
      return llvm::any_of(factor.first->operands,
                          [&](const IndexExpr &operand) { return adds(operand, one, other); });
    });
  });
}

namespace {
/// A pair of axes, one of a sum and one that is not summed.
struct Window {
  Analysis &analysis;
  unsigned summed, position;

  /// The factor varies along the summed axis, and by windows over the position alone.
  bool slides(const Expr *factor) const {
    llvm::SmallVector<const Expr *> reads;
    collectReads(factor, reads);
    bool found = false;
    for (const Expr *read : reads)
      for (auto [dim, subscript] : llvm::enumerate(read->subscripts)) {
        if (!contains(analysis.axesOf(subscript), summed))
          continue;
        // The members of a group are digits of a subscript: nothing is added.
        const IndexExpr *written = &subscript;
        for (const auto &[grouped, leading] : read->groups)
          if (grouped == dim)
            written = &leading;
        if (!adds(*written, IndexVar::dim(summed), IndexVar::dim(position)))
          return false;
        found = true;
      }
    return found;
  }

  bool isSharedByPositions(const Expr *factor) const {
    const AxisSet &axes = analysis.axesOf(factor);
    return contains(axes, summed) && !contains(axes, position);
  }
};
} // namespace

bool Analysis::isConvolution(const Expr *sum) {
  if (sum->kind != Expr::Reduce || sum->reduction != Reduction::Sum)
    return false;
  llvm::SmallVector<const Expr *> factors;
  collectFactors(sum->operands[0], factors);
  const AxisSet positions = axesOf(sum);
  for (const Var *var : sum->vars)
    for (unsigned position : positions) {
      Window window{*this, var->id, position};
      if (llvm::any_of(factors, [&](const Expr *one) { return window.slides(one); }) &&
          llvm::any_of(factors, [&](const Expr *one) { return window.isSharedByPositions(one); }))
        return true;
    }
  return false;
}
