//===- EmitIRAnalysis.cpp - What values depend on ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/lower/EmitIRAnalysis.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace tegula;
using namespace tegula::emit;

void emit::insertAll(AxisSet &into, const AxisSet &from) {
  AxisSet result;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(result));
  into = std::move(result);
}

bool emit::contains(const AxisSet &set, unsigned axis) {
  return std::binary_search(set.begin(), set.end(), axis);
}

AxisSet emit::intersection(const AxisSet &a, const AxisSet &b) {
  AxisSet result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

bool emit::isSubset(const AxisSet &small, const AxisSet &large) {
  return std::includes(large.begin(), large.end(), small.begin(), small.end());
}

void emit::forEachStmt(llvm::ArrayRef<Stmt *> body, llvm::function_ref<void(const Stmt &)> visit) {
  for (const Stmt *stmt : body) {
    visit(*stmt);
    forEachStmt(stmt->body, visit);
  }
}

void Analysis::forEachData(const IndexExpr &expr, llvm::function_ref<void(const Expr *)> visit) {
  for (const IndexVar &var : expr.variables())
    if (!var.isSymbol() && program.vars[var.position()].kind == Var::Data)
      visit(program.vars[var.position()].data);
}

void Analysis::forEachChild(const Expr *expr, llvm::function_ref<void(const Expr *)> visit) {
  for (const Expr *operand : expr->operands)
    visit(operand);
  for (const Expr *child : {expr->fill, expr->guard, expr->filter})
    if (child)
      visit(child);
  if (expr->kind == Expr::Let)
    visit(expr->let->value);
  if (expr->kind == Expr::Index)
    forEachData(expr->index, visit);
  for (const IndexExpr &subscript : expr->subscripts)
    forEachData(subscript, visit);
  for (const auto &[numerator, denominator] : expr->exact) {
    forEachData(numerator, visit);
    forEachData(denominator, visit);
  }
  for (const IndexExpr &position : expr->positions)
    forEachData(position, visit);
  for (const Var *var : expr->vars)
    if (var->kind != Var::Tile) { // the current tile is known where its loop is
      forEachData(var->lo, visit);
      forEachData(var->hi, visit);
    }
}

void Analysis::walk(const Expr *root, llvm::function_ref<bool(const Expr *)> visit) {
  llvm::SmallPtrSet<const Expr *, 16> seen;
  llvm::SmallVector<const Expr *> pending{root};
  while (!pending.empty()) {
    const Expr *expr = pending.pop_back_val();
    if (seen.insert(expr).second && visit(expr))
      forEachChild(expr, [&](const Expr *child) { pending.push_back(child); });
  }
}

bool Analysis::refersTo(const Expr *expr, llvm::function_ref<bool(const Expr *)> what) {
  bool found = false;
  walk(expr, [&](const Expr *node) { return !(found = found || what(node)); });
  return found;
}

AxisSet Analysis::axesOf(const IndexExpr &expr) {
  AxisSet result;
  for (const IndexVar &variable : expr.variables()) {
    if (variable.isSymbol())
      continue;
    const Var &var = program.vars[variable.position()];
    insertAll(result, var.kind == Var::Data ? axesOf(var.data) : AxisSet{var.id});
  }
  return result;
}

AxisSet Analysis::axesOfBounds(const Var &var) {
  AxisSet result = axesOf(var.lo);
  insertAll(result, axesOf(var.hi));
  return result;
}

const AxisSet &Analysis::axesOf(const Expr *expr) {
  if (auto known = axes.find(expr); known != axes.end())
    return known->second;
  AxisSet result;
  for (const Expr *operand : expr->operands)
    insertAll(result, axesOf(operand));
  for (const Expr *child : {expr->fill, expr->guard, expr->filter})
    if (child)
      insertAll(result, axesOf(child));
  for (const IndexExpr &subscript : expr->subscripts)
    insertAll(result, axesOf(subscript));
  for (const auto &[numerator, denominator] : expr->exact) {
    insertAll(result, axesOf(numerator));
    insertAll(result, axesOf(denominator));
  }
  for (const Var *var : expr->vars)
    if (var->kind != Var::Tile)
      insertAll(result, axesOfBounds(*var));
  for (const Var *var : expr->vars)
    llvm::erase(result, var->id);
  for (const IndexExpr &position : expr->positions)
    insertAll(result, axesOf(position));
  if (expr->kind == Expr::Index)
    insertAll(result, axesOf(expr->index));
  if (expr->kind == Expr::Let)
    insertAll(result, axesOf(expr->let->value));
  if (expr->kind == Expr::State)
    insertAll(result, axisSet(expr->state->axes));
  return axes[expr] = std::move(result);
}

AxisSet Analysis::axesOf(const Stmt &equation) {
  AxisSet result = axesOf(equation.value);
  if (equation.guard)
    insertAll(result, axesOf(equation.guard));
  for (const IndexExpr &subscript : equation.subscripts)
    insertAll(result, axesOf(subscript));
  return result;
}

bool Analysis::isOnHost(const Expr *expr) {
  return !refersTo(expr, [](const Expr *node) {
    return node->kind == Expr::Read || node->kind == Expr::Reduce || node->kind == Expr::Scan ||
           node->kind == Expr::Random || node->kind == Expr::State;
  });
}

/// Operations that one read of a stored value is worth saving.
static bool isCostly(const Expr *expr) {
  using tegula::checked::Binary;
  using tegula::checked::Unary;
  switch (expr->kind) {
  case Expr::Reduce:
  case Expr::Scan:
  case Expr::Random:
    return true;
  case Expr::Unary:
    return expr->unary >= Unary::Exp && expr->unary <= Unary::Erf;
  case Expr::Binary:
    return expr->binary == Binary::Div || expr->binary == Binary::FloorDiv ||
           expr->binary == Binary::Mod || expr->binary == Binary::Pow ||
           expr->binary == Binary::Atan2;
  default:
    return false;
  }
}

bool Analysis::isCheap(const Expr *expr, llvm::function_ref<bool(const Let *)> isStored) {
  unsigned operations = 0;
  bool cheap = true;
  walk(expr, [&](const Expr *node) {
    if (node->kind == Expr::Let && isStored(node->let))
      return false;
    if (node->kind == Expr::Unary || node->kind == Expr::Binary || node->kind == Expr::Where ||
        node->kind == Expr::Read || node->kind == Expr::Convert || node->kind == Expr::Quantize)
      ++operations;
    cheap = cheap && !isCostly(node) && operations <= 8;
    return cheap;
  });
  return cheap;
}

bool Analysis::dependsOnState(const Expr *expr) {
  return refersTo(expr, [](const Expr *node) { return node->kind == Expr::State; });
}

bool Analysis::readsTensor(const Expr *expr, const Tensor *tensor) {
  return refersTo(
      expr, [&](const Expr *node) { return node->kind == Expr::Read && node->tensor == tensor; });
}

bool Analysis::readsTensor(const IndexExpr &expr, const Tensor *tensor) {
  bool found = false;
  forEachData(expr, [&](const Expr *data) { found = found || readsTensor(data, tensor); });
  return found;
}
