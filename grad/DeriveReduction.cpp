//===- DeriveReduction.cpp - Adjoints of reductions and scans -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/DeriveImpl.h"
#include "grad/Scores.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

/// How many points a reduction has: a size, or counted where data or other indices decide.
const Expr *Deriver::pointsOf(const Expr *reduction) {
  IndexExpr points(1);
  bool isSize = !reduction->filter;
  for (const Var *var : reduction->vars) {
    points = points * (var->hi - var->lo);
    // A run of dims that `...` stands for has no size of its own.
    isSize &= var->lo.isSize() && var->hi.isSize() && !StringRef(var->name).starts_with("...");
  }
  if (isSize)
    return b.index(points);
  Expr *always = b.make(Expr::Constant, DType::Bool);
  always->intValue = 1;
  Expr *count = b.make(Expr::Reduce, DType::I64);
  count->reduction = Reduction::Count;
  count->vars = reduction->vars;
  count->filter = reduction->filter;
  count->operands = {always};
  const Expr *result = store(count, "points");
  return result ? result : count;
}

bool Deriver::reverseReduction(const Equation &equation, const Expr *g, const Expr *condition) {
  const Expr *reduction = equation.value, *value = reduction->operands[0];
  SmallVector<const Var *> domain(equation.vars.begin(), equation.vars.end());
  unsigned outer = static_cast<unsigned>(domain.size());
  append_range(domain, reduction->vars);
  const Expr *inside = b.both(condition, reduction->filter);
  auto flow = [&](const Expr *adjoint, const Expr *when) {
    return descend(value, adjoint, when, domain, outer);
  };
  const Expr *result = b.read(equation.target, equation.subscripts);
  switch (reduction->reduction) {
  case Reduction::Sum:
    return flow(g, inside);
  case Reduction::Mean:
    return flow(b.div(g, pointsOf(reduction)), inside);
  case Reduction::Max:
  case Reduction::Min: {
    // All of it goes to the first place of the extreme, found by one reduction: values computed
    // twice could differ in their last bit.
    IndexExpr flat(0), points(1);
    for (const Var *var : reduction->vars) {
      if (!var->lo.isSize() || !var->hi.isSize())
        return refuse(reduction->span, "an extreme over a range that depends on another index");
      flat = flat * (var->hi - var->lo) + IndexExpr::dim(var->id) - var->lo;
      points = points * (var->hi - var->lo);
    }
    bool isMax = reduction->reduction == Reduction::Max;
    const Expr *places = nullptr;
    IndexExpr own = flat;
    if (reduction->vars.size() == 1) {
      const Var *var = reduction->vars[0];
      places = b.reduce(isMax ? Reduction::ArgMax : Reduction::ArgMin, reduction->vars, value,
                        reduction->filter);
      own = IndexExpr::dim(var->id);
    } else {
      const Var *all = b.newAxis("k", 0, points);
      Replacement digits;
      IndexExpr rest = IndexExpr::dim(all->id);
      for (const Var *var : llvm::reverse(reduction->vars)) {
        IndexExpr extent = var->hi - var->lo;
        bool isFirst = var == reduction->vars.front();
        digits[var->id] = (isFirst ? rest : IndexExpr::mod(rest, extent)) + var->lo;
        rest = IndexExpr::floorDiv(rest, extent);
      }
      places = b.reduce(isMax ? Reduction::ArgMax : Reduction::ArgMin, {all},
                        b.substitute(value, digits),
                        reduction->filter ? b.substitute(reduction->filter, digits) : nullptr);
    }
    const_cast<Expr *>(places)->type = DType::I64;
    const Expr *place = store(places, isMax ? "argmax_" + equation.target->name
                                            : "argmin_" + equation.target->name);
    if (!place)
      return refuse(reduction->span, "an extreme for indices whose ranges depend on others");
    return flow(g, b.both(inside, b.compare(Binary::EQ, b.index(own), place)));
  }
  case Reduction::LogSumExp:
    return flow(b.mul(g, b.unary(Unary::Exp, b.sub(valueOf(value), result))), inside);
  case Reduction::Prod: {
    // Of a product with one factor 0 that factor alone has a derivative, of one with two none.
    const Expr *isZero = b.compare(Binary::EQ, value, b.number(0));
    const Expr *zeros =
        store(b.reduce(Reduction::Sum, reduction->vars, b.where(isZero, b.number(1), b.number(0)),
                       reduction->filter),
              "zeros");
    const Expr *others = store(b.reduce(Reduction::Prod, reduction->vars,
                                        b.where(isZero, b.number(1), value), reduction->filter),
                               "nonzero_product");
    if (!zeros || !others)
      return refuse(reduction->span, "a product for indices whose ranges depend on others");
    const Expr *whole = b.mul(g, others);
    const Expr *adjoint = b.where(isZero, whole, b.div(whole, value));
    const Expr *counts = b.compare(Binary::EQ, zeros, b.where(isZero, b.number(1), b.number(0)));
    return flow(adjoint, b.both(inside, counts));
  }
  case Reduction::Var: {
    const Expr *points = pointsOf(reduction);
    const Expr *mean =
        store(b.reduce(Reduction::Mean, reduction->vars, value, reduction->filter), "mean");
    if (!mean)
      return refuse(reduction->span, "a variance for indices whose ranges depend on others");
    const Expr *divisor = reduction->unbiased ? b.sub(points, b.number(1)) : points;
    const Expr *factor = b.div(b.mul(b.number(2), g), divisor);
    return flow(b.mul(factor, b.sub(valueOf(value), mean)), inside);
  }
  default:
    return refuse(reduction->span, "this reduction has no derivative");
  }
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// The scan with other settings, of a value that varies along the equation's own axes.
static const Expr *scanOf(Builder &b, Scan scan, const Var *own, ArrayRef<const Expr *> operands,
                          bool reverse, bool exclusive = false) {
  Expr *result = b.make(Expr::Scan, operands[0]->type);
  result->scan = scan;
  const Var *inner = b.newAxis(own->name, own->lo, own->hi);
  result->vars = {inner};
  result->positions = {IndexExpr::dim(own->id)};
  Replacement moved;
  moved[own->id] = IndexExpr::dim(inner->id);
  for (const Expr *operand : operands)
    result->operands.push_back(b.substitute(operand, moved));
  result->reverse = reverse;
  result->exclusive = exclusive;
  return result;
}

/// The scan's operand at the place that is stored for each element gets the element's adjoint.
bool Deriver::flowToPlaces(const Equation &equation, const Expr *place, const Expr *g) {
  if (!place)
    return refuse(equation.span, "places for indices whose ranges depend on others");
  const Expr *scan = equation.value;
  Var at;
  at.kind = Var::Data;
  at.id = static_cast<unsigned>(b.program.vars.size());
  at.name = scan->vars[0]->name;
  at.lo = scan->vars[0]->lo;
  at.hi = scan->vars[0]->hi;
  at.data = place;
  b.program.vars.push_back(at);
  Replacement moved;
  moved[scan->vars[0]->id] = IndexExpr::dim(at.id);
  return descend(b.substitute(scan->operands[0], moved), g, equation.guard, equation.vars,
                 static_cast<unsigned>(equation.vars.size()));
}

/// sum(p*dL/dp) along a softmax's axis by the result of the only equation that p is used in. Null
/// where there is no such equation.
const Expr *Deriver::dotByResult(const Equation &softmax) {
  std::optional<LinearUse> use = findLinearUse(b, equations, softmax);
  Adjoint *adjoint = use ? finish(use->equation->target) : nullptr;
  if (!adjoint)
    return nullptr;
  Replacement at = use->rows;
  SmallVector<const Var *> rest;
  for (const Var *var : use->rest) {
    rest.push_back(b.newAxis(var->name, var->lo, var->hi));
    at[var->id] = IndexExpr::dim(rest.back()->id);
  }
  SmallVector<IndexExpr> subscripts;
  for (const IndexExpr &subscript : use->equation->subscripts)
    subscripts.push_back(b.substitute(subscript, at));
  auto groups = use->equation->groups;
  for (auto &[dim, first] : groups)
    first = b.substitute(first, at);
  const Expr *gradient = adjointAt(*adjoint, subscripts);
  const Expr *result = b.read(use->equation->target, subscripts);
  for (const Expr *one : {gradient, result})
    if (one->kind == Expr::Read)
      const_cast<Expr *>(one)->groups = groups;
  return store(b.reduce(Reduction::Sum, rest, b.mul(gradient, result)), "dot");
}

bool Deriver::reverseScan(const Equation &equation, const Adjoint &adjoint) {
  const Expr *scan = equation.value, *value = scan->operands[0];
  // The positions are the equation's own axes; values are rewritten over these.
  Replacement toOwn, toScanned;
  SmallVector<const Var *> own;
  for (auto [var, position] : zip_equal(scan->vars, scan->positions)) {
    std::optional<IndexVar> at = position.asVariable();
    if (!at || at->isSymbol() || b.var(at->position()).kind != Var::Axis)
      return refuse(scan->span, "a scan whose element is not taken at an index of the equation");
    own.push_back(&b.var(at->position()));
    toOwn[var->id] = position;
    toScanned[own.back()->id] = IndexExpr::dim(var->id);
  }
  for (const Var *var : equation.vars)
    if (!var->lo.isSize() || !var->hi.isSize())
      return refuse(scan->span, "a scan along a range that depends on another index");
  const Expr *g = adjointAt(adjoint, equation.subscripts);
  const Expr *result = b.read(equation.target, equation.subscripts);
  unsigned outer = static_cast<unsigned>(equation.vars.size());
  auto flow = [&](const Expr *into, const Expr *amount, const Expr *when = nullptr) {
    return descend(b.substitute(into, toOwn), amount, b.both(equation.guard, when), equation.vars,
                   outer);
  };
  /// Sums over the scanned indices of a value over the equation's own.
  auto total = [&](const Expr *of, StringRef name) {
    return store(b.reduce(Reduction::Sum, scan->vars, b.substitute(of, toScanned)), name);
  };
  /// The value at the next step, in the order of the scan; `none` behind the last.
  const Var *axis = own[0];
  bool isDown = scan->reverse;
  IndexExpr next = IndexExpr::dim(axis->id) + (isDown ? -1 : 1);
  const Expr *isLast = b.compare(Binary::EQ, b.index(IndexExpr::dim(axis->id)),
                                 b.index(isDown ? axis->lo : axis->hi - 1));
  auto following = [&](const Expr *of) {
    Replacement moved;
    moved[axis->id] = next;
    return b.where(isLast, b.number(0), b.substitute(of, moved));
  };
  switch (scan->scan) {
  case Scan::Softmax: {
    const Expr *dot = isSoftmaxOfProducts(b, equations, equation) ? dotByResult(equation) : nullptr;
    if (!dot)
      dot = total(b.mul(result, g), "dot");
    return flow(value, b.mul(result, b.sub(g, dot)));
  }
  case Scan::LogSoftmax: {
    const Expr *sum = total(g, "total");
    return flow(value, b.sub(g, b.mul(b.unary(Unary::Exp, result), sum)));
  }
  case Scan::CumSum: {
    const Expr *back = store(scanOf(b, Scan::CumSum, axis, {g}, !isDown, scan->exclusive), "rest");
    return flow(value, back);
  }
  case Scan::Recurrence: {
    const Expr *a = b.substitute(scan->operands[0], toOwn);
    const Expr *stored = store(a, "decay");
    const Expr *back =
        store(scanOf(b, Scan::Recurrence, axis, {following(stored), g}, !isDown), "grad_state");
    Replacement moved;
    moved[axis->id] = IndexExpr::dim(axis->id) - (isDown ? -1 : 1);
    const Expr *isFirst = b.compare(Binary::EQ, b.index(IndexExpr::dim(axis->id)),
                                    b.index(isDown ? axis->hi - 1 : axis->lo));
    const Expr *init = scan->operands.size() > 2 ? scan->operands[2] : b.number(0);
    const Expr *before = b.where(isFirst, init, b.substitute(result, moved));
    if (isActive(scan->operands[0]) && !flow(scan->operands[0], b.mul(back, before)))
      return false;
    if (isActive(scan->operands[1]) && !flow(scan->operands[1], back))
      return false;
    if (scan->operands.size() > 2 && isActive(init))
      return flow(init, b.mul(back, stored), isFirst);
    return true;
  }
  case Scan::CumProd: {
    if (scan->exclusive)
      return refuse(scan->span, "'cumprod' with exclusive=true has no rule");
    const Expr *factor = store(b.substitute(value, toOwn), "factor");
    const Expr *before = store(scanOf(b, Scan::CumProd, axis, {factor}, isDown, true), "before");
    const Expr *after =
        store(scanOf(b, Scan::Recurrence, axis, {following(factor), g}, !isDown), "after");
    return flow(value, b.mul(before, after));
  }
  case Scan::Sort:
  case Scan::TopKValue: {
    Expr *order = b.copy(scan);
    order->type = DType::I64;
    order->scan = scan->scan == Scan::Sort ? Scan::ArgSort : Scan::TopKIndex;
    return flowToPlaces(equation, store(order, "place"), g);
  }
  case Scan::CumMax:
  case Scan::CumMin: {
    if (scan->exclusive)
      return refuse(scan->span, "a cumulative extreme with exclusive=true has no rule");
    IndexExpr here = IndexExpr::dim(axis->id);
    const Var *before =
        b.newAxis(axis->name, isDown ? here : axis->lo, isDown ? axis->hi : here + 1);
    Replacement moved;
    moved[scan->vars[0]->id] = IndexExpr::dim(before->id);
    Expr *place = const_cast<Expr *>(
        b.reduce(scan->scan == Scan::CumMax ? Reduction::ArgMax : Reduction::ArgMin, {before},
                 b.substitute(value, moved)));
    place->type = DType::I64;
    return flowToPlaces(equation, store(place, "place"), g);
  }
  default:
    return refuse(scan->span, "this scan has no rule");
  }
}

} // namespace tegula::grad
