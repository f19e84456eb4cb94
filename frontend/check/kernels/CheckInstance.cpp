//===- CheckInstance.cpp - Signatures: types, constants, dims, outputs -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a signature says, for the entry and for called kernels alike: the types of its parameters,
// the values of its constants, the dims of its tensors, its `where` sizes and its outputs. In the
// entry dims are symbols; in a called kernel they are expressions in its caller's.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDims.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckFloatSizes.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckPieces.h"
#include "frontend/check/CheckScatter.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

static void warnUnused(CheckContext &ctx, Frame &frame);

ParamKind tegula::kindOf(const ast::Param &param) {
  const std::string &type = param.type.name;
  if (type == "int" || type == "float")
    return param.hasDims ? ParamKind::Tuple : ParamKind::Constant;
  if (type == "bool" && !param.hasDims)
    return ParamKind::Constant;
  return param.hasDims ? ParamKind::Tensor : ParamKind::Scalar;
}

bool tegula::isGeneric(llvm::StringRef name) {
  return !name.empty() && name[0] >= 'A' && name[0] <= 'Z' && !findInvention(Invention::Type, name);
}

std::optional<DType> tegula::resolveType(CheckContext &ctx, const ast::Ident &type) {
  if (std::optional<DType> known = parseDType(type.name))
    return known;
  auto generic = ctx.frame->types.find(type.name);
  if (generic != ctx.frame->types.end())
    return generic->second;
  if (reportInvention(ctx, type.name, type.span, Invention::Type))
    return std::nullopt;
  if (isGeneric(type.name)) {
    Report record = ctx.report(Code::GenericUnbound, type.span,
                               "type '" + type.name + "' is bound by no parameter");
    record.note("a capitalised type name stands for the type of the first tensor that shows it");
    return std::nullopt;
  }
  Report record = ctx.report(Code::UnknownType, type.span, "unknown type '" + type.name + "'");
  llvm::StringRef near =
      nearestName(type.name, {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16",
                              "i8", "u64", "u32", "u16", "u8", "i4", "u4", "bool", "int", "float"});
  if (!near.empty())
    record.note("did you mean '" + near.str() + "'?")
        .fix("write " + near.str(), {{type.span, near.str()}});
  else
    record.note(
        "types are f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 i4 u64 u32 u16 u8 u4 bool");
  return std::nullopt;
}

TensorInfo *tegula::newTensor(CheckContext &ctx, Tensor::Kind kind, llvm::StringRef name,
                              DType type, std::vector<IndexExpr> dims, Span span) {
  Tensor &tensor = ctx.program->tensors.emplace_back();
  tensor.kind = kind;
  tensor.name = name.str();
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.span = span;
  TensorInfo &info = ctx.tensorInfos.emplace_back();
  info.tensor = &tensor;
  info.isElement = tensor.dims.empty();
  return &info;
}

void tegula::addSize(CheckContext &ctx, llvm::StringRef name, unsigned input, unsigned dim) {
  checked::Size size;
  size.name = name.str();
  size.boundBy = {input, dim};
  ctx.program->sizes.push_back(std::move(size));
}

Given tegula::evalGiven(CheckContext &ctx, const ast::Expr &e) {
  Given given;
  given.isGiven = true;
  given.span = e.span;
  if (e.kind == ast::Expr::Tuple) {
    given.isTuple = true;
    for (const ast::ExprPtr &one : e.operands)
      given.tuple.push_back(eval(ctx, *one));
    return given;
  }
  if (e.kind == ast::Expr::Name)
    if (Entity *entity = ctx.lookup(e.name.name); entity && entity->kind == Entity::Tuple) {
      given.isTuple = true;
      given.tuple = entity->tuple;
      return given;
    }
  given.value = eval(ctx, e);
  return given;
}

bool tegula::bindConstant(CheckContext &ctx, const ast::Param &param, const Given &given) {
  const std::string &type = param.type.name;
  bool isDefault = !given.isGiven;
  std::string what = "'" + param.name.name + "'";
  auto wrong = [&](Code code, const llvm::Twine &message) {
    ctx.report(code, given.span, message).note(what + " is declared here", param.span);
    return false;
  };
  auto convert = [&](Value value, Value &result) {
    if (value.isPoison())
      return false;
    if (type == "int") {
      if (!value.index || usesData(ctx, *value.index) || !value.index->isSize())
        return wrong(
            !value.weak ? Code::NotAConstant
            : isDefault ? Code::BadDefault
                        : Code::ArgumentKind,
            what + " expects an integer known when compiling, got " +
                (value.weak ? "a number that is no integer" : "a value known only at the launch"));
      requireExact(ctx, value.exact, given.span);
      result = indexValue(ctx, *value.index, given.span);
      return true;
    }
    if (type == "float") {
      // A scalar of sizes passes as the expression it stands for.
      while (value.expr->kind == Expr::Let)
        value.expr = value.expr->let->value;
      if (!value.weak || value.expr->type == DType::Bool)
        return wrong(Code::NotAConstant,
                     what + " expects a number known when compiling, got a value of type " +
                         toString(value.expr->type));
      result = Value{coerce(ctx, value, DType::F64), true, std::nullopt, {}};
      return true;
    }
    std::optional<bool> known = boolOf(value.expr);
    if (!known)
      return wrong(value.expr->type == DType::Bool ? Code::NotAConstant
                   : isDefault                     ? Code::BadDefault
                                                   : Code::ArgumentKind,
                   what + " expects true or false, known when compiling, got " +
                       (value.expr->type == DType::Bool ? "a condition on data"
                                                        : toString(typeAlone(value)).str()));
    result = value;
    return true;
  };
  Entity entity;
  entity.param = &param;
  if (kindOf(param) == ParamKind::Constant) {
    if (given.isTuple)
      return wrong(isDefault ? Code::BadDefault : Code::UnexpectedTuple,
                   what + " takes one value, got a tuple of " + llvm::Twine(given.tuple.size()));
    entity.kind = Entity::Scalar;
    entity.isSize = type == "int";
    if (!convert(given.value, entity.value))
      return false;
  } else {
    entity.kind = Entity::Tuple;
    std::optional<int64_t> length;
    if (param.dims.size() == 1 && !param.dims[0].ellipsis)
      if (std::optional<IndexExpr> size =
              evalSize(ctx, *param.dims[0].expr, "the length of a tuple"))
        length = size->asConstant();
    if (!length || *length < 1 || *length > 64) {
      Report record = ctx.report(Code::TupleLength, param.span,
                                 "the length of " + what + " must be a constant from 1 to 64");
      if (const Invention *known = findInvention(Invention::Type, type); known && !length) {
        // `x: float[M, N]`
        record.note("'" + type + "[2]' is a tuple of constants; a tensor is " +
                    known->replacement.str() + "[M, N]");
        record.fix("write '" + known->replacement.str() + "'",
                   {{param.type.span, known->replacement.str()}}, Applicability::Safe);
      }
      return false;
    }
    if (given.isTuple && int64_t(given.tuple.size()) != *length)
      return wrong(Code::TupleLength, what + " takes " + llvm::Twine(*length) +
                                          " values or one, got " + llvm::Twine(given.tuple.size()));
    for (int64_t i = 0; i != *length; ++i) {
      Value one;
      if (!convert(given.isTuple ? given.tuple[i] : given.value, one))
        return false;
      entity.tuple.push_back(std::move(one));
    }
  }
  return ctx.define(ctx.frame->scope, param.name, std::move(entity)) != nullptr;
}

bool tegula::bindDims(CheckContext &ctx, const ast::Param &param, llvm::ArrayRef<IndexExpr> dims,
                      unsigned input) {
  size_t written = param.dims.size();
  const ast::Dim *ellipsis = nullptr;
  for (const ast::Dim &dim : param.dims)
    if (dim.ellipsis) {
      if (ellipsis) {
        ctx.report(Code::EllipsisMisuse, dim.span, "'...' stands once in a parameter");
        return false;
      }
      ellipsis = &dim;
    }
  if (ellipsis ? dims.size() + 1 < written : dims.size() != written) {
    ctx.report(Code::RankMismatch, param.span,
               "'" + param.name.name + "' has " + llvm::Twine(written - (ellipsis ? 1 : 0)) +
                   (ellipsis ? " dims or more" : " dims") + ", the argument has " +
                   llvm::Twine(dims.size()));
    return false;
  }
  size_t run = dims.size() + 1 - written;
  size_t position = 0;
  for (const ast::Dim &dim : param.dims) {
    if (dim.ellipsis) {
      std::vector<IndexExpr> here(dims.begin() + position, dims.begin() + position + run);
      if (!ctx.frame->ellipsis)
        ctx.frame->ellipsis = here;
      else if (ctx.frame->ellipsis->size() != here.size()) {
        ctx.report(Code::RankMismatch, param.span,
                   "'...' of '" + param.name.name + "' stands for " + llvm::Twine(here.size()) +
                       " dims, but for " + llvm::Twine(ctx.frame->ellipsis->size()) + " before");
        return false;
      }
      position += run;
      continue;
    }
    if (dim.expr && dim.expr->kind != ast::Expr::Name) {
      ctx.frame->openDims.push_back({&param, &dim, input, unsigned(position), dims[position]});
    } else if (dim.expr) {
      const ast::Ident &name = dim.expr->name;
      if (!declares(*ctx.frame->kernel, name.name) && !ctx.frame->scope.names.contains(name.name)) {
        Entity entity;
        entity.kind = Entity::Scalar;
        entity.isSize = true;
        entity.value = indexValue(ctx, dims[position], name.span);
        if (!ctx.define(ctx.frame->scope, name, std::move(entity)))
          return false;
      }
    }
    ++position;
  }
  return true;
}

std::optional<std::vector<IndexExpr>> tegula::evalDims(CheckContext &ctx, const ast::Param &param) {
  std::vector<IndexExpr> dims;
  bool failed = false;
  for (const ast::Dim &dim : param.dims) {
    if (dim.ellipsis) {
      if (!ctx.frame->ellipsis) {
        ctx.report(Code::EllipsisMisuse, dim.span,
                   "'...' of '" + param.name.name + "' is bound by no tensor that is given");
        return std::nullopt;
      }
      llvm::append_range(dims, *ctx.frame->ellipsis);
      continue;
    }
    if (!dim.expr)
      return std::nullopt;
    // A name that nothing binds is said to be a dim, not just unknown.
    llvm::SmallVector<const ast::Ident *> names;
    auto visit = [&](auto &&visit, const ast::Expr &e) -> void {
      if (e.kind == ast::Expr::Name)
        names.push_back(&e.name);
      for (const ast::ExprPtr &operand : e.operands)
        if (operand)
          visit(visit, *operand);
      for (const ast::Argument &argument : e.arguments)
        visit(visit, *argument.value);
    };
    visit(visit, *dim.expr);
    bool unbound = false;
    llvm::StringSet<> told;
    for (const ast::Ident *name : names) {
      if (ctx.lookup(name->name) || isReserved(name->name) || !told.insert(name->name).second)
        continue;
      Report record =
          ctx.report(Code::UnboundDim, name->span,
                     "dim '" + name->name + "' of '" + param.name.name + "' is bound by no tensor");
      record.note(
          "a dim binds the one size that it shows bare or is linear in, as 2*P + 1; sizes made of "
          "others follow the outputs: 'where P = N - 2'");
      llvm::StringRef near = nearestName(name->name, visibleNames(ctx));
      if (!near.empty())
        record.fix("write '" + near.str() + "'", {{name->span, near.str()}});
      unbound = true;
    }
    if (unbound) {
      failed = true;
      continue;
    }
    std::optional<IndexExpr> size = evalSize(ctx, *dim.expr, "a dim");
    if (!size)
      failed = true;
    else
      dims.push_back(*size);
  }
  if (failed)
    return std::nullopt;
  return dims;
}

bool tegula::defineWhereSizes(CheckContext &ctx) {
  bool fine = true;
  for (const ast::SizeDef &size : ctx.frame->kernel->sizes) {
    if (!size.value)
      return false;
    Value value;
    {
      // The definition as a whole may get the name.
      Saved savedKeep(ctx.sizeNames.keepAtoms, true);
      value = eval(ctx, *size.value);
    }
    if (value.isPoison()) {
      ctx.poison(ctx.frame->scope, size.name);
      fine = false;
      continue;
    }
    if (!value.index)
      value.index = sizeOf(ctx, value, /*truncates=*/false);
    if (!value.index || !value.index->isSize()) {
      Report record =
          ctx.report(Code::NotASize, size.value->span,
                     "'" + size.name.name + "' must be an integer known before the launch, got " +
                         (value.weak ? "a number that is no integer"
                                     : "a value of type " + toString(value.expr->type).str()));
      if (value.weak)
        record.note("sizes divide with '//' (rounding down) or '/' (exactly); int(v) truncates, "
                    "ceil(v) and "
                    "round(v) round");
      else
        record.note("sizes are made of dims and constants; an integer known when compiling is "
                    "declared 'n: int'");
      ctx.poison(ctx.frame->scope, size.name);
      fine = false;
      continue;
    }
    requireExact(ctx, value.exact, size.value->span);
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.isSize = true;
    entity.value = indexValue(ctx, defineSize(ctx, size.name.name, *value.index), size.value->span);
    if (entity.value.isPoison())
      entity.kind = Entity::Poison;
    if (!ctx.define(ctx.frame->scope, size.name, std::move(entity)) || !bindLinearDims(ctx))
      fine = false;
  }
  return fine;
}

bool tegula::declareOutputs(CheckContext &ctx, Frame &of,
                            llvm::SmallVectorImpl<TensorInfo *> &outputs) {
  bool fine = true;
  for (const ast::Param &param : of.kernel->outputs) {
    ParamKind kind = kindOf(param);
    if (kind == ParamKind::Tuple || param.type.name == "int" || param.type.name == "float") {
      Report record = ctx.report(Code::UnknownType, param.type.span,
                                 "an output has an element type, got '" + param.type.name + "'");
      std::string type = param.type.name == "int" ? "i64" : "f32";
      record.fix("write " + type, {{param.type.span, type}});
      fine = false;
      continue;
    }
    std::optional<DType> type = resolveType(ctx, param.type);
    std::optional<std::vector<IndexExpr>> dims = evalDims(ctx, param);
    if (!type || !dims) {
      fine = false;
      ctx.poison(of.scope, param.name);
      continue;
    }
    for (auto [i, dim] : llvm::enumerate(*dims))
      if (!requireNonNegative(ctx, dim, i < param.dims.size() ? param.dims[i].span : param.span,
                              "dim " + llvm::Twine(i + 1) + " of '" + param.name.name + "'"))
        fine = false;
    TensorInfo *info =
        newTensor(ctx, Tensor::Out, param.name.name, *type, std::move(*dims), param.span);
    info->param = &param;
    Entity entity;
    entity.kind = Entity::Tensor;
    entity.tensor = info;
    entity.param = &param;
    if (!ctx.define(of.scope, param.name, std::move(entity))) {
      fine = false;
      continue;
    }
    outputs.push_back(info);
    if (!of.caller)
      ctx.program->outputs.push_back(info->tensor);
  }
  if (of.kernel->outputs.empty() &&
      llvm::none_of(of.kernel->params, [](const ast::Param &param) { return param.isInout; })) {
    ctx.report(Code::NeverDefined,
               of.kernel->headSpan.isValid() ? of.kernel->headSpan : of.kernel->span,
               "kernel '" + of.kernel->name.name + "' has neither outputs nor inout parameters");
    fine = false;
  }
  return fine;
}

/// The tensors that statements write.
static void collectWritten(llvm::ArrayRef<Stmt *> body,
                           llvm::SmallPtrSetImpl<const Tensor *> &written) {
  for (const Stmt *stmt : body) {
    if (stmt->kind == Stmt::Equation)
      written.insert(stmt->tensor);
    if (stmt->callee) {
      for (const auto &result : stmt->callee->results)
        written.insert(result.second);
      for (const auto &argument : stmt->callee->arguments)
        if (argument.first->kind == Tensor::Inout)
          written.insert(argument.second);
    }
    collectWritten(stmt->body, written);
  }
}

void tegula::finishKernel(CheckContext &ctx, Frame &of, llvm::ArrayRef<TensorInfo *> outputs) {
  // Where an equation was wrong, that was said.
  if (ctx.hasErrors())
    return;
  llvm::SmallPtrSet<const Tensor *, 8> written;
  collectWritten(*of.body, written);
  for (TensorInfo *info : outputs) {
    if (written.contains(info->tensor) && (info->isComplete || !info->pieces.empty())) {
      requireCovered(ctx, *info, info->tensor->span, /*atEnd=*/true);
      continue;
    }
    ctx.report(Code::NeverDefined, info->tensor->span,
               "output '" + info->tensor->name + "' is never defined")
        .note("write an equation for it: " +
              elementText(info->tensor->name, info->tensor->dims.size()) + " = ...");
  }
  checkDistinctNames(ctx, of);
  bindInvariantNames(ctx, of);
  if (!of.caller && !ctx.hasErrors())
    warnUnused(ctx, of);
}

static void warnUnused(CheckContext &ctx, Frame &of) {
  for (const ast::Param &param : of.kernel->params) {
    auto found = of.scope.names.find(param.name.name);
    if (found == of.scope.names.end() || found->second.isUsed)
      continue;
    bool dimsUsed = false;
    if (kindOf(param) == ParamKind::Tensor) {
      if (found->second.tensor && found->second.tensor->tensor->constantValue)
        continue; // left out here
      for (const ast::Dim &dim : param.dims) {
        if (dim.ellipsis || !dim.expr || dim.expr->kind != ast::Expr::Name)
          continue;
        auto size = of.scope.names.find(dim.expr->name.name);
        dimsUsed |= size != of.scope.names.end() && size->second.isUsed;
      }
    }
    if (dimsUsed)
      continue;
    ctx.report(Code::UnusedParameter, param.name.span,
               "parameter '" + param.name.name + "' is not used");
  }
}
