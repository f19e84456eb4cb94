//===- CheckObserver.cpp - Equations that write what is looked at -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a statement looks at is written, at each of its points, to a tensor with an axis for each
// loop around and each index that the value varies along.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/observations/CheckObserver.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckRange.h"

using namespace tegula;
using namespace tegula::checked;

std::vector<uint32_t> tegula::callsAround(const CheckContext &ctx) {
  std::vector<uint32_t> calls;
  for (const Expansion &expansion : ctx.expansions)
    if (expansion.isKernel)
      calls.push_back(expansion.call.begin);
  return calls;
}

Observer::Observer(CheckContext &ctx, Span span, llvm::StringRef word)
    : ctx(ctx), span(span), word(word), out(&ctx.program->stmts.emplace_back()) {
  out->kind = Stmt::Observe;
  out->span = span;
}

/// The least value of a variable, or the one behind its largest, in sizes alone.
std::optional<IndexExpr> Observer::limitOf(const Var &var, bool isHigh) {
  const IndexExpr &own = isHigh ? var.hi : var.lo;
  if (own.isSize())
    return own;
  IndexExpr self = IndexExpr::dim(var.id);
  tegula::Range range = ctx.prover->range(self, domainOf(ctx, {self}, false, false));
  if (isHigh && range.max && range.max->isSize())
    return *range.max + 1;
  if (!isHigh && range.min && range.min->isSize())
    return range.min;
  if (!word.empty())
    ctx.report(Code::RangeUnknown, span,
               "data decide how far '" + var.name + "' runs, so what '" + word +
                   "' looks at has no bounds")
        .note("let it stand outside of the loop over '" + var.name + "'");
  return std::nullopt;
}

static IndexExpr extentOf(const IndexExpr &lo, const IndexExpr &hi) {
  return lo == IndexExpr(0) ? hi : IndexExpr::max(hi - lo, IndexExpr(0));
}

/// The axes of the tensors: those of a block count where the values vary along them, loops always.
std::vector<unsigned> Observer::axesOf(llvm::ArrayRef<Seen> seen, const Expr *happened,
                                       llvm::ArrayRef<const Var *> own, const Expr *guard) {
  std::vector<unsigned> axes;
  for (const Seen &one : seen)
    for (const Expr *part : {one.value, one.isRead})
      if (part)
        addAxes(axes, part);
  addAxes(axes, happened);
  if (guard)
    addAxes(axes, guard);
  for (const Var *var : ctx.activeVars)
    if (var->kind == Var::Loop || var->kind == Var::Tile || llvm::is_contained(own, var))
      axes.push_back(var->id);
  for (size_t i = 0; i != axes.size(); ++i) {
    const Var &var = ctx.program->vars[axes[i]];
    std::vector<unsigned> ofBounds;
    addAxes(ctx, ofBounds, var.lo);
    addAxes(ctx, ofBounds, var.hi);
    for (unsigned id : ofBounds)
      if (!llvm::is_contained(axes, id))
        axes.push_back(id);
  }
  return axes;
}

/// A tensor that holds the value at each point.
const Tensor *Observer::write(const Expr *value, llvm::ArrayRef<const Var *> own,
                              llvm::ArrayRef<IndexExpr> subscripts, const Expr *guard,
                              std::vector<IndexExpr> dims) {
  std::string name = "observed." + std::to_string(ctx.program->tensors.size());
  Tensor *tensor = newTensor(ctx, Tensor::Inout, name, value->type, std::move(dims), span)->tensor;
  Stmt &equation = ctx.program->stmts.emplace_back();
  equation.span = span;
  equation.tensor = tensor;
  equation.vars = own;
  equation.subscripts = subscripts;
  equation.guard = guard;
  equation.value = value;
  out->observing.push_back(&equation);
  return tensor;
}

bool Observer::observe(Observation::Kind kind, llvm::ArrayRef<Seen> seen, const Expr *happened,
                       llvm::ArrayRef<const Var *> own, const Expr *guard, std::string message) {
  if (ctx.dry)
    return true;
  Observation observation;
  observation.kind = kind;
  observation.message = std::move(message);
  return observeAlong(std::move(observation), seen, happened, own, guard,
                      axesOf(seen, happened, own, guard));
}

bool Observer::observeReach() {
  const Expr *always = booleanNode(ctx, true, span);
  std::vector<unsigned> axes = axesOf({}, always, {}, nullptr);
  for (const Var *var : ctx.block.vars)
    if (ctx.block.isActive)
      axes.push_back(var->id);
  Observation observation;
  observation.kind = Observation::Reach;
  return observeAlong(std::move(observation), {}, always, {}, nullptr, std::move(axes));
}

bool Observer::observePoints(llvm::ArrayRef<const Var *> own, const Expr *guard) {
  const Expr *always = booleanNode(ctx, true, span);
  return observe(Observation::Points, {}, always, own, guard);
}

bool Observer::observeAlong(Observation observation, llvm::ArrayRef<Seen> seen,
                            const Expr *happened, llvm::ArrayRef<const Var *> own,
                            const Expr *guard, std::vector<unsigned> axes) {
  observation.span = span;
  observation.calls = callsAround(ctx);
  std::vector<IndexExpr> subscripts, dims;
  for (const Var *var : ctx.activeVars) {
    if (!llvm::is_contained(axes, var->id))
      continue;
    std::optional<IndexExpr> lo = limitOf(*var, false), hi = lo ? limitOf(*var, true) : lo;
    if (!hi)
      return false;
    observation.isInTiles |= var->kind == Var::Tile;
    subscripts.push_back(IndexExpr::dim(var->id) - *lo);
    dims.push_back(extentOf(*lo, *hi));
    observation.axes.push_back({var->name, *lo, dims.back()});
  }
  observation.happened = write(happened, own, subscripts, guard, dims);
  for (const Seen &one : seen)
    observation.values.push_back(
        {one.text, one.value ? write(one.value, own, subscripts, guard, dims) : nullptr,
         one.isRead ? write(one.isRead, own, subscripts, guard, dims) : nullptr});
  out->observations.push_back(&ctx.program->observations.emplace_back(std::move(observation)));
  return true;
}

void tegula::watch(CheckContext &ctx, Span span, llvm::StringRef text, const Expr *value,
                   llvm::ArrayRef<const Var *> own, const Expr *guard) {
  InstanceOptions::Watch wanted = ctx.options.watch;
  if (wanted == InstanceOptions::Watch::Nothing || ctx.dry || ctx.inLibrary() ||
      !isFloat(value->type))
    return;
  const Expr *bad = unaryNode(ctx, Unary::IsNan, value, DType::Bool, span);
  if (wanted == InstanceOptions::Watch::NonFinite)
    bad = binaryNode(ctx, Binary::Or, bad, unaryNode(ctx, Unary::IsInf, value, DType::Bool, span),
                     DType::Bool, span);
  Observer observer(ctx, span, "");
  if (observer.observe(Observation::Watch, Seen{text.str(), value}, bad, own, guard))
    observer.append();
}

void tegula::markReached(CheckContext &ctx, const ast::Stmt &stmt) {
  switch (stmt.kind) {
  case ast::Stmt::Precision:
  case ast::Stmt::Deterministic:
  case ast::Stmt::Distinct:
  case ast::Stmt::Invariant:
  case ast::Stmt::Schedule:
  case ast::Stmt::Observe:
    return; // nothing runs there
  case ast::Stmt::Assign:
  case ast::Stmt::State:
  case ast::Stmt::Call:
  case ast::Stmt::Parallel:
  case ast::Stmt::ForTiles:
  case ast::Stmt::For:
    break;
  }
  if (!ctx.options.trace || ctx.dry || ctx.inLibrary())
    return;
  Observer observer(ctx, stmt.span, "");
  if (observer.observeReach())
    observer.append();
}

void tegula::markPoints(CheckContext &ctx, Span span, llvm::ArrayRef<const Var *> own,
                        const Expr *guard) {
  if (!ctx.options.trace || ctx.dry || ctx.inLibrary() || own.empty())
    return;
  Observer observer(ctx, span, "");
  if (observer.observePoints(own, guard))
    observer.append();
}

void tegula::watchResult(CheckContext &ctx, Span span, const Tensor &result) {
  Trimmed trimmedVars(ctx.activeVars);
  std::vector<const Var *> own;
  Expr *read = makeExpr(ctx, Expr::Read, computeType(result.type), span);
  read->tensor = &result;
  for (const IndexExpr &dim : result.dims) {
    own.push_back(newVar(ctx, Var::Axis, "", IndexExpr(0), dim, span));
    ctx.activeVars.push_back(own.back());
    read->subscripts.push_back(IndexExpr::dim(own.back()->id));
  }
  watch(ctx, span, ctx.shortText(span), finishExpr(ctx, read), own);
}
