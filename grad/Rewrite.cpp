//===- Rewrite.cpp - Values with other parts --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nodes never change: a rewritten value shares the nodes that stay, and so does an index that reads
// data, whose variable is a new one where the data are.
//
//===----------------------------------------------------------------------===//
#include "grad/Builder.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

IndexExpr Builder::mapIndex(const IndexExpr &index, const IndexMap &map) {
  return index.substitute([&](const IndexVar &at) -> std::optional<IndexExpr> {
    if (at.isSymbol())
      return std::nullopt;
    if (std::optional<IndexExpr> other = map.variable(at.position()))
      return other;
    if (program.vars[at.position()].kind != Var::Data)
      return std::nullopt;
    const Expr *old = program.vars[at.position()].data;
    const Expr *data = map.data(old);
    if (data == old)
      return std::nullopt;
    Var fresh = program.vars[at.position()];
    fresh.id = static_cast<unsigned>(program.vars.size());
    fresh.data = data;
    fresh.lo = map.bound(fresh.lo);
    fresh.hi = map.bound(fresh.hi);
    program.vars.push_back(fresh);
    return IndexExpr::dim(fresh.id);
  });
}

bool Builder::mapParts(Expr &made, function_ref<const Expr *(const Expr *)> part,
                       function_ref<IndexExpr(const IndexExpr &)> index) {
  bool changed = false;
  auto update = [&](auto &one, auto now) {
    changed |= one != now;
    one = now;
  };
  for (const Expr *&operand : made.operands)
    update(operand, part(operand));
  for (const Expr **one : {&made.fill, &made.guard, &made.filter})
    if (*one)
      update(*one, part(*one));
  update(made.index, index(made.index));
  for (auto &[dim, first] : made.groups)
    update(first, index(first));
  for (IndexExpr &subscript : made.subscripts)
    update(subscript, index(subscript));
  for (auto &[numerator, denominator] : made.exact) {
    update(numerator, index(numerator));
    update(denominator, index(denominator));
  }
  return changed;
}

const Expr *Builder::withOperands(const Expr *value,
                                  function_ref<const Expr *(const Expr *)> operand) {
  Expr made = *value;
  bool changed = false;
  for (const Expr *&one : made.operands) {
    const Expr *now = operand(one);
    if (!now)
      return nullptr;
    changed |= now != one;
    one = now;
  }
  if (!changed)
    return value;
  program.exprs.push_back(std::move(made));
  return &program.exprs.back();
}

IndexExpr Builder::substitute(const IndexExpr &index, const Replacement &replacement) {
  auto variable = [&](unsigned id) -> std::optional<IndexExpr> {
    auto found = replacement.find(id);
    return found == replacement.end() ? std::nullopt : std::optional(found->second);
  };
  auto data = [&](const Expr *value) { return substitute(value, replacement); };
  auto bound = [&](const IndexExpr &one) { return substitute(one, replacement); };
  return mapIndex(index, {variable, data, bound});
}

const Expr *Builder::substitute(const Expr *value, const Replacement &replacement) {
  DenseMap<const Expr *, const Expr *> done;
  auto visit = [&](auto &&self, const Expr *at) -> const Expr * {
    if (const Expr *known = done.lookup(at))
      return known;
    VarSet used;
    freeVars(at, used);
    if (none_of(used, [&](unsigned id) { return replacement.contains(id); }))
      return done[at] = at;
    // Bound vars whose ranges change become new ones.
    Replacement inner = replacement;
    Expr made = *at;
    bool hasFresh = false;
    for (const Var *&bound : made.vars) {
      IndexExpr lo = substitute(bound->lo, inner), hi = substitute(bound->hi, inner);
      if (lo == bound->lo && hi == bound->hi)
        continue;
      const Var *fresh = newAxis(bound->name, lo, hi);
      inner[bound->id] = IndexExpr::dim(fresh->id);
      bound = fresh;
      hasFresh = true;
    }
    mapParts(
        made,
        [&](const Expr *part) { return hasFresh ? substitute(part, inner) : self(self, part); },
        [&](const IndexExpr &index) { return substitute(index, inner); });
    for (IndexExpr &position : made.positions)
      position = substitute(position, replacement);
    program.exprs.push_back(std::move(made));
    return done[at] = &program.exprs.back();
  };
  return value ? visit(visit, value) : value;
}

IndexExpr Builder::replaceReads(const IndexExpr &index,
                                function_ref<const Expr *(const Expr *)> replace) {
  return mapIndex(index, {[](unsigned) { return std::nullopt; },
                          [&](const Expr *value) { return replaceReads(value, replace); },
                          [](const IndexExpr &one) { return one; }});
}

const Expr *Builder::replaceReads(const Expr *value,
                                  function_ref<const Expr *(const Expr *)> replace) {
  DenseMap<const Expr *, const Expr *> done;
  auto visit = [&](auto &&self, const Expr *at) -> const Expr * {
    if (const Expr *known = done.lookup(at))
      return known;
    if (at->kind == Expr::Read)
      if (const Expr *other = replace(at))
        return done[at] = other;
    Expr made = *at;
    bool changed = mapParts(
        made, [&](const Expr *part) { return self(self, part); },
        [&](const IndexExpr &index) { return replaceReads(index, replace); });
    Replacement renamed;
    for (const Var *&bound : made.vars) {
      IndexExpr lo = replaceReads(bound->lo, replace), hi = replaceReads(bound->hi, replace);
      if (lo == bound->lo && hi == bound->hi)
        continue;
      const Var *fresh = newAxis(bound->name, lo, hi);
      renamed[bound->id] = IndexExpr::dim(fresh->id);
      bound = fresh;
      changed = true;
    }
    if (!changed)
      return done[at] = at;
    if (!renamed.empty()) {
      for (const Expr *&operand : made.operands)
        operand = substitute(operand, renamed);
      made.filter = substitute(made.filter, renamed);
    }
    program.exprs.push_back(std::move(made));
    return done[at] = &program.exprs.back();
  };
  return value ? visit(visit, value) : value;
}

void Builder::replaceReads(Equation &equation, function_ref<const Expr *(const Expr *)> replace) {
  if (equation.loop) {
    for (Equation &one : equation.loop->body)
      replaceReads(one, replace);
    return;
  }
  equation.value = replaceReads(equation.value, replace);
  equation.guard = replaceReads(equation.guard, replace);
  for (IndexExpr &subscript : equation.subscripts)
    subscript = replaceReads(subscript, replace);
}

void Builder::renameTensor(std::vector<Equation> &equations, const Tensor *from, const Tensor *to) {
  auto replace = [&](const Expr *read) -> const Expr * {
    if (read->tensor != from)
      return nullptr;
    Expr *made = copy(read);
    made->tensor = to;
    return made;
  };
  for (Equation &one : equations) {
    if (!one.loop) {
      if (one.target == from)
        one.target = to;
      replaceReads(one, replace);
      continue;
    }
    renameTensor(one.loop->body, from, to);
    for (Carried &state : one.loop->states)
      for (const Tensor **part : {&state.before, &state.last})
        if (*part == from)
          *part = to;
  }
}

} // namespace tegula::grad
