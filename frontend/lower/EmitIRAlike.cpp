//===- EmitIRAlike.cpp - Points that meet and write the same --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   y[b, token[b, t]] = where(x[b, token[b, t]] > 0, x[b, token[b, t]]/p, x[b, token[b, t]]*p)
//
// Two points meet where all subscripts on the left have the same values. So these subscripts, and
// what can be computed from them, are the same for all points that meet: b, token[b, t], and
// token[b, t] + 1. A value in which t has no other part is the same too.
//
// The guard may vary along t: it says who writes, and not what. Which of the points that do write
// is the last makes no difference.
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRAlike.h"
#include "frontend/lower/EmitIREqual.h"
#include "llvm/ADT/DenseSet.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::emit;

/// A value without the conversions that keep it.
static const Expr *withoutWidening(const Expr *value) {
  while (value->kind == Expr::Widen)
    value = value->operands[0];
  return value;
}

/// Whether two values of one statement are computed alike. What keeps a value in another place than
/// its operands (a let, a state, a reduction) is taken for another.
static bool isSame(const Expr *a, const Expr *b) {
  auto isSameIndex = [](const IndexExpr &own, const IndexExpr &other) {
    return !own.isOverflow() && own == other;
  };
  auto isSameTensor = [](const Tensor *) { return true; };
  return areAlike(a, b, {/*isOfOneStatement=*/true, isSameIndex, isSameTensor});
}

namespace {
/// What is the same for all points of a scatter that write one element.
class OfPlace {
public:
  OfPlace(Emitter &emitter, const Stmt &scatter);
  bool holds(const Expr *value);

private:
  bool holds(const IndexExpr &index);
  bool holdsOfAll(const IndexExpr &index);
  bool holdsOfParts(const Expr *value);
  bool holdsWhereWritten(const Expr *condition);
  bool isKnown(const IndexVar &var) const {
    return var.isSymbol() || known.contains(var.position());
  }

  const Program &program;
  Analysis &analysis;
  const Stmt &scatter;
  DenseSet<unsigned> known; ///< variables
  DenseMap<const Expr *, bool> found;
};
} // namespace

OfPlace::OfPlace(Emitter &emitter, const Stmt &scatter)
    : program(emitter.program), analysis(emitter.analysis), scatter(scatter) {
  for (const Var &var : program.vars)
    if (var.kind == Var::Loop) // its steps come one after the other
      known.insert(var.id);
  // A subscript of which all is known but one variable gives that one.
  for (size_t before = known.size() + 1; before != known.size();) {
    before = known.size();
    for (const IndexExpr &subscript : scatter.subscripts) {
      SmallVector<IndexVar> unknown;
      for (const IndexVar &var : subscript.variables())
        if (!isKnown(var))
          unknown.push_back(var);
      if (unknown.size() != 1 || subscript.isOverflow())
        continue;
      IndexExpr own = IndexExpr::variable(unknown[0]);
      for (const IndexExpr &rest : {subscript - own, subscript + own})
        if (!rest.isOverflow() && !rest.uses(unknown[0]))
          known.insert(unknown[0].position());
    }
  }
}

bool OfPlace::holdsOfAll(const IndexExpr &index) {
  return !index.isOverflow() && all_of(index.variables(), [&](const IndexVar &var) {
    return isKnown(var) || (program.vars[var.position()].kind == Var::Data &&
                            holds(program.vars[var.position()].data));
  });
}

/// A subscript, with an offset perhaps, or made of what is known.
bool OfPlace::holds(const IndexExpr &index) {
  return holdsOfAll(index) || any_of(scatter.subscripts, [&](const IndexExpr &subscript) {
           return !subscript.isOverflow() && holdsOfAll(index - subscript);
         });
}

bool OfPlace::holds(const Expr *value) {
  auto [position, isNew] = found.try_emplace(value, false);
  if (!isNew)
    return position->second;
  bool result = all_of(analysis.axesOf(value), [&](unsigned axis) { return known.contains(axis); });
  for (unsigned id : known)
    result = result || (program.vars[id].kind == Var::Data &&
                        isSame(withoutWidening(value), withoutWidening(program.vars[id].data)));
  result = result || holdsOfParts(value);
  return found[value] = result;
}

static bool isConjunction(const Expr *condition) {
  return condition->kind == Expr::Binary && condition->binary == checked::Binary::And;
}

/// Whether a condition is one of the terms of `whole`.
static bool isTerm(const Expr *condition, const Expr *whole) {
  if (!whole || isSame(condition, whole))
    return whole;
  return isConjunction(whole) &&
         any_of(whole->operands, [&](const Expr *operand) { return isTerm(condition, operand); });
}

/// Conditions of the guard are true at all points that write.
bool OfPlace::holdsWhereWritten(const Expr *condition) {
  if (isTerm(condition, scatter.guard))
    return true;
  if (isConjunction(condition))
    return all_of(condition->operands,
                  [&](const Expr *operand) { return holdsWhereWritten(operand); });
  return holds(condition);
}

bool OfPlace::holdsOfParts(const Expr *value) {
  auto holdsOf = [&](const auto &part) { return holds(part); };
  switch (value->kind) {
  case Expr::Index:
    return holds(value->index);
  case Expr::Read:
    return all_of(value->subscripts, holdsOf) && (!value->fill || holds(value->fill)) &&
           (!value->guard || holdsWhereWritten(value->guard)) &&
           all_of(value->exact, [&](const auto &division) {
             return holds(division.first) && holds(division.second);
           });
  case Expr::Reduce:
    // A sum of floats may be added in another order at another point.
    if (isFloat(value->type) || any_of(value->vars, [&](const Var *var) {
          return var->kind != Var::Axis || !holds(var->lo) || !holds(var->hi);
        }))
      return false;
    for (const Var *var : value->vars)
      known.insert(var->id);
    return all_of(value->operands, holdsOf) && (!value->filter || holds(value->filter));
  case Expr::Constant:
  case Expr::Scalar:
  case Expr::Unary:
  case Expr::Binary:
  case Expr::Where:
  case Expr::Convert:
  case Expr::Quantize:
  case Expr::Widen:
  case Expr::Random: // of its keys
    return all_of(value->operands, holdsOf);
  case Expr::Let: // perhaps of another time
  case Expr::State:
  case Expr::Scan:
    return false;
  }
  return false;
}

bool tegula::emit::writesAlike(Emitter &emitter, const Stmt &scatter) {
  // No point may read what one that it meets has written. In a block they do not wait for each
  // other; elsewhere all compute their values before one writes (emitReadingTarget).
  bool isTooLate =
      emitter.addressReadsTarget(scatter) ||
      (!emitter.blockAxes.empty() && emitter.analysis.readsTensor(scatter.value, scatter.tensor));
  return !isTooLate && OfPlace(emitter, scatter).holds(scatter.value);
}
