//===- DeriveValue.cpp - Adjoints inside of a value of elements -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/DeriveImpl.h"
#include "grad/Match.h"
#include "grad/Rules.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

/// Values above these weights get a temporary where they are used again.
constexpr unsigned heavyValue = 6, heavyAdjoint = 8;

const Expr *Deriver::store(const Expr *value, StringRef name, const Expr *condition) {
  VarSet used;
  b.freeVars(value, used);
  if (condition)
    b.freeVars(condition, used);
  SmallVector<unsigned> order(used.begin(), used.end());
  llvm::sort(order);
  Equation made;
  std::vector<IndexExpr> dims;
  for (unsigned id : order) {
    const Var &var = b.var(id);
    if (var.kind == Var::Loop)
      continue; // one value in each step
    if (!var.lo.isSize() || !var.hi.isSize())
      return nullptr;
    made.vars.push_back(&var);
    made.subscripts.push_back(IndexExpr::dim(id) - var.lo);
    dims.push_back(var.hi - var.lo);
  }
  made.target = b.newTensor(name, value->type, std::move(dims));
  made.value = b.select(condition, value);
  const Expr *result = b.read(made.target, made.subscripts);
  backward.push_back(std::move(made));
  return result;
}

const Expr *Deriver::valueOf(const Expr *node) {
  if (weigh(node) <= heavyValue)
    return node;
  if (const Expr *known = stored.lookup(node))
    return known;
  const Expr *result = store(node, "value");
  return stored[node] = result ? result : node;
}

bool Deriver::descend(const Expr *written, const Expr *g, const Expr *condition,
                      ArrayRef<const Var *> domain, unsigned outer) {
  const Expr *value = joinSoftCorners(b, written);
  if (const Expr *known = stored.lookup(written))
    stored[value] = known;
  // Active nodes, users before operands.
  SmallVector<const Expr *> order;
  DenseSet<const Expr *> seen;
  auto visit = [&](auto &&self, const Expr *node) -> void {
    if (!isActive(node) || !seen.insert(node).second)
      return;
    if (node->kind != Expr::Read)
      for (const Expr *operand : node->operands)
        self(self, operand);
    order.push_back(node);
  };
  visit(visit, value);
  std::reverse(order.begin(), order.end());

  DenseMap<const Expr *, SmallVector<Flow, 2>> arrived;
  arrived[value].push_back({value, g, condition});
  DenseSet<const Expr *> pending(order.begin(), order.end());
  for (const Expr *node : order) {
    pending.erase(node);
    SmallVector<Flow, 2> flows = arrived.lookup(node);
    if (flows.empty())
      continue;
    // What arrives on several ways adds up, each where its condition holds.
    const Expr *sum = flows[0].adjoint, *when = flows[0].condition;
    if (flows.size() > 1) {
      bool isShared = all_of(flows, [&](const Flow &one) { return one.condition == when; });
      sum = b.number(0);
      for (const Flow &one : flows) {
        sum = b.add(sum, isShared ? one.adjoint : b.select(one.condition, one.adjoint));
        when = isShared ? when : b.either(when, one.condition);
      }
    }
    if (node->kind == Expr::Read) {
      if (!contribute(node, sum, when, domain, outer))
        return false;
      continue;
    }
    unsigned users = count_if(node->operands, [&](const Expr *one) { return isActive(one); });
    if (users > 1 && weigh(sum) > heavyAdjoint)
      if (const Expr *part = store(sum, "grad_part", when))
        sum = part;
    SmallVector<Flow> onwards;
    if (!applyRule(
            b, node, sum, when, [&](const Expr *one) { return isActive(one); },
            [&](const Expr *one) { return valueOf(one); }, onwards, refusal))
      return false;
    for (const Flow &one : onwards) {
      if (!pending.contains(one.to))
        return refuse(node->span, "its gradient would be lost at a value that is not read there");
      arrived[one.to].push_back(one);
    }
  }
  return true;
}

} // namespace tegula::grad
