//===- Match.cpp - Functions that are smooth although their parts are not -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library writes sigmoid, softplus and others with |x|, so that nothing overflows. At x = 0
// the parts have a kink that the whole has not: their derivatives, added up, would be wrong there.
// These forms are recognised as a whole, wherever they are written.
//
//===----------------------------------------------------------------------===//
#include "grad/Match.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

bool areEqual(const Expr *a, const Expr *b) {
  if (a == b)
    return true;
  if (!a || !b || a->kind != b->kind || a->type != b->type)
    return false;
  if (a->operands.size() != b->operands.size() || !a->vars.empty() || !b->vars.empty())
    return false;
  bool same = a->intValue == b->intValue && a->floatValue == b->floatValue &&
              a->index == b->index && a->scalar == b->scalar && a->let == b->let &&
              a->state == b->state && a->tensor == b->tensor && a->subscripts == b->subscripts &&
              a->exact == b->exact && a->unary == b->unary && a->binary == b->binary &&
              a->isClamp == b->isClamp && a->target == b->target && a->isWeak == b->isWeak &&
              a->normal == b->normal;
  if (!same || !areEqual(a->fill, b->fill) || !areEqual(a->guard, b->guard))
    return false;
  for (auto [x, y] : zip_equal(a->operands, b->operands))
    if (!areEqual(x, y))
      return false;
  return true;
}

static const Expr *operandOf(const Expr *node, Unary op) {
  return node->kind == Expr::Unary && node->unary == op ? node->operands[0] : nullptr;
}

static bool isBinary(const Expr *node, Binary op) {
  return node->kind == Expr::Binary && node->binary == op;
}

/// x of exp(-abs(x)).
static const Expr *matchDecay(const Expr *node) {
  const Expr *power = operandOf(node, Unary::Exp);
  const Expr *distance = power ? operandOf(power, Unary::Neg) : nullptr;
  return distance ? operandOf(distance, Unary::Abs) : nullptr;
}

const Expr *matchSigmoid(const Expr *node) {
  if (node->kind != Expr::Where || !isBinary(node->operands[0], Binary::GE) ||
      !isNumber(node->operands[0]->operands[1], 0))
    return nullptr;
  const Expr *x = node->operands[0]->operands[0];
  const Expr *above = node->operands[1], *below = node->operands[2];
  if (!isBinary(above, Binary::Div) || !isBinary(below, Binary::Div))
    return nullptr;
  const Expr *sum = above->operands[1], *decay = below->operands[0];
  const Expr *base = matchDecay(decay);
  bool fits = base && areEqual(base, x) && isNumber(above->operands[0], 1) &&
              areEqual(sum, below->operands[1]) && isBinary(sum, Binary::Add) &&
              isNumber(sum->operands[0], 1) && areEqual(sum->operands[1], decay);
  return fits ? base : nullptr; // a part of the values, which the condition's x may not be
}

const Expr *makeSigmoid(Builder &builder, const Expr *x) {
  const Expr *decay =
      builder.unary(Unary::Exp, builder.unary(Unary::Neg, builder.unary(Unary::Abs, x)));
  const Expr *sum = builder.binary(Binary::Add, builder.number(1), decay);
  return builder.where(builder.compare(Binary::GE, x, builder.number(0)),
                       builder.binary(Binary::Div, builder.number(1), sum),
                       builder.binary(Binary::Div, decay, sum));
}

/// x of log1p(exp(-abs(x))).
static const Expr *matchSoftCorner(const Expr *node) {
  const Expr *decay = operandOf(node, Unary::Log1p);
  return decay ? matchDecay(decay) : nullptr;
}

/// x of max(x, 0) or min(x, 0), either way round.
static const Expr *matchCorner(const Expr *node, Binary op) {
  if (isBinary(node, op))
    for (unsigned side : {1, 0})
      if (isNumber(node->operands[side], 0))
        return node->operands[1 - side];
  return nullptr;
}

SoftCorner matchSoftplus(const Expr *node) {
  if (isBinary(node, Binary::Add))
    for (unsigned side : {0, 1}) {
      const Expr *x = matchSoftCorner(node->operands[side]);
      const Expr *corner = matchCorner(node->operands[1 - side], Binary::Max);
      if (!x || !corner)
        continue;
      if (areEqual(corner, x))
        return {x, SoftCorner::Softplus};
      const Expr *negated = operandOf(corner, Unary::Neg);
      if (negated && areEqual(negated, x))
        return {x, SoftCorner::SoftplusOfNegated};
      const Expr *back = operandOf(x, Unary::Neg);
      if (back && areEqual(corner, back))
        return {back, SoftCorner::Softplus};
    }
  if (isBinary(node, Binary::Sub))
    if (const Expr *corner = matchCorner(node->operands[0], Binary::Min))
      if (const Expr *x = matchSoftCorner(node->operands[1]); x && areEqual(corner, x))
        return {x, SoftCorner::LogSigmoid};
  return {};
}

namespace {
struct Term {
  const Expr *value;
  bool isNegative;
};
} // namespace

static void termsOf(const Expr *node, bool isNegative, SmallVectorImpl<Term> &into) {
  bool isSub = isBinary(node, Binary::Sub);
  if (const Expr *inner = operandOf(node, Unary::Neg)) {
    termsOf(inner, !isNegative, into);
  } else if ((isSub || isBinary(node, Binary::Add)) && !matchSoftplus(node).x) {
    termsOf(node->operands[0], isNegative, into);
    termsOf(node->operands[1], isNegative != isSub, into);
  } else {
    into.push_back({node, isNegative});
  }
}

/// Makes one term of two that are a soft corner. False where there are none.
static bool joinTerms(Builder &builder, SmallVectorImpl<Term> &terms) {
  for (Term &corner : terms)
    for (Term &soft : terms) {
      if (&corner == &soft || !matchSoftCorner(soft.value))
        continue;
      Binary op = soft.isNegative == corner.isNegative ? Binary::Add : Binary::Sub;
      const Expr *joined = builder.binary(op, corner.value, soft.value);
      if (!matchSoftplus(joined).x)
        continue;
      corner.value = joined;
      terms.erase(&soft);
      return true;
    }
  return false;
}

const Expr *joinSoftCorners(Builder &builder, const Expr *value) {
  DenseMap<const Expr *, const Expr *> done;
  auto visit = [&](auto &&self, const Expr *node) -> const Expr * {
    if (const Expr *known = done.lookup(node))
      return known;
    const Expr *result = node;
    SmallVector<Term> terms;
    termsOf(node, false, terms);
    if (terms.size() > 1 && joinTerms(builder, terms)) {
      while (joinTerms(builder, terms)) {
      }
      result = nullptr;
      for (const Term &term : terms) {
        const Expr *part = self(self, term.value);
        if (!result)
          result = term.isNegative ? builder.unary(Unary::Neg, part) : part;
        else
          result = builder.binary(term.isNegative ? Binary::Sub : Binary::Add, result, part);
      }
    } else if (node->kind != Expr::Read) {
      Expr *changed = nullptr;
      for (auto [i, operand] : enumerate(node->operands)) {
        const Expr *part = self(self, operand);
        if (part == operand)
          continue;
        if (!changed)
          changed = builder.copy(node);
        changed->operands[i] = part;
      }
      result = changed ? changed : node;
    }
    return done[node] = result;
  };
  return visit(visit, value);
}

/// The library's mish is x times this: above/(above + where(x < 0, 2, 2*t*t)), t = exp(-|x|).
const Expr *matchTanhOfSoftplus(const Expr *node) {
  if (!isBinary(node, Binary::Div) || !isBinary(node->operands[1], Binary::Add))
    return nullptr;
  const Expr *above = node->operands[0], *rest = node->operands[1]->operands[1];
  if (!areEqual(above, node->operands[1]->operands[0]) || above->kind != Expr::Where ||
      rest->kind != Expr::Where || !areEqual(above->operands[0], rest->operands[0]) ||
      !isBinary(above->operands[0], Binary::LT) || !isNumber(above->operands[0]->operands[1], 0))
    return nullptr;
  const Expr *x = above->operands[0]->operands[0];
  const Expr *low = above->operands[1], *high = above->operands[2];
  if (!isBinary(low, Binary::Mul) || !isBinary(high, Binary::Add))
    return nullptr;
  const Expr *t = low->operands[0];
  const Expr *base = matchDecay(t);
  auto isTwice = [&](const Expr *at, const Expr *of) {
    return isBinary(at, Binary::Mul) && isNumber(at->operands[0], 2) &&
           areEqual(at->operands[1], of);
  };
  bool lowFits = isBinary(low->operands[1], Binary::Add) &&
                 areEqual(low->operands[1]->operands[0], t) &&
                 isNumber(low->operands[1]->operands[1], 2);
  bool highFits = isNumber(high->operands[0], 1) && isTwice(high->operands[1], t);
  const Expr *square = rest->operands[2];
  bool restFits = isNumber(rest->operands[1], 2) && isBinary(square, Binary::Mul) &&
                  isTwice(square->operands[0], t) && areEqual(square->operands[1], t);
  return base && areEqual(base, x) && lowFits && highFits && restFits ? base : nullptr;
}

const Expr *matchWhole(const Expr *node) {
  if (const Expr *x = matchSigmoid(node))
    return x;
  if (SoftCorner corner = matchSoftplus(node); corner.x)
    return corner.x;
  return matchTanhOfSoftplus(node);
}

} // namespace tegula::grad
