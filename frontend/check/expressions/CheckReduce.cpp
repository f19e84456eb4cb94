//===- CheckReduce.cpp - Reductions -----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions: what they run over, which points count, and what they give where none does.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckReduce.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

static checked::Reduction reductionOf(llvm::StringRef name) {
  return llvm::StringSwitch<checked::Reduction>(name)
      .Case("sum", checked::Reduction::Sum)
      .Case("prod", checked::Reduction::Prod)
      .Case("max", checked::Reduction::Max)
      .Case("min", checked::Reduction::Min)
      .Case("mean", checked::Reduction::Mean)
      .Case("var", checked::Reduction::Var)
      .Case("any", checked::Reduction::Any)
      .Case("all", checked::Reduction::All)
      .Case("count", checked::Reduction::Count)
      .Case("argmax", checked::Reduction::ArgMax)
      .Case("argmin", checked::Reduction::ArgMin)
      .Default(checked::Reduction::LogSumExp);
}

/// What a reduction gives where no point counts.
static Value overNothing(CheckContext &ctx, checked::Reduction reduction, DType type, Span span) {
  auto number = [&](double value) { return strong(constantNode(ctx, value, type, span)); };
  switch (reduction) {
  case checked::Reduction::Sum:
  case checked::Reduction::Count:
    return number(0);
  case checked::Reduction::Prod:
    return number(1);
  case checked::Reduction::Any:
    return strong(booleanNode(ctx, false, span));
  case checked::Reduction::All:
    return strong(booleanNode(ctx, true, span));
  case checked::Reduction::Mean:
  case checked::Reduction::Var:
    return number(NAN);
  case checked::Reduction::LogSumExp:
    return number(-INFINITY);
  case checked::Reduction::Max:
    if (isFloat(type))
      return number(-INFINITY);
    break;
  case checked::Reduction::Min:
    if (isFloat(type))
      return number(INFINITY);
    break;
  case checked::Reduction::ArgMax:
  case checked::Reduction::ArgMin:
    break;
  }
  if (ctx.isSilent())
    return number(0); // nobody asks for it
  ctx.report(Code::EmptyReduction, span,
             "a reduction over nothing that has no value: its filter is false for every point");
  return {};
}

/// The indices of the dims that a value has, where its reads of tensors with most subscripts agree
/// on them.
static bool indicesOf(const ast::Expr &e, llvm::SmallVectorImpl<llvm::StringRef> &indices) {
  if (e.kind == ast::Expr::Index) {
    llvm::SmallVector<llvm::StringRef> own;
    for (const ast::Subscript &subscript : e.subscripts) {
      if (subscript.kind != ast::Subscript::Single || subscript.expr->kind != ast::Expr::Name)
        return false;
      own.push_back(subscript.expr->name.name);
    }
    if (own.size() > indices.size())
      std::swap(own, indices);
    return llvm::all_of(own,
                        [&](llvm::StringRef one) { return llvm::is_contained(indices, one); }) &&
           (own.size() < indices.size() || llvm::equal(own, indices));
  }
  for (const ast::ExprPtr &operand : e.operands)
    if (operand && !indicesOf(*operand, indices))
      return false;
  for (const ast::Argument &argument : e.arguments)
    if (!indicesOf(*argument.value, indices))
      return false;
  return e.kind != ast::Expr::Tuple && !e.isComprehension;
}

/// A reduction that names no index: PyTorch's form, or a call of two values.
static void reportNoIndices(CheckContext &ctx, const ast::Expr &e) {
  llvm::StringRef name = e.name.name;
  const ast::Expr *argument =
      !e.arguments.empty() && !e.arguments[0].keyword ? e.arguments[0].value.get() : nullptr;
  Entity *entity =
      argument && argument->kind == ast::Expr::Name ? ctx.lookup(argument->name.name) : nullptr;
  if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison) {
    std::string element =
        elementText(entity->tensor->tensor->name, entity->tensor->tensor->dims.size());
    Report record = ctx.report(Code::TensorReduction, e.span,
                               "'" + name + "' reduces elements over indices, not a whole tensor");
    std::string all;
    for (size_t i = 0; i != entity->tensor->tensor->dims.size(); ++i)
      all += (i ? ", " : "") + std::string(1, "ijklmn"[i % 6]);
    std::string dim = all;
    for (const ast::Argument &given : e.arguments)
      if (given.keyword && (given.keyword->name == "dim" || given.keyword->name == "axis") &&
          given.value->kind == ast::Expr::Integer)
        dim = std::string(1, "ijklmn"[uint64_t(given.value->intValue) % 6]);
    std::string rewrite = name.str() + "(" + element + " for " + dim + ")";
    record.note("write " + rewrite).fix("write " + rewrite, {{e.span, rewrite}});
    return;
  }
  size_t values = llvm::count_if(e.arguments, [](const ast::Argument &a) { return !a.keyword; });
  Report record =
      ctx.report(Code::ReductionWithoutFor, e.span,
                 "'" + name + "' needs what it reduces over: " + name + "(x[i, k] for k)");
  // `mean(x[i, j]**2, dim=-1)`: the dims name the indices.
  llvm::SmallVector<llvm::StringRef> indices;
  bool isKnown = argument && indicesOf(*argument, indices);
  for (const ast::Argument &given : e.arguments) {
    if (!given.keyword || (given.keyword->name != "dim" && given.keyword->name != "axis") ||
        !isKnown)
      continue;
    std::string over;
    llvm::SmallVector<const ast::Expr *> dims;
    if (given.value->kind == ast::Expr::Tuple)
      for (const ast::ExprPtr &one : given.value->operands)
        dims.push_back(one.get());
    else
      dims.push_back(given.value.get());
    for (const ast::Expr *one : dims) {
      bool isNegative = one->kind == ast::Expr::Unary && one->unaryOp == ast::UnaryOp::Neg;
      const ast::Expr &number = isNegative ? *one->operands[0] : *one;
      int64_t dim = isNegative ? int64_t(indices.size()) - number.intValue : number.intValue;
      isKnown &= number.kind == ast::Expr::Integer && dim >= 0 && dim < int64_t(indices.size());
      if (isKnown)
        over += (over.empty() ? "" : ", ") + indices[dim].str();
    }
    if (!isKnown)
      continue;
    std::string rewrite = name.str() + "(" + ctx.text(argument->span).str() + " for " + over + ")";
    // PyTorch's var is the unbiased one, and other keywords say more.
    bool isCertain = name != "var" && llvm::all_of(e.arguments, [](const ast::Argument &one) {
                       return !one.keyword ||
                              llvm::StringRef(one.keyword->name).starts_with("keepdim") ||
                              one.keyword->name == "dim" || one.keyword->name == "axis";
                     });
    record.note("write " + rewrite)
        .fix("write " + rewrite, {{e.span, rewrite}},
             isCertain ? Applicability::Safe : Applicability::Maybe);
  }
  if ((name == "max" || name == "min") && values == 2)
    record
        .note("the " + std::string(name == "max" ? "greater" : "lesser") + " of two values is " +
              name.str() + "imum(a, b)")
        .fix("write " + name.str() + "imum", {{e.name.span, name.str() + "imum"}},
             Applicability::Safe);
}

/// What is reduced, in the type in which it is reduced, and the type of the result; null where an
/// error was reported. Extremes of truth values become `any` and `all`.
static const Expr *reducedOperand(CheckContext &ctx, const ast::Expr &e, const Value &value,
                                  llvm::ArrayRef<const Var *> vars, checked::Reduction &reduction,
                                  DType &type) {
  llvm::StringRef name = e.name.name;
  bool isArg = reduction == checked::Reduction::ArgMax || reduction == checked::Reduction::ArgMin;
  const Expr *operand = nullptr;
  switch (reduction) {
  case checked::Reduction::Any:
  case checked::Reduction::All:
  case checked::Reduction::Count:
    operand = asCondition(ctx, value, e.operands[0]->span, ("'" + name + "'").str());
    if (!operand)
      return nullptr;
    type = reduction == checked::Reduction::Count ? DType::I64 : DType::Bool;
    break;
  case checked::Reduction::Mean:
  case checked::Reduction::Var:
  case checked::Reduction::LogSumExp:
    operand = settle(ctx, value);
    if (!isFloat(operand->type))
      operand = widen(ctx, operand, DType::F32);
    type = operand->type;
    break;
  case checked::Reduction::Sum:
  case checked::Reduction::Prod:
    operand = settle(ctx, value);
    if (operand->type == DType::Bool)
      operand = widen(ctx, operand, DType::I64);
    type = operand->type;
    break;
  default:
    operand = settle(ctx, value);
    if (operand->type == DType::Bool && isArg)
      operand = widen(ctx, operand, DType::I32);
    type = isArg ? DType::I64 : operand->type;
    // The greatest of truth values says whether one is true, the least whether all are.
    if (type == DType::Bool)
      reduction =
          reduction == checked::Reduction::Max ? checked::Reduction::Any : checked::Reduction::All;
    if (isArg || !isFloat(type))
      for (const Var *var : vars) {
        if (var->kind == Var::Tile)
          continue; // a tile is never empty
        if (!requireNonEmpty(ctx, var->lo, var->hi, e.span,
                             "'" + name + "' over nothing has no value: '" + var->name +
                                 "' runs from " + show(ctx, var->lo) + " to " + show(ctx, var->hi)))
          return nullptr;
      }
    break;
  }
  return operand;
}

Value tegula::evalReduction(CheckContext &ctx, const ast::Expr &e) {
  llvm::StringRef name = e.name.name;
  if (!e.isComprehension) {
    reportNoIndices(ctx, e);
    return {};
  }
  llvm::SmallVector<llvm::StringRef, 1> options;
  if (name == "var")
    options.push_back("unbiased");
  bool failed = !checkKeywords(ctx, e, options);
  checked::Reduction reduction = reductionOf(name);
  bool isArg = reduction == checked::Reduction::ArgMax || reduction == checked::Reduction::ArgMin;

  Scope inner(Scope::Reduction, ctx.scope);
  Saved savedScope(ctx.scope, &inner);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedPath(ctx.path);
  Saved savedDead(ctx.dead);
  llvm::SmallVector<const Var *> vars;
  llvm::SmallVector<const ast::Expr *> bodies{e.operands[0].get()};
  for (const ast::ForItem &item : e.items)
    bodies.push_back(item.filter.get());
  failed |= !bindItems(ctx, e.items, bodies, inner, vars, (name + "(... for ").str());
  // Without ranges there is nothing to say about bounds.
  Saved savedDry(ctx.dry, ctx.dry + failed);
  if (isArg && vars.size() != 1 && !failed) {
    ctx.report(Code::ReductionIndices, e.span,
               "'" + name + "' takes one index, got " + llvm::Twine(vars.size()));
    return {};
  }
  const Expr *filter = nullptr;
  bool excludesAll = false; // a filter is false at compile time
  unsigned deadAround = ctx.dead;
  const size_t conditionsAround = ctx.path.size();
  for (const ast::ForItem &item : e.items) {
    if (!item.filter)
      continue;
    const Expr *one = asCondition(ctx, eval(ctx, *item.filter), item.filter->span, "'if'");
    if (!one) {
      failed = true;
      continue;
    }
    if (std::optional<bool> known = boolOf(one)) {
      if (!*known) {
        ++ctx.dead;
        excludesAll = true;
      }
      continue;
    }
    ctx.path.push_back({one, true});
    filter =
        filter ? binaryNode(ctx, checked::Binary::And, filter, one, DType::Bool, one->span) : one;
  }
  Value value = eval(ctx, *e.operands[0]);
  if (value.isPoison() || failed)
    return {};

  DType type = DType::F32;
  const Expr *operand = reducedOperand(ctx, e, value, vars, reduction, type);
  if (!operand)
    return {};
  if (excludesAll) {
    ctx.dead = deadAround;
    return overNothing(ctx, reduction, type, e.span);
  }
  Expr *reduce = makeExpr(ctx, Expr::Reduce, type, e.span);
  reduce->reduction = reduction;
  reduce->vars.assign(vars.begin(), vars.end());
  reduce->filter = filter;
  reduce->operands = {operand};
  // An extreme of integers has no value where data leave nothing. A tile is a part: it adds nothing
  // then.
  bool isExtreme = name == "max" || name == "min";
  bool leavesAll = !filter && llvm::none_of(vars, [&](const Var *var) {
    return usesData(ctx, var->hi - var->lo);
  });
  bool hasTile = llvm::any_of(vars, [](const Var *var) { return var->kind == Var::Tile; });
  if (isExtreme && !isFloat(type) && !leavesAll && !hasTile) {
    std::vector<PathCondition> whole = ctx.path;
    ctx.path.erase(ctx.path.begin() + conditionsAround, ctx.path.end()); // without the own filters
    reduce->guard = pathGuard(ctx);
    ctx.path = std::move(whole);
    reduce->dataDependent = true;
  }
  if (name == "var")
    reduce->unbiased = boolOption(ctx, e, "unbiased", false);
  return strong(finishExpr(ctx, reduce));
}
