//===- CheckExpr.cpp - Names and arithmetic ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Integer expressions of sizes and indices stay IndexExprs for as long as arithmetic keeps them so;
// they become values only where they meet data. `/` of integers is both: the real quotient as a
// value, the whole one (which must come out even) in subscripts and sizes.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckBits.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckFunction.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckScan.h"
#include "frontend/check/CheckSizes.h"
#include <cmath>
#include <numbers>

using namespace tegula;
using namespace tegula::checked;

static Value evalName(CheckContext &ctx, const ast::Ident &name);
static Value evalUnary(CheckContext &ctx, const ast::Expr &e);
static Value evalBinary(CheckContext &ctx, const ast::Expr &e);

Value tegula::eval(CheckContext &ctx, const ast::Expr &e) {
  switch (e.kind) {
  case ast::Expr::Integer: {
    if (e.intValue >= 0)
      return indexValue(ctx, IndexExpr(e.intValue), e.span);
    Expr *large = makeExpr(ctx, Expr::Constant, DType::U64, e.span); // from 2^63 on, of u64 alone
    large->intValue = e.intValue;
    return strong(large);
  }
  case ast::Expr::Float:
    return floatLiteral(ctx, e.floatValue, e.span);
  case ast::Expr::String: // reported by the parser
    return {};
  case ast::Expr::Name: {
    Value value = evalName(ctx, e.name);
    return value;
  }
  case ast::Expr::Unary:
    return evalUnary(ctx, e);
  case ast::Expr::Binary:
    return evalBinary(ctx, e);
  case ast::Expr::Compare:
    return evalCompare(ctx, e);
  case ast::Expr::Index:
    return evalRead(ctx, e);
  case ast::Expr::Call:
    return evalCall(ctx, e);
  case ast::Expr::Tuple:
    ctx.report(Code::UnexpectedTuple, e.span, "expected one value, got a tuple")
        .note("tuples are arguments of kernels, and groups in subscripts: x[n, (h, d)]");
    return {};
  }
  return {};
}

static Value evalName(CheckContext &ctx, const ast::Ident &name) {
  Entity *entity = ctx.lookup(name.name);
  if (!entity) {
    if (name.name == "inf")
      return floatLiteral(ctx, INFINITY, name.span);
    if (name.name == "nan")
      return floatLiteral(ctx, NAN, name.span);
    if (name.name == "pi")
      return floatLiteral(ctx, std::numbers::pi, name.span);
    if (name.name == "true" || name.name == "false")
      return strong(booleanNode(ctx, name.name == "true", name.span));
    unknownName(ctx, name, /*isCall=*/false);
    return {};
  }
  switch (entity->kind) {
  case Entity::Poison:
    return {};
  case Entity::Index:
    return indexValue(ctx, IndexExpr::dim(entity->var->id), name.span);
  case Entity::Scalar: {
    Value value = entity->value;
    if (value.expr && !ctx.renames.empty())
      value.expr = renameVars(ctx, value.expr);
    if (value.index && !ctx.renames.empty())
      value.index = renameVars(ctx, *value.index);
    return value;
  }
  case Entity::State: {
    for (const auto &[old, now] : ctx.renames)
      if (llvm::is_contained(entity->state->state->axes, old)) {
        ctx.report(Code::ScanOver, name.span,
                   "the state '" + name.name +
                       "' varies along the scanned index, whose points run in any order");
        return {};
      }
    Expr *expr = makeExpr(ctx, Expr::State, entity->state->state->type, name.span);
    expr->state = entity->state->state;
    Value result = strong(finishExpr(ctx, expr));
    result.storage = expr->state->storage.value_or(expr->type);
    return result;
  }
  case Entity::Tuple:
    ctx.report(Code::UnexpectedTuple, name.span, "'" + name.name + "' is " + describe(*entity))
        .note("it is read one element at a time: " + name.name + "[0]")
        .fix("take its first element", {{{name.span.file, name.span.end, name.span.end}, "[0]"}});
    return {};
  case Entity::Tensor: {
    TensorInfo &info = *entity->tensor;
    if (info.isPoison)
      return {};
    if (info.tensor->dims.empty()) {
      const Expr *read = readTensor(ctx, info, {}, nullptr, name.span);
      return read ? ofElement(info, read) : Value{};
    }
    std::string form = name.name + "[";
    for (size_t i = 0; i != info.tensor->dims.size(); ++i)
      form += std::string(i ? ", " : "") +
              (i < 4 ? std::string(1, "ijkl"[i]) : "i" + std::to_string(i));
    Report record = ctx.report(Code::WholeTensor, name.span,
                               "'" + name.name + "' is " + describe(*entity) +
                                   " and needs its subscripts here");
    record.note("write " + form +
                "]: arithmetic is on elements; whole tensors are arguments of "
                "kernels alone");
    // `y = relu(x)`: the left side needs them as well.
    const ast::Stmt *stmt = ctx.currentStmt;
    if (stmt && stmt->kind == ast::Stmt::Assign && stmt->targets.size() == 1 &&
        !stmt->targets[0].hasSubscripts && !stmt->targets[0].hasColon && ctx.expansions.empty()) {
      uint32_t end = stmt->targets[0].span.end;
      std::string subscripts = form.substr(name.name.size()) + "]";
      record.fix("define each element",
                 {{{name.span.file, end, end}, subscripts},
                  {{name.span.file, name.span.end, name.span.end}, subscripts}});
    }
    return {};
  }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

static Value negate(CheckContext &ctx, const Value &a, Span span) {
  if (a.isPoison())
    return {};
  if (a.isIndex())
    return indexValue(ctx, -*a.index, span);
  Value result;
  if (a.expr->kind == Expr::Constant && isFloat(a.expr->type)) {
    result = Value{constantNode(ctx, -a.expr->floatValue, a.expr->type, span), a.weak, {}, {}};
  } else {
    const Expr *operand = a.expr->type == DType::Bool ? widen(ctx, a.expr, DType::I32) : a.expr;
    result = Value{unaryNode(ctx, Unary::Neg, operand, operand->type, span), a.weak, {}, {}};
  }
  if (a.index) {
    result.index = -*a.index;
    result.exact = a.exact;
  }
  return result;
}

static Value evalUnary(CheckContext &ctx, const ast::Expr &e) {
  if (e.unaryOp == ast::UnaryOp::Not) {
    Value value = eval(ctx, *e.operands[0]);
    const Expr *operand = asCondition(ctx, value, e.operands[0]->span, "'not'", Code::OperandType);
    if (!operand)
      return {};
    if (std::optional<bool> known = boolOf(operand))
      return strong(booleanNode(ctx, !*known, e.span));
    return strong(unaryNode(ctx, Unary::Not, operand, DType::Bool, e.span));
  }
  Value value = eval(ctx, *e.operands[0]);
  if (e.unaryOp == ast::UnaryOp::Plus)
    return value;
  if (e.unaryOp == ast::UnaryOp::BitNot)
    return complement(ctx, value, e.span, e.opSpan);
  return negate(ctx, value, e.span);
}

static Value evalBinary(CheckContext &ctx, const ast::Expr &e) {
  if (e.binaryOp == ast::BinaryOp::And || e.binaryOp == ast::BinaryOp::Or)
    return evalLogic(ctx, e);
  // Long sums are deep on the left: walk down that side without recursion.
  llvm::SmallVector<const ast::Expr *> chain;
  const ast::Expr *left = &e;
  while (left->kind == ast::Expr::Binary && left->binaryOp != ast::BinaryOp::And &&
         left->binaryOp != ast::BinaryOp::Or && left->binaryOp != ast::BinaryOp::Pow) {
    chain.push_back(left);
    left = left->operands[0].get();
  }
  Value value;
  if (left->kind == ast::Expr::Binary && left->binaryOp == ast::BinaryOp::Pow) {
    Value base = eval(ctx, *left->operands[0]);
    Value exponent = eval(ctx, *left->operands[1]);
    value = power(ctx, base, exponent, left->span);
  } else {
    value = eval(ctx, *left);
  }
  for (const ast::Expr *at : llvm::reverse(chain)) {
    Value right = eval(ctx, *at->operands[1]);
    Binary op = Binary::Add;
    switch (at->binaryOp) {
    case ast::BinaryOp::Add:
      op = Binary::Add;
      break;
    case ast::BinaryOp::Sub:
      op = Binary::Sub;
      break;
    case ast::BinaryOp::Mul:
      op = Binary::Mul;
      break;
    case ast::BinaryOp::Div:
      op = Binary::Div;
      break;
    case ast::BinaryOp::FloorDiv:
      op = Binary::FloorDiv;
      break;
    case ast::BinaryOp::Mod:
      op = Binary::Mod;
      break;
    case ast::BinaryOp::BitAnd:
      op = Binary::BitAnd;
      break;
    case ast::BinaryOp::BitOr:
      op = Binary::BitOr;
      break;
    case ast::BinaryOp::BitXor:
      op = Binary::BitXor;
      break;
    case ast::BinaryOp::Shl:
      op = Binary::Shl;
      break;
    case ast::BinaryOp::Shr:
      op = Binary::Shr;
      break;
    default:
      break;
    }
    value = op >= Binary::BitAnd && op <= Binary::Shr
                ? bitwise(ctx, op, value, right, at->span, at->opSpan)
                : arith(ctx, op, value, right, at->span);
  }
  return value;
}

static double foldArith(Binary op, double a, double b) {
  switch (op) {
  case Binary::Add:
    return a + b;
  case Binary::Sub:
    return a - b;
  case Binary::Mul:
    return a * b;
  case Binary::Div:
    return a / b;
  case Binary::FloorDiv:
    return std::floor(a / b);
  case Binary::Mod: {
    double r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  case Binary::Max:
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  case Binary::Min:
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  default:
    return std::pow(a, b);
  }
}

Value tegula::arith(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  std::optional<IndexExpr> index;
  std::vector<ExactDivision> exact;
  if (a.index && b.index) {
    exact = a.exact;
    for (const ExactDivision &division : b.exact)
      if (!llvm::is_contained(exact, division))
        exact.push_back(division);
    switch (op) {
    case Binary::Add:
      index = *a.index + *b.index;
      break;
    case Binary::Sub:
      index = *a.index - *b.index;
      break;
    case Binary::Mul:
      index = *a.index * *b.index;
      break;
    case Binary::Div:
      if (b.index->asConstant() == 0 || !isFormula(ctx, a, b))
        break; // inf or nan as a value; reported where it is a subscript or size
      index = named(ctx, IndexExpr::floorDiv(*a.index, *b.index));
      exact.push_back({*a.index, *b.index});
      break;
    case Binary::FloorDiv:
    case Binary::Mod:
      if (!isDivisor(ctx, *b.index) || !isFormula(ctx, a, b))
        break;
      // Where a divisor of 0 leaves the dividend's indices without points nothing is divided: `i %
      // N`, i from 0 to 2*N.
      if (!ctx.isSilent() && !usesData(ctx, *a.index) && !usesData(ctx, *b.index)) {
        IndexExpr divisor = named(ctx, *b.index);
        Domain points = domainOf(ctx, {divisor, named(ctx, *a.index)}, false, true);
        bool isEmpty = llvm::any_of(points.vars, [](const RangedVar &var) {
          std::optional<int64_t> extent = (var.hi - var.lo).asConstant();
          return extent && *extent <= 0;
        });
        if (isEmpty && divisor.asConstant() == 0) {
          index = *a.index;
          break;
        }
        if (isEmpty || (!divisor.asConstant() &&
                        ctx.prover->holds(Condition::nonZero(divisor), points).proved())) {
          index = named(ctx, op == Binary::Mod ? IndexExpr::mod(*a.index, *b.index)
                                               : IndexExpr::floorDiv(*a.index, *b.index));
          break;
        }
      }
      if (!requireNonZero(ctx, *b.index, span))
        return {};
      index = named(ctx, op == Binary::Mod ? IndexExpr::mod(*a.index, *b.index)
                                           : IndexExpr::floorDiv(*a.index, *b.index));
      break;
    default:
      break;
    }
    if (index && index->isOverflow()) {
      ctx.report(Code::SizeOverflow, span,
                 "this integer leaves the range of 64 bits, or its formula is too long");
      return {};
    }
    if (index && exact.empty())
      return indexValue(ctx, *index, span);
  }
  auto [type, weak] = meet(ctx, a, b, span);
  if (type == DType::Bool)
    type = DType::I32;
  if (op == Binary::Div && !isFloat(type)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  }
  const Expr *x = coerce(ctx, a, type), *y = coerce(ctx, b, type);
  Value result;
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && a.weak && b.weak)
    result = Value{constantNode(ctx, foldArith(op, *p, *q), type, span), true, {}, {}};
  else
    result = Value{binaryNode(ctx, op, x, y, type, span), weak, {}, {}};
  result.index = index;
  if (index)
    result.exact = std::move(exact);
  return result;
}

Value tegula::extremum(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span,
                       bool isClamp) {
  if (a.isPoison() || b.isPoison())
    return {};
  if (a.isIndex() && b.isIndex() && isFormula(ctx, a, b))
    return indexValue(ctx,
                      named(ctx, op == Binary::Max ? IndexExpr::max(*a.index, *b.index)
                                                   : IndexExpr::min(*a.index, *b.index)),
                      span);
  auto [type, weak] = meet(ctx, a, b, span);
  const Expr *x = coerce(ctx, a, type), *y = coerce(ctx, b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && weak)
    return Value{constantNode(ctx, foldArith(op, *p, *q), type, span), true, {}, {}};
  return Value{binaryNode(ctx, op, x, y, type, span, isClamp), weak, {}, {}};
}

Value tegula::ofFloats(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  auto [type, weak] = meet(ctx, a, b, span);
  if (!isFloat(type)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  }
  const Expr *x = coerce(ctx, a, type), *y = coerce(ctx, b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && weak)
    return Value{constantNode(ctx, op == Binary::Atan2 ? std::atan2(*p, *q) : std::copysign(*p, *q),
                              type, span),
                 true,
                 {},
                 {}};
  return Value{binaryNode(ctx, op, x, y, type, span), weak, {}, {}};
}
