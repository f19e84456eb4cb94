//===- CheckArguments.cpp - Arguments of calls, and what they bind ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments go to parameters by position or name, and keywords to options. The parameters of a
// called kernel are then bound in its caller's sizes, in this order: types, constants that are
// given, dims of the tensors that are given, scalars, defaults, `where` sizes, then every declared
// dim is held against the real one.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCall.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDims.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

bool tegula::mapArguments(CheckContext &ctx, const ast::Expr &call, const ast::Kernel &kernel,
                          llvm::SmallVectorImpl<const ast::Expr *> &arguments) {
  arguments.assign(kernel.params.size(), nullptr);
  bool fine = true;
  size_t position = 0;
  const std::string &name = call.name.name;
  for (const ast::Argument &argument : call.arguments) {
    size_t which = position;
    if (argument.keyword) {
      which = llvm::find_if(kernel.params,
                            [&](const ast::Param &param) {
                              return param.name.name == argument.keyword->name;
                            }) -
              kernel.params.begin();
      if (which == kernel.params.size()) {
        Report record =
            ctx.report(Code::UnknownKeyword, argument.keyword->span,
                       "'" + name + "' has no argument '" + argument.keyword->name + "'");
        std::vector<llvm::StringRef> names;
        for (const ast::Param &param : kernel.params)
          names.push_back(param.name.name);
        record.note("it is " + signatureOf(ctx, kernel));
        adviseKeyword(ctx, record, *argument.keyword, names);
        fine = false;
        continue;
      }
    } else {
      if (position == kernel.params.size()) {
        ctx.report(Code::TooManyArguments, argument.value->span,
                   "'" + name + "' takes " + llvm::Twine(kernel.params.size()) +
                       " arguments, got " + llvm::Twine(call.arguments.size()))
            .note("it is " + signatureOf(ctx, kernel));
        return false;
      }
      ++position;
    }
    if (arguments[which]) {
      ctx.report(Code::DuplicateArgument, argument.value->span,
                 "'" + kernel.params[which].name.name + "' of '" + name + "' is given twice");
      fine = false;
      continue;
    }
    arguments[which] = argument.value.get();
  }
  for (size_t i = 0; i != kernel.params.size(); ++i)
    if (!arguments[i] && !kernel.params[i].defaultValue && fine) {
      ctx.report(Code::MissingArgument, call.span,
                 "'" + kernel.params[i].name.name + "' of '" + name + "' is missing")
          .note("it is " + signatureOf(ctx, kernel));
      fine = false;
    }
  return fine;
}

TensorInfo *tegula::tensorArgument(CheckContext &ctx, const ast::Expr &argument,
                                   llvm::StringRef parameter, llvm::StringRef kernel) {
  if (isKernelCall(ctx, argument)) {
    auto results = callKernel(ctx, argument);
    if (!results)
      return nullptr;
    if (results->size() != 1) {
      ctx.report(Code::ResultCount, argument.span,
                 "'" + argument.name.name + "' gives " + llvm::Twine(results->size()) +
                     " results, and one is passed on");
      return nullptr;
    }
    return results->front();
  }
  if (argument.kind == ast::Expr::Name) {
    Entity *entity = ctx.lookup(argument.name.name);
    if (!entity) {
      unknownName(ctx, argument.name, false);
      return nullptr;
    }
    if (entity->kind == Entity::Poison || (entity->tensor && entity->tensor->isPoison))
      return nullptr;
    if (entity->kind == Entity::Tensor) {
      entity->tensor->isRead = true;
      return entity->tensor;
    }
    ctx.report(Code::ArgumentKind, argument.span,
               "'" + parameter + "' of '" + kernel + "' takes a tensor, and '" +
                   argument.name.name + "' is " + describe(*entity));
    return nullptr;
  }
  Report record =
      ctx.report(Code::ArgumentKind, argument.span,
                 "'" + parameter + "' of '" + kernel + "' takes a tensor, got an expression");
  if (argument.kind == ast::Expr::Name || argument.kind == ast::Expr::Index ||
      argument.kind == ast::Expr::Binary || argument.kind == ast::Expr::Call)
    record.note("give it a name first: t[i, j] = ..., then pass t");
  else
    record.note("arguments of kernels are names of tensors, or calls of kernels");
  return nullptr;
}

const ast::Expr *tegula::keywordArgument(const ast::Expr &e, llvm::StringRef name) {
  for (const ast::Argument &argument : e.arguments)
    if (argument.keyword && argument.keyword->name == name)
      return argument.value.get();
  return nullptr;
}

bool tegula::checkKeywords(CheckContext &ctx, const ast::Expr &e,
                           llvm::ArrayRef<llvm::StringRef> known) {
  bool fine = true;
  llvm::StringSet<> seen;
  for (const ast::Argument &argument : e.arguments) {
    if (!argument.keyword)
      continue;
    const std::string &name = argument.keyword->name;
    if (!seen.insert(name).second) {
      ctx.report(Code::DuplicateArgument, argument.keyword->span, "'" + name + "' is given twice");
      fine = false;
    } else if (!llvm::is_contained(known, name)) {
      std::string takes;
      for (llvm::StringRef one : known)
        takes += (takes.empty() ? "" : ", ") + one.str() + "=";
      Report record = ctx.report(Code::UnknownKeyword, argument.keyword->span,
                                 "'" + e.name.name + "' has no option '" + name + "'" +
                                     (takes.empty() ? "" : "; it takes " + takes));
      adviseKeyword(ctx, record, *argument.keyword, known);
      fine = false;
    }
  }
  return fine;
}

bool tegula::boolOption(CheckContext &ctx, const ast::Expr &e, llvm::StringRef name,
                        bool fallback) {
  const ast::Expr *given = keywordArgument(e, name);
  if (!given)
    return fallback;
  const Expr *value =
      asCondition(ctx, eval(ctx, *given), given->span, ("option '" + name + "'").str());
  if (!value)
    return fallback;
  if (std::optional<bool> known = boolOf(value))
    return *known;
  ctx.report(Code::NotAConstant, given->span,
             "option '" + name + "' expects true or false, known when compiling");
  return fallback;
}

std::optional<Value> tegula::defaultOf(CheckContext &ctx, const ast::Param &param, DType type) {
  const Expr *expr = storable(ctx, eval(ctx, *param.defaultValue), type,
                              "'" + param.name.name + "'", param.defaultValue->span);
  return expr ? std::optional(strong(expr)) : std::nullopt;
}

std::pair<ScalarParam *, Value> tegula::addScalar(CheckContext &ctx, const ast::Param &param,
                                                  DType type) {
  ScalarParam &scalar = ctx.program->scalarParams.emplace_back();
  scalar.name = param.name.name;
  scalar.type = type;
  scalar.span = param.span;
  Expr *use = makeExpr(ctx, Expr::Scalar, computeType(type), param.name.span);
  use->scalar = &scalar;
  Value value = strong(finishExpr(ctx, use));
  value.storage = type;
  return {&scalar, value};
}

/// Scalars of the current frame, passed by the callee's call where there is one.
static bool bindScalars(CheckContext &ctx, llvm::ArrayRef<Given> given, Callee *callee) {
  const ast::Kernel &kernel = *ctx.frame->kernel;
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Scalar)
      continue;
    std::optional<DType> type = resolveType(ctx, param.type);
    if (!type) {
      fine = false;
      ctx.poison(ctx.frame->scope, param.name);
      continue;
    }
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.param = &param;
    if (!one.isGiven && param.defaultValue) {
      std::optional<Value> value = defaultOf(ctx, param, *type);
      if (!value) {
        fine = false;
        continue;
      }
      entity.value = *value;
    } else {
      auto [scalar, value] = addScalar(ctx, param, *type);
      entity.value = value;
      if (callee) {
        const Expr *passed = storable(ctx, one.value, *type, "'" + param.name.name + "'", one.span);
        if (!passed) {
          fine = false;
          continue;
        }
        callee->scalars.push_back({scalar, passed});
      } else {
        ctx.program->scalars.push_back(scalar);
      }
    }
    fine &= ctx.define(ctx.frame->scope, param.name, std::move(entity)) != nullptr;
  }
  return fine;
}

/// Constants of the current frame that are not given have their defaults.
static bool bindDefaults(CheckContext &ctx, llvm::ArrayRef<Given> given) {
  const ast::Kernel &kernel = *ctx.frame->kernel;
  bool fine = true;
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    ParamKind kind = kindOf(param);
    if (one.isGiven || (kind != ParamKind::Constant && kind != ParamKind::Tuple))
      continue;
    if (!param.defaultValue) {
      fine = false; // reported by the caller
      continue;
    }
    Given fallback = evalGiven(ctx, *param.defaultValue);
    fallback.isGiven = false;
    if (!fallback.isTuple && fallback.value.isPoison()) {
      fine = false;
      ctx.poison(ctx.frame->scope, param.name);
      continue;
    }
    if (!bindConstant(ctx, param, fallback)) {
      ctx.poison(ctx.frame->scope, param.name);
      fine = false;
    }
  }
  return fine;
}

/// Tensors of the current frame: declared dims are held against those of the arguments.
static bool bindTensors(CheckContext &ctx, llvm::ArrayRef<Given> given, Callee *callee) {
  const ast::Kernel &kernel = *ctx.frame->kernel;
  bool fine = true;
  llvm::StringSet<> typeless;
  for (auto [i, param] : llvm::enumerate(kernel.params)) {
    const Given &one = given[i];
    ParamKind kind = kindOf(param);
    if (kind != ParamKind::Tensor)
      continue;
    std::optional<DType> type;
    // A type of which nothing is given takes no part in the types of values.
    bool isTypeless =
        isGeneric(param.type.name) && (!one.tensor || one.tensor->tensor->isTypeless) &&
        (typeless.contains(param.type.name) || !ctx.frame->types.contains(param.type.name));
    if (isTypeless) {
      typeless.insert(param.type.name);
      type = ctx.frame->types[param.type.name] = DType::F32;
    } else
      type = resolveType(ctx, param.type);
    if (!type) {
      fine = false;
      ctx.poison(ctx.frame->scope, param.name);
      continue;
    }
    std::optional<std::vector<IndexExpr>> declared = evalDims(ctx, param);
    if (!declared) {
      fine = false;
      ctx.poison(ctx.frame->scope, param.name);
      continue;
    }
    TensorInfo *info = nullptr;
    std::optional<double> constantValue;
    bool isWholeDefault = one.tensor && one.tensor->tensor->isWholeDefault;
    if (one.tensor)
      constantValue = one.tensor->tensor->constantValue;
    else if (param.defaultValue) {
      Value value = eval(ctx, *param.defaultValue);
      if (value.isPoison()) {
        fine = false;
        continue;
      }
      constantValue = constantOf(value.expr);
      isWholeDefault = !isFloat(value.expr->type);
      if (!constantValue) {
        ctx.report(Code::BadDefault, param.defaultValue->span,
                   "the default of '" + param.name.name + "' must be a number");
        fine = false;
        continue;
      }
      if (!isFloat(*type) && !isWhole(*constantValue)) {
        ctx.report(Code::BadDefault, param.defaultValue->span,
                   "the default of '" + param.name.name + "' must be an integer, its type is " +
                       toString(*type));
        fine = false;
        continue;
      }
    }
    if (one.tensor) {
      const Tensor &argument = *one.tensor->tensor;
      if (argument.type != *type) {
        ctx.report(Code::ArgumentKind, one.span.isValid() ? one.span : param.span,
                   "'" + param.name.name + "' is " + toString(*type) + ", the argument '" +
                       argument.name + "' is " + toString(argument.type))
            .note("convert it first: t[i] = " + toString(*type).str() + "(" + argument.name +
                  "[i])");
        fine = false;
      }
      if (callee && declared->size() == argument.dims.size())
        for (size_t d = 0; d != declared->size(); ++d)
          if (!requireEqual(ctx, argument.dims[d], (*declared)[d], param.span,
                            "dim " + llvm::Twine(d + 1) + " of '" + argument.name +
                                "', given as '" + param.name.name + "'",
                            Code::SizeMismatch))
            fine = false;
      info = newTensor(ctx, param.isInout ? Tensor::Inout : Tensor::In, param.name.name, *type,
                       argument.dims, param.span);
    } else {
      info = newTensor(ctx, Tensor::In, param.name.name, *type, *declared, param.span);
    }
    info->param = &param;
    info->isComplete = true;
    info->tensor->constantValue = constantValue;
    info->tensor->isTypeless = isTypeless;
    info->tensor->isWholeDefault = isWholeDefault;
    Entity entity;
    entity.kind = Entity::Tensor;
    entity.tensor = info;
    entity.param = &param;
    fine &= ctx.define(ctx.frame->scope, param.name, std::move(entity)) != nullptr;
    if (constantValue)
      continue;
    if (callee) {
      callee->arguments.push_back({info->tensor, one.tensor->tensor});
      callee->tensors.push_back(info->tensor);
    } else {
      ctx.program->inputs.push_back(info->tensor);
      // What an argument shows is a size: 0 or more.
      for (const IndexExpr &dim : info->tensor->dims)
        if (!dim.asConstant() && !(dim.asVariable() && dim.asVariable()->isSymbol()))
          assume(ctx, Condition::nonNegative(dim));
    }
  }
  return fine;
}

bool tegula::bindParams(CheckContext &ctx, llvm::ArrayRef<Given> given, Callee *callee) {
  const ast::Kernel &kernel = *ctx.frame->kernel;
  bool fine = true;
  // Types, and tensors of the call.
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (kindOf(param) != ParamKind::Tensor || !one.tensor || !isGeneric(param.type.name) ||
        parseDType(param.type.name) || one.tensor->tensor->isTypeless)
      continue;
    ctx.frame->types.try_emplace(param.type.name, one.tensor->tensor->type);
  }
  for (auto [param, one] : llvm::zip(kernel.params, given)) {
    if (one.isGiven && (kindOf(param) == ParamKind::Constant || kindOf(param) == ParamKind::Tuple))
      fine &= bindConstant(ctx, param, one);
  }
  for (auto [i, param] : llvm::enumerate(kernel.params))
    if (given[i].tensor)
      fine &= bindDims(ctx, param, given[i].tensor->tensor->dims, i);
  fine = fine && bindLinearDims(ctx);
  fine &= bindScalars(ctx, given, callee);
  if (!fine)
    return false;
  fine &= bindDefaults(ctx, given);
  if (!fine || !bindLinearDims(ctx) || !defineWhereSizes(ctx))
    return false;

  return bindTensors(ctx, given, callee);
}
