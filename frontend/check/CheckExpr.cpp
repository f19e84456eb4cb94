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

#include "frontend/check/Checker.h"
#include <cmath>
#include <numbers>

using namespace tegula;
using namespace tegula::checked;

Value Checker::eval(const ast::Expr &e) {
  switch (e.kind) {
  case ast::Expr::Integer: {
    if (e.intValue >= 0)
      return indexValue(IndexExpr(e.intValue), e.span);
    Expr *large = make(Expr::Constant, DType::U64, e.span); // from 2^63 on, of u64 alone
    large->intValue = e.intValue;
    return strong(large);
  }
  case ast::Expr::Float:
    return floatLiteral(e.floatValue, e.span);
  case ast::Expr::String: // reported by the parser
    return {};
  case ast::Expr::Name: {
    Value value = evalName(e.name);
    return value;
  }
  case ast::Expr::Unary:
    return evalUnary(e);
  case ast::Expr::Binary:
    return evalBinary(e);
  case ast::Expr::Compare:
    return evalCompare(e);
  case ast::Expr::Index:
    return evalRead(e);
  case ast::Expr::Call:
    return evalCall(e);
  case ast::Expr::Tuple:
    report(Code::UnexpectedTuple, e.span, "expected one value, got a tuple")
        .note("tuples are arguments of kernels, and groups in subscripts: x[n, (h, d)]");
    return {};
  }
  return {};
}

Value Checker::evalName(const ast::Ident &name) {
  Entity *entity = lookup(name.name);
  if (!entity) {
    if (name.name == "inf")
      return floatLiteral(INFINITY, name.span);
    if (name.name == "nan")
      return floatLiteral(NAN, name.span);
    if (name.name == "pi")
      return floatLiteral(std::numbers::pi, name.span);
    if (name.name == "true" || name.name == "false")
      return strong(boolean(name.name == "true", name.span));
    unknownName(name, /*isCall=*/false);
    return {};
  }
  switch (entity->kind) {
  case Entity::Poison:
    return {};
  case Entity::Index:
    return indexValue(IndexExpr::dim(entity->var->id), name.span);
  case Entity::Scalar: {
    Value value = entity->value;
    if (value.expr && !renames.empty())
      value.expr = renamed(value.expr);
    if (value.index && !renames.empty())
      value.index = renamed(*value.index);
    return value;
  }
  case Entity::State: {
    for (const auto &[old, now] : renames)
      if (llvm::is_contained(entity->state->state->axes, old)) {
        report(Code::ScanOver, name.span,
               "the state '" + name.name +
                   "' varies along the scanned index, whose points run in any order");
        return {};
      }
    Expr *expr = make(Expr::State, entity->state->state->type, name.span);
    expr->state = entity->state->state;
    return strong(finish(expr));
  }
  case Entity::Tuple:
    report(Code::UnexpectedTuple, name.span, "'" + name.name + "' is " + describe(*entity))
        .note("it is read one element at a time: " + name.name + "[0]")
        .fix("take its first element", {{{name.span.file, name.span.end, name.span.end}, "[0]"}});
    return {};
  case Entity::Tensor: {
    TensorInfo &info = *entity->tensor;
    if (info.isPoison)
      return {};
    if (info.tensor->dims.empty()) {
      const Expr *read = readTensor(info, {}, nullptr, name.span);
      return read ? strong(read) : Value{};
    }
    std::string form = name.name + "[";
    for (size_t i = 0; i != info.tensor->dims.size(); ++i)
      form += std::string(i ? ", " : "") +
              (i < 4 ? std::string(1, "ijkl"[i]) : "i" + std::to_string(i));
    Report record =
        report(Code::WholeTensor, name.span,
               "'" + name.name + "' is " + describe(*entity) + " and needs its subscripts here");
    record.note("write " + form +
                "]: arithmetic is on elements; whole tensors are arguments of "
                "kernels alone");
    // `y = relu(x)`: the left side needs them as well.
    const ast::Stmt *stmt = currentStmt;
    if (stmt && stmt->kind == ast::Stmt::Assign && stmt->targets.size() == 1 &&
        !stmt->targets[0].hasSubscripts && !stmt->targets[0].hasColon && expansions.empty()) {
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

Value Checker::negate(const Value &a, Span span) {
  if (a.isPoison())
    return {};
  if (a.isIndex())
    return indexValue(-*a.index, span);
  Value result;
  if (a.expr->kind == Expr::Constant && isFloat(a.expr->type)) {
    result = Value{constant(-a.expr->floatValue, a.expr->type, span), a.weak, {}, {}};
  } else {
    const Expr *operand = a.expr->type == DType::Bool ? widen(a.expr, DType::I32) : a.expr;
    result = Value{unaryNode(Unary::Neg, operand, operand->type, span), a.weak, {}, {}};
  }
  if (a.index) {
    result.index = -*a.index;
    result.exact = a.exact;
  }
  return result;
}

Value Checker::evalUnary(const ast::Expr &e) {
  if (e.unaryOp == ast::UnaryOp::Not) {
    Value value = eval(*e.operands[0]);
    const Expr *operand = condition(value, e.operands[0]->span, "'not'", Code::OperandType);
    if (!operand)
      return {};
    if (std::optional<bool> known = boolOf(operand))
      return strong(boolean(!*known, e.span));
    return strong(unaryNode(Unary::Not, operand, DType::Bool, e.span));
  }
  Value value = eval(*e.operands[0]);
  if (e.unaryOp == ast::UnaryOp::Plus)
    return value;
  if (e.unaryOp == ast::UnaryOp::BitNot)
    return complement(value, e.span, e.opSpan);
  return negate(value, e.span);
}

Value Checker::evalBinary(const ast::Expr &e) {
  if (e.binaryOp == ast::BinaryOp::And || e.binaryOp == ast::BinaryOp::Or)
    return evalLogic(e);
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
    Value base = eval(*left->operands[0]);
    Value exponent = eval(*left->operands[1]);
    value = power(base, exponent, left->span);
  } else {
    value = eval(*left);
  }
  for (const ast::Expr *at : llvm::reverse(chain)) {
    Value right = eval(*at->operands[1]);
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
    value = op >= Binary::BitAnd && op <= Binary::Shr ? bits(op, value, right, at->span, at->opSpan)
                                                      : arith(op, value, right, at->span);
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

Value Checker::arith(Binary op, const Value &a, const Value &b, Span span) {
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
      if (b.index->asConstant() == 0 || !isFormula(a, b))
        break; // inf or nan as a value; reported where it is a subscript or size
      index = named(IndexExpr::floorDiv(*a.index, *b.index));
      exact.push_back({*a.index, *b.index});
      break;
    case Binary::FloorDiv:
    case Binary::Mod:
      if (!isDivisor(*b.index) || !isFormula(a, b))
        break;
      // Where a divisor of 0 leaves the dividend's indices without points nothing is divided: `i %
      // N`, i from 0 to 2*N.
      if (!isSilent() && !usesData(*a.index) && !usesData(*b.index)) {
        IndexExpr divisor = named(*b.index);
        Domain points = domainOf({divisor, named(*a.index)}, false, true);
        bool isEmpty = llvm::any_of(points.vars, [](const RangedVar &var) {
          std::optional<int64_t> extent = (var.hi - var.lo).asConstant();
          return extent && *extent <= 0;
        });
        if (isEmpty && divisor.asConstant() == 0) {
          index = *a.index;
          break;
        }
        if (isEmpty || (!divisor.asConstant() &&
                        prover->holds(Condition::nonZero(divisor), points).proved())) {
          index = named(op == Binary::Mod ? IndexExpr::mod(*a.index, *b.index)
                                          : IndexExpr::floorDiv(*a.index, *b.index));
          break;
        }
      }
      if (!requireNonZero(*b.index, span))
        return {};
      index = named(op == Binary::Mod ? IndexExpr::mod(*a.index, *b.index)
                                      : IndexExpr::floorDiv(*a.index, *b.index));
      break;
    default:
      break;
    }
    if (index && index->isOverflow()) {
      report(Code::SizeOverflow, span,
             "this integer leaves the range of 64 bits, or its formula is too long");
      return {};
    }
    if (index && exact.empty())
      return indexValue(*index, span);
  }
  auto [type, weak] = meet(a, b, span);
  if (type == DType::Bool)
    type = DType::I32;
  if (op == Binary::Div && !isFloat(type)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  }
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  Value result;
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && a.weak && b.weak)
    result = Value{constant(foldArith(op, *p, *q), type, span), true, {}, {}};
  else
    result = Value{binaryNode(op, x, y, type, span), weak, {}, {}};
  result.index = index;
  if (index)
    result.exact = std::move(exact);
  return result;
}

Value Checker::extremum(Binary op, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  if (a.isIndex() && b.isIndex() && isFormula(a, b))
    return indexValue(named(op == Binary::Max ? IndexExpr::max(*a.index, *b.index)
                                              : IndexExpr::min(*a.index, *b.index)),
                      span);
  auto [type, weak] = meet(a, b, span);
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && weak)
    return Value{constant(foldArith(op, *p, *q), type, span), true, {}, {}};
  return Value{binaryNode(op, x, y, type, span), weak, {}, {}};
}

Value Checker::ofFloats(Binary op, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  auto [type, weak] = meet(a, b, span);
  if (!isFloat(type)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  }
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && weak)
    return Value{
        constant(op == Binary::Atan2 ? std::atan2(*p, *q) : std::copysign(*p, *q), type, span),
        true,
        {},
        {}};
  return Value{binaryNode(op, x, y, type, span), weak, {}, {}};
}
