//===- CheckFunction.cpp - Built-in functions, conversions and fns ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckFunction.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBits.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckFloatSizes.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRandom.h"
#include "frontend/check/CheckReduce.h"
#include "frontend/check/CheckScan.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"
#include "frontend/check/CheckWrap.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

namespace {
enum class BuiltinClass { None, Unary, UnaryKeep, UnaryTest, Binary, Reduction, Scan, Special };
} // namespace

static BuiltinClass builtinClass(llvm::StringRef name) {
  return llvm::StringSwitch<BuiltinClass>(name)
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) .Case(#NAME, BuiltinClass::CLASS)
#include "dsl/Builtins.def"
      .Default(BuiltinClass::None);
}

static llvm::StringRef builtinSignature(llvm::StringRef name) {
  return llvm::StringSwitch<llvm::StringRef>(name)
#define TEGULA_BUILTIN(NAME, SIGNATURE, CLASS, DOC) .Case(#NAME, SIGNATURE)
#include "dsl/Builtins.def"
      .Default("");
}

static checked::Unary unaryOf(llvm::StringRef name) {
  using U = checked::Unary;
  return llvm::StringSwitch<U>(name)
      .Case("exp", U::Exp)
      .Case("exp2", U::Exp2)
      .Case("expm1", U::Expm1)
      .Case("log", U::Log)
      .Case("log2", U::Log2)
      .Case("log1p", U::Log1p)
      .Case("sqrt", U::Sqrt)
      .Case("rsqrt", U::Rsqrt)
      .Case("sin", U::Sin)
      .Case("cos", U::Cos)
      .Case("tan", U::Tan)
      .Case("tanh", U::Tanh)
      .Case("erf", U::Erf)
      .Case("asin", U::Asin)
      .Case("acos", U::Acos)
      .Case("atan", U::Atan)
      .Case("sinh", U::Sinh)
      .Case("cosh", U::Cosh)
      .Case("asinh", U::Asinh)
      .Case("acosh", U::Acosh)
      .Case("atanh", U::Atanh)
      .Case("log10", U::Log10)
      .Case("erfc", U::Erfc)
      .Case("erfinv", U::Erfinv)
      .Case("lgamma", U::Lgamma)
      .Case("digamma", U::Digamma)
      .Case("abs", U::Abs)
      .Case("sign", U::Sign)
      .Case("floor", U::Floor)
      .Case("ceil", U::Ceil)
      .Case("round", U::Round)
      .Case("trunc", U::Trunc)
      .Case("isnan", U::IsNan)
      .Case("is_floating_point", U::IsFloat)
      .Case("finfo_max", U::LargestFinite)
      .Default(U::IsInf);
}

static double foldUnary(checked::Unary op, double x) {
  using U = checked::Unary;
  switch (op) {
  case U::Abs:
    return std::fabs(x);
  case U::Sign:
    return x > 0 ? 1 : x < 0 ? -1 : 0;
  case U::Floor:
    return std::floor(x);
  case U::Ceil:
    return std::ceil(x);
  case U::Round:
    return std::nearbyint(x);
  case U::Trunc:
    return std::trunc(x);
  case U::Exp:
    return std::exp(x);
  case U::Exp2:
    return std::exp2(x);
  case U::Expm1:
    return std::expm1(x);
  case U::Log:
    return std::log(x);
  case U::Log2:
    return std::log2(x);
  case U::Log1p:
    return std::log1p(x);
  case U::Sqrt:
    return std::sqrt(x);
  case U::Rsqrt:
    return 1 / std::sqrt(x);
  case U::Sin:
    return std::sin(x);
  case U::Cos:
    return std::cos(x);
  case U::Tan:
    return std::tan(x);
  case U::Tanh:
    return std::tanh(x);
  case U::Erf:
    return std::erf(x);
  case U::Asin:
    return std::asin(x);
  case U::Acos:
    return std::acos(x);
  case U::Atan:
    return std::atan(x);
  case U::Sinh:
    return std::sinh(x);
  case U::Cosh:
    return std::cosh(x);
  case U::Asinh:
    return std::asinh(x);
  case U::Acosh:
    return std::acosh(x);
  case U::Atanh:
    return std::atanh(x);
  case U::Log10:
    return std::log10(x);
  case U::Erfc:
    return std::erfc(x);
  case U::Lgamma:
    return std::lgamma(x);
  default:
    return x;
  }
}

static Value unaryFunction(CheckContext &ctx, checked::Unary op, const Value &a, Span span) {
  using U = checked::Unary;
  if (a.isPoison())
    return {};
  if (op == U::IsFloat)
    return strong(booleanNode(ctx, isFloat(a.expr->type), span));
  if (op == U::LargestFinite) {
    DType type = a.storage.value_or(a.weak ? DType::F32 : a.expr->type);
    double largest = largestFinite(isFloat(type) ? type : DType::F32);
    return Value{constantNode(ctx, largest, DType::F64, span), /*weak=*/true, {}, {}};
  }
  if (op == U::IsNan || op == U::IsInf) {
    const Expr *operand = settle(ctx, a);
    if (!isFloat(operand->type))
      return strong(booleanNode(ctx, false, span));
    return strong(unaryNode(ctx, op, operand, DType::Bool, span));
  }
  bool keeps = op == U::Abs || op == U::Sign || op == U::Floor || op == U::Ceil || op == U::Round ||
               op == U::Trunc;
  bool rounds = keeps && op != U::Abs && op != U::Sign;
  // The floor and ceiling of an exact quotient are integers again.
  if ((op == U::Floor || op == U::Ceil) && a.index && a.exact.size() == 1) {
    const auto &[numerator, denominator] = a.exact[0];
    if (*a.index == named(ctx, IndexExpr::floorDiv(numerator, denominator)) &&
        isDivisor(ctx, denominator) && requireNonZero(ctx, denominator, span))
      return indexValue(ctx,
                        op == U::Floor ? *a.index
                                       : named(ctx, -IndexExpr::floorDiv(-numerator, denominator)),
                        span);
  }
  if (keeps && !isFloat(a.expr->type)) {
    if (rounds)
      return a;
    if (a.isIndex() && op == U::Abs && isFormula(ctx, a, a))
      return indexValue(ctx, named(ctx, IndexExpr::max(*a.index, -*a.index)), span);
    if (isUnsigned(a.expr->type))
      return op == U::Abs ? a
                          : extremum(ctx, checked::Binary::Min, a,
                                     indexValue(ctx, IndexExpr(1), span), span);
    if (a.expr->type == DType::Bool && op == U::Sign)
      return a;
    const Expr *operand = a.expr->type == DType::Bool ? widen(ctx, a.expr, DType::I32) : a.expr;
    return Value{unaryNode(ctx, op, operand, operand->type, span), a.weak, {}, {}};
  }
  DType type = a.expr->type;
  if (!isFloat(type))
    type = a.weak ? DType::F64 : DType::F32;
  const Expr *operand = coerce(ctx, a, type);
  bool folds = op != U::Erfinv && op != U::Digamma; // the C library has neither
  if (std::optional<double> known = constantOf(operand); known && a.weak && folds)
    return Value{constantNode(ctx, foldUnary(op, *known), type, span), true, {}, {}};
  return Value{unaryNode(ctx, op, operand, type, span), a.weak, {}, {}};
}

static Value evalConvert(CheckContext &ctx, const ast::Expr &e, DType target) {
  if (e.arguments.size() != 1 || e.arguments[0].keyword) {
    ctx.report(e.arguments.empty() ? Code::MissingArgument : Code::TooManyArguments, e.span,
               "the conversion '" + e.name.name + "' takes one value");
    return {};
  }
  Value value = eval(ctx, *e.arguments[0].value);
  if (value.isPoison())
    return {};
  if (value.expr->type == DType::Bool && target != DType::Bool)
    return strong(widen(ctx, value.expr, computeType(target)));
  if (target == DType::Bool) {
    if (value.expr->type == DType::Bool)
      return value;
    const Expr *operand = settle(ctx, value);
    return strong(binaryNode(ctx, checked::Binary::NE, operand,
                             constantNode(ctx, 0, operand->type, e.span), DType::Bool, e.span));
  }
  if (isInteger(target) && bitWidth(target) >= 32 && !isUnsigned(target) &&
      isFloat(value.expr->type))
    if (std::optional<IndexExpr> size = sizeOf(ctx, value, /*truncates=*/true))
      if (Value known = indexValue(ctx, *size, e.span); known.expr)
        return known;
  Value result;
  result.storage = target;
  if (value.isIndex() && isInteger(target) &&
      ((value.index->isSize() && bitWidth(target) >= 32 && !isUnsigned(target)) ||
       integerRange(target)->contains(intervalOf(ctx, *value.index))))
    result.index = value.index;
  // What is written as of a type is computed in that type.
  if (isInteger(value.expr->type) && mayWrap(ctx, value.expr) &&
      value.expr->kind != Expr::Convert) {
    Expr *own = makeExpr(ctx, Expr::Convert, value.expr->type, e.span);
    own->target = own->type;
    own->operands = {value.expr};
    value.expr = finishExpr(ctx, own);
  }
  if (value.expr->type == target) {
    result.expr = value.expr;
    return result;
  }
  if (target == DType::F64 || (target == DType::F32 && value.expr->type != DType::F64) ||
      (target == DType::I64 &&
       (value.expr->type == DType::I32 || value.expr->type == DType::U32)) ||
      (target == DType::U64 && value.expr->type == DType::U32)) {
    result.expr = widen(ctx, value.expr, target);
    return result;
  }
  if (value.expr->kind == Expr::Constant && isInteger(value.expr->type) && isInteger(target)) {
    Expr *known = makeExpr(ctx, Expr::Constant, computeType(target), e.span);
    known->intValue = wrap(value.expr->intValue, target);
    result.expr = known;
    return result;
  }
  Expr *convert = makeExpr(ctx, Expr::Convert, computeType(target), e.span);
  convert->target = target;
  convert->operands = {value.expr};
  result.expr = finishExpr(ctx, convert);
  return result;
}

static Value evalQuantize(CheckContext &ctx, const ast::Expr &e) {
  if (!checkKeywords(ctx, e, {}))
    return {};
  std::optional<DType> target;
  if (e.arguments.size() == 2 && e.arguments[1].value->kind == ast::Expr::Name)
    target = resolveType(ctx, e.arguments[1].value->name);
  else
    ctx.report(Code::MissingArgument, e.span,
               "'quantize' takes a value and a type: quantize(v, i8)");
  if (!target)
    return {};
  Value value = eval(ctx, *e.arguments[0].value);
  if (value.isPoison())
    return {};
  if (*target == DType::Bool) {
    ctx.report(Code::OperandType, e.span, "'quantize' rounds to a number type, got bool");
    return {};
  }
  const Expr *operand = settle(ctx, value);
  if (operand->type == DType::Bool)
    operand = widen(ctx, operand, DType::I32);
  Expr *quantize = makeExpr(ctx, Expr::Quantize, computeType(*target), e.span);
  quantize->target = *target;
  quantize->operands = {operand};
  Value result = strong(finishExpr(ctx, quantize));
  result.storage = *target;
  return result;
}

/// Gives each parameter its argument, by position or name.
static bool mapBuiltinArguments(CheckContext &ctx, const ast::Expr &e,
                                llvm::ArrayRef<llvm::StringRef> params,
                                llvm::SmallVectorImpl<const ast::Expr *> &given) {
  llvm::StringRef name = e.name.name;
  given.assign(params.size(), nullptr);
  bool failed = false;
  size_t position = 0;
  for (const ast::Argument &argument : e.arguments) {
    size_t which = position;
    if (argument.keyword) {
      which = llvm::find(params, argument.keyword->name) - params.begin();
      if (which == params.size()) {
        Report record = ctx.report(Code::UnknownKeyword, argument.keyword->span,
                                   "'" + name + "' has no argument '" + argument.keyword->name +
                                       "'; it is " + builtinSignature(name));
        adviseKeyword(ctx, record, *argument.keyword, params);
        failed = true;
        continue;
      }
    } else {
      if (position == params.size()) {
        ctx.report(Code::TooManyArguments, argument.value->span,
                   "'" + name + "' is " + builtinSignature(name) + ", got " +
                       llvm::Twine(e.arguments.size()) + " arguments");
        failed = true;
        break;
      }
      ++position;
    }
    if (given[which]) {
      ctx.report(Code::DuplicateArgument, argument.value->span,
                 "'" + params[which] + "' of '" + name + "' is given twice");
      failed = true;
      continue;
    }
    given[which] = argument.value.get();
  }
  for (size_t i = 0; i != params.size() && !failed; ++i)
    if (!given[i] && !(name == "clamp" && i != 0)) {
      ctx.report(Code::MissingArgument, e.span,
                 "'" + params[i] + "' of '" + name + "' is missing; it is " +
                     builtinSignature(name));
      failed = true;
    }
  return !failed;
}

static llvm::SmallVector<llvm::StringRef> builtinParams(llvm::StringRef name, BuiltinClass kind) {
  llvm::SmallVector<llvm::StringRef> params;
  switch (kind) {
  case BuiltinClass::Binary:
    params = name == "pow"     ? llvm::SmallVector<llvm::StringRef>{"x", "y"}
             : name == "atan2" ? llvm::SmallVector<llvm::StringRef>{"y", "x"}
                               : llvm::SmallVector<llvm::StringRef>{"a", "b"};
    break;
  case BuiltinClass::Special:
    if (name == "clamp")
      params = {"x", "min", "max"};
    else if (name == "where")
      params = {"c", "a", "b"};
    else
      params = {"a", "b", "c"};
    break;
  default:
    params = {"x"};
    break;
  }
  return params;
}

static Value evalBuiltin(CheckContext &ctx, const ast::Expr &e) {
  llvm::StringRef name = e.name.name;
  BuiltinClass kind = builtinClass(name);
  if (kind == BuiltinClass::Reduction)
    return evalReduction(ctx, e);
  if (kind == BuiltinClass::Scan)
    return evalScan(ctx, e);
  if (name == "rand" || name == "randn")
    return evalRandom(ctx, e);
  if (name == "quantize")
    return evalQuantize(ctx, e);
  if (name == "topk") {
    ctx.report(
        Code::TopKForm, e.span,
        "topk gives two results and stands alone: v[i, r], e[i, r] = topk(x[i, j] for j, k=8)");
    return {};
  }
  if (name == "cat") {
    ctx.report(Code::KernelInExpression, e.span, "'cat' joins whole tensors: h = cat(a, b, dim=1)");
    return {};
  }

  // Parameters by position or name.
  llvm::SmallVector<llvm::StringRef> params = builtinParams(name, kind);
  llvm::SmallVector<const ast::Expr *> given;
  bool failed = !mapBuiltinArguments(ctx, e, params, given);
  if (failed) {
    for (const ast::Argument &argument : e.arguments)
      eval(ctx, *argument.value);
    return {};
  }
  if (name == "where")
    return evalWhere(ctx, e);
  llvm::SmallVector<Value> values;
  for (const ast::Expr *argument : given)
    values.push_back(argument ? eval(ctx, *argument) : Value{});
  switch (kind) {
  case BuiltinClass::Unary:
  case BuiltinClass::UnaryKeep:
  case BuiltinClass::UnaryTest:
    return unaryFunction(ctx, unaryOf(name), values[0], e.span);
  case BuiltinClass::Binary:
    if (name == "pow")
      return power(ctx, values[0], values[1], e.span);
    if (name == "atan2" || name == "copysign")
      return ofFloats(ctx, name == "atan2" ? checked::Binary::Atan2 : checked::Binary::CopySign,
                      values[0], values[1], e.span);
    return extremum(ctx, name == "maximum" ? checked::Binary::Max : checked::Binary::Min, values[0],
                    values[1], e.span);
  default:
    break;
  }
  if (name == "fma")
    return arith(ctx, checked::Binary::Add,
                 arith(ctx, checked::Binary::Mul, values[0], values[1], e.span), values[2], e.span);
  // clamp
  if (!given[1] && !given[2]) {
    ctx.report(Code::MissingArgument, e.span, "'clamp' needs min=, max= or both");
    return {};
  }
  Value result = values[0];
  if (given[1])
    result = extremum(ctx, checked::Binary::Max, result, values[1], e.span, /*isClamp=*/true);
  if (given[2])
    result = extremum(ctx, checked::Binary::Min, result, values[2], e.span, /*isClamp=*/true);
  return result;
}

/// Counts the expansion of a call; false (reported) where they nest too deep or become too many.
bool tegula::mayExpand(CheckContext &ctx, Span call, unsigned weight) {
  constexpr unsigned maxDepth = 64, maxWeight = 16384;
  if (ctx.expansions.size() > maxDepth) {
    ctx.report(Code::Recursion, call, "calls nest more than 64 deep here");
    return false;
  }
  if (ctx.expandedWeight > maxWeight)
    return false; // said already
  ctx.expandedWeight += weight;
  if (ctx.expandedWeight <= maxWeight)
    return true;
  ctx.report(Code::TooManyCalls, call,
             "the kernel becomes too large: calls of fns and kernels are expanded where they "
             "stand, up to "
             "16,384 fns or 2,048 kernels in all")
      .note("name a value that is used again, and call on the name");
  return false;
}

static Value expandFn(CheckContext &ctx, const ast::Expr &e, const ast::Fn &fn) {
  llvm::StringRef name = e.name.name;
  auto signature = [&] {
    std::string result = name.str() + "(";
    for (size_t i = 0; i != fn.params.size(); ++i) {
      result += (i ? ", " : "") + fn.params[i].name;
      if (i < fn.defaults.size() && fn.defaults[i])
        result += "=" + ctx.text(fn.defaults[i]->span).str();
    }
    return result + ")";
  };
  for (const Expansion &expansion : ctx.expansions)
    if (expansion.definition == &fn) {
      ctx.report(Code::Recursion, e.span, "fn '" + name + "' calls itself; recursion is an error");
      return {};
    }
  llvm::SmallVector<Value> values(fn.params.size());
  llvm::SmallVector<bool> given(fn.params.size(), false);
  bool failed = false;
  size_t position = 0;
  for (const ast::Argument &argument : e.arguments) {
    size_t which = position;
    if (argument.keyword) {
      which = llvm::find_if(
                  fn.params,
                  [&](const ast::Ident &param) { return param.name == argument.keyword->name; }) -
              fn.params.begin();
      if (which == fn.params.size()) {
        Report record = ctx.report(Code::UnknownKeyword, argument.keyword->span,
                                   "'" + name + "' has no argument '" + argument.keyword->name +
                                       "'; it is " + signature());
        std::vector<llvm::StringRef> names;
        for (const ast::Ident &param : fn.params)
          names.push_back(param.name);
        adviseKeyword(ctx, record, *argument.keyword, names);
        failed = true;
        continue;
      }
    } else {
      if (position == fn.params.size()) {
        ctx.report(Code::TooManyArguments, argument.value->span,
                   "'" + name + "' is " + signature() + ", got " + llvm::Twine(e.arguments.size()) +
                       " arguments");
        failed = true;
        break;
      }
      ++position;
    }
    if (given[which]) {
      ctx.report(Code::DuplicateArgument, argument.value->span,
                 "'" + fn.params[which].name + "' of '" + name + "' is given twice");
      failed = true;
      continue;
    }
    given[which] = true;
    // Named options of library functions take true and false as well as numbers.
    values[which] = eval(ctx, *argument.value);
    failed |= values[which].isPoison();
  }
  for (size_t i = 0; i != fn.params.size() && !failed; ++i)
    if (!given[i] && !(i < fn.defaults.size() && fn.defaults[i])) {
      ctx.report(Code::MissingArgument, e.span,
                 "'" + fn.params[i].name + "' of '" + name + "' is missing; it is " + signature());
      failed = true;
    }
  if (failed)
    return {};
  if (!mayExpand(ctx, e.span, 1))
    return {};
  ctx.expansions.push_back({e.span, name.str(), false, ctx.module.isLibrary(fn), &fn});
  Scope inner(Scope::Fn, nullptr);
  Saved savedScope(ctx.scope, &inner);
  for (size_t i = 0; i != fn.params.size(); ++i) {
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.value = given[i] ? values[i] : eval(ctx, *fn.defaults[i]);
    if (entity.value.isPoison())
      entity.kind = Entity::Poison;
    ctx.define(inner, fn.params[i], std::move(entity));
  }
  for (const auto &[target, value] : fn.lets) {
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.value = eval(ctx, *value);
    if (entity.value.isPoison())
      entity.kind = Entity::Poison;
    ctx.define(inner, target, std::move(entity));
  }
  Value result = fn.result ? eval(ctx, *fn.result) : Value{};
  ctx.expansions.pop_back();
  return result;
}

Value tegula::evalCall(CheckContext &ctx, const ast::Expr &e) {
  llvm::StringRef name = e.name.name;
  // What the file itself defines hides the library and the built-in functions.
  const ast::Fn *fn = ctx.module.findFn(name, ctx.inLibrary());
  const ast::Kernel *kernel = ctx.module.findKernel(name, ctx.inLibrary());
  bool ownFn = fn && !ctx.module.isLibrary(*fn);
  bool ownKernel = kernel && !ctx.module.isLibrary(*kernel);
  BuiltinClass kind = builtinClass(name);
  if (e.isComprehension && kind != BuiltinClass::Reduction && name != "topk") {
    if (fn || kernel || kind != BuiltinClass::None) {
      Report record = ctx.report(Code::NotAReduction, e.span, "'" + name + "' does not take 'for'");
      if (kind == BuiltinClass::Scan) {
        record.note("it keeps its index: " + name.str() + "(v, over=j)");
        suggestOver(record, e, {});
      } else
        record.note("reductions are sum prod max min mean var any all count argmax argmin "
                    "logsumexp");
      return {};
    }
  }
  if (ownFn)
    return expandFn(ctx, e, *fn);
  // Values have no use for a kernel: a file's own kernel `softmax` leaves softmax(v, over=j) alone.
  if (kind != BuiltinClass::None)
    return evalBuiltin(ctx, e);
  if (std::optional<DType> type = name == "int" ? DType::I64 : parseDType(name))
    return evalConvert(ctx, e, *type);
  if (auto generic = ctx.frame->types.find(name); generic != ctx.frame->types.end())
    return evalConvert(ctx, e, generic->second);
  if (fn && (!ownKernel || kernel == ctx.frame->kernel))
    return expandFn(ctx, e, *fn);
  // A kernel cannot mean itself.
  if (kernel == ctx.frame->kernel && reportInvention(ctx, name, e.name.span, Invention::Function))
    return {};
  if (kernel) {
    Report record = ctx.report(Code::KernelInExpression, e.span,
                               "kernel '" + name +
                                   "' works on whole tensors and cannot stand in an "
                                   "expression");
    record.note("give its result a name first, then subscript it: h = " +
                ctx.text(e.span).take_front(60).str());
    return {};
  }
  if (reportInvention(ctx, name, e.name.span, Invention::Function))
    return {};
  // What works on whole tensors is a kernel.
  bool onTensors = llvm::any_of(e.arguments, [&](const ast::Argument &argument) {
    if (argument.value->kind != ast::Expr::Name)
      return false;
    Entity *entity = ctx.lookup(argument.value->name.name);
    return entity && entity->kind == Entity::Tensor && entity->tensor->tensor &&
           !entity->tensor->tensor->dims.empty();
  });
  unknownFunction(ctx, e.name, onTensors ? Code::UnknownKernel : Code::UnknownFunction);
  return {};
}
