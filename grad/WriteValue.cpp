//===- WriteValue.cpp - Values as text ---------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Match.h"
#include "grad/Writer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

// Operators from the loosest on, as the grammar has them.
constexpr int loosest = 0, ors = 1, ands = 2, nots = 3, comparisons = 4, bitOrs = 5, bitXors = 6,
              bitAnds = 7, shifts = 8, sums = 9, products = 10, signs = 11, atoms = 13;

std::string Writer::inner(const Expr *expr, int strength) {
  Text text = value(expr);
  return text.strength < strength ? "(" + text.text + ")" : text.text;
}

/// Whether all parts of a condition hold anyway where it stands.
bool Writer::isKnown(const Expr *condition) const {
  if (condition->kind == Expr::Binary && condition->binary == Binary::And)
    return isKnown(condition->operands[0]) && isKnown(condition->operands[1]);
  auto has = [&](auto &&self, const Expr *at) -> bool {
    if (at->kind == Expr::Binary && at->binary == Binary::And)
      return self(self, at->operands[0]) || self(self, at->operands[1]);
    return areEqual(at, condition);
  };
  return any_of(known, [&](const Expr *one) { return has(has, one); });
}

Writer::Text Writer::constant(const Expr *expr) {
  if (expr->type == DType::Bool)
    return {expr->intValue ? "true" : "false", atoms};
  if (!isFloat(expr->type)) {
    std::string text = expr->type == DType::U64
                           ? std::to_string(static_cast<uint64_t>(expr->intValue))
                           : std::to_string(expr->intValue);
    return {text, text[0] == '-' ? signs : atoms};
  }
  double number = expr->floatValue;
  if (std::isnan(number))
    return {"nan", atoms};
  if (std::isinf(number))
    return {number < 0 ? "-inf" : "inf", number < 0 ? signs : atoms};
  // The shortest text that means the number. One that was rounded to f32 was written with fewer
  // digits, which mean it where T is f64.
  bool isRounded =
      expr->type == DType::F32 && number == static_cast<double>(static_cast<float>(number));
  char buffer[40];
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(buffer, sizeof buffer, "%.*g", digits, number);
    double back = std::strtod(buffer, nullptr);
    if (back == number || (isRounded && static_cast<float>(back) == static_cast<float>(number)))
      break;
  }
  std::string text = buffer;
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return {text, text[0] == '-' ? signs : atoms};
}

Writer::Text Writer::unary(const Expr *expr) {
  const Expr *operand = expr->operands[0];
  StringRef name;
  switch (expr->unary) {
  case Unary::Neg:
    return {"-" + inner(operand, signs), signs};
  case Unary::Not:
    return {"not " + inner(operand, nots), nots};
#define TEGULA_CASE(KIND, NAME)                                                                    \
  case Unary::KIND:                                                                                \
    name = NAME;                                                                                   \
    break;
    TEGULA_CASE(Abs, "abs")
    TEGULA_CASE(Sign, "sign")
    TEGULA_CASE(Floor, "floor")
    TEGULA_CASE(Ceil, "ceil")
    TEGULA_CASE(Round, "round")
    TEGULA_CASE(Trunc, "trunc")
    TEGULA_CASE(Exp, "exp")
    TEGULA_CASE(Exp2, "exp2")
    TEGULA_CASE(Expm1, "expm1")
    TEGULA_CASE(Log, "log")
    TEGULA_CASE(Log2, "log2")
    TEGULA_CASE(Log1p, "log1p")
    TEGULA_CASE(Sqrt, "sqrt")
    TEGULA_CASE(Rsqrt, "rsqrt")
    TEGULA_CASE(Sin, "sin")
    TEGULA_CASE(Cos, "cos")
    TEGULA_CASE(Tan, "tan")
    TEGULA_CASE(Asin, "asin")
    TEGULA_CASE(Acos, "acos")
    TEGULA_CASE(Atan, "atan")
    TEGULA_CASE(Sinh, "sinh")
    TEGULA_CASE(Cosh, "cosh")
    TEGULA_CASE(Tanh, "tanh")
    TEGULA_CASE(Asinh, "asinh")
    TEGULA_CASE(Acosh, "acosh")
    TEGULA_CASE(Atanh, "atanh")
    TEGULA_CASE(Log10, "log10")
    TEGULA_CASE(Erfc, "erfc")
    TEGULA_CASE(Erfinv, "erfinv")
    TEGULA_CASE(Lgamma, "lgamma")
    TEGULA_CASE(Digamma, "digamma")
    TEGULA_CASE(Erf, "erf")
    TEGULA_CASE(IsNan, "isnan")
    TEGULA_CASE(IsInf, "isinf")
    TEGULA_CASE(IsFloat, "is_floating_point")
    TEGULA_CASE(LargestFinite, "finfo_max")
#undef TEGULA_CASE
  }
  return {(name + "(" + value(operand).text + ")").str(), atoms};
}

Writer::Text Writer::binary(const Expr *expr) {
  const Expr *lhs = expr->operands[0], *rhs = expr->operands[1];
  auto infix = [&](StringRef op, int strength) {
    return Text{inner(lhs, strength) + " " + op.str() + " " + inner(rhs, strength + 1), strength};
  };
  auto call = [&](StringRef name) {
    return Text{(name + "(" + value(lhs).text + ", " + value(rhs).text + ")").str(), atoms};
  };
  switch (expr->binary) {
  case Binary::Add:
    return infix("+", sums);
  case Binary::Sub:
    return infix("-", sums);
  case Binary::Mul: {
    // x * sigmoid(x), either way round.
    for (unsigned side : {0, 1})
      if (const Expr *x = matchSigmoid(expr->operands[side]);
          x && areEqual(x, expr->operands[1 - side]))
        return {"silu(" + value(x).text + ")", atoms};
    if (const Expr *x = matchTanhOfSoftplus(rhs); x && areEqual(x, lhs))
      return {"mish(" + value(x).text + ")", atoms};
    return infix("*", products);
  }
  case Binary::Div:
    if (const Expr *x = matchTanhOfSoftplus(expr))
      return {"tanh(softplus(" + value(x).text + "))", atoms};
    return infix("/", products);
  case Binary::FloorDiv:
    return infix("//", products);
  case Binary::Mod:
    return infix("%", products);
  case Binary::Pow:
    return call("pow");
  case Binary::Atan2:
    return call("atan2");
  case Binary::CopySign:
    return call("copysign");
  case Binary::Max:
  case Binary::Min: {
    // Bounds of a range from data are kept where sums of them do not wrap, by the checker.
    constexpr int64_t farthest = int64_t(1) << 61;
    bool isFarthest = rhs->kind == Expr::Constant && rhs->type == DType::I64 &&
                      (rhs->intValue == farthest || rhs->intValue == -farthest);
    if (isFarthest)
      return value(lhs);
    return call(expr->binary == Binary::Max ? "maximum" : "minimum");
  }
  case Binary::And: {
    std::string left = inner(lhs, ands);
    known.push_back(lhs);
    std::string right = inner(rhs, ands + 1);
    known.pop_back();
    return {left + " and " + right, ands};
  }
  case Binary::Or:
    return infix("or", ors);
  case Binary::BitAnd:
    return infix("&", bitAnds);
  case Binary::BitOr:
    return infix("|", bitOrs);
  case Binary::BitXor:
    return infix("^", bitXors);
  case Binary::Shl:
    return infix("<<", shifts);
  case Binary::Shr:
    return infix(">>", shifts);
  case Binary::LT:
  case Binary::LE:
  case Binary::GT:
  case Binary::GE:
  case Binary::EQ:
  case Binary::NE: {
    static const char *const signsOf[] = {"<", "<=", ">", ">=", "==", "!="};
    unsigned which = static_cast<unsigned>(expr->binary) - static_cast<unsigned>(Binary::LT);
    return {inner(lhs, comparisons + 1) + " " + signsOf[which] + " " + inner(rhs, comparisons + 1),
            comparisons};
  }
  }
  llvm_unreachable("all operators are listed");
}

Writer::Text Writer::read(const Expr *expr) {
  if (expr->guard && !isKnown(expr->guard)) {
    // What the guard protects is not read where it does not hold, and 0 there.
    Expr plain = *expr;
    plain.guard = nullptr;
    std::string condition = value(expr->guard).text;
    known.push_back(expr->guard);
    std::string text = read(&plain).text;
    known.pop_back();
    StringRef zero = expr->type == DType::Bool ? "false" : isFloat(expr->type) ? "0.0" : "0";
    return {("where(" + condition + ", " + text + ", " + zero + ")").str(), atoms};
  }
  auto found = names.find(expr->tensor);
  assert(found != names.end() && "what is read was named");
  std::string result = found->second;
  if (expr->tensor->dims.empty())
    return {result, atoms};
  result += '[';
  for (auto [d, one] : enumerate(expr->subscripts))
    result += (d ? ", " : "") +
              subscript(one, expr->groups, d, expr->exact, [&](unsigned id) { return axis(id); });
  if (expr->fill)
    result += ", fill=" + value(expr->fill).text;
  return {result + "]", atoms};
}

Writer::Text Writer::reduction(const Expr *expr) {
  static const char *const reductionNames[] = {"sum",   "prod",   "max",    "min",
                                               "mean",  "var",    "any",    "all",
                                               "count", "argmax", "argmin", "logsumexp"};
  if (expr->filter)
    known.push_back(expr->filter);
  std::string items;
  SmallVector<const Expr *> shown{expr->operands.empty() ? nullptr : expr->operands[0],
                                  expr->filter};
  unsigned runs = 0;
  for (const Var *var : expr->vars) {
    items += items.empty() ? "" : ", ";
    if (isEllipsisVar(*var)) {
      items += "...";
      runs += 1;
      continue;
    }
    items += axis(var->id);
    if (var->kind != Var::Axis)
      fail(expr->span, "a reduction over a tile");
    if (!isInferred(*var, shown))
      items += " in " + range(var->lo, var->hi);
  }
  if (runs > 1 || (runs && expr->filter && expr->vars.size() == 1)) {
    ellipsisWrong = true;
    fail(expr->span, "a condition on '...'");
  }
  if (expr->filter)
    items += " if " + inner(expr->filter, loosest);
  std::string text = std::string(reductionNames[static_cast<unsigned>(expr->reduction)]) + "(" +
                     value(expr->operands[0]).text + " for " + items +
                     (expr->unbiased ? ", unbiased=true" : "") + ")";
  if (expr->filter)
    known.pop_back();
  // Their names are free again.
  for (const Var *var : expr->vars) {
    auto found = axes.find(var->id);
    if (found == axes.end())
      continue;
    axisNames.erase(found->second);
    axes.erase(found);
  }
  return {text, atoms};
}

Writer::Text Writer::scan(const Expr *expr) {
  static const char *const scanNames[] = {"cumsum",  "cumprod",     "cummax",    "cummin",
                                          "softmax", "log_softmax", "sort",      "argsort",
                                          "topk",    "topk",        "recurrence"};
  if (expr->scan == Scan::TopKValue || expr->scan == Scan::TopKIndex)
    fail(expr->span, "'topk' inside of a value");
  // Inside, the scanned index has the name of the equation's.
  SmallVector<std::string> over;
  for (auto [var, position] : zip_equal(expr->vars, expr->positions)) {
    std::optional<IndexVar> at = position.asVariable();
    if (!at || at->isSymbol() || isEllipsisVar(*var)) {
      fail(expr->span, "a scan at a place that is no index");
      return {"0", atoms};
    }
    over.push_back(axis(at->position()));
    axes[var->id] = over.back();
  }
  std::string text = std::string(scanNames[static_cast<unsigned>(expr->scan)]) + "(" +
                     value(expr->operands[0]).text;
  if (expr->scan == Scan::Recurrence)
    text += ", " + value(expr->operands[1]).text;
  text += ", over=" + (over.size() == 1 ? over[0] : "(" + llvm::join(over, ", ") + ")");
  if (expr->operands.size() > 2)
    text += ", init=" + value(expr->operands[2]).text;
  if (expr->reverse)
    text += ", reverse=true";
  if (expr->exclusive)
    text += ", exclusive=true";
  if (expr->descending)
    text += ", descending=true";
  return {text + ")", atoms};
}

Writer::Text Writer::value(const Expr *expr) {
  if (const Expr *x = matchSigmoid(expr))
    return {"sigmoid(" + value(x).text + ")", atoms};
  switch (expr->kind) {
  case Expr::Constant:
    return constant(expr);
  case Expr::Index:
    return index(expr->index);
  case Expr::Scalar:
    return {expr->scalar->name, atoms};
  case Expr::Read:
    return read(expr);
  case Expr::Unary:
    return unary(expr);
  case Expr::Binary:
    return binary(expr);
  case Expr::Where: {
    const Expr *condition = expr->operands[0];
    std::string text = "where(" + value(condition).text + ", ";
    known.push_back(condition);
    text += value(expr->operands[1]).text + ", ";
    known.pop_back();
    Expr negated;
    negated.kind = Expr::Unary;
    negated.type = DType::Bool;
    negated.unary = Unary::Not;
    negated.operands = {condition};
    known.push_back(&negated);
    text += value(expr->operands[2]).text;
    known.pop_back();
    return {text + ")", atoms};
  }
  case Expr::Convert:
    if (expr->isWeak)
      return value(expr->operands[0]);
    return {typeName(expr->target) + "(" + value(expr->operands[0]).text + ")", atoms};
  case Expr::Quantize:
    return {"quantize(" + value(expr->operands[0]).text + ", " + typeName(expr->target) + ")",
            atoms};
  case Expr::Widen:
    return value(expr->operands[0]);
  case Expr::Reduce:
    return reduction(expr);
  case Expr::Scan:
    return scan(expr);
  case Expr::Random: {
    std::string text = expr->normal ? "randn(" : "rand(";
    for (auto [i, key] : enumerate(expr->operands))
      text += (i ? ", " : "") + value(key).text;
    return {text + ")", atoms};
  }
  case Expr::Let:
    return value(expr->let->value);
  case Expr::State:
    fail(expr->span, "a state");
    return {"0", atoms};
  }
  llvm_unreachable("all values are listed");
}

} // namespace tegula::grad
