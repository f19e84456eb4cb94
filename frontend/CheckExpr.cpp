//===- CheckExpr.cpp - Names, operators and conditions ----------------*- C++ -*-===//
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

#include "frontend/Checker.h"
#include <cmath>
#include <numbers>

using namespace tegula;
using namespace tegula::checked;

Value Checker::eval(const ast::Expr &e) {
  switch (e.kind) {
  case ast::Expr::Integer:
    return indexValue(IndexExpr(e.intValue), e.span);
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
               "the state '" + name.name + "' varies along the scanned index, whose points run in any order");
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
      form += std::string(i ? ", " : "") + (i < 4 ? std::string(1, "ijkl"[i]) : "i" + std::to_string(i));
    Report record =
        report(Code::WholeTensor, name.span,
               "'" + name.name + "' is " + describe(*entity) + " and needs its subscripts here");
    record.note("write " + form + "]: arithmetic is on elements; whole tensors are arguments of "
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
    const Expr *operand =
        condition(value, e.operands[0]->span, "'not'", Code::OperandType);
    if (!operand)
      return {};
    if (std::optional<bool> known = boolOf(operand))
      return strong(boolean(!*known, e.span));
    return strong(unaryNode(Unary::Not, operand, DType::Bool, e.span));
  }
  Value value = eval(*e.operands[0]);
  if (e.unaryOp == ast::UnaryOp::Plus)
    return value;
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
    default:
      break;
    }
    value = arith(op, value, right, at->span);
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
      if (b.index->asConstant() == 0)
        break; // inf or nan as a value; reported where it is a subscript or size
      index = named(IndexExpr::floorDiv(*a.index, *b.index));
      exact.push_back({*a.index, *b.index});
      break;
    case Binary::FloorDiv:
    case Binary::Mod:
      if (!isDivisor(*b.index))
        break;
      if (!requireNonZero(*b.index, span))
        return {};
      index = named(op == Binary::Mod ? IndexExpr::mod(*a.index, *b.index)
                                      : IndexExpr::floorDiv(*a.index, *b.index));
      break;
    default:
      break;
    }
    if (index && index->isOverflow()) {
      report(Code::SizeOverflow, span, "this integer leaves the range of 64 bits, or its formula is too long");
      return {};
    }
    if (index && exact.empty())
      return indexValue(*index, span);
  }
  auto [type, weak] = meet(a, b);
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
  if (a.isIndex() && b.isIndex())
    return indexValue(named(op == Binary::Max ? IndexExpr::max(*a.index, *b.index)
                                              : IndexExpr::min(*a.index, *b.index)),
                      span);
  auto [type, weak] = meet(a, b);
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && weak)
    return Value{constant(foldArith(op, *p, *q), type, span), true, {}, {}};
  return Value{binaryNode(op, x, y, type, span), weak, {}, {}};
}

Value Checker::power(const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  std::optional<int64_t> exponent;
  if (b.isIndex())
    exponent = b.index->asConstant();
  if (a.isIndex() && exponent && *exponent >= 0 && *exponent <= 64) {
    IndexExpr product(1);
    for (int64_t i = 0; i != *exponent; ++i)
      product = product * *a.index;
    return indexValue(product, span);
  }
  auto [type, weak] = meet(a, b);
  // An integer to a power that may be negative is a float.
  if (!isFloat(type) && !(exponent && *exponent >= 0)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  }
  if (type == DType::Bool)
    type = DType::I32;
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && weak)
    return Value{constant(std::pow(*p, *q), type, span), true, {}, {}};
  if (exponent == 2)
    return Value{binaryNode(Binary::Mul, x, x, type, span), weak, {}, {}};
  if (exponent == 1)
    return Value{x, weak, {}, {}};
  return Value{binaryNode(Binary::Pow, x, y, type, span), weak, {}, {}};
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

const checked::Expr *Checker::condition(const Value &value, Span span, llvm::StringRef what,
                                        Code code) {
  if (value.isPoison())
    return nullptr;
  if (value.expr->type == DType::Bool)
    return value.expr;
  Report record = report(code, span,
                         what + llvm::Twine(" expects a condition, got ") +
                             toString(typeAlone(value)));
  record.note("compare the value: v != 0");
  llvm::StringRef written = text(span);
  if (expansions.empty())
    record.fix("compare it with 0", {{span, "(" + written.str() + " != 0)"}});
  return nullptr;
}

Value Checker::evalLogic(const ast::Expr &e) {
  bool isAnd = e.binaryOp == ast::BinaryOp::And;
  // `a and b and c` is deep on the left.
  llvm::SmallVector<const ast::Expr *> chain;
  const ast::Expr *left = &e;
  while (left->kind == ast::Expr::Binary && left->binaryOp == e.binaryOp) {
    chain.push_back(left);
    left = left->operands[0].get();
  }
  llvm::StringRef name = isAnd ? "'and'" : "'or'";
  const Expr *result = condition(eval(*left), left->span, name, Code::OperandType);
  Trimmed trimmed(path);
  Saved savedDead(dead);
  bool failed = !result;
  for (const ast::Expr *at : llvm::reverse(chain)) {
    // The right side counts only where the left one does not decide.
    if (result) {
      if (std::optional<bool> known = boolOf(result)) {
        if (*known != isAnd)
          ++dead;
      } else {
        path.push_back({result, isAnd});
      }
    }
    const Expr *right = condition(eval(*at->operands[1]), at->operands[1]->span, name,
                                  Code::OperandType);
    if (!result || !right) {
      failed = true;
      result = right ? right : result;
      continue;
    }
    std::optional<bool> x = boolOf(result), y = boolOf(right);
    if (x)
      result = *x == isAnd ? right : result;
    else if (y)
      result = *y == isAnd ? result : right;
    else
      result = binaryNode(isAnd ? Binary::And : Binary::Or, result, right, DType::Bool, at->span);
  }
  return failed ? Value{} : strong(result);
}

Value Checker::compare(Binary op, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  auto fold = [&](auto x, auto y) {
    switch (op) {
    case Binary::LT:
      return x < y;
    case Binary::LE:
      return x <= y;
    case Binary::GT:
      return x > y;
    case Binary::GE:
      return x >= y;
    case Binary::EQ:
      return x == y;
    default:
      return x != y;
    }
  };
  if (a.isIndex() && b.isIndex())
    if (std::optional<int64_t> difference = (*a.index - *b.index).asConstant())
      return strong(boolean(fold(*difference, int64_t(0)), span));
  auto [type, weak] = meet(a, b);
  const Expr *x = coerce(a, type), *y = coerce(b, type);
  if (x->kind == Expr::Constant && y->kind == Expr::Constant) {
    bool value = isFloat(type) ? fold(x->floatValue, y->floatValue) : fold(x->intValue, y->intValue);
    return strong(boolean(value, span));
  }
  return strong(binaryNode(op, x, y, DType::Bool, span));
}

Value Checker::evalCompare(const ast::Expr &e) {
  const Expr *result = nullptr;
  bool failed = false;
  Trimmed trimmed(path);
  Saved savedDead(dead);
  Value left = eval(*e.operands[0]);
  for (size_t i = 0; i != e.compares.size(); ++i) {
    if (result) {
      if (boolOf(result) == false)
        ++dead;
      else if (!boolOf(result))
        path.push_back({result, true});
    }
    Value right = eval(*e.operands[i + 1]);
    static const Binary ops[] = {Binary::LT, Binary::LE, Binary::GT,
                                 Binary::GE, Binary::EQ, Binary::NE};
    Value one = compare(ops[static_cast<unsigned>(e.compares[i])], left, right, e.span);
    left = right;
    if (one.isPoison()) {
      failed = true;
      continue;
    }
    if (!result || boolOf(result) == true)
      result = one.expr;
    else if (boolOf(result) == false || boolOf(one.expr) == true)
      ; // decided, or nothing added
    else
      result = binaryNode(Binary::And, result, one.expr, DType::Bool, e.span);
  }
  return failed ? Value{} : strong(result);
}

Value Checker::evalWhere(const ast::Expr &e) {
  const Expr *test = condition(eval(*e.arguments[0].value), e.arguments[0].value->span, "'where'");
  auto branch = [&](unsigned which) -> Value {
    Trimmed trimmed(path);
    Saved savedDead(dead);
    if (test) {
      if (std::optional<bool> known = boolOf(test)) {
        if (*known != (which == 1))
          ++dead;
      } else {
        path.push_back({test, which == 1});
      }
    }
    return eval(*e.arguments[which].value);
  };
  Value yes = branch(1);
  Value no = branch(2);
  if (!test)
    return {};
  // What a compile-time constant excludes need not even fit, but its names must exist.
  if (std::optional<bool> known = boolOf(test))
    return *known ? yes : no;
  return select(test, yes, no, e.span);
}

Value Checker::select(const Expr *test, Value yes, Value no, Span span) {
  if (yes.isPoison() || no.isPoison())
    return {};
  std::optional<IndexExpr> index;
  if (yes.index && no.index && test->kind == Expr::Binary) {
    std::optional<IndexExpr::Cmp> cmp;
    bool swap = false;
    switch (test->binary) {
    case Binary::LT:
      cmp = IndexExpr::Cmp::LT;
      break;
    case Binary::GT:
      cmp = IndexExpr::Cmp::LT;
      swap = true;
      break;
    case Binary::LE:
      cmp = IndexExpr::Cmp::LE;
      break;
    case Binary::GE:
      cmp = IndexExpr::Cmp::LE;
      swap = true;
      break;
    case Binary::EQ:
      cmp = IndexExpr::Cmp::EQ;
      break;
    case Binary::NE:
      cmp = IndexExpr::Cmp::NE;
      break;
    default:
      break;
    }
    auto asIndex = [](const Expr *operand) -> std::optional<IndexExpr> {
      if (operand->kind == Expr::Index)
        return operand->index;
      if (operand->kind == Expr::Constant && isInteger(operand->type))
        return IndexExpr(operand->intValue);
      return std::nullopt;
    };
    std::optional<IndexExpr> a = asIndex(test->operands[0]), b = asIndex(test->operands[1]);
    if (cmp && a && b) {
      if (swap)
        std::swap(a, b);
      index = named(IndexExpr::select(*cmp, *a, *b, *yes.index, *no.index));
      // Sizes chosen by sizes are sizes.
      if (yes.isIndex() && no.isIndex() && index->isSize() && !index->isOverflow())
        return indexValue(*index, span);
    }
  }
  auto [type, weak] = meet(yes, no);
  const Expr *a = coerce(yes, type), *b = coerce(no, type);
  if (a == b)
    return yes;
  Expr *expr = make(Expr::Where, type, span);
  expr->operands = {test, a, b};
  Value result{finish(expr), weak, index, {}};
  if (index && !index->isOverflow()) {
    result.exact = yes.exact;
    llvm::append_range(result.exact, no.exact);
  } else {
    result.index.reset();
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Integers for subscripts and sizes
//===----------------------------------------------------------------------===//

std::optional<IndexExpr> Checker::evalSize(const ast::Expr &e, const llvm::Twine &what) {
  Value value = eval(e);
  if (value.isPoison())
    return std::nullopt;
  if (!value.index || usesData(*value.index)) {
    Report record = report(Code::NotASize, e.span,
                           what + " must be an integer known before the launch, got " +
                               (value.expr->axes.empty() && value.weak ? "a number that is no integer"
                                                                      : "a value of type " +
                                                                            toString(typeAlone(value)).str()));
    if (isFloat(value.expr->type))
      record.note("sizes divide with '//' (rounding down) or '/' (exactly)");
    return std::nullopt;
  }
  requireExact(value.exact, e.span);
  return *value.index;
}

std::optional<Subscript> Checker::evalIndex(const ast::Expr &e, const llvm::Twine &what,
                                            Code code) {
  return toSubscript(eval(e), e.span, what, code);
}

std::optional<Subscript> Checker::toSubscript(const Value &value, Span span,
                                              const llvm::Twine &what, Code code) {
  if (value.isPoison())
    return std::nullopt;
  Subscript result;
  result.span = span;
  if (value.index) {
    result.index = *value.index;
    result.exact = value.exact;
    if (std::optional<IndexVar> var = result.index.asVariable(); var && !var->isSymbol()) {
      const Var &bound = program->vars[var->position()];
      if (bound.kind != Var::Data)
        result.bare = &bound;
    }
    return result;
  }
  if (isInteger(value.expr->type)) {
    if (std::optional<IndexExpr> index = toIndex(value.expr)) {
      result.index = *index;
      return result;
    }
    report(Code::SizeOverflow, span, "this integer leaves the range of 64 bits, or its formula is too long");
    return std::nullopt;
  }
  Report record = report(code, span,
                         what + " expects an integer, got " + toString(typeAlone(value)));
  if (isFloat(value.expr->type)) {
    record.note("i32(v) truncates; '//' rounds a quotient of integers down");
    if (expansions.empty() && value.expr->kind != Expr::Constant)
      record.fix("convert it", {{span, "i32(" + text(span).str() + ")"}});
  }
  return std::nullopt;
}

std::optional<IndexExpr> Checker::toIndex(const Expr *expr) {
  // Operands may be shared: each is looked at once.
  auto [known, isNew] = exprIndices.try_emplace(expr);
  if (isNew) {
    std::optional<IndexExpr> index = computeIndex(expr);
    exprIndices[expr] = index;
    return index;
  }
  return known->second;
}

std::optional<IndexExpr> Checker::computeIndex(const Expr *expr) {
  auto checkedIndex = [](IndexExpr index) -> std::optional<IndexExpr> {
    if (index.isOverflow())
      return std::nullopt;
    return index;
  };
  switch (expr->kind) {
  case Expr::Index:
    return expr->index;
  case Expr::Constant:
    return IndexExpr(expr->intValue);
  case Expr::Widen:
  case Expr::Convert:
    if (isInteger(expr->operands[0]->type) &&
        (expr->kind == Expr::Widen || isInteger(expr->target)))
      return toIndex(expr->operands[0]);
    break;
  case Expr::Unary:
    if (expr->unary == Unary::Neg)
      if (std::optional<IndexExpr> operand = toIndex(expr->operands[0]))
        return checkedIndex(-*operand);
    break;
  case Expr::Binary: {
    if (expr->binary != Binary::Add && expr->binary != Binary::Sub && expr->binary != Binary::Mul)
      break;
    std::optional<IndexExpr> a = toIndex(expr->operands[0]), b = toIndex(expr->operands[1]);
    if (!a || !b)
      return std::nullopt;
    return checkedIndex(expr->binary == Binary::Add   ? *a + *b
                        : expr->binary == Binary::Sub ? *a - *b
                                                      : *a * *b);
  }
  default:
    break;
  }
  return IndexExpr::dim(dataVar(expr)->id);
}

const checked::Var *Checker::dataVar(const Expr *expr) {
  unsigned key = keyOf(expr);
  if (const Var *known = dataVars.lookup(key))
    return known;
  auto range = rangeOf(expr);
  Var &made = program->vars.emplace_back();
  made.kind = Var::Data;
  made.id = program->vars.size() - 1;
  made.name = text(expr->span).take_front(40).str();
  made.data = expr;
  made.span = expr->span;
  made.hasRange = range.has_value();
  if (range) {
    made.lo = range->first;
    made.hi = range->second + 1;
  }
  return dataVars[key] = &made;
}

/// Inclusive bounds of an integer value, where its form shows them.
std::optional<std::pair<IndexExpr, IndexExpr>> Checker::rangeOf(const Expr *expr) {
  auto [known, isNew] = exprRanges.try_emplace(expr);
  if (isNew) {
    std::optional<std::pair<IndexExpr, IndexExpr>> range = computeRange(expr);
    if (range && (range->first.isOverflow() || range->second.isOverflow()))
      range.reset();
    exprRanges[expr] = range;
    return range;
  }
  return known->second;
}

std::optional<std::pair<IndexExpr, IndexExpr>> Checker::computeRange(const Expr *expr) {
  switch (expr->kind) {
  case Expr::Constant:
    return std::pair(IndexExpr(expr->intValue), IndexExpr(expr->intValue));
  case Expr::Index:
    return std::pair(expr->index, expr->index);
  case Expr::Widen:
  case Expr::Convert:
    if (expr->operands[0]->type == DType::Bool)
      return std::pair(IndexExpr(0), IndexExpr(1));
    if (isInteger(expr->operands[0]->type) &&
        (expr->kind == Expr::Widen || isInteger(expr->target)))
      return rangeOf(expr->operands[0]);
    return std::nullopt;
  case Expr::Read:
    switch (expr->tensor->type) {
    case DType::U8:
      return std::pair(IndexExpr(0), IndexExpr(255));
    case DType::U4:
      return std::pair(IndexExpr(0), IndexExpr(15));
    default:
      return std::nullopt;
    }
  case Expr::Binary: {
    const Expr *x = expr->operands[0], *y = expr->operands[1];
    if (expr->binary == Binary::Mod) {
      // 0 <= x % n < n where n > 0; for data, n = 0 gives 0.
      if (y->kind == Expr::Constant && y->intValue > 0)
        return std::pair(IndexExpr(0), IndexExpr(y->intValue - 1));
      if (std::optional<IndexExpr> n = toIndex(y); n && n->isSize())
        if (prover->proves(Condition::nonNegative(*n)))
          return std::pair(IndexExpr(0), IndexExpr::max(*n - 1, 0));
      return std::nullopt;
    }
    if (expr->binary != Binary::Max && expr->binary != Binary::Min)
      return std::nullopt;
    auto a = rangeOf(x), b = rangeOf(y);
    if (expr->binary == Binary::Max) {
      // A lower bound of either side is one; an upper bound needs both.
      if (a && b)
        return std::pair(IndexExpr::max(a->first, b->first), IndexExpr::max(a->second, b->second));
      return std::nullopt;
    }
    if (a && b)
      return std::pair(IndexExpr::min(a->first, b->first), IndexExpr::min(a->second, b->second));
    // minimum(maximum(v, lo), hi): bounded below by minimum(lo, hi).
    const Expr *inner = b ? x : y;
    auto hi = b ? b : a;
    while (inner->kind == Expr::Widen && isInteger(inner->operands[0]->type))
      inner = inner->operands[0];
    if (hi && inner->kind == Expr::Binary && inner->binary == Binary::Max) {
      auto p = rangeOf(inner->operands[0]), q = rangeOf(inner->operands[1]);
      auto lo = p ? p : q;
      if (lo)
        return std::pair(IndexExpr::min(lo->first, hi->first), hi->second);
    }
    return std::nullopt;
  }
  case Expr::Where: {
    auto a = rangeOf(expr->operands[1]), b = rangeOf(expr->operands[2]);
    if (a && b)
      return std::pair(IndexExpr::min(a->first, b->first), IndexExpr::max(a->second, b->second));
    return std::nullopt;
  }
  case Expr::Reduce:
    if (expr->reduction == Reduction::ArgMax || expr->reduction == Reduction::ArgMin) {
      const Var *var = expr->vars[0];
      if (var->kind == Var::Axis && var->lo.isSize() && var->hi.isSize())
        return std::pair(var->lo, var->hi - 1);
    }
    return std::nullopt;
  case Expr::Scan:
    if (expr->scan == checked::Scan::ArgSort || expr->scan == checked::Scan::TopKIndex) {
      const Var *var = expr->vars[0];
      if (var->lo.isSize() && var->hi.isSize())
        return std::pair(var->lo, var->hi - 1);
    }
    return std::nullopt;
  case Expr::Let:
    return rangeOf(expr->let->value);
  default:
    return std::nullopt;
  }
}

void Checker::forgetValues() {
  dataVars.clear();
  keyNumbers.clear();
  exprKeys.clear();
  exprIndices.clear();
  exprRanges.clear();
}

/// A number that is the same for values that are the same (within one statement).
unsigned Checker::keyOf(const Expr *expr) {
  if (auto known = exprKeys.find(expr); known != exprKeys.end())
    return known->second;
  std::string key;
  llvm::raw_string_ostream os(key);
  switch (expr->kind) {
  case Expr::Constant:
    os << "c" << unsigned(expr->type) << ":" << expr->intValue << ":" << expr->floatValue;
    break;
  case Expr::Index:
    os << "i(" << expr->index << ")";
    break;
  case Expr::Read:
    if (expr->guard || expr->fill || !expr->exact.empty())
      os << "p" << static_cast<const void *>(expr);
    else {
      os << "r" << static_cast<const void *>(expr->tensor) << "[";
      for (const IndexExpr &subscript : expr->subscripts)
        os << subscript << ",";
      os << "]";
    }
    break;
  case Expr::Let:
    os << "l" << static_cast<const void *>(expr->let);
    break;
  case Expr::Widen:
  case Expr::Binary:
  case Expr::Unary:
  case Expr::Where:
    os << "o" << unsigned(expr->kind) << "." << unsigned(expr->type) << "."
       << (expr->kind == Expr::Unary ? unsigned(expr->unary) : unsigned(expr->binary)) << "(";
    for (const Expr *operand : expr->operands)
      os << keyOf(operand) << ",";
    os << ")";
    break;
  default:
    os << "p" << static_cast<const void *>(expr);
    break;
  }
  unsigned number = keyNumbers.try_emplace(key, keyNumbers.size()).first->second;
  return exprKeys[expr] = number;
}
