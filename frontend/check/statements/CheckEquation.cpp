//===- CheckEquation.cpp - Equations ----------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `t[s1, ..., sn] = e`: the left side's indices get their ranges, the right side its value in a
// form that can be stored, and what the equation defines is added to what others defined
// [4.1 - 4.7].
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckPieces.h"
#include "frontend/check/CheckScatter.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"
#include "frontend/check/observations/CheckObserver.h"

using namespace tegula;
using namespace tegula::checked;

static void claimTensor(CheckContext &ctx, const LeftSide &left, Scope &outside);

const checked::Expr *tegula::storable(CheckContext &ctx, const Value &value, DType type,
                                      const llvm::Twine &what, Span span) {
  if (value.isPoison())
    return nullptr;
  DType own = value.expr->type, compute = computeType(type);
  if (isFloat(type)) {
    if (own == DType::Bool || isInteger(own) || value.weak)
      return coerce(ctx, value, compute);
    return value.expr;
  }
  if (isFloat(own)) {
    Report record =
        ctx.report(type == DType::Bool ? Code::NotABool : Code::FloatToInteger, span,
                   what + " is " + toString(type) + ", got " + toString(typeAlone(value)));
    if (type == DType::Bool) {
      record.note("a comparison gives a bool: v > 0");
    } else {
      record.note(toString(type).str() + "(v) truncates, quantize(v, " + toString(type).str() +
                  ") rounds to the nearest");
      // What gives several results is no value that can be converted.
      bool isValue = !ctx.currentStmt || ctx.currentStmt->targets.size() < 2;
      if (ctx.expansions.empty() && span.isValid() && isValue)
        record.fix("convert it", {{span, toString(type).str() + "(" + ctx.text(span).str() + ")"}});
    }
    return nullptr;
  }
  if (type == DType::Bool) {
    if (own == DType::Bool)
      return value.expr;
    ctx.report(Code::NotABool, span, what + " is bool, got " + toString(own))
        .note("a comparison gives a bool: v != 0");
    return nullptr;
  }
  if (own == DType::Bool)
    return widen(ctx, value.expr, compute);
  if (value.weak && own != compute) {
    std::optional<double> known = constantOf(value.expr);
    if (own == DType::I64 && isInteger(compute) &&
        (!known || value.expr->intValue < minValue(compute) ||
         (compute != DType::U64 && value.expr->intValue > maxValue(compute))))
      return value.expr; // the store wraps
    return coerce(ctx, value, compute);
  }
  bool isWider = isInteger(compute) ? bitWidth(compute) > bitWidth(own) : isUnsigned(own);
  return isInteger(own) && isWider ? widen(ctx, value.expr, compute) : value.expr;
}

void tegula::promoteOutput(CheckContext &ctx, TensorInfo &info, const Value &value) {
  bool isFirst = info.tensor->kind == Tensor::Out && info.pieces.empty() && ctx.frame->caller;
  if (isFirst && !value.isPoison() && info.param && isGeneric(info.param->type.name) &&
      !parseDType(info.param->type.name) && !isFloat(info.tensor->type) &&
      isFloat(value.expr->type))
    info.tensor->type = typeAlone(value);
}

/// The value in a form that can be stored in a tensor of `type`; null where that was reported.
static TensorKey tensorKey(const CheckContext &ctx, Span span) {
  TensorKey key{span.file, span.begin};
  for (const Expansion &expansion : ctx.expansions)
    key.insert(key.end(), {expansion.call.file, expansion.call.begin});
  return key;
}

void tegula::widenWeakTensor(CheckContext &ctx, const TensorInfo &info, const Value &value) {
  if (!info.weakKey || value.isPoison())
    return;
  DType type = typeAlone(value);
  if (type == DType::Bool || width(type) <= width(info.tensor->type))
    return;
  DType &known = ctx.weakTypes.try_emplace(*info.weakKey, info.tensor->type).first->second;
  if (width(type) <= width(known))
    return;
  known = type;
  ctx.weakTypesChanged = true;
}

static bool readsOthers(CheckContext &ctx, const Expr *value, const Tensor *tensor,
                        llvm::ArrayRef<IndexExpr> subscripts) {
  llvm::SmallPtrSet<const Expr *, 32> seen;
  llvm::SmallVector<const Expr *> work{value};
  while (!work.empty()) {
    const Expr *at = work.pop_back_val();
    if (!at || !seen.insert(at).second)
      continue;
    if (at->kind == Expr::Read && at->tensor == tensor && !llvm::equal(at->subscripts, subscripts))
      return true;
    llvm::append_range(work, at->operands);
    work.append({at->fill, at->guard, at->filter});
    auto addData = [&](const IndexExpr &index) {
      for (const IndexVar &var : index.variables())
        if (!var.isSymbol() && ctx.program->vars[var.position()].kind == Var::Data)
          work.push_back(ctx.program->vars[var.position()].data);
    };
    addData(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      addData(subscript);
  }
  return false;
}

/// Whether a subscript on the left or a filter reads the tensor that is written.
static bool addressReads(CheckContext &ctx, const Stmt &stmt) {
  auto reads = [&](const Expr *value) { return readsOthers(ctx, value, stmt.tensor, {}); };
  return (stmt.guard && reads(stmt.guard)) ||
         llvm::any_of(stmt.subscripts, [&](const IndexExpr &subscript) {
           return llvm::any_of(subscript.variables(), [&](const IndexVar &var) {
             return !var.isSymbol() && ctx.program->vars[var.position()].kind == Var::Data &&
                    reads(ctx.program->vars[var.position()].data);
           });
         });
}

bool tegula::addFilters(CheckContext &ctx, const LeftSide &left, const Expr *&guard) {
  for (const ast::ForItem &item : left.trailing) {
    if (!item.filter)
      continue;
    const Expr *one = asCondition(ctx, eval(ctx, *item.filter), item.filter->span, "'if'");
    if (!one)
      return false;
    if (boolOf(one) == true)
      continue;
    guard = guard ? binaryNode(ctx, Binary::And, guard, one, DType::Bool, one->span) : one;
    ctx.path.push_back({one, true});
  }
  return true;
}

/// Makes the temporary or state that a first equation defines; its type is the declared one, or
/// that of the value.
static DType makeTarget(CheckContext &ctx, LeftSide &left, const Value &value,
                        std::optional<DType> declared) {
  const ast::Ident &name = left.target->name;
  DType type = declared.value_or(typeAlone(value));
  if (!declared && left.isState && value.weak && ctx.hasDouble && type == DType::F32)
    type = DType::F64;
  std::optional<TensorKey> key;
  if (!declared && value.weak) {
    key = tensorKey(ctx, name.span);
    auto found = ctx.weakTypes.find(*key);
    if (found != ctx.weakTypes.end() && width(found->second) > width(type))
      type = found->second;
  }
  left.info =
      newTensor(ctx, left.isState ? Tensor::State : Tensor::Temp, name.name, type, {}, name.span);
  left.info->weakKey = std::move(key);
  return type;
}

/// The statement in which a temporary or state begins its life.
static void appendDefinition(CheckContext &ctx, LeftSide &left) {
  std::vector<Stmt *> *body = ctx.sink;
  Stmt *definition = appendStmt(ctx, Stmt::TensorDef, left.target->span);
  definition->tensor = left.info->tensor;
  left.info->home = body;
  left.info->definition = definition;
  left.info->isElement = left.info->tensor->dims.empty();
}

static Stmt *appendEquation(CheckContext &ctx, const LeftSide &left, const Expr *guard,
                            const Expr *stored) {
  Stmt *out = appendStmt(ctx, Stmt::Equation, left.stmt ? left.stmt->span : left.target->span);
  out->tensor = left.info->tensor;
  out->vars = left.vars;
  for (const Subscript &one : left.values)
    out->subscripts.push_back(one.index);
  out->accumulate = left.accumulate;
  out->combine = left.combine == ast::Stmt::Combine::Add   ? Reduction::Sum
                 : left.combine == ast::Stmt::Combine::Max ? Reduction::Max
                                                           : Reduction::Min;
  out->guard = guard;
  out->value = stored;
  return out;
}

/// What an equation has written; where other points may still add to it, or data say where it is,
/// what it writes.
static void watchElements(CheckContext &ctx, const LeftSide &left, const Stmt &equation) {
  const Expr *value = equation.value;
  if (!(left.accumulate && ctx.block.isActive) &&
      llvm::none_of(equation.subscripts,
                    [&](const IndexExpr &one) { return usesData(ctx, one); })) {
    Expr *read = makeExpr(ctx, Expr::Read, computeType(equation.tensor->type), equation.span);
    read->tensor = equation.tensor;
    read->subscripts = equation.subscripts;
    value = finishExpr(ctx, read);
  }
  watch(ctx, equation.span, ctx.shortText(left.target->span), value, left.vars, equation.guard);
  markPoints(ctx, equation.span, left.vars, equation.guard);
}

bool tegula::defineElements(CheckContext &ctx, LeftSide &left,
                            llvm::function_ref<Value()> evalValue) {
  const ast::Ident &name = left.target->name;
  Scope *outside = ctx.scope;
  auto failed = [&] {
    if (!left.info)
      ctx.poison(*outside, name);
    else
      left.info->isSuspect = true;
    claimTensor(ctx, left, *outside);
    return false;
  };
  bool isSum = left.accumulate && left.combine == ast::Stmt::Combine::Add;
  if (isSum && left.info && left.info->tensor->type == DType::Bool) {
    ctx.report(Code::BadAccumulation, name.span,
               "'+=' adds numbers, and '" + name.name + "' has truth values")
        .note("whether any of them is true is " + name.name +
              "[...] max= b, or any(b[i, k] for k)");
    return failed();
  }
  std::optional<DType> declared;
  if (left.target->type) {
    declared = resolveType(ctx, *left.target->type);
    if (!declared)
      return failed();
  }
  Saved savedScope(ctx.scope, &left.scope);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedPath(ctx.path);
  forgetValues(ctx);
  if (!expandLeft(ctx, left))
    return failed();
  if (!bindLeftIndices(ctx, left)) {
    // The names of both sides can still be looked at.
    Saved savedDry(ctx.dry, ctx.dry + 1);
    for (const LeftSide::Sub &sub : left.subs)
      if (!sub.isIndex && sub.ast->expr)
        eval(ctx, *sub.ast->expr);
    evalValue();
    return failed();
  }
  if (!evalLeft(ctx, left))
    return failed();
  // Filters at the end protect the right side.
  const Expr *guard = nullptr;
  if (!addFilters(ctx, left, guard))
    return failed();
  Value value = evalValue();
  if (value.isPoison())
    return failed();
  bool hasPieces =
      left.info && (left.info->isComplete || left.info->isZeroed || !left.info->pieces.empty());
  left.isUpdate =
      hasPieces &&
      (left.accumulate || (guard && readsData(ctx, guard)) ||
       llvm::any_of(left.values, [&](const Subscript &one) { return usesData(ctx, one.index); }));

  bool isNew = !left.info;
  const Expr *stored = nullptr;
  if (isNew) {
    DType type = makeTarget(ctx, left, value, declared);
    stored = storable(ctx, value, type, "'" + name.name + "'", left.valueSpan);
  } else {
    if (declared && *declared != left.info->tensor->type) {
      ctx.report(Code::BadTarget, left.target->type->span,
                 "'" + name.name + "' is " + toString(left.info->tensor->type) + " already");
      return failed();
    }
    promoteOutput(ctx, *left.info, value);
    widenWeakTensor(ctx, *left.info, value);
    stored = storable(ctx, value, left.info->tensor->type, "'" + name.name + "'", left.valueSpan);
  }
  auto failedNew = [&] {
    left.info->isPoison = isNew;
    left.info->isSuspect = true;
    if (isNew)
      ctx.poison(*outside, name);
    claimTensor(ctx, left, *outside);
    return false;
  };
  if (!stored)
    return failedNew();
  if (!left.isDeclared() && !ctx.dry && !left.isUpdate && !sizeTemporary(ctx, left))
    return failedNew();
  if (!left.isDeclared() && ctx.dry && left.info->tensor->dims.empty())
    sizeTemporary(ctx, left);

  if (isNew)
    appendDefinition(ctx, left);
  Stmt *out = appendEquation(ctx, left, guard, stored);
  bool fine = checkLeftBounds(ctx, left, *out) && checkInjective(ctx, left, *out) &&
              addPiece(ctx, left, *out);
  if (!fine)
    return failedNew();
  out->readsTarget = readsOthers(ctx, stored, out->tensor, out->subscripts);
  if (ctx.block.isActive && !left.vars.empty() && addressReads(ctx, *out)) {
    ctx.report(Code::ReadBeforeDefined, left.target->span,
               "where this equation writes depends on '" + out->tensor->name +
                   "', which its points change in a parallel block")
        .note("as an equation of its own, outside of a block, it reads the values from before");
    return failedNew();
  }
  watchElements(ctx, left, *out);
  if (left.isState)
    requireCovered(ctx, *left.info, left.target->span, /*atEnd=*/true);
  if (!isNew)
    return true;
  Saved savedBack(ctx.scope, outside);
  Entity entity;
  entity.kind = Entity::Tensor;
  entity.tensor = left.info;
  return ctx.define(*outside, name, std::move(entity)) != nullptr;
}

/// `t[i, j] = ...`, of all elements.
static bool definesWhole(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target) {
  return stmt.trailing.empty() && !stmt.accumulate && ctx.loops.empty() && !ctx.block.isActive &&
         llvm::all_of(target.subscripts, [&](const ast::Subscript &one) {
           return one.kind == ast::Subscript::Single && !one.range &&
                  one.expr->kind == ast::Expr::Name && !ctx.lookup(one.expr->name.name);
         });
}

void tegula::reportDefinedTwice(CheckContext &ctx, const ast::Target &target, Span first) {
  ctx.report(Code::Overlap, target.span, "'" + target.name.name + "' is already defined")
      .note("here", first)
      .note("a tensor is defined once: take a new name, or a 'state' for what changes in a loop");
}

/// An equation that is refused still defines its tensor: another one is a second definition.
static void claimTensor(CheckContext &ctx, const LeftSide &left, Scope &outside) {
  if (!left.stmt || ctx.dry || left.isState)
    return;
  Saved savedScope(ctx.scope, &outside);
  if (!definesWhole(ctx, *left.stmt, *left.target))
    return;
  if (Entity *entity = ctx.lookup(left.target->name.name); entity && entity->kind == Entity::Poison)
    entity->claim = left.target->span;
  if (!left.info || left.info->tensor->kind != Tensor::Out)
    return;
  if (left.info->claim.isValid() || !left.info->pieces.empty())
    reportDefinedTwice(ctx, *left.target,
                       left.info->claim.isValid() ? left.info->claim
                                                  : left.info->pieces.front().span);
  left.info->claim = left.target->span;
}

bool tegula::checkEquation(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                           bool isState) {
  Entity *entity = ctx.lookup(target.name.name);
  LeftSide left(ctx.scope);
  left.stmt = &stmt;
  left.target = &target;
  left.isState = isState;
  left.accumulate = stmt.accumulate;
  left.combine = stmt.combine;
  left.trailing = stmt.trailing;
  left.valueSpan = stmt.value->span;
  left.bodies.push_back(stmt.value.get());
  for (const ast::ForItem &item : stmt.trailing)
    if (item.filter)
      left.bodies.push_back(item.filter.get());
  auto evalValue = [&] { return eval(ctx, *stmt.value); };
  if (entity && entity->kind == Entity::Poison) {
    if (definesWhole(ctx, stmt, target) && entity->claim.isValid())
      reportDefinedTwice(ctx, target, entity->claim);
    return false;
  }
  if (isState) {
    if (entity) {
      ctx.report(Code::Redefinition, target.name.span,
                 "'" + target.name.name + "' is already defined, as " + describe(*entity))
          .note("first defined here", entity->span);
      return false;
    }
    return defineElements(ctx, left, evalValue);
  }
  if (entity) {
    if (entity->kind != Entity::Tensor) {
      Report record =
          ctx.report(Code::WrongKind, target.span,
                     "'" + target.name.name + "' is " + describe(*entity) + ", not a tensor");
      record.note("it is defined here", entity->span);
      return false;
    }
    left.info = entity->tensor;
    if (left.info->isPoison)
      return false;
    if (left.info->tensor->kind == Tensor::In) {
      Report record = ctx.report(stmt.accumulate ? Code::BadAccumulation : Code::AssignToInput,
                                 target.name.span,
                                 "'" + target.name.name + "' is an input and cannot be changed");
      suggestInout(ctx, record, *left.info);
      return false;
    }
  }
  if (!left.info && ctx.block.isActive) {
    ctx.report(Code::BadNesting, target.name.span,
               "a temporary in a parallel block has no subscripts: '" + target.name.name +
                   "' varies along the indices that its value has")
        .note("write " + target.name.name + " = ...");
    ctx.poison(*ctx.scope, target.name);
    return false;
  }
  return defineElements(ctx, left, evalValue);
}
