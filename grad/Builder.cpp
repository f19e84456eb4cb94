//===- Builder.cpp - New values over a checked program -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Builder.h"

#include "grad/Match.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

const Var *Builder::newAxis(StringRef name, const IndexExpr &lo, const IndexExpr &hi) {
  Var fresh;
  fresh.id = static_cast<unsigned>(program.vars.size());
  fresh.name = name.str();
  fresh.lo = lo;
  fresh.hi = hi;
  program.vars.push_back(std::move(fresh));
  return &program.vars.back();
}

const Tensor *Builder::newTensor(StringRef name, DType type, std::vector<IndexExpr> dims,
                                 Tensor::Kind kind) {
  Tensor fresh;
  fresh.kind = kind;
  fresh.name = name.str();
  fresh.type = type;
  fresh.dims = std::move(dims);
  program.tensors.push_back(std::move(fresh));
  return &program.tensors.back();
}

Expr *Builder::make(Expr::Kind kind, DType type) {
  program.exprs.emplace_back();
  Expr *result = &program.exprs.back();
  result->kind = kind;
  result->type = type;
  return result;
}

Expr *Builder::copy(const Expr *value) {
  Expr made = *value; // the deque may grow while it is copied
  program.exprs.push_back(std::move(made));
  return &program.exprs.back();
}

bool isNumber(const Expr *value, double number) {
  if (value->kind == Expr::Widen || (value->kind == Expr::Convert && value->isWeak))
    return isNumber(value->operands[0], number);
  if (value->kind == Expr::Index)
    return value->index.asConstant() == static_cast<int64_t>(number) &&
           number == static_cast<double>(static_cast<int64_t>(number));
  if (value->kind != Expr::Constant)
    return false;
  return isFloat(value->type) ? value->floatValue == number
                              : static_cast<double>(value->intValue) == number;
}

unsigned weigh(const Expr *value, unsigned bound) {
  unsigned total = 0;
  auto visit = [&](auto &&self, const Expr *at) -> void {
    if (total >= bound)
      return;
    if (const Expr *x = matchWhole(at)) {
      ++total;
      self(self, x);
      return;
    }
    bool isQuiet = at->kind == Expr::Widen || at->kind == Expr::Constant ||
                   at->kind == Expr::Index || at->kind == Expr::Scalar;
    total += isQuiet ? 0 : at->kind == Expr::Reduce || at->kind == Expr::Scan ? 8 : 1;
    for (const Expr *operand : at->operands)
      self(self, operand);
    if (at->filter)
      self(self, at->filter);
    if (at->guard)
      self(self, at->guard);
  };
  visit(visit, value);
  return total;
}

const Expr *Builder::number(double value) {
  Expr *result = make(Expr::Constant, DType::F32);
  result->floatValue = value;
  return result;
}

const Expr *Builder::index(const IndexExpr &value) {
  Expr *result = make(Expr::Index, DType::I64);
  result->index = value;
  return result;
}

static DType floatTypeOf(std::initializer_list<const Expr *> values) {
  for (const Expr *value : values)
    if (value->type == DType::F64)
      return DType::F64;
  return DType::F32;
}

const Expr *Builder::unary(checked::Unary op, const Expr *value) {
  Expr *result = make(Expr::Unary, floatTypeOf({value}));
  result->unary = op;
  result->operands = {value};
  return result;
}

const Expr *Builder::binary(checked::Binary op, const Expr *lhs, const Expr *rhs) {
  Expr *result = make(Expr::Binary, floatTypeOf({lhs, rhs}));
  result->binary = op;
  result->operands = {lhs, rhs};
  return result;
}

static bool isNegation(const Expr *value) {
  return value->kind == Expr::Unary && value->unary == Unary::Neg;
}

const Expr *Builder::add(const Expr *lhs, const Expr *rhs) {
  if (isNumber(lhs, 0))
    return rhs;
  if (isNumber(rhs, 0))
    return lhs;
  if (isNegation(rhs))
    return sub(lhs, rhs->operands[0]);
  return binary(checked::Binary::Add, lhs, rhs);
}

const Expr *Builder::sub(const Expr *lhs, const Expr *rhs) {
  if (isNumber(rhs, 0))
    return lhs;
  if (isNumber(lhs, 0))
    return neg(rhs);
  return binary(checked::Binary::Sub, lhs, rhs);
}

const Expr *Builder::mul(const Expr *lhs, const Expr *rhs) {
  if (isNumber(lhs, 1))
    return rhs;
  if (isNumber(rhs, 1))
    return lhs;
  if (isNumber(lhs, -1))
    return neg(rhs);
  if (isNumber(rhs, -1))
    return neg(lhs);
  if (isNegation(lhs))
    return neg(mul(lhs->operands[0], rhs));
  if (isNegation(rhs))
    return neg(mul(lhs, rhs->operands[0]));
  return binary(checked::Binary::Mul, lhs, rhs);
}

const Expr *Builder::div(const Expr *lhs, const Expr *rhs) {
  if (isNumber(rhs, 1))
    return lhs;
  if (isNegation(lhs))
    return neg(div(lhs->operands[0], rhs));
  return binary(checked::Binary::Div, lhs, rhs);
}

const Expr *Builder::neg(const Expr *value) {
  if (isNegation(value))
    return value->operands[0];
  if (value->kind == Expr::Constant && isFloat(value->type))
    return number(-value->floatValue);
  if (value->kind == Expr::Binary && value->binary == checked::Binary::Sub)
    return binary(checked::Binary::Sub, value->operands[1], value->operands[0]);
  return unary(checked::Unary::Neg, value);
}

const Expr *Builder::compare(checked::Binary op, const Expr *lhs, const Expr *rhs) {
  Expr *result = make(Expr::Binary, DType::Bool);
  result->binary = op;
  result->operands = {lhs, rhs};
  return result;
}

/// The parts that `and` joins.
static void conjuncts(const Expr *condition, SmallVectorImpl<const Expr *> &into) {
  if (condition->kind == Expr::Binary && condition->binary == checked::Binary::And) {
    conjuncts(condition->operands[0], into);
    conjuncts(condition->operands[1], into);
    return;
  }
  into.push_back(condition);
}

const Expr *Builder::both(const Expr *lhs, const Expr *rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  SmallVector<const Expr *> known, more;
  conjuncts(lhs, known);
  conjuncts(rhs, more);
  const Expr *result = lhs;
  for (const Expr *one : more) {
    if (is_contained(known, one))
      continue;
    known.push_back(one);
    result = compare(checked::Binary::And, result, one);
  }
  return result;
}

const Expr *Builder::either(const Expr *lhs, const Expr *rhs) {
  if (!lhs || !rhs)
    return nullptr; // one of them always holds
  if (lhs == rhs)
    return lhs;
  return compare(checked::Binary::Or, lhs, rhs);
}

const Expr *Builder::negate(const Expr *condition) {
  if (condition->kind == Expr::Unary && condition->unary == checked::Unary::Not)
    return condition->operands[0];
  Expr *result = make(Expr::Unary, DType::Bool);
  result->unary = checked::Unary::Not;
  result->operands = {condition};
  return result;
}

const Expr *Builder::where(const Expr *condition, const Expr *yes, const Expr *no) {
  Expr *result = make(Expr::Where, floatTypeOf({yes, no}));
  result->operands = {condition, yes, no};
  return result;
}

const Expr *Builder::select(const Expr *condition, const Expr *value) {
  if (!condition || isNumber(value, 0))
    return value;
  return where(condition, value, number(0));
}

const Expr *Builder::rounded(const Expr *value, DType type) {
  Expr *result = make(Expr::Convert, computeType(type));
  result->target = type;
  result->operands = {value};
  return result;
}

const Expr *Builder::read(const Tensor *tensor, ArrayRef<IndexExpr> subscripts) {
  Expr *result = make(Expr::Read, computeType(tensor->type));
  result->tensor = tensor;
  result->subscripts = subscripts.vec();
  return result;
}

Equation Builder::equationOf(const Tensor *target,
                             function_ref<const Expr *(ArrayRef<IndexExpr>)> value) {
  Equation result;
  result.target = target;
  for (auto [d, dim] : enumerate(target->dims)) {
    result.vars.push_back(newAxis(std::string(1, "ijklmnpqrstuv"[d % 13]), 0, dim));
    result.subscripts.push_back(IndexExpr::dim(result.vars.back()->id));
  }
  result.value = value(result.subscripts);
  return result;
}

const Expr *Builder::reduce(checked::Reduction reduction, ArrayRef<const Var *> vars,
                            const Expr *value, const Expr *filter) {
  if (vars.empty() && reduction == checked::Reduction::Sum)
    return select(filter, value);
  Expr *result = make(Expr::Reduce, value->type);
  result->reduction = reduction;
  result->vars = vars.vec();
  result->filter = filter;
  result->operands = {value};
  return result;
}

//===----------------------------------------------------------------------===//
// Vars
//===----------------------------------------------------------------------===//

void Builder::freeVars(const IndexExpr &index, VarSet &into) const {
  for (const IndexVar &at : index.variables()) {
    if (at.isSymbol())
      continue;
    const Var &var = program.vars[at.position()];
    if (var.kind == Var::Data)
      freeVars(var.data, into);
    else
      into.insert(var.id);
  }
}

void Builder::freeVars(const Expr *value, VarSet &into) const {
  DenseSet<const Expr *> seen;
  auto visit = [&](auto &&self, const Expr *at) -> void {
    if (!seen.insert(at).second)
      return;
    if (at->kind == Expr::Let) {
      self(self, at->let->value);
      return;
    }
    if (!at->vars.empty()) {
      // What the node binds is taken out of its own set.
      VarSet own;
      for (const Expr *operand : at->operands)
        freeVars(operand, own);
      if (at->filter)
        freeVars(at->filter, own);
      for (const Var *bound : at->vars) {
        freeVars(bound->lo, own);
        freeVars(bound->hi, own);
      }
      for (const Var *bound : at->vars)
        own.remove(bound->id);
      for (const IndexExpr &position : at->positions)
        freeVars(position, own);
      into.insert(own.begin(), own.end());
      return;
    }
    forParts(at, [&](const Expr *part) { self(self, part); });
    if (at->kind == Expr::Index)
      freeVars(at->index, into);
    for (const IndexExpr &subscript : at->subscripts)
      freeVars(subscript, into);
    for (const auto &[numerator, denominator] : at->exact) {
      freeVars(numerator, into);
      freeVars(denominator, into);
    }
  };
  visit(visit, value);
}

void Builder::tensorsOf(const Expr *value, DenseSet<const Tensor *> &into) const {
  DenseSet<const Expr *> seen;
  auto visit = [&](auto &&self, const Expr *at) -> void {
    if (!seen.insert(at).second)
      return;
    auto ofIndex = [&](const IndexExpr &index) {
      for (const IndexVar &used : index.variables())
        if (!used.isSymbol() && program.vars[used.position()].kind == Var::Data)
          self(self, program.vars[used.position()].data);
    };
    if (at->kind == Expr::Read)
      into.insert(at->tensor);
    if (at->kind == Expr::Let)
      self(self, at->let->value);
    forParts(at, [&](const Expr *part) { self(self, part); });
    ofIndex(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      ofIndex(subscript);
    for (const auto &[numerator, denominator] : at->exact)
      ofIndex(numerator);
    for (const Var *var : at->vars) {
      ofIndex(var->lo);
      ofIndex(var->hi);
    }
  };
  visit(visit, value);
}

void Builder::tensorsOf(const Equation &equation, DenseSet<const Tensor *> &into) const {
  if (equation.loop) {
    for (const Carried &state : equation.loop->states)
      into.insert(state.before);
    for (const Equation &one : equation.loop->body)
      tensorsOf(one, into);
    return;
  }
  tensorsOf(equation.value, into);
  if (equation.guard)
    tensorsOf(equation.guard, into);
  // Subscripts and ranges as parts of a value.
  Expr whole;
  whole.subscripts = equation.subscripts;
  whole.vars = equation.vars;
  tensorsOf(&whole, into);
}

bool Builder::dependsOn(const Expr *value, unsigned var) const {
  VarSet used;
  freeVars(value, used);
  return used.contains(var);
}

bool Builder::usesData(const IndexExpr &index) const {
  return any_of(index.variables(), [&](const IndexVar &at) {
    return !at.isSymbol() && program.vars[at.position()].kind == Var::Data;
  });
}

} // namespace tegula::grad
