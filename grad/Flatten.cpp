//===- Flatten.cpp - A program as a list of simple equations ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/FlattenImpl.h"

#include "grad/Solve.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

/// Whether the equation replaces elements that have a value of their own: where data decides which,
/// or where a condition on data holds.
bool Flattener::isReplacing(const Equation &made, const Stmt &stmt) const {
  if (made.accumulate)
    return false;
  bool isScatter = any_of(made.subscripts,
                          [&](const IndexExpr &subscript) { return builder.usesData(subscript); });
  if (isScatter || stmt.dataDependent || stmt.meeting != Stmt::Never)
    return true;
  if (!made.guard || !readsData(made.guard))
    return false;
  auto found = defined.find(made.target);
  return replaced.contains(made.target) || (found != defined.end() && found->second != zeros);
}

bool Flattener::equation(const Stmt &stmt) {
  const Tensor *base = baseOf(stmt.tensor);
  Equation made;
  made.target = base;
  made.accumulate = stmt.accumulate;
  made.span = stmt.span;
  if (stmt.accumulate && stmt.combine != Reduction::Sum)
    return refuse(stmt.span, "of 'max=' and 'min=' nothing says which of the points won");
  if (stmt.meeting == Stmt::LastWins)
    return refuse(stmt.span, "points may meet at an element of '" + base->name +
                                 "', of which the last one counts ('distinct' says that none do)");
  made.guard = resolve(stmt.guard);
  const Expr *whole = resolve(stmt.value);
  for (const IndexExpr &subscript : stmt.subscripts)
    made.subscripts.push_back(resolve(subscript));
  // The block's axes that the equation varies along come first.
  VarSet used;
  builder.freeVars(whole, used);
  for (const IndexExpr &subscript : made.subscripts)
    builder.freeVars(subscript, used);
  if (made.guard)
    builder.freeVars(made.guard, used);
  for (const Var *var : blockVars)
    if ((stmt.accumulate && !tileVars.contains(var->id)) || used.contains(var->id))
      made.vars.push_back(var);
  append_range(made.vars, stmt.vars);
  made.value = whole;
  dropUnitVars(made);
  if (base->kind == Tensor::State || versions.contains(base))
    return update(base, std::move(made), stmt);
  bool isFresh = levelOf(base) == levels.size();
  bool changes = base->kind == Tensor::Inout || stmt.readsTarget || read.contains(base) ||
                 isReplacing(made, stmt);
  if (isFresh && changes) {
    setVersion(base, base);
    return update(base, std::move(made), stmt);
  }
  // In a loop findChanging has found the others.
  if (changes || (!stmt.accumulate && !isApart(made)))
    return refuse(stmt.span, "elements of '" + base->name +
                                 "' are replaced that another equation has defined");
  notePiece(made);
  return define(std::move(made), whole);
}

/// The first and last value of a subscript of at most one index. Nothing for others.
static std::optional<std::pair<IndexExpr, IndexExpr>> boundsOf(const Builder &b,
                                                               const IndexExpr &subscript) {
  VarSet used;
  b.freeVars(subscript, used);
  if (used.empty())
    return std::pair(subscript, subscript);
  const Var &var = b.var(used[0]);
  IndexExpr rest = subscript - IndexExpr::dim(var.id);
  if (used.size() > 1 || var.kind == Var::Data || rest.uses(IndexVar::dim(var.id)))
    return std::nullopt;
  return std::pair(rest + var.lo, rest + var.hi - 1);
}

/// Whether the elements are none that other equations have defined, but for numbers. The checker
/// says so of equations without a loop and of those of one step.
bool Flattener::isApart(const Equation &made) const {
  auto found = pieces.find(made.target);
  const Var *step = levels.empty() ? nullptr : levels.back().step;
  return found == pieces.end() || all_of(found->second, [&](const Piece &piece) {
           return piece.step == step ||
                  any_of(zip_equal(piece.subscripts, made.subscripts), [&](auto pair) {
                    auto a = boundsOf(builder, std::get<0>(pair)),
                         b = boundsOf(builder, std::get<1>(pair));
                    return a && b &&
                           ((a->first - b->second).asConstant().value_or(0) > 0 ||
                            (b->first - a->second).asConstant().value_or(0) > 0);
                  });
         });
}

void Flattener::notePiece(const Equation &made) {
  if (made.value->kind != Expr::Constant)
    pieces[made.target].push_back({made.subscripts, levels.empty() ? nullptr : levels.back().step});
}

/// Subscripts that are groups.
void Flattener::findGroups(Equation &made) const {
  for (auto [d, subscript] : enumerate(made.subscripts))
    if (std::optional<IndexExpr> first = firstDigit(builder, subscript, made.target->dims[d]))
      made.groups.push_back({d, *first});
}

/// An equation that defines elements once.
bool Flattener::define(Equation made, const Expr *whole) {
  const Tensor *target = made.target;
  made.value = hoist(made.value, /*isRoot=*/true);
  if (!made.value)
    return false;
  shareParts(made);
  // A value with a rule that needs the result takes it unrounded, and before others are added.
  bool isReduction = made.value->kind == Expr::Reduce || made.value->kind == Expr::Scan;
  bool isSum = made.value->kind == Expr::Reduce && (made.value->reduction == Reduction::Sum ||
                                                    made.value->reduction == Reduction::Mean);
  bool isExact = target->kind == Tensor::Temp && target->type == made.value->type &&
                 !made.accumulate && !made.guard;
  if (isReduction && isFloat(made.value->type) && !isSum && !isExact) {
    made.value = toTemporary(made.value);
    if (!made.value)
      return false;
  }
  Equation original = made;
  original.value = whole;
  builder.tensorsOf(original, read);
  // Where pieces need not cover a tensor the checker fills it with 0 first: they add to that.
  bool isZero = made.vars.size() == target->dims.size() && isNumber(made.value, 0) &&
                all_of(zip_equal(made.subscripts, made.vars), [](auto pair) {
                  return std::get<0>(pair) == IndexExpr::dim(std::get<1>(pair)->id);
                });
  bool isOnlyZero = isZero && !made.accumulate && !defined.contains(target);
  if (!made.accumulate) {
    // A condition on data replaces zeros, once.
    if (made.guard && readsData(made.guard) && defined.contains(target))
      replaced.insert(target);
    if (zeroed.contains(target))
      made.accumulate = true;
    else if (isZero)
      zeroed.insert(target);
  }
  defined[target] = isOnlyZero ? zeros : values;
  findGroups(made);
  add(std::move(made));
  return true;
}

bool Flattener::call(const Stmt &stmt) {
  const Callee &callee = *stmt.callee;
  for (const auto &[parameter, argument] : callee.arguments)
    tensors[parameter] = parameter->kind == Tensor::Inout ? baseOf(argument) : resolve(argument);
  for (const auto &[output, where] : callee.results)
    tensors[output] = baseOf(where);
  for (const auto &[parameter, value] : callee.scalars)
    scalars[parameter] = resolve(value);
  return walk(callee.body);
}

bool Flattener::parallel(const Stmt &stmt) {
  size_t outer = blockVars.size(), known = states.size();
  append_range(blockVars, stmt.vars);
  bool fine = walk(stmt.body);
  blockVars.resize(outer);
  while (states.size() > known)
    states.pop_back();
  return fine;
}

/// A result does not depend on the size of tiles: one tile is the whole range, and the loop is its
/// body.
bool Flattener::tiles(const Stmt &stmt) {
  Var &var = builder.program.vars[stmt.vars[0]->id];
  var.lo = resolve(var.lo);
  var.hi = resolve(var.hi);
  var.kind = Var::Axis;
  blockVars.push_back(&var);
  tileVars.insert(var.id);
  bool fine = walk(stmt.body);
  blockVars.pop_back();
  tileVars.erase(var.id);
  return fine;
}

bool Flattener::walk(ArrayRef<Stmt *> body) {
  for (const Stmt *stmt : body) {
    bool fine = true;
    switch (stmt->kind) {
    case Stmt::TensorDef:
      if (!levels.empty())
        levels.back().fresh.insert(stmt->tensor);
      break;
    case Stmt::Define: { // stands where it is used: what it reads must not change
      const Expr *value = resolve(stmt->let->value);
      lets[stmt->let] = value;
      builder.tensorsOf(value, read);
      break;
    }
    case Stmt::Equation:
      fine = equation(*stmt);
      break;
    case Stmt::Call:
      fine = call(*stmt);
      break;
    case Stmt::Parallel:
      fine = parallel(*stmt);
      break;
    case Stmt::For:
      fine = loop(*stmt);
      break;
    case Stmt::Tiles:
      fine = tiles(*stmt);
      break;
    case Stmt::Observe: // no part of the function
      break;
    case Stmt::StateInit:
      setState(*stmt->state, resolve(stmt->state->init));
      break;
    case Stmt::Update:
      setState(*stmt->state, resolve(stmt->value));
      break;
    }
    if (!fine)
      return false;
  }
  return true;
}

std::optional<std::vector<Equation>> Flattener::run() {
  for (const Tensor *input : builder.program.inputs)
    if (input->kind == Tensor::Inout)
      versions[input] = input;
  // Statements refer to the program's own list, which does not change.
  if (!walk(builder.program.body))
    return std::nullopt;
  finishVersions();
  return std::move(equations);
}

std::optional<std::vector<Equation>> flatten(Builder &builder, Refusal &refusal) {
  return Flattener(builder, refusal).run();
}

} // namespace tegula::grad
