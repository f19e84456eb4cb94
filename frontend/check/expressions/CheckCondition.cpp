//===- CheckCondition.cpp - Comparisons, logic and where --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Comparisons, `and`, `or` and `where`. What a condition known when compiling excludes need not be
// right, but its names must exist; what another one protects is checked under it (the path).
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckWrap.h"

using namespace tegula;
using namespace tegula::checked;

static Value selectNode(CheckContext &ctx, const Expr *condition, Value yes, Value no, Span span);

/// Whether brackets or commas stand on both sides of it.
static bool isAlone(CheckContext &ctx, Span span) {
  llvm::StringRef file = ctx.module.sourceManager().text(span.file);
  llvm::StringRef before = file.take_front(span.begin).rtrim();
  llvm::StringRef after = file.drop_front(span.end).ltrim();
  return (before.ends_with("(") || before.ends_with(",")) &&
         (after.starts_with(")") || after.starts_with(","));
}

const checked::Expr *tegula::asCondition(CheckContext &ctx, const Value &value, Span span,
                                         llvm::StringRef what, Code code) {
  if (value.isPoison())
    return nullptr;
  if (value.expr->type == DType::Bool)
    return value.expr;
  Report record = ctx.report(
      code, span, what + llvm::Twine(" expects a condition, got ") + toString(typeAlone(value)));
  record.note("compare the value: v != 0");
  llvm::StringRef written = ctx.text(span);
  if (ctx.expansions.empty())
    record.fix("compare it with 0", {{span, isAlone(ctx, span) ? written.str() + " != 0"
                                                               : "(" + written.str() + " != 0)"}});
  return nullptr;
}

Value tegula::evalLogic(CheckContext &ctx, const ast::Expr &e) {
  bool isAnd = e.binaryOp == ast::BinaryOp::And;
  // `a and b and c` is deep on the left.
  llvm::SmallVector<const ast::Expr *> chain;
  const ast::Expr *left = &e;
  while (left->kind == ast::Expr::Binary && left->binaryOp == e.binaryOp) {
    chain.push_back(left);
    left = left->operands[0].get();
  }
  llvm::StringRef name = isAnd ? "'and'" : "'or'";
  const Expr *result = asCondition(ctx, eval(ctx, *left), left->span, name, Code::OperandType);
  Trimmed trimmed(ctx.path);
  Saved savedDead(ctx.dead);
  bool failed = !result;
  for (const ast::Expr *at : llvm::reverse(chain)) {
    // The right side counts only where the left one does not decide.
    if (result) {
      if (std::optional<bool> known = boolOf(result)) {
        if (*known != isAnd)
          ++ctx.dead;
      } else {
        ctx.path.push_back({result, isAnd});
      }
    }
    const Expr *right = asCondition(ctx, eval(ctx, *at->operands[1]), at->operands[1]->span, name,
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
      result =
          binaryNode(ctx, isAnd ? Binary::And : Binary::Or, result, right, DType::Bool, at->span);
  }
  return failed ? Value{} : strong(result);
}

Value tegula::compare(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span) {
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
      return strong(booleanNode(ctx, fold(*difference, int64_t(0)), span));
  auto [type, weak] = meet(ctx, a, b, span);
  const Expr *x = coerce(ctx, a, type), *y = coerce(ctx, b, type);
  if (x->kind == Expr::Constant && y->kind == Expr::Constant) {
    bool value = isFloat(type)        ? fold(x->floatValue, y->floatValue)
                 : type == DType::U64 ? fold(uint64_t(x->intValue), uint64_t(y->intValue))
                                      : fold(x->intValue, y->intValue);
    return strong(booleanNode(ctx, value, span));
  }
  for (const Expr *side : {x, y})
    if (side->kind == Expr::Index && !requireIn64Bits(ctx, side->index, span))
      return {};
  if (x->kind == Expr::Index && y->kind == Expr::Index &&
      !requireIn64Bits(ctx, x->index - y->index, span))
    return {};
  if (isInteger(type) && (mayWrap(ctx, x) || mayWrap(ctx, y))) {
    x = widen(ctx, in64Bits(ctx, x), DType::I64);
    y = widen(ctx, in64Bits(ctx, y), DType::I64);
  }
  return strong(binaryNode(ctx, op, x, y, DType::Bool, span));
}

Value tegula::evalCompare(CheckContext &ctx, const ast::Expr &e) {
  const Expr *result = nullptr;
  bool failed = false;
  Trimmed trimmed(ctx.path);
  Saved savedDead(ctx.dead);
  Value left = eval(ctx, *e.operands[0]);
  for (size_t i = 0; i != e.compares.size(); ++i) {
    if (result) {
      if (boolOf(result) == false)
        ++ctx.dead;
      else if (!boolOf(result))
        ctx.path.push_back({result, true});
    }
    Value right = eval(ctx, *e.operands[i + 1]);
    static const Binary ops[] = {Binary::LT, Binary::LE, Binary::GT,
                                 Binary::GE, Binary::EQ, Binary::NE};
    Value one = compare(ctx, ops[static_cast<unsigned>(e.compares[i])], left, right, e.span);
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
      result = binaryNode(ctx, Binary::And, result, one.expr, DType::Bool, e.span);
  }
  return failed ? Value{} : strong(result);
}

Value tegula::evalWhere(CheckContext &ctx, const ast::Expr &e) {
  const Expr *test =
      asCondition(ctx, eval(ctx, *e.arguments[0].value), e.arguments[0].value->span, "'where'");
  auto branch = [&](unsigned which) -> Value {
    Trimmed trimmed(ctx.path);
    Saved savedDead(ctx.dead);
    if (test) {
      if (std::optional<bool> known = boolOf(test)) {
        if (*known != (which == 1))
          ++ctx.dead;
      } else {
        ctx.path.push_back({test, which == 1});
      }
    }
    return eval(ctx, *e.arguments[which].value);
  };
  Value yes = branch(1);
  Value no = branch(2);
  if (!test)
    return {};
  // What a compile-time constant excludes need not even fit, but its names must exist.
  if (std::optional<bool> known = boolOf(test))
    return *known ? yes : no;
  return selectNode(ctx, test, yes, no, e.span);
}

static Value selectNode(CheckContext &ctx, const Expr *test, Value yes, Value no, Span span) {
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
      if (operand->kind == Expr::Constant && isInteger(operand->type) &&
          operand->type != DType::U64)
        return IndexExpr(operand->intValue);
      return std::nullopt;
    };
    std::optional<IndexExpr> a = asIndex(test->operands[0]), b = asIndex(test->operands[1]);
    if (cmp && a && b && isFormula(ctx, yes, no) && !(usesData(ctx, *a) && !isExact(ctx, *a)) &&
        !(usesData(ctx, *b) && !isExact(ctx, *b))) {
      if (swap)
        std::swap(a, b);
      index = named(ctx, IndexExpr::select(*cmp, *a, *b, *yes.index, *no.index));
      // Sizes chosen by sizes are sizes.
      if (yes.isIndex() && no.isIndex() && index->isSize() && !index->isOverflow())
        return indexValue(ctx, *index, span);
    }
  }
  auto [type, weak] = meet(ctx, yes, no, span);
  const Expr *a = coerce(ctx, yes, type), *b = coerce(ctx, no, type);
  if (a == b)
    return yes;
  Expr *expr = makeExpr(ctx, Expr::Where, type, span);
  expr->operands = {test, a, b};
  Value result{finishExpr(ctx, expr), weak, index, {}};
  if (index && !index->isOverflow()) {
    result.exact = yes.exact;
    llvm::append_range(result.exact, no.exact);
  } else {
    result.index.reset();
  }
  return result;
}
