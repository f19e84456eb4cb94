//===- CheckFloatSizes.cpp - Sizes of float arithmetic ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `where C = maximum(1, capacity_factor*N*K//E)` [3.6]: a number made of sizes and constants in f64
// that is whole by its form is a size. It becomes an IndexExpr that the host computes once for each
// set of sizes.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckFloatSizes.h"
#include "frontend/check/CheckSizes.h"
#include <bit>
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

using FloatOp = IndexExpr::FloatOp;
using FloatStep = IndexExpr::FloatStep;
using Steps = llvm::SmallVector<std::pair<FloatStep, IndexExpr>>;

/// Whether a value of sizes and constants is a whole number by its form, inf and nan apart.
static bool isWholeNumber(const Expr *expr) {
  if (!isFloat(expr->type))
    return expr->type != DType::Bool;
  auto all = [&] { return llvm::all_of(expr->operands, isWholeNumber); };
  switch (expr->kind) {
  case Expr::Constant:
    return expr->floatValue == std::trunc(expr->floatValue);
  case Expr::Widen:
    return all();
  case Expr::Let:
    return isWholeNumber(expr->let->value);
  case Expr::Unary:
    switch (expr->unary) {
    case Unary::Floor:
    case Unary::Ceil:
    case Unary::Round:
    case Unary::Trunc:
      return true;
    default:
      return (expr->unary == Unary::Neg || expr->unary == Unary::Abs) && all();
    }
  case Expr::Binary:
    switch (expr->binary) {
    case Binary::FloorDiv:
      return true;
    case Binary::Add:
    case Binary::Sub:
    case Binary::Mul:
    case Binary::Mod:
    case Binary::Pow: // to a power below 0 it is not: the launch is refused
    case Binary::Max:
    case Binary::Min:
      return all();
    default:
      return false;
    }
  default:
    return false;
  }
}

static std::optional<FloatOp> floatOpOf(const Expr *expr) {
  if (expr->kind == Expr::Unary)
    switch (expr->unary) {
    case Unary::Neg:
      return FloatOp::Neg;
    case Unary::Abs:
      return FloatOp::Abs;
    case Unary::Floor:
      return FloatOp::Floor;
    case Unary::Ceil:
      return FloatOp::Ceil;
    case Unary::Round:
      return FloatOp::Round;
    case Unary::Trunc:
      return FloatOp::Trunc;
    case Unary::Sqrt:
      return FloatOp::Sqrt;
    case Unary::Exp:
      return FloatOp::Exp;
    case Unary::Exp2:
      return FloatOp::Exp2;
    case Unary::Log:
      return FloatOp::Log;
    case Unary::Log2:
      return FloatOp::Log2;
    default:
      return std::nullopt;
    }
  switch (expr->binary) {
  case Binary::Add:
    return FloatOp::Add;
  case Binary::Sub:
    return FloatOp::Sub;
  case Binary::Mul:
    return FloatOp::Mul;
  case Binary::Div:
    return FloatOp::Div;
  case Binary::FloorDiv:
    return FloatOp::FloorDiv;
  case Binary::Mod:
    return FloatOp::Mod;
  case Binary::Pow:
    return FloatOp::Pow;
  case Binary::Max:
    return FloatOp::Max;
  case Binary::Min:
    return FloatOp::Min;
  default:
    return std::nullopt;
  }
}

static void number(Steps &steps, double value) {
  // The bits of -0 are no IndexExpr's; as a size it is 0.
  steps.push_back({FloatStep::Number, IndexExpr(std::bit_cast<int64_t>(value == 0 ? 0.0 : value))});
}
static void apply(Steps &steps, FloatOp op) {
  steps.push_back({FloatStep::Apply, IndexExpr(static_cast<int64_t>(op))});
}

/// The steps that compute a value of sizes and constants; false where it is none that the host
/// computes.
static bool collectSteps(const Expr *expr, Steps &steps) {
  auto operand = [&](unsigned i) { return collectSteps(expr->operands[i], steps); };
  switch (expr->kind) {
  case Expr::Constant:
    if (isFloat(expr->type))
      number(steps, expr->floatValue);
    else
      steps.push_back({FloatStep::Push, IndexExpr(expr->intValue)});
    return expr->type != DType::Bool;
  case Expr::Index:
    steps.push_back({FloatStep::Push, expr->index});
    return expr->index.isSize();
  case Expr::Widen:
    return expr->operands[0]->type != DType::Bool && operand(0);
  case Expr::Let:
    return collectSteps(expr->let->value, steps);
  case Expr::Binary:
    // Shifts are products with powers of two, and quotients by them.
    if (expr->binary == Binary::Shl || expr->binary == Binary::Shr) {
      if (!operand(0))
        return false;
      number(steps, 2);
      if (!operand(1))
        return false;
      apply(steps, FloatOp::Pow);
      apply(steps, expr->binary == Binary::Shl ? FloatOp::Mul : FloatOp::FloorDiv);
      return true;
    }
    [[fallthrough]];
  case Expr::Unary: {
    std::optional<FloatOp> op = floatOpOf(expr);
    for (unsigned i = 0; i != expr->operands.size() && op; ++i)
      if (!operand(i))
        return false;
    if (op)
      apply(steps, *op);
    return op.has_value();
  }
  default:
    return false;
  }
}

std::optional<IndexExpr> tegula::sizeOf(CheckContext &ctx, const Value &value, bool truncates) {
  if (!value.expr || !value.weak || !value.expr->axes.empty() || value.expr->type == DType::Bool ||
      (!truncates && !isWholeNumber(value.expr)))
    return std::nullopt;
  Steps steps;
  if (!collectSteps(value.expr, steps))
    return std::nullopt;
  if (truncates)
    apply(steps, FloatOp::Trunc);
  IndexExpr size = IndexExpr::ofFloats(steps);
  return size.isOverflow() ? std::nullopt : std::optional(named(ctx, size));
}
