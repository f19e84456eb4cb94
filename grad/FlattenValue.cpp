//===- FlattenValue.cpp - Values of simple equations -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/FlattenImpl.h"
#include "grad/Match.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

IndexExpr Flattener::resolve(const IndexExpr &index) {
  return builder.mapIndex(index, {[](unsigned) { return std::nullopt; },
                                  [&](const Expr *value) { return resolve(value); },
                                  [](const IndexExpr &one) { return one; }});
}

const Expr *Flattener::resolve(const Expr *value) {
  if (!value)
    return value;
  if (const Expr *known = resolved.lookup(value))
    return known;
  if (value->kind == Expr::Let) {
    const Expr *known = lets.lookup(value->let);
    return resolved[value] = known ? known : resolve(value->let->value);
  }
  if (value->kind == Expr::State)
    return resolved[value] = states.lookup(value->state);
  if (value->kind == Expr::Scalar) {
    auto found = scalars.find(value->scalar);
    return resolved[value] = found == scalars.end() ? value : found->second;
  }
  Expr made = *value;
  bool changed = builder.mapParts(
      made, [&](const Expr *part) { return resolve(part); },
      [&](const IndexExpr &index) { return resolve(index); });
  if (made.tensor && resolve(made.tensor) != made.tensor) {
    made.tensor = resolve(made.tensor);
    changed = true;
  }
  Replacement ofTile;
  for (const Var *&bound : made.vars) {
    IndexExpr lo = resolve(bound->lo), hi = resolve(bound->hi);
    if (lo != bound->lo || hi != bound->hi) {
      // The same var keeps its id: its uses stay what they are.
      Var &own = builder.program.vars[bound->id];
      own.lo = lo;
      own.hi = hi;
    }
    if (!tileVars.contains(bound->id))
      continue;
    // A reduction over a tile has an index of its own.
    const Var *fresh = builder.newAxis(bound->name, lo, hi);
    ofTile[bound->id] = IndexExpr::dim(fresh->id);
    bound = fresh;
    changed = true;
  }
  if (!ofTile.empty()) {
    for (const Expr *&operand : made.operands)
      operand = builder.substitute(operand, ofTile);
    made.filter = builder.substitute(made.filter, ofTile);
  }
  if (!changed)
    return resolved[value] = value;
  builder.program.exprs.push_back(std::move(made));
  return resolved[value] = &builder.program.exprs.back();
}

//===----------------------------------------------------------------------===//
// Reductions inside of values
//===----------------------------------------------------------------------===//

static StringRef nameOfReduction(const Expr *value) {
  if (value->kind == Expr::Scan)
    return value->scan == Scan::Softmax      ? "p"
           : value->scan == Scan::LogSoftmax ? "logp"
           : value->scan == Scan::Recurrence ? "state"
                                             : "scanned";
  if (value->kind != Expr::Reduce)
    return "part";
  switch (value->reduction) {
  case Reduction::Sum:
    return "total";
  case Reduction::Mean:
    return "average";
  case Reduction::Max:
    return "highest";
  case Reduction::Min:
    return "lowest";
  case Reduction::Var:
    return "variance";
  case Reduction::Prod:
    return "product";
  default:
    return "lse";
  }
}

const Expr *Flattener::toTemporary(const Expr *value) {
  VarSet used;
  builder.freeVars(value, used);
  SmallVector<unsigned> order(used.begin(), used.end());
  sort(order);
  Equation made;
  std::vector<IndexExpr> dims;
  for (unsigned id : order) {
    const Var &var = builder.var(id);
    if (var.kind == Var::Loop)
      continue; // one value in each step
    if (!var.lo.isSize() || !var.hi.isSize()) {
      refuse(value->span, "a reduction stands under the index '" + Twine(var.name) +
                              "', whose range depends on another index");
      return nullptr;
    }
    const Var *axis = &var;
    made.vars.push_back(axis);
    made.subscripts.push_back(IndexExpr::dim(id) - var.lo);
    dims.push_back(var.hi - var.lo);
  }
  const Tensor *temporary = newTemporary(nameOfReduction(value), value->type, dims);
  made.target = temporary;
  made.value = value;
  made.span = value->span;
  add(made);
  const Expr *read = builder.read(temporary, made.subscripts);
  const_cast<Expr *>(read)->span = value->span;
  return read;
}

const Expr *Flattener::hoist(const Expr *value, bool isRoot) {
  if (!isRoot)
    if (const Expr *known = hoisted.lookup(value))
      return known;
  // An integer has no gradient, but what a condition compares is the same value as elsewhere.
  bool isCondition = value->type == DType::Bool && value->kind != Expr::Reduce;
  if (!isFloat(value->type) && !isCondition)
    return value;
  const Expr *result =
      builder.withOperands(value, [&](const Expr *operand) { return hoist(operand, false); });
  if (!result)
    return nullptr;
  if (!isRoot && (value->kind == Expr::Reduce || value->kind == Expr::Scan)) {
    result = toTemporary(result);
    if (!result)
      return nullptr;
  }
  if (!isRoot)
    hoisted[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Simpler forms
//===----------------------------------------------------------------------===//

/// An index with one value is that value, but where a scan stands at it.
void Flattener::dropUnitVars(Equation &equation) {
  Replacement fixed;
  DenseSet<unsigned> scanned;
  auto findScanned = [&](auto &&self, const Expr *at) -> void {
    VarSet used;
    for (const IndexExpr &position : at->positions)
      builder.freeVars(position, used);
    scanned.insert(used.begin(), used.end());
    for (const Expr *operand : at->operands)
      self(self, operand);
  };
  findScanned(findScanned, equation.value);
  erase_if(equation.vars, [&](const Var *var) {
    bool isUnit =
        (var->hi - var->lo).asConstant() == 1 && var->lo.asConstant() && !scanned.contains(var->id);
    if (isUnit)
      fixed[var->id] = var->lo;
    return isUnit;
  });
  auto visit = [&](auto &&self, const Expr *at) -> const Expr * {
    Expr made = *at;
    bool changed = false;
    for (const Expr *&operand : made.operands) {
      const Expr *now = self(self, operand);
      changed |= now != operand;
      operand = now;
    }
    Replacement inside;
    if (at->kind == Expr::Reduce && at->reduction != Reduction::ArgMax &&
        at->reduction != Reduction::ArgMin)
      erase_if(made.vars, [&](const Var *var) {
        bool isUnit =
            (var->hi - var->lo).asConstant() == 1 && var->lo.asConstant() && made.vars.size() > 1;
        if (isUnit)
          inside[var->id] = var->lo;
        return isUnit;
      });
    if (!inside.empty()) {
      changed = true;
      made.operands[0] = builder.substitute(made.operands[0], inside);
      if (made.filter)
        made.filter = builder.substitute(made.filter, inside);
    }
    if (!changed)
      return at;
    builder.program.exprs.push_back(std::move(made));
    return &builder.program.exprs.back();
  };
  equation.value = visit(visit, equation.value);
  if (fixed.empty())
    return;
  equation.value = builder.substitute(equation.value, fixed);
  if (equation.guard)
    equation.guard = builder.substitute(equation.guard, fixed);
  for (IndexExpr &subscript : equation.subscripts)
    subscript = builder.substitute(subscript, fixed);
}

/// Parts of a large value that stand in it several times, as temporaries: as text it would be a
/// tree.
void Flattener::shareParts(Equation &equation) {
  constexpr unsigned large = 48, small = 5;
  if (weigh(equation.value) < large)
    return;
  DenseMap<const Expr *, unsigned> uses;
  SmallVector<const Expr *> order; // parts before what they stand in
  auto count = [&](auto &&self, const Expr *at) -> void {
    if (++uses[at] > 1)
      return;
    if (const Expr *x = matchWhole(at))
      self(self, x);
    else
      for (const Expr *operand : at->operands)
        self(self, operand);
    order.push_back(at);
  };
  count(count, equation.value);
  DenseMap<const Expr *, const Expr *> replaced;
  auto rebuild = [&](auto &&self, const Expr *at) -> const Expr * {
    if (const Expr *known = replaced.lookup(at))
      return known;
    return replaced[at] =
               builder.withOperands(at, [&](const Expr *operand) { return self(self, operand); });
  };
  Refusal kept = refusal;
  for (const Expr *part : order) {
    bool isShared = uses.lookup(part) > 1 && isFloat(part->type) && part != equation.value &&
                    part->kind != Expr::Reduce && part->kind != Expr::Scan;
    if (!isShared)
      continue;
    const Expr *now = rebuild(rebuild, part);
    if (weigh(now) < small)
      continue;
    if (const Expr *read = toTemporary(now))
      replaced[part] = read;
  }
  refusal = kept; // what is no box stays inside
  equation.value = rebuild(rebuild, equation.value);
}

} // namespace tegula::grad
