//===- CheckScan.cpp - Scans ------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scans, sorts, softmax and recurrences keep the index that they run over, named by `over=`. Their
// operands are checked over a var of their own; named values of the equation are rebuilt over it.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckScan.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckSuggest.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tegula;
using namespace tegula::checked;

IndexExpr tegula::renameVars(CheckContext &ctx, const IndexExpr &expr) {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol())
      return std::nullopt;
    for (const auto &[old, now] : llvm::reverse(ctx.renames))
      if (var.position() == old)
        return IndexExpr::dim(now->id);
    const Var &bound = ctx.program->vars[var.position()];
    if (bound.kind != Var::Data)
      return std::nullopt;
    const Expr *data = renameVars(ctx, bound.data);
    if (data == bound.data)
      return std::nullopt;
    return IndexExpr::dim(dataVar(ctx, data)->id);
  });
}

/// The value at the scanned var in place of the equation's axis. Names of values are expanded.
const checked::Expr *tegula::renameVars(CheckContext &ctx, const Expr *expr) {
  auto affected = [&](const Expr *e) {
    return e && llvm::any_of(ctx.renames, [&](const auto &rename) {
             return llvm::is_contained(e->axes, rename.first);
           });
  };
  llvm::DenseMap<const Expr *, const Expr *> done;
  auto visit = [&](auto &&visit, const Expr *e) -> const Expr * {
    if (!affected(e))
      return e;
    if (const Expr *known = done.lookup(e))
      return known;
    if (e->kind == Expr::Let)
      return done[e] = visit(visit, e->let->value);
    if (e->kind == Expr::State) {
      ctx.report(Code::ScanOver, e->span,
                 "the state '" + e->state->name +
                     "' varies along the scanned index, whose points run in any order");
      return done[e] = e;
    }
    Expr *copy = makeExpr(ctx, e->kind, e->type, e->span);
    *copy = *e;
    for (const Expr *&operand : copy->operands)
      operand = visit(visit, operand);
    copy->fill = visit(visit, e->fill);
    copy->guard = visit(visit, e->guard);
    copy->filter = visit(visit, e->filter);
    copy->index = renameVars(ctx, e->index);
    for (IndexExpr &subscript : copy->subscripts)
      subscript = renameVars(ctx, subscript);
    for (auto &[dim, leading] : copy->groups)
      leading = renameVars(ctx, leading);
    for (IndexExpr &position : copy->positions)
      position = renameVars(ctx, position);
    for (auto &[numerator, denominator] : copy->exact) {
      numerator = renameVars(ctx, numerator);
      denominator = renameVars(ctx, denominator);
    }
    // A range that depends on the scanned index makes a var, and operands, of their own; other
    // ranges may depend on it.
    Trimmed trimmed(ctx.renames);
    size_t outer = ctx.renames.size();
    for (const Var *&var : copy->vars) {
      IndexExpr lo = renameVars(ctx, var->lo), hi = renameVars(ctx, var->hi);
      if (lo == var->lo && hi == var->hi)
        continue;
      if (var->kind == Var::Tile) {
        ctx.report(Code::ScanOver, e->span,
                   "the tile '" + var->name +
                       "' depends on the scanned index, whose points run in any order");
        return done[e] = e;
      }
      const Var *fresh = newVar(ctx, var->kind, var->name, lo, hi, var->span);
      ctx.renames.push_back({var->id, fresh});
      var = fresh;
    }
    if (ctx.renames.size() > outer) {
      for (const Expr *&operand : copy->operands)
        operand = renameVars(ctx, operand);
      if (copy->filter)
        copy->filter = renameVars(ctx, copy->filter);
    }
    return done[e] = finishExpr(ctx, copy);
  };
  return visit(visit, expr);
}

static checked::Scan scanOf(llvm::StringRef name) {
  return llvm::StringSwitch<checked::Scan>(name)
      .Case("cumsum", checked::Scan::CumSum)
      .Case("cumprod", checked::Scan::CumProd)
      .Case("cummax", checked::Scan::CumMax)
      .Case("cummin", checked::Scan::CumMin)
      .Case("softmax", checked::Scan::Softmax)
      .Case("log_softmax", checked::Scan::LogSoftmax)
      .Case("sort", checked::Scan::Sort)
      .Case("argsort", checked::Scan::ArgSort)
      .Default(checked::Scan::Recurrence);
}

/// What is sorted are rows of a tensor, each of them whole.
bool tegula::requireOneRange(CheckContext &ctx, const Var &var, Span span) {
  if (var.lo.isSize() && var.hi.isSize())
    return true;
  ctx.report(Code::NotASize, span,
             "what is sorted has one range for all, known before the launch, and that of '" +
                 var.name + "' varies")
      .note("let it range over the whole dim, and take values that sort last where it does not "
            "count: where(k < n, x[k], -inf)");
  return false;
}

namespace {
/// A call such as softmax(v, over=j), cumsum, sort or recurrence, in the order in which it is
/// checked.
class ScanCall {
public:
  ScanCall(CheckContext &ctx, const ast::Expr &e)
      : ctx(ctx), e(e), name(e.name.name), scan(scanOf(name)),
        isRecurrence(scan == checked::Scan::Recurrence),
        isSoftmax(scan == checked::Scan::Softmax || scan == checked::Scan::LogSoftmax),
        isSort(scan == checked::Scan::Sort || scan == checked::Scan::ArgSort),
        form(isRecurrence ? "h[t] = recurrence(a[t], b[t], over=t)"
                          : "y[i, j] = " + name.str() + "(x[i, j], over=j)") {}
  Value check();

private:
  bool reportWholeTensor();
  bool readArguments();
  bool findIndices();
  bool bindIndices(Scope &inner);
  bool evalOperands();
  bool evalInit();
  bool requireVarying();
  Value makeScan();
  Value finishRecurrence(Expr *result);
  Value finishScan(Expr *result);

  CheckContext &ctx;
  const ast::Expr &e;
  llvm::StringRef name;
  checked::Scan scan;
  bool isRecurrence, isSoftmax, isSort;
  std::string form; // for messages
  llvm::SmallVector<const ast::Expr *> values;
  const ast::Expr *over = nullptr;
  llvm::SmallVector<const ast::Expr *> names; // in over=
  llvm::SmallVector<const Var *> old;         // the equation's indices of these names
  std::vector<const Var *> fresh;             // the scan's own, in their place
  llvm::SmallVector<Value> operands;
  Value init;
};
} // namespace

bool ScanCall::reportWholeTensor() {
  if (!values.empty() && values[0]->kind == ast::Expr::Name) {
    Entity *entity = ctx.lookup(values[0]->name.name);
    if (entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison &&
        !entity->tensor->tensor->dims.empty()) {
      std::string element =
          elementText(entity->tensor->tensor->name, entity->tensor->tensor->dims.size());
      size_t rank = entity->tensor->tensor->dims.size(), dim = rank - 1;
      for (const ast::Argument &given : e.arguments)
        if (given.keyword && (given.keyword->name == "dim" || given.keyword->name == "axis") &&
            given.value->kind == ast::Expr::Integer && uint64_t(given.value->intValue) < rank)
          dim = given.value->intValue;
      std::string index = std::string(1, "ijklmn"[dim % 6]);
      std::string call = name.str() + "(" + element + ", over=" + index + ")";
      ctx.report(Code::TensorReduction, e.span,
                 "'" + name + "' works on elements along an index, not on a whole tensor")
          .note("write y" + element.substr(entity->tensor->tensor->name.size()) + " = " + call)
          .fix("write the value as " + call, {{e.span, call}});
      return true;
    }
  }
  return false;
}

bool ScanCall::readArguments() {
  for (const ast::Argument &argument : e.arguments)
    if (!argument.keyword)
      values.push_back(argument.value.get());
  if (reportWholeTensor())
    return false;
  over = keywordArgument(e, "over");
  if (!over) {
    Report record = ctx.report(Code::ScanOver, e.span,
                               "'" + name + "' keeps its index and needs it named: " + form);
    suggestOver(record, e, values);
    return false;
  }
  llvm::SmallVector<llvm::StringRef> options{"over"};
  if (isSort)
    options.push_back("descending");
  else if (isRecurrence)
    options.append({"init", "reverse"});
  else if (!isSoftmax)
    options.append({"reverse", "exclusive"});
  if (!checkKeywords(ctx, e, options))
    return false;
  size_t wanted = isRecurrence ? 2 : 1;
  if (values.size() != wanted) {
    ctx.report(values.size() < wanted ? Code::MissingArgument : Code::TooManyArguments, e.span,
               "'" + name + "' takes " + (isRecurrence ? "two values" : "one value") +
                   " and over=, got " + llvm::Twine(values.size()) + ": " + form);
    return false;
  }
  return true;
}

bool ScanCall::findIndices() {
  if (over->kind == ast::Expr::Tuple)
    for (const ast::ExprPtr &one : over->operands)
      names.push_back(one.get());
  else
    names.push_back(over);
  if (names.size() > 1 && !isSoftmax) {
    ctx.report(Code::ScanOver, over->span, "'" + name + "' runs along one index");
    return false;
  }
  for (const ast::Expr *one : names) {
    Entity *entity = one->kind == ast::Expr::Name ? ctx.lookup(one->name.name) : nullptr;
    if (!entity || entity->kind != Entity::Index || entity->var->kind != Var::Axis) {
      if (entity && entity->kind == Entity::Poison) {
        for (const ast::Expr *value : values) // what is wrong there may be why
          eval(ctx, *value);
        return false;
      }
      Report record =
          ctx.report(Code::ScanOver, one->span,
                     "over= expects an index of the equation, got '" + ctx.text(one->span) + "'");
      if (entity && entity->kind == Entity::Index && entity->var->kind == Var::Tile)
        record.note("a tile of '" + one->name.name +
                    "' is all that is there at a time; scan outside of the tile loop");
      else
        record.note("write " + form);
      return false;
    }
    if (llvm::is_contained(old, entity->var)) {
      ctx.report(Code::DuplicateIndex, one->span, "'" + one->name.name + "' stands twice in over=");
      return false;
    }
    old.push_back(entity->var);
  }
  return true;
}

/// Inside of the scan its indices are new ones: values there do not vary along the equation's.
bool ScanCall::bindIndices(Scope &inner) {
  for (auto [var, one] : llvm::zip(old, names)) {
    const Var *now = newVar(ctx, Var::Axis, var->name, renameVars(ctx, var->lo),
                            renameVars(ctx, var->hi), one->span);
    for (const IndexExpr &bound : {now->lo, now->hi})
      for (const IndexVar &used : bound.variables())
        if (const Var *data = used.isSymbol() ? nullptr : &ctx.program->vars[used.position()];
            data && data->kind == Var::Data && llvm::any_of(fresh, [&](const Var *before) {
              return llvm::is_contained(data->data->axes, before->id);
            })) {
          ctx.report(Code::ScanOver, over->span,
                     "the range of '" + var->name +
                         "' is data that varies along another scanned index");
          return false;
        }
    if (isSort && !requireOneRange(ctx, *now, over->span))
      return false;
    if (const ast::Range *written = ctx.writtenRanges.lookup(var))
      ctx.writtenRanges[now] = written;
    fresh.push_back(now);
    ctx.renames.push_back({var->id, now});
    Entity entity;
    entity.kind = Entity::Index;
    entity.var = now;
    entity.span = var->span;
    inner.names[one->name.name] = std::move(entity);
    ctx.activeVars.push_back(now);
  }
  return true;
}

bool ScanCall::evalOperands() {
  Scope inner(Scope::Reduction, ctx.scope);
  Saved savedScope(ctx.scope, &inner);
  Trimmed trimmedVars(ctx.activeVars);
  Trimmed trimmedRenames(ctx.renames);
  std::vector<PathCondition> kept;
  for (const PathCondition &at : ctx.path)
    if (llvm::none_of(
            old, [&](const Var *var) { return llvm::is_contained(at.condition->axes, var->id); }))
      kept.push_back(at);
  Saved savedPath(ctx.path, std::move(kept));
  if (!bindIndices(inner))
    return false;
  for (const ast::Expr *value : values)
    operands.push_back(eval(ctx, *value));
  return llvm::none_of(operands, [](const Value &operand) { return operand.isPoison(); });
}

bool ScanCall::evalInit() {
  if (isRecurrence)
    if (const ast::Expr *given = keywordArgument(e, "init")) {
      init = eval(ctx, *given);
      if (init.isPoison())
        return false;
      if (llvm::is_contained(init.expr->axes, old[0]->id)) {
        ctx.report(Code::ScanOver, given->span,
                   "init= is the value before the first step and cannot vary along '" +
                       old[0]->name + "'");
        return false;
      }
    }
  return true;
}

bool ScanCall::requireVarying() {
  // A value that has nothing to do with the index is a slip; one that happens not to is not.
  bool varies = llvm::any_of(operands, [&](const Value &operand) {
    return llvm::is_contained(operand.expr->axes, fresh[0]->id);
  });
  for (const ast::Expr *value : values)
    varies |= mentions(*value, names[0]->name.name);
  if (!varies && !isRecurrence && !ctx.dry) {
    ctx.report(Code::ScanOver, over->span,
               "the value does not vary along '" + names[0]->name.name + "'");
    return false;
  }
  return true;
}

Value ScanCall::finishRecurrence(Expr *result) {
  // The widest float of the three.
  DType type = DType::F32;
  for (const Value *one : {&operands[0], &operands[1], &init})
    if (one->expr && !one->weak && one->expr->type == DType::F64)
      type = DType::F64;
  result->type = type;
  result->operands = {coerce(ctx, operands[0], type), coerce(ctx, operands[1], type)};
  if (init.expr)
    result->operands.push_back(coerce(ctx, init, type));
  return strong(finishExpr(ctx, result));
}

Value ScanCall::finishScan(Expr *result) {
  const Expr *operand = settle(ctx, operands[0]);
  bool staysBool = operand->type == DType::Bool &&
                   (scan == checked::Scan::Sort || scan == checked::Scan::CumMax ||
                    scan == checked::Scan::CumMin);
  if (operand->type == DType::Bool)
    operand = widen(ctx, operand, isSort || staysBool ? DType::I32 : DType::I64);
  if (isSoftmax && !isFloat(operand->type))
    operand = widen(ctx, operand, DType::F32);
  if (result->exclusive && (scan == checked::Scan::CumMax || scan == checked::Scan::CumMin) &&
      !isFloat(operand->type)) {
    ctx.report(Code::EmptyReduction, e.span,
               "an exclusive " + name + " begins with the " +
                   (scan == checked::Scan::CumMax ? "maximum" : "minimum") +
                   " of nothing, which integers do not have")
        .note("of floats it is infinite: " + name.str() + "(f32(x[i]), over=i, exclusive=true)");
    return {};
  }
  result->type = scan == checked::Scan::ArgSort ? DType::I64 : operand->type;
  result->operands = {operand};
  if (staysBool)
    return strong(binaryNode(ctx, Binary::NE, finishExpr(ctx, result),
                             constantNode(ctx, 0, DType::I32, e.span), DType::Bool, e.span));
  return strong(finishExpr(ctx, result));
}

Value ScanCall::makeScan() {
  Expr *result = makeExpr(ctx, Expr::Scan, DType::F32, e.span);
  result->scan = scan;
  result->vars = fresh;
  for (const Var *var : old)
    result->positions.push_back(IndexExpr::dim(var->id));
  result->reverse = boolOption(ctx, e, "reverse", false);
  result->exclusive = boolOption(ctx, e, "exclusive", false);
  result->descending = boolOption(ctx, e, "descending", false);
  return isRecurrence ? finishRecurrence(result) : finishScan(result);
}

Value ScanCall::check() {
  if (!readArguments() || !findIndices() || !evalOperands() || !evalInit() || !requireVarying())
    return {};
  return makeScan();
}

Value tegula::evalScan(CheckContext &ctx, const ast::Expr &e) { return ScanCall(ctx, e).check(); }
