//===- Rules.cpp - The derivative of each function of elements ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Rules.h"

#include "grad/Match.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>
#include <numbers>

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

namespace {
class RuleApplier {
public:
  RuleApplier(Builder &builder, const Expr *node, const Expr *adjoint, const Expr *condition,
              IsActive isActive, ValueOf valueOf, SmallVectorImpl<Flow> &flows, Refusal &refusal)
      : b(builder), node(node), g(adjoint), condition(condition), isActive(isActive),
        valueOf(valueOf), flows(flows), refusal(refusal) {}
  bool apply();

private:
  bool refuse(StringRef reason) {
    refusal = {reason.str(), node->span};
    return false;
  }
  void flow(const Expr *to, const Expr *adjoint, const Expr *when = nullptr) {
    if (isActive(to) && !isNumber(adjoint, 0))
      flows.push_back({to, adjoint, b.both(condition, when)});
  }
  bool smoothWhole();
  bool unary();
  bool binary();
  void extremum(bool isMax);
  void power();
  bool isKnownUnder(Binary op, const Expr *lhs, const Expr *rhs) const;

  Builder &b;
  const Expr *node, *g, *condition;
  IsActive isActive;
  ValueOf valueOf;
  SmallVectorImpl<Flow> &flows;
  Refusal &refusal;
};
} // namespace

/// The library's functions whose parts have kinks that the whole has not.
bool RuleApplier::smoothWhole() {
  if (const Expr *x = matchSigmoid(node)) {
    const Expr *s = makeSigmoid(b, valueOf(x));
    flow(x, b.mul(b.mul(g, s), b.sub(b.number(1), s)));
    return true;
  }
  if (SoftCorner corner = matchSoftplus(node); corner.x) {
    const Expr *x = valueOf(corner.x);
    const Expr *slope = makeSigmoid(b, corner.form == SoftCorner::Softplus ? x : b.neg(x));
    const Expr *adjoint = b.mul(g, slope);
    flow(corner.x, corner.form == SoftCorner::SoftplusOfNegated ? b.neg(adjoint) : adjoint);
    return true;
  }
  if (const Expr *x = matchTanhOfSoftplus(node)) {
    const Expr *value = valueOf(node);
    flow(x, b.mul(b.mul(g, b.sub(b.number(1), b.mul(value, value))), makeSigmoid(b, valueOf(x))));
    return true;
  }
  return false;
}

/// Whether the condition has the part `not (lhs op rhs)`.
bool RuleApplier::isKnownUnder(Binary op, const Expr *lhs, const Expr *rhs) const {
  auto visit = [&](auto &&self, const Expr *at) -> bool {
    if (at->kind == Expr::Binary && at->binary == Binary::And)
      return self(self, at->operands[0]) || self(self, at->operands[1]);
    if (at->kind != Expr::Unary || at->unary != Unary::Not)
      return false;
    const Expr *inner = at->operands[0];
    return inner->kind == Expr::Binary && inner->binary == op &&
           areEqual(inner->operands[0], lhs) &&
           (areEqual(inner->operands[1], rhs) ||
            (isNumber(inner->operands[1], 0) && isNumber(rhs, 0)));
  };
  return condition && visit(visit, condition);
}

/// Of two values the greater takes it all, and equals take half each; a bound that is a number
/// takes its part of equals away: relu has the derivative 0 at 0. A bound of clamp takes none.
void RuleApplier::extremum(bool isMax) {
  const Expr *x = node->operands[0], *y = node->operands[1];
  if (node->isClamp) {
    const Expr *value = valueOf(x), *bound = valueOf(y);
    flow(x, g, b.compare(isMax ? Binary::GE : Binary::LE, value, bound));
    flow(y, g, b.compare(isMax ? Binary::LT : Binary::GT, value, bound));
    return;
  }
  Binary wins = isMax ? Binary::GT : Binary::LT, loses = isMax ? Binary::LT : Binary::GT;
  for (unsigned side : {0, 1}) {
    const Expr *own = side ? y : x, *other = side ? x : y;
    if (!isActive(own))
      continue;
    // Not what has no gradient: a tensor that is a constant to --wrt takes its half all the same.
    DenseSet<const Tensor *> readByOther;
    b.tensorsOf(other, readByOther);
    bool isBound = readByOther.empty();
    if (isBound && isKnownUnder(loses, own, other)) { // min(x, 0) where not x > 0
      flow(own, g);
      continue;
    }
    const Expr *ownValue = valueOf(own), *otherValue = valueOf(other);
    if (isBound) {
      flow(own, g, b.compare(wins, ownValue, otherValue));
      continue;
    }
    flow(own, b.where(b.compare(Binary::EQ, ownValue, otherValue), b.mul(b.number(0.5), g), g),
         b.compare(isMax ? Binary::GE : Binary::LE, ownValue, otherValue));
  }
}

void RuleApplier::power() {
  const Expr *base = node->operands[0], *exponent = node->operands[1];
  if (isActive(base)) {
    const Expr *plain = exponent;
    while (plain->kind == Expr::Widen || (plain->kind == Expr::Convert && plain->isWeak))
      plain = plain->operands[0];
    std::optional<double> known;
    if (plain->kind == Expr::Constant)
      known = isFloat(plain->type) ? plain->floatValue : static_cast<double>(plain->intValue);
    else if (plain->kind == Expr::Index && plain->index.asConstant())
      known = static_cast<double>(*plain->index.asConstant());
    const Expr *x = valueOf(base);
    if (known) {
      const Expr *rest = *known == 2   ? x
                         : *known == 1 ? b.number(1)
                                       : b.binary(Binary::Pow, x, b.number(*known - 1));
      if (*known != 0)
        flow(base, b.mul(b.mul(g, b.number(*known)), rest));
    } else {
      const Expr *p = valueOf(exponent);
      flow(base, b.mul(b.mul(g, p), b.binary(Binary::Pow, x, b.sub(p, b.number(1)))),
           b.compare(Binary::NE, p, b.number(0)));
    }
  }
  if (isActive(exponent)) {
    const Expr *x = valueOf(base), *p = valueOf(exponent);
    const Expr *isFlat = b.compare(Binary::And, b.compare(Binary::EQ, x, b.number(0)),
                                   b.compare(Binary::GE, p, b.number(0)));
    flow(exponent, b.mul(b.mul(g, b.binary(Binary::Pow, x, p)), b.unary(Unary::Log, x)),
         b.negate(isFlat));
  }
}

bool RuleApplier::binary() {
  const Expr *lhs = node->operands[0], *rhs = node->operands[1];
  switch (node->binary) {
  case Binary::Add:
    flow(lhs, g);
    flow(rhs, g);
    return true;
  case Binary::Sub:
    flow(lhs, g);
    flow(rhs, b.neg(g));
    return true;
  case Binary::Mul:
    if (areEqual(lhs, rhs)) { // a square
      flow(lhs, b.mul(b.mul(b.number(2), g), valueOf(lhs)));
      return true;
    }
    if (isActive(lhs))
      flow(lhs, b.mul(g, valueOf(rhs)));
    if (isActive(rhs))
      flow(rhs, b.mul(g, valueOf(lhs)));
    return true;
  case Binary::Div: {
    const Expr *divisor = valueOf(rhs);
    flow(lhs, b.div(g, divisor));
    if (isActive(rhs))
      flow(rhs, b.neg(b.div(b.mul(g, valueOf(node)), divisor)));
    return true;
  }
  case Binary::Mod:
    flow(lhs, g);
    if (isActive(rhs))
      flow(rhs, b.neg(b.mul(g, b.unary(Unary::Floor, b.div(valueOf(lhs), valueOf(rhs))))));
    return true;
  case Binary::FloorDiv:
    return true;
  case Binary::Pow:
    power();
    return true;
  case Binary::Atan2: {
    const Expr *y = valueOf(lhs), *x = valueOf(rhs);
    const Expr *radius = b.add(b.mul(x, x), b.mul(y, y));
    const Expr *isDefined = b.compare(Binary::NE, radius, b.number(0));
    flow(lhs, b.div(b.mul(g, x), radius), isDefined);
    flow(rhs, b.neg(b.div(b.mul(g, y), radius)), isDefined);
    return true;
  }
  case Binary::CopySign: {
    const Expr *x = valueOf(lhs);
    flow(lhs, b.mul(g, b.div(valueOf(node), x)), b.compare(Binary::NE, x, b.number(0)));
    return true;
  }
  case Binary::Max:
  case Binary::Min:
    extremum(node->binary == Binary::Max);
    return true;
  default:
    return true; // conditions and bits
  }
}

bool RuleApplier::unary() {
  const Expr *operand = node->operands[0];
  auto x = [&] { return valueOf(operand); };
  auto y = [&] { return valueOf(node); };
  auto one = [&] { return b.number(1); };
  auto square = [&](const Expr *v) { return b.mul(v, v); };
  auto scaled = [&](double factor) { return b.mul(b.number(factor), g); };
  auto over = [&](const Expr *divisor) { flow(operand, b.div(g, divisor)); };
  auto times = [&](const Expr *factor) { flow(operand, b.mul(g, factor)); };
  using std::numbers::ln10, std::numbers::ln2, std::numbers::pi;
  switch (node->unary) {
  case Unary::Neg:
    return flow(operand, b.neg(g)), true;
  case Unary::Abs:
    return times(b.unary(Unary::Sign, x())), true;
  case Unary::Exp:
    return times(y()), true;
  case Unary::Exp2:
    return flow(operand, b.mul(scaled(ln2), y())), true;
  case Unary::Expm1:
    return times(b.add(y(), one())), true;
  case Unary::Log:
    return over(x()), true;
  case Unary::Log2:
    return over(b.mul(b.number(ln2), x())), true;
  case Unary::Log10:
    return over(b.mul(b.number(ln10), x())), true;
  case Unary::Log1p:
    return over(b.add(one(), x())), true;
  case Unary::Sqrt:
    return flow(operand, b.div(scaled(0.5), y())), true;
  case Unary::Rsqrt:
    return flow(operand, b.mul(b.mul(b.mul(scaled(-0.5), y()), y()), y())), true;
  case Unary::Sin:
    return times(b.unary(Unary::Cos, x())), true;
  case Unary::Cos:
    return times(b.neg(b.unary(Unary::Sin, x()))), true;
  case Unary::Tan:
    return times(b.add(one(), square(y()))), true;
  case Unary::Asin:
    return times(b.unary(Unary::Rsqrt, b.sub(one(), square(x())))), true;
  case Unary::Acos:
    return times(b.neg(b.unary(Unary::Rsqrt, b.sub(one(), square(x()))))), true;
  case Unary::Atan:
    return over(b.add(one(), square(x()))), true;
  case Unary::Sinh:
    return times(b.unary(Unary::Cosh, x())), true;
  case Unary::Cosh:
    return times(b.unary(Unary::Sinh, x())), true;
  case Unary::Tanh:
    return times(b.sub(one(), square(y()))), true;
  case Unary::Asinh:
    return times(b.unary(Unary::Rsqrt, b.add(square(x()), one()))), true;
  case Unary::Acosh:
    return times(b.unary(Unary::Rsqrt, b.sub(square(x()), one()))), true;
  case Unary::Atanh:
    return over(b.sub(one(), square(x()))), true;
  case Unary::Erf:
    return flow(operand, b.mul(scaled(2 / std::sqrt(pi)), b.unary(Unary::Exp, b.neg(square(x()))))),
           true;
  case Unary::Erfc:
    return flow(operand,
                b.mul(scaled(-2 / std::sqrt(pi)), b.unary(Unary::Exp, b.neg(square(x()))))),
           true;
  case Unary::Erfinv:
    return flow(operand, b.mul(scaled(std::sqrt(pi) / 2), b.unary(Unary::Exp, square(y())))), true;
  case Unary::Lgamma:
    return times(b.unary(Unary::Digamma, x())), true;
  case Unary::Digamma:
    return refuse("'digamma' has no derivative among the functions of the language");
  case Unary::Not:
  case Unary::Sign:
  case Unary::Floor:
  case Unary::Ceil:
  case Unary::Round:
  case Unary::Trunc:
  case Unary::IsNan:
  case Unary::IsInf:
  case Unary::IsFloat:
  case Unary::LargestFinite:
    return true; // constant almost everywhere
  }
  llvm_unreachable("all functions of one value are listed");
}

bool RuleApplier::apply() {
  if (smoothWhole())
    return true;
  switch (node->kind) {
  case Expr::Unary:
    return unary();
  case Expr::Binary:
    return binary();
  case Expr::Where: {
    const Expr *choice = node->operands[0];
    flow(node->operands[1], g, choice);
    flow(node->operands[2], g, b.negate(choice));
    return true;
  }
  case Expr::Convert:
  case Expr::Quantize:
    if (isFloat(node->target)) // rounding counts as no change
      flow(node->operands[0], g);
    return true;
  case Expr::Widen:
    flow(node->operands[0], g);
    return true;
  case Expr::State:
  case Expr::Let:
    return refuse("a value that changes from step to step has no rule here");
  default:
    return refuse("this form has no rule");
  }
}

bool applyRule(Builder &builder, const Expr *node, const Expr *adjoint, const Expr *condition,
               IsActive isActive, ValueOf valueOf, SmallVectorImpl<Flow> &flows, Refusal &refusal) {
  return RuleApplier(builder, node, adjoint, condition, isActive, valueOf, flows, refusal).apply();
}

} // namespace tegula::grad
