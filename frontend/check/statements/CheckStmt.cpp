//===- CheckStmt.cpp - Scalars, loops, schedules and topk -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCall.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckParallel.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckScan.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"
#include "frontend/check/observations/CheckObserve.h"
#include "frontend/check/observations/CheckObserver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace tegula;
using namespace tegula::checked;

static bool checkStmt(CheckContext &ctx, const ast::Stmt &stmt);
static bool checkAssign(CheckContext &ctx, const ast::Stmt &stmt);
static bool defineScalar(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target);
static bool assignElement(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                          TensorInfo *info);
static bool checkStateTensor(CheckContext &ctx, const ast::Stmt &stmt);
static bool checkFor(CheckContext &ctx, const ast::Stmt &stmt);
static bool checkPrecision(CheckContext &ctx, const ast::Stmt &stmt);
static bool checkSchedule(CheckContext &ctx, const ast::Stmt &stmt);
static bool checkTopK(CheckContext &ctx, const ast::Stmt &stmt);

checked::Stmt *tegula::appendStmt(CheckContext &ctx, Stmt::Kind kind, Span span) {
  Stmt &stmt = ctx.program->stmts.emplace_back();
  stmt.kind = kind;
  stmt.span = span;
  ctx.sink->push_back(&stmt);
  return &stmt;
}

void tegula::checkBody(CheckContext &ctx, llvm::ArrayRef<ast::StmtPtr> body) {
  for (const ast::StmtPtr &stmt : body) {
    markReached(ctx, *stmt);
    if (!checkStmt(ctx, *stmt) && !ctx.dry && !ctx.hasErrors())
      ctx.report(Code::NeverDefined, stmt->span,
                 "this statement is refused, and no message says why")
          .note("that is a defect of tegula: please report it with the program");
  }
}

static bool checkStmt(CheckContext &ctx, const ast::Stmt &stmt) {
  forgetValues(ctx);
  Saved savedStmt(ctx.currentStmt, &stmt);
  switch (stmt.kind) {
  case ast::Stmt::Assign:
    return checkAssign(ctx, stmt);
  case ast::Stmt::State:
    if (ctx.block.isActive)
      return checkState(ctx, stmt);
    return checkStateTensor(ctx, stmt);
  case ast::Stmt::Call:
    return checkCallStatement(ctx, stmt);
  case ast::Stmt::Observe:
    return checkObservation(ctx, stmt);
  case ast::Stmt::Parallel:
    return checkParallel(ctx, stmt);
  case ast::Stmt::ForTiles:
    return checkTilesLoop(ctx, stmt);
  case ast::Stmt::For:
    return checkFor(ctx, stmt);
  case ast::Stmt::Precision: // the parser sees to it that these stand first and last
    return checkPrecision(ctx, stmt);
  case ast::Stmt::Deterministic:
    ctx.program->deterministic = true;
    return true;
  case ast::Stmt::Distinct:
    llvm::append_range(ctx.frame->distinct, stmt.distinct);
    return true;
  case ast::Stmt::Invariant:
    llvm::append_range(ctx.frame->invariant, stmt.invariant);
    return true;
  case ast::Stmt::Schedule:
    return checkSchedule(ctx, stmt);
  }
  llvm_unreachable("all statements are checked");
}

static bool checkAssign(CheckContext &ctx, const ast::Stmt &stmt) {
  if (stmt.targets.empty() || !stmt.value)
    return false; // a syntax error was reported
  const ast::Expr &value = *stmt.value;
  if (value.kind == ast::Expr::Call && value.name.name == "topk" && !stmt.accumulate &&
      !ctx.module.findFn("topk", ctx.inLibrary()) &&
      !ctx.module.findKernel("topk", ctx.inLibrary()))
    return checkTopK(ctx, stmt);
  const ast::Target &target = stmt.targets[0];
  if (isKernelCall(ctx, value) &&
      (stmt.targets.size() > 1 || !target.hasSubscripts || target.hasColon))
    return checkCallAssign(ctx, stmt);
  if (stmt.targets.size() > 1) {
    ctx.report(Code::ResultCount, stmt.span,
               llvm::Twine(stmt.targets.size()) + " names on the left, one value on the right")
        .note(value.kind == ast::Expr::Call && value.name.name == "sort"
                  ? "sort gives the values; their places are argsort(v, over=j)"
                  : "several results come from a kernel with several outputs, or from topk");
    for (const ast::Target &one : stmt.targets)
      ctx.poison(*ctx.scope, one.name);
    return false;
  }
  if (target.hasSubscripts) {
    if (target.hasColon && !target.type) {
      ctx.report(Code::BadTarget, target.span,
                 "'" + target.name.name + ": [...] =' names the dims of a kernel's result")
          .note("an equation is " + target.name.name + "[i, j] = ..., or " + target.name.name +
                ": f16[i, j] = ...");
      ctx.poison(*ctx.scope, target.name);
      return false;
    }
    return checkEquation(ctx, stmt, target, /*isState=*/false);
  }
  if (!stmt.trailing.empty()) {
    ctx.report(Code::BadTarget, target.span,
               "'for' after an equation gives ranges to indices of its left side, and '" +
                   target.name.name + "' has none");
    ctx.poison(*ctx.scope, target.name);
    return false;
  }
  Entity *entity = ctx.lookup(target.name.name);
  // `y = softmax(x, dim=1)`: what is wrong is the call.
  if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison &&
      !entity->tensor->tensor->dims.empty() && value.kind == ast::Expr::Call) {
    unsigned before = ctx.numErrors();
    if (eval(ctx, value).isPoison() && ctx.numErrors() != before) {
      entity->tensor->isSuspect = true;
      return false;
    }
  }
  if (entity && entity->kind == Entity::State) {
    if (stmt.accumulate) {
      auto [before, after] = writtenOut(stmt);
      ctx.report(Code::BadAccumulation, target.span,
                 "a state is assigned: " + target.name.name + before + "..." + after)
          .fix("write it out",
               {{{stmt.span.file, target.span.end, stmt.value->span.begin}, before},
                {{stmt.span.file, stmt.value->span.end, stmt.value->span.end}, after}});
      return false;
    }
    return checkUpdate(ctx, stmt, target, *entity->state);
  }
  if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison &&
      entity->tensor->tensor->dims.empty())
    return assignElement(ctx, stmt, target, entity->tensor);
  if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison) {
    if (entity->tensor->tensor->kind == Tensor::In) {
      ctx.report(Code::Redefinition, target.span,
                 "'" + target.name.name + "' is already defined, as an input");
      return false;
    }
    ctx.report(Code::WholeTensor, target.span,
               "'" + target.name.name + "' is " + describe(*entity) + " and is assigned by element")
        .note("write its subscripts, as in " + target.name.name + "[i] = ...");
    return false;
  }
  if (stmt.accumulate) {
    if (!entity)
      unknownName(ctx, target.name, false);
    else if (entity->kind != Entity::Poison)
      suggestState(ctx.report(Code::BadAccumulation, target.span,
                              "'" + ast::spelling(stmt.combine) +
                                  "' accumulates into elements of a tensor, and '" +
                                  target.name.name + "' is " + describe(*entity)),
                   *entity, stmt);
    return false;
  }
  return defineScalar(ctx, stmt, target);
}

static bool defineScalar(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target) {
  Value value = eval(ctx, *stmt.value);
  std::optional<DType> type;
  bool failed = value.isPoison();
  if (target.type) {
    type = resolveType(ctx, *target.type);
    failed |= !type;
  }
  if (!failed && type) {
    const Expr *stored =
        storable(ctx, value, *type, "'" + target.name.name + "'", stmt.value->span);
    if (!stored) {
      failed = true;
    } else {
      if (stored->type != *type) {
        Expr *rounded = makeExpr(ctx, Expr::Convert, computeType(*type), stmt.value->span);
        rounded->target = *type;
        rounded->operands = {stored};
        stored = finishExpr(ctx, rounded);
      }
      value = strong(stored);
    }
  }
  if (failed) {
    ctx.poison(*ctx.scope, target.name);
    return false;
  }
  Entity entity;
  entity.kind = Entity::Scalar;
  entity.value = value;
  // Integers of sizes and indices, and constants, need no place: every use is the value itself.
  if (!value.isIndex() && value.expr->kind != Expr::Constant) {
    Let &let = ctx.program->lets.emplace_back();
    let.name = target.name.name;
    let.span = target.name.span;
    let.value = value.expr;
    Stmt *stmtDefine = appendStmt(ctx, Stmt::Define, stmt.span);
    stmtDefine->let = &let;
    Expr *use = makeExpr(ctx, Expr::Let, value.expr->type, target.name.span);
    use->let = &let;
    entity.value.expr = finishExpr(ctx, use);
    watch(ctx, stmt.span, target.name.name, entity.value.expr);
  }
  // The most frequent way to forget `state`.
  if (Entity *old = ctx.lookup(target.name.name);
      old && old->kind == Entity::Scalar && !old->isSize && !old->param && ctx.scope->parent &&
      !ctx.scope->names.contains(target.name.name)) {
    bool inLoop = false;
    for (Scope *at = ctx.scope; at && !at->names.contains(target.name.name); at = at->parent)
      inLoop |= at->kind == Scope::Tiles || at->kind == Scope::For;
    if (inLoop) {
      ctx.report(Code::StateMisuse, target.name.span,
                 "'" + target.name.name +
                     "' changes from one iteration to the next, and is no state")
          .note("it is defined here", old->span)
          .fix("declare it as a state",
               {{{old->span.file, old->span.begin, old->span.begin}, "state "}});
      if (!ctx.dry) // what nobody has been told lasts no longer
        old->kind = Entity::Poison;
      return false;
    }
  }
  Entity *made = ctx.define(*ctx.scope, target.name, std::move(entity));
  if (made)
    made->isSize = value.isIndex() && value.index->isSize();
  return made != nullptr;
}

static bool assignElement(CheckContext &ctx, const ast::Stmt &stmt, const ast::Target &target,
                          TensorInfo *info) {
  if (info->tensor->kind == Tensor::In) {
    Report record = ctx.report(Code::AssignToInput, target.span,
                               "'" + target.name.name + "' is an input and cannot be changed");
    suggestInout(ctx, record, *info);
    return false;
  }
  LeftSide left(ctx.scope);
  left.stmt = &stmt;
  left.target = &target;
  left.info = info;
  left.accumulate = stmt.accumulate;
  left.combine = stmt.combine;
  left.valueSpan = stmt.value->span;
  return defineElements(ctx, left, [&] { return eval(ctx, *stmt.value); });
}

static bool checkStateTensor(CheckContext &ctx, const ast::Stmt &stmt) {
  if (stmt.targets.empty() || !stmt.value)
    return false;
  const ast::Target &target = stmt.targets[0];
  if (isKernelCall(ctx, *stmt.value) && !target.hasSubscripts) {
    ctx.report(Code::StateMisuse, stmt.span,
               "a state begins with an equation, not with a kernel's result")
        .note("give the result a name, then write state h[i, j] = result[i, j]");
    ctx.poison(*ctx.scope, target.name);
    return false;
  }
  // Without subscripts it is one number, a tensor without dims.
  return checkEquation(ctx, stmt, target, /*isState=*/true);
}

/// The run-time scalar that a range is made of, if it is one.
static const ast::Param *scalarIn(CheckContext &ctx, const ast::Range &range) {
  for (const ast::ExprPtr *bound : {&range.lo, &range.hi}) {
    Entity *entity =
        *bound && (*bound)->kind == ast::Expr::Name ? ctx.lookup((*bound)->name.name) : nullptr;
    if (entity && entity->param && kindOf(*entity->param) == ParamKind::Scalar)
      return entity->param;
  }
  return nullptr;
}

static std::string boundOf(CheckContext &ctx, const ast::Range &range) {
  const ast::Param *scalar = scalarIn(ctx, range);
  return scalar ? "the scalar '" + scalar->name.name + "'" : "one from data";
}

static bool checkFor(CheckContext &ctx, const ast::Stmt &stmt) {
  auto range =
      stmt.range ? evalRange(ctx, *stmt.range, stmt.index.name, Code::LoopBounds) : std::nullopt;
  if (range && !ctx.block.isActive &&
      (usesData(ctx, range->first) || usesData(ctx, range->second))) {
    Report record =
        ctx.report(Code::LoopBounds, stmt.range->span,
                   "the range of a loop at top level is made of sizes and constants, got " +
                       boundOf(ctx, *stmt.range));
    record.note(
        "loop over a size, and let a condition leave out what lies beyond: where(t < n, ..., ...)");
    if (const ast::Param *scalar = scalarIn(ctx, *stmt.range))
      record.note("or declare '" + scalar->name.name +
                      ": int', a constant that is known when compiling",
                  scalar->span);
    range.reset();
  }
  auto isTile = [&](const IndexVar &var) {
    return !var.isSymbol() && ctx.program->vars[var.position()].kind == Var::Tile;
  };
  if (range && (llvm::any_of(range->first.variables(), isTile) ||
                llvm::any_of(range->second.variables(), isTile))) {
    ctx.report(Code::LoopBounds, stmt.range->span,
               "the range of a loop is the same for all of a tile, got one that varies along it");
    range.reset();
  }
  Scope inner(Scope::For, ctx.scope);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedLoops(ctx.loops);
  if (!checkIndexName(ctx, stmt.index))
    return false;
  Stmt *loop = appendStmt(ctx, Stmt::For, stmt.span);
  if (range) {
    Var *var = const_cast<Var *>(
        newVar(ctx, Var::Loop, stmt.index.name, range->first, range->second, stmt.index.span));
    var->reverse = stmt.reverse;
    loop->vars.push_back(var);
    defineIndex(ctx, inner, stmt.index, var);
    ctx.loops.push_back(var->id);
  } else {
    ctx.poison(inner, stmt.index, /*isIndex=*/true);
  }
  Saved savedScope(ctx.scope, &inner);
  Saved savedSink(ctx.sink, &loop->body);
  checkBody(ctx, stmt.body);
  return range.has_value();
}

static bool checkPrecision(CheckContext &ctx, const ast::Stmt &stmt) {
  const std::string &name = stmt.index.name;
  if (!isPrecision(name)) {
    Report record = ctx.report(Code::UnknownPrecision, stmt.index.span,
                               "expected " + precisionNames + ", got '" + name + "'");
    record.note("f32, the default, keeps f32 accuracy; tf32 and bf16 allow less, conv_tf32 in "
                "convolutions alone");
    return false;
  }
  ctx.frame->precision = name;
  return true;
}

/// `expect 0.8`, `expect h200=0.8, cpu=0.5`: shares of the bound. Nothing but measurements asks for
/// them, in the text (bench/report/Expectations.h).
static void checkExpectation(CheckContext &ctx, const ast::ScheduleItem &item,
                             std::set<std::string> &seen) {
  constexpr llvm::StringLiteral form =
      "'expect' takes a share of the bound, or one by machine: expect 0.8, expect h200=0.8";
  if (item.settings.empty())
    ctx.report(Code::BadSchedule, item.span, form.str());
  for (const auto &[machine, value] : item.settings) {
    double share = value->kind == ast::Expr::Float     ? value->floatValue
                   : value->kind == ast::Expr::Integer ? double(value->intValue)
                                                       : 0;
    if (!(share > 0 && share <= 1)) {
      ctx.report(Code::BadSchedule, value->span,
                 "expected a share above 0 and up to 1, got '" + ctx.text(value->span) + "'")
          .note(form.str());
      continue;
    }
    std::string what = "expect" + (machine ? " " + machine->name : "");
    if (!seen.insert(what).second)
      ctx.report(Code::BadSchedule, item.span, "'" + what + "' is set twice");
  }
}

static bool checkSchedule(CheckContext &ctx, const ast::Stmt &stmt) {
  static const llvm::StringRef withAxes[] = {"tile", "split"};
  static const llvm::StringRef withNumber[] = {"stages", "warps", "cluster", "raster"};
  static const llvm::StringRef alone[] = {"persistent"};
  std::set<std::string> seen;
  unsigned errors = ctx.numErrors();
  for (const ast::ScheduleItem &item : stmt.schedule) {
    const std::string &name = item.keyword.name;
    if (name == "expect") {
      checkExpectation(ctx, item, seen);
      continue;
    }
    bool axes = llvm::is_contained(withAxes, name);
    bool number = llvm::is_contained(withNumber, name);
    if (!axes && !number && !llvm::is_contained(alone, name)) {
      Report record = ctx.report(Code::BadSchedule, item.keyword.span,
                                 "unknown setting '" + name +
                                     "'; they are tile, stages, warps, cluster, "
                                     "split, persistent, raster and expect");
      std::vector<llvm::StringRef> names{"tile",    "split",  "stages",     "warps",
                                         "cluster", "raster", "persistent", "expect"};
      llvm::StringRef near = nearestName(name, names);
      if (!near.empty())
        record.fix("write '" + near.str() + "'", {{item.keyword.span, near.str()}});
      continue;
    }
    if (!axes && !number) {
      if (!item.settings.empty())
        ctx.report(Code::BadSchedule, item.span, "'" + name + "' stands alone");
      if (!ctx.frame->caller)
        ctx.program->schedule.push_back({name, "", std::nullopt, item.span});
      continue;
    }
    if (item.settings.empty() || (number && item.settings.size() != 1)) {
      ctx.report(Code::BadSchedule, item.span,
                 axes ? "'" + name + "' takes sizes by index: " + name + " i=128, j=64"
                      : "'" + name + "' takes one number: " + name + " 4");
      continue;
    }
    for (const auto &[axis, value] : item.settings) {
      if (axes != axis.has_value()) {
        ctx.report(Code::BadSchedule, item.span,
                   axes ? "'" + name + "' takes sizes by index: " + name + " i=128, j=64"
                        : "'" + name + "' takes one number: " + name + " 4");
        continue;
      }
      if (axis && !ctx.frame->indexNames.contains(axis->name)) {
        Report record = ctx.report(Code::BadSchedule, axis->span,
                                   "the kernel has no index '" + axis->name + "'");
        std::vector<llvm::StringRef> names;
        for (const auto &entry : ctx.frame->indexNames)
          if (!entry.first().starts_with("..."))
            names.push_back(entry.first());
        llvm::sort(names);
        llvm::StringRef near = nearestName(axis->name, names);
        if (!near.empty())
          record.fix("write '" + near.str() + "'", {{axis->span, near.str()}});
        record.note("its indices are " + llvm::join(names, ", "));
        continue;
      }
      Value given = eval(ctx, *value);
      std::optional<int64_t> known;
      if (given.isIndex())
        known = given.index->asConstant();
      if (given.isPoison())
        continue;
      if (!known || *known < 1 || *known > (1 << 20)) {
        ctx.report(Code::BadSchedule, value->span,
                   "expected a positive integer, got '" + ctx.text(value->span) + "'");
        continue;
      }
      std::string axisName = axis ? axis->name : "";
      if (!seen.insert(name + " " + axisName).second) {
        ctx.report(Code::BadSchedule, item.span,
                   "'" + name + (axis ? " " + axisName : "") + "' is set twice");
        continue;
      }
      // A called kernel runs by its caller's schedule.
      if (!ctx.frame->caller)
        ctx.program->schedule.push_back({name, axisName, *known, item.span});
    }
  }
  return ctx.numErrors() == errors;
}

//===----------------------------------------------------------------------===//
// topk
//===----------------------------------------------------------------------===//

/// The values or, of the second target, the positions that topk gives at the rank that stands on
/// the left.
static Value evalTopK(CheckContext &ctx, const ast::Expr &call, LeftSide &left,
                      const ast::Ident &rankName, const IndexExpr &k, unsigned which) {
  Scope inner(Scope::Reduction, ctx.scope);
  Saved savedScope(ctx.scope, &inner);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedPath(ctx.path);
  // The elements know nothing of the rank.
  const Var *rankVar = ctx.lookup(rankName.name)->var;
  Entity rankEntity = std::move(left.scope.names[rankName.name]);
  left.scope.names.erase(rankName.name);
  auto restore = llvm::scope_exit([&] { left.scope.names[rankName.name] = std::move(rankEntity); });
  llvm::SmallVector<const Var *> vars;
  llvm::SmallVector<const ast::Expr *> bodies{call.operands[0].get(), call.items[0].filter.get()};
  if (!bindItems(ctx, call.items, bodies, inner, vars, "topk(... for ")) {
    // Its names can still be looked at.
    Saved savedDry(ctx.dry, ctx.dry + 1);
    eval(ctx, *call.operands[0]);
    return {};
  }
  if (vars[0]->kind == Var::Tile)
    return {};
  IndexExpr count = vars[0]->hi - vars[0]->lo;
  std::string taken = "topk takes " + show(ctx, k) + " of " + show(ctx, count) + " values";
  if (!requireOneRange(ctx, *vars[0], call.span))
    return {};
  requireNonNegative(ctx, count - k, call.span, taken + "; what is left");
  const Expr *filter = nullptr;
  if (call.items[0].filter) {
    filter = asCondition(ctx, eval(ctx, *call.items[0].filter), call.items[0].filter->span, "'if'");
    if (!filter)
      return {};
    ctx.path.push_back({filter, true});
  }
  Value value = eval(ctx, *call.operands[0]);
  if (value.isPoison())
    return {};
  const Expr *operand = settle(ctx, value);
  if (operand->type == DType::Bool)
    operand = widen(ctx, operand, DType::I32);
  DType type = operand->type;
  if (filter) {
    // What does not count is less than all integers of 32 bits, and no more than one of 64.
    if (type == DType::I32 || type == DType::U32)
      operand = widen(ctx, operand, DType::I64);
    Expr *least = makeExpr(ctx, Expr::Constant, operand->type, call.span);
    least->floatValue = -INFINITY;
    least->intValue = operand->type == DType::U64 ? 0 : INT64_MIN;
    Expr *masked = makeExpr(ctx, Expr::Where, operand->type, call.span);
    masked->operands = {filter, operand, least};
    operand = finishExpr(ctx, masked);
  }
  Expr *result = makeExpr(ctx, Expr::Scan, which == 0 ? operand->type : DType::I64, call.span);
  result->scan = which == 0 ? checked::Scan::TopKValue : checked::Scan::TopKIndex;
  result->vars = {vars[0]};
  result->operands = {operand};
  result->positions = {vars[0]->lo + IndexExpr::dim(rankVar->id)};
  const Expr *ranked = finishExpr(ctx, result);
  if (which == 1 || ranked->type == type)
    return strong(ranked);
  Expr *narrow = makeExpr(ctx, Expr::Quantize, type, call.span);
  narrow->target = type;
  narrow->operands = {ranked};
  return strong(finishExpr(ctx, narrow));
}

/// The one index on the left that the elements of topk do not have, or null.
static const ast::Ident *findRank(CheckContext &ctx, const ast::Target &target,
                                  const ast::Expr &call) {
  const ast::Ident *rank = nullptr;
  bool several = false, rankHasRange = false;
  for (const ast::Subscript &subscript : target.subscripts) {
    if (subscript.kind != ast::Subscript::Single || subscript.expr->kind != ast::Expr::Name)
      continue;
    const ast::Ident &name = subscript.expr->name;
    if (ctx.lookup(name.name))
      continue;
    if (mentions(*call.operands[0], name.name))
      continue;
    // An index with a written range is the rank only where no other can be.
    if (rank && subscript.range && !rankHasRange)
      continue;
    if (rank && rankHasRange && !subscript.range)
      rank = nullptr;
    several |= rank != nullptr;
    rank = &name;
    rankHasRange = subscript.range.has_value();
  }
  return several ? nullptr : rank;
}

static bool checkTopK(CheckContext &ctx, const ast::Stmt &stmt) {
  const ast::Expr &call = *stmt.value;
  llvm::StringRef form = "v[i, r], e[i, r] = topk(x[i, j] for j, k=8)";
  auto wrong = [&](Span span, const llvm::Twine &message) {
    ctx.report(Code::TopKForm, span, message).note("write " + form.str());
    for (const ast::Target &target : stmt.targets)
      ctx.poison(*ctx.scope, target.name);
    return false;
  };
  if (ctx.block.isActive)
    return wrong(stmt.span, "topk stands at top level");
  if (!call.isComprehension || call.items.size() != 1 || call.items[0].ellipsis)
    return wrong(call.span, "topk takes elements and one index: topk(x[i, j] for j, k=8)");
  if (stmt.targets.size() != 2 || !stmt.targets[0].hasSubscripts || !stmt.targets[1].hasSubscripts)
    return wrong(stmt.span, "topk gives two results, values and indices");
  if (!checkKeywords(ctx, call, {"k"})) {
    for (const ast::Target &target : stmt.targets)
      ctx.poison(*ctx.scope, target.name);
    return false;
  }
  const ast::Expr *kGiven = keywordArgument(call, "k");
  if (!kGiven)
    return wrong(call.span, "topk needs k=, how many values it gives");
  std::optional<IndexExpr> k = evalSize(ctx, *kGiven, "k");
  if (!k) {
    for (const ast::Target &target : stmt.targets)
      ctx.poison(*ctx.scope, target.name);
    return false;
  }
  requireNonNegative(ctx, *k, kGiven->span, "k");
  bool fine = true;
  for (unsigned which = 0; which != 2; ++which) {
    const ast::Target &target = stmt.targets[which];
    Entity *entity = ctx.lookup(target.name.name);
    LeftSide left(ctx.scope);
    left.target = &target;
    left.valueSpan = call.span;
    left.bodies.push_back(call.operands[0].get());
    if (entity) {
      if (entity->kind == Entity::Poison || (entity->tensor && entity->tensor->isPoison)) {
        fine = false;
        continue;
      }
      if (entity->kind != Entity::Tensor || entity->tensor->tensor->kind == Tensor::In) {
        ctx.report(Code::BadTarget, target.span,
                   "'" + target.name.name + "' is " + describe(*entity) +
                       " and cannot be defined here");
        fine = false;
        continue;
      }
      left.info = entity->tensor;
    }
    // The rank: the one index on the left that the elements do not have.
    const ast::Ident *rank = findRank(ctx, target, call);
    if (!rank)
      return wrong(target.span, "topk needs one new index on the left, for the rank");
    left.presets.push_back({*rank, {IndexExpr(0), *k}});
    ast::Ident rankName = *rank;
    fine &= defineElements(
        ctx, left, [&]() -> Value { return evalTopK(ctx, call, left, rankName, *k, which); });
  }
  return fine;
}
