//===- CheckBuild.cpp - Typed expression nodes of the checker ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Types of operations are decided here: a value that meets another takes the wider type of the two
// (bool, i32, u32, i64, u64, f32, f64), a weak one that of the other [2.4, 2.5].
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

checked::Expr *tegula::makeExpr(CheckContext &ctx, Expr::Kind kind, DType type, Span span) {
  Expr &expr = ctx.program->exprs.emplace_back();
  expr.kind = kind;
  expr.type = type;
  expr.span = span;
  return &expr;
}

static void insertSorted(std::vector<unsigned> &axes, unsigned id) {
  auto at = std::lower_bound(axes.begin(), axes.end(), id);
  if (at == axes.end() || *at != id)
    axes.insert(at, id);
}

void tegula::addAxes(CheckContext &ctx, std::vector<unsigned> &axes, const IndexExpr &expr) {
  for (const IndexVar &var : expr.variables()) {
    if (var.isSymbol())
      continue;
    const Var &bound = ctx.program->vars[var.position()];
    if (bound.kind == Var::Data)
      addAxes(axes, bound.data);
    else
      insertSorted(axes, bound.id);
  }
}

void tegula::addAxes(std::vector<unsigned> &axes, const Expr *expr) {
  if (expr)
    for (unsigned id : expr->axes)
      insertSorted(axes, id);
}

const checked::Expr *tegula::finishExpr(CheckContext &ctx, Expr *expr) {
  std::vector<unsigned> axes;
  for (const Expr *operand : expr->operands)
    addAxes(axes, operand);
  switch (expr->kind) {
  case Expr::Index:
    addAxes(ctx, axes, expr->index);
    break;
  case Expr::Let:
    addAxes(axes, expr->let->value);
    break;
  case Expr::State:
    axes = expr->state->axes;
    break;
  case Expr::Read:
    for (const IndexExpr &subscript : expr->subscripts)
      addAxes(ctx, axes, subscript);
    for (const auto &[numerator, denominator] : expr->exact) {
      addAxes(ctx, axes, numerator);
      addAxes(ctx, axes, denominator);
    }
    addAxes(axes, expr->fill);
    addAxes(axes, expr->guard);
    break;
  case Expr::Reduce:
  case Expr::Scan: {
    addAxes(axes, expr->filter);
    std::vector<unsigned> own;
    for (const Var *var : expr->vars)
      own.push_back(var->id);
    llvm::erase_if(axes, [&](unsigned id) { return llvm::is_contained(own, id); });
    // Bounds may use the vars before them.
    for (const Var *var : expr->vars) {
      if (var->kind == Var::Tile)
        continue; // of the loop, not of the reduction
      std::vector<unsigned> bounds;
      addAxes(ctx, bounds, var->lo);
      addAxes(ctx, bounds, var->hi);
      for (unsigned id : bounds)
        if (!llvm::is_contained(own, id))
          insertSorted(axes, id);
    }
    for (const IndexExpr &position : expr->positions)
      addAxes(ctx, axes, position);
    break;
  }
  default:
    break;
  }
  expr->axes = std::move(axes);
  return expr;
}

const checked::Expr *tegula::constantNode(CheckContext &ctx, double value, DType type, Span span) {
  Expr *expr = makeExpr(ctx, Expr::Constant, type, span);
  if (isFloat(type))
    expr->floatValue = type == DType::F32 ? static_cast<float>(value) : value;
  else
    expr->intValue = static_cast<int64_t>(value);
  return expr;
}

const checked::Expr *tegula::booleanNode(CheckContext &ctx, bool value, Span span) {
  Expr *expr = makeExpr(ctx, Expr::Constant, DType::Bool, span);
  expr->intValue = value;
  return expr;
}

const checked::Expr *tegula::indexNode(CheckContext &ctx, const IndexExpr &index, Span span) {
  if (std::optional<int64_t> value = index.asConstant()) {
    Expr *expr = makeExpr(ctx, Expr::Constant, DType::I64, span);
    expr->intValue = *value;
    return expr;
  }
  Expr *expr = makeExpr(ctx, Expr::Index, DType::I64, span);
  expr->index = index;
  // A polynomial of which 64 bits are left is a number that wraps; a quotient or an extreme of one
  // is another.
  for (const IndexExpr::Term &term : index.terms())
    for (const auto &[atom, power] : term.factors)
      for (const IndexExpr &operand : atom->operands)
        if (atom->kind != IndexExpr::AtomKind::Float)
          requireIn64Bits(ctx, operand, span);
  return finishExpr(ctx, expr);
}

Value tegula::indexValue(CheckContext &ctx, const IndexExpr &index, Span span) {
  if (index.isOverflow()) {
    ctx.report(Code::SizeOverflow, span,
               "this integer leaves the range of 64 bits, or its formula is too long");
    return {};
  }
  const Expr *expr = indexNode(ctx, index, span);
  return Value{expr, expr->axes.empty() && !usesData(ctx, index), index, {}};
}

Value tegula::floatLiteral(CheckContext &ctx, double value, Span span) {
  return Value{constantNode(ctx, value, DType::F64, span), true, std::nullopt, {}};
}

const checked::Expr *tegula::binaryNode(CheckContext &ctx, Binary op, const Expr *a, const Expr *b,
                                        DType type, Span span, bool isClamp) {
  Expr *expr = makeExpr(ctx, Expr::Binary, type, span);
  expr->binary = op;
  expr->isClamp = isClamp;
  expr->operands = {a, b};
  return finishExpr(ctx, expr);
}

const checked::Expr *tegula::unaryNode(CheckContext &ctx, Unary op, const Expr *a, DType type,
                                       Span span) {
  Expr *expr = makeExpr(ctx, Expr::Unary, type, span);
  expr->unary = op;
  expr->operands = {a};
  return finishExpr(ctx, expr);
}

std::optional<double> tegula::constantOf(const Expr *expr) {
  if (expr->kind != Expr::Constant)
    return std::nullopt;
  if (isFloat(expr->type))
    return expr->floatValue;
  return expr->type == DType::U64 ? static_cast<double>(static_cast<uint64_t>(expr->intValue))
                                  : static_cast<double>(expr->intValue);
}

std::optional<bool> tegula::boolOf(const Expr *expr) {
  if (expr->kind != Expr::Constant || expr->type != DType::Bool)
    return std::nullopt;
  return expr->intValue != 0;
}

const checked::Expr *tegula::widen(CheckContext &ctx, const Expr *expr, DType type) {
  if (expr->type == type)
    return expr;
  if (expr->kind == Expr::Constant && !(isInteger(expr->type) && type == DType::F32 &&
                                        (std::abs(expr->intValue) > (int64_t(1) << 52) ||
                                         (expr->type == DType::U64 && expr->intValue < 0)))) {
    if (!isFloat(type)) { // integers keep all their bits
      Expr *wide = makeExpr(ctx, Expr::Constant, type, expr->span);
      wide->intValue = expr->intValue;
      return wide;
    }
    return constantNode(ctx, *constantOf(expr), type, expr->span);
  }
  Expr *wide = makeExpr(ctx, Expr::Widen, type, expr->span);
  wide->operands = {expr};
  return finishExpr(ctx, wide);
}

static bool fits(DType type, int64_t value) {
  // A negative number wraps where it meets an unsigned type, as in PyTorch.
  if (type == DType::I32 || type == DType::U32)
    return value >= INT32_MIN && value <= maxValue(type);
  return true;
}

const checked::Expr *tegula::coerce(CheckContext &ctx, const Value &value, DType type) {
  const Expr *expr = value.expr;
  if (expr->type == type)
    return expr;
  if (width(expr->type) < width(type))
    return widen(ctx, expr, type);
  // Only weak values narrow: f64 to f32, i64 to i32.
  assert(value.weak && "only weak values narrow");
  if (expr->kind == Expr::Constant) {
    if (isFloat(type))
      return constantNode(ctx, *constantOf(expr), type, expr->span);
    Expr *narrow = makeExpr(ctx, Expr::Constant, type, expr->span);
    narrow->intValue = wrap(expr->intValue, type);
    return narrow;
  }
  if (expr->kind == Expr::Where) {
    const Expr *yes = coerce(ctx, Value{expr->operands[1], true, std::nullopt, {}}, type);
    const Expr *no = coerce(ctx, Value{expr->operands[2], true, std::nullopt, {}}, type);
    Expr *narrow = makeExpr(ctx, Expr::Where, type, expr->span);
    narrow->operands = {expr->operands[0], yes, no};
    return finishExpr(ctx, narrow);
  }
  if (expr->kind == Expr::Widen && width(expr->operands[0]->type) <= width(type))
    return widen(ctx, expr->operands[0], type);
  Expr *narrow = makeExpr(ctx, Expr::Convert, type, expr->span);
  narrow->target = type;
  narrow->isWeak = true;
  narrow->operands = {expr};
  return finishExpr(ctx, narrow);
}

DType tegula::typeAlone(const Value &value) {
  if (value.weak && value.expr->type == DType::F64)
    return DType::F32;
  return value.expr->type;
}

const checked::Expr *tegula::settle(CheckContext &ctx, const Value &value) {
  return coerce(ctx, value, typeAlone(value));
}

std::pair<DType, bool> tegula::meet(CheckContext &ctx, const Value &a, const Value &b, Span span) {
  DType x = a.expr->type, y = b.expr->type;
  if (a.weak && b.weak)
    return {width(x) > width(y) ? x : y, true};
  if (a.weak || b.weak) {
    const Value &weak = a.weak ? a : b;
    DType own = weak.expr->type, other = a.weak ? y : x;
    if (isFloat(own))
      return {isFloat(other) ? other : DType::F32, false};
    if (isFloat(other))
      return {other, false};
    if (isInteger(own)) {
      if (other == DType::Bool)
        other = DType::I32;
      std::optional<double> value = constantOf(weak.expr);
      if (value && !fits(other, weak.expr->intValue))
        return {DType::I64, false};
      return {other, false};
    }
    return {width(own) > width(other) ? own : other, false};
  }
  DType wider = width(x) > width(y) ? x : y;
  if (isUnsigned(x) == isUnsigned(y) || !isInteger(x) || !isInteger(y))
    return {wider, false};
  if (wider != DType::U64)
    return {DType::I64, false}; // it holds i32 and u32
  const Value &other = isUnsigned(x) ? b : a;
  Report record = ctx.report(Code::OperandType, span,
                             "u64 and " + toString(other.expr->type) + " have no common type");
  record.note("convert one of the two");
  if (ctx.expansions.empty() && other.expr->span.isValid())
    record.fix("convert it", {{other.expr->span, "u64(" + ctx.text(other.expr->span).str() + ")"}});
  return {DType::U64, false};
}
