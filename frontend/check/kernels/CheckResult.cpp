//===- CheckResult.cpp - Results of calls -----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensors that a call gives get their names, or are copied into what is defined already, or
// into elements of it.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckResult.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCall.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckStmt.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

bool tegula::copyTensor(CheckContext &ctx, TensorInfo *from, TensorInfo *to, unsigned dim,
                        const IndexExpr &offset, Span span) {
  Stmt *copy = appendStmt(ctx, Stmt::Equation, span);
  copy->tensor = to->tensor;
  std::vector<Subscript> subscripts;
  for (auto [d, size] : llvm::enumerate(from->tensor->dims)) {
    const Var *var = newVar(ctx, Var::Axis, "i" + std::to_string(d), IndexExpr(0), size, span);
    copy->vars.push_back(var);
    IndexExpr at = IndexExpr::dim(var->id);
    subscripts.push_back({at, {}, span, var});
    copy->subscripts.push_back(d == dim ? at + offset : at);
  }
  Saved savedVars(ctx.activeVars, copy->vars);
  const Expr *value = readTensor(ctx, *from, subscripts, nullptr, span);
  if (value) {
    promoteOutput(ctx, *to, strong(value));
    widenWeakTensor(ctx, *to, strong(value));
  }
  copy->value =
      value ? storable(ctx, strong(value), to->tensor->type, "'" + to->tensor->name + "'", span)
            : nullptr;
  return copy->value != nullptr;
}

/// Holds the dims of a result against those that the target names, and defines the new names.
static bool nameResultDims(CheckContext &ctx, const ast::Target &target, const TensorInfo *result) {
  const ast::Ident &name = target.name;
  size_t position = 0;
  std::vector<std::pair<const ast::Ident *, IndexExpr>> fresh;
  const std::vector<IndexExpr> &dims = result->tensor->dims;
  size_t given = 0;
  for (const ast::Subscript &subscript : target.subscripts)
    given += subscript.kind == ast::Subscript::Ellipsis
                 ? (ctx.frame->ellipsis ? ctx.frame->ellipsis->size() : 0)
                 : 1;
  if (given != dims.size()) {
    ctx.report(Code::RankMismatch, target.span,
               "the result has " + llvm::Twine(dims.size()) + " dims, " + showDims(ctx, *result) +
                   ", got " + llvm::Twine(given) + (given == 1 ? " name" : " names"));
    ctx.poison(*ctx.scope, name);
    return false;
  }
  for (const ast::Subscript &subscript : target.subscripts) {
    if (subscript.kind == ast::Subscript::Ellipsis) {
      position += ctx.frame->ellipsis ? ctx.frame->ellipsis->size() : 0;
      continue;
    }
    if (subscript.kind == ast::Subscript::Group || subscript.range) {
      ctx.report(Code::BadTarget, subscript.span, "a dim here is a size");
      ctx.poison(*ctx.scope, name);
      return false;
    }
    if (subscript.expr->kind == ast::Expr::Name && !ctx.lookup(subscript.expr->name.name)) {
      fresh.push_back({&subscript.expr->name, dims[position++]});
      continue;
    }
    std::optional<IndexExpr> size = evalSize(ctx, *subscript.expr, "a dim");
    if (!size ||
        !requireEqual(ctx, dims[position], *size, subscript.span,
                      "dim " + llvm::Twine(position + 1) + " of the result", Code::SizeMismatch)) {
      ctx.poison(*ctx.scope, name);
      return false;
    }
    ++position;
  }
  for (auto &[ident, size] : fresh) {
    Entity entity;
    entity.kind = Entity::Scalar;
    entity.isSize = true;
    entity.value = indexValue(ctx, size, ident->span);
    ctx.define(*ctx.scope, *ident, std::move(entity));
  }
  return true;
}

bool tegula::storeResult(CheckContext &ctx, const ast::Target &target, TensorInfo *result,
                         Span span) {
  const ast::Ident &name = target.name;
  std::optional<DType> type;
  if (target.type) {
    type = resolveType(ctx, *target.type);
    if (!type) {
      ctx.poison(*ctx.scope, name);
      return false;
    }
  }
  // `h: [N, O, P, Q] = ...` checks the dims that have names and names the others.
  if (target.hasSubscripts) {
    if (!nameResultDims(ctx, target, result))
      return false;
  }
  Entity *entity = ctx.lookup(name.name);
  if (!entity) {
    TensorInfo *made = result;
    if (type && *type != result->tensor->type) {
      made = newTemporary(ctx, name.name, *type, result->tensor->dims, name.span);
      if (!copyTensor(ctx, result, made, 0, IndexExpr(0), span)) {
        ctx.poison(*ctx.scope, name);
        return false;
      }
    } else {
      made->tensor->name = name.name;
      made->tensor->span = name.span;
    }
    Entity added;
    added.kind = Entity::Tensor;
    added.tensor = made;
    return ctx.define(*ctx.scope, name, std::move(added)) != nullptr;
  }
  if (entity->kind == Entity::Poison || (entity->tensor && entity->tensor->isPoison))
    return false;
  if (entity->kind != Entity::Tensor) {
    ctx.report(Code::Redefinition, name.span,
               "'" + name.name + "' is already defined, as " + describe(*entity))
        .note("first defined here", entity->span);
    return false;
  }
  TensorInfo &to = *entity->tensor;
  if (to.tensor->kind == Tensor::In) {
    Report record = ctx.report(Code::AssignToInput, name.span,
                               "'" + name.name + "' is an input and cannot be changed");
    suggestInout(ctx, record, to);
    return false;
  }
  bool isFree =
      to.tensor->kind == Tensor::State || to.tensor->kind == Tensor::Inout || !ctx.loops.empty();
  if (!isFree && (to.isComplete || !to.pieces.empty())) {
    Report record = ctx.report(Code::Overlap, name.span, "'" + name.name + "' is already defined");
    if (!to.pieces.empty())
      record.note("here", to.pieces.front().span);
    return false;
  }
  if (type && *type != to.tensor->type) {
    ctx.report(Code::BadTarget, target.type->span,
               "'" + name.name + "' is " + toString(to.tensor->type) + " already");
    return false;
  }
  if (to.tensor->dims.size() != result->tensor->dims.size()) {
    ctx.report(Code::RankMismatch, span,
               "'" + name.name + "' has " + llvm::Twine(to.tensor->dims.size()) +
                   (to.tensor->dims.size() == 1 ? " dim, " : " dims, ") + showDims(ctx, to) +
                   ", the result has " + llvm::Twine(result->tensor->dims.size()) + ", " +
                   showDims(ctx, *result))
        .note("'" + name.name + "' is declared here", to.tensor->span);
    to.isSuspect = true;
    return false;
  }
  for (auto [d, dim] : llvm::enumerate(to.tensor->dims))
    if (!requireEqual(ctx, dim, result->tensor->dims[d], span,
                      "dim " + llvm::Twine(d + 1) + " of '" + name.name + "' and of the result",
                      Code::SizeMismatch)) {
      to.isSuspect = true;
      return false;
    }
  // Straight into the output, where nothing of the call reads it.
  Stmt *call = ctx.sink->empty() ? nullptr : ctx.sink->back();
  bool direct = call && call->kind == Stmt::Call && to.tensor->type == result->tensor->type &&
                to.tensor->dims == result->tensor->dims && result->definition;
  if (direct) {
    for (const auto &[param, argument] : call->callee->arguments)
      direct &= argument != to.tensor;
    direct &= llvm::any_of(call->callee->results,
                           [&](const auto &one) { return one.second == result->tensor; });
  }
  if (direct) {
    for (auto &[output, where] : call->callee->results)
      if (where == result->tensor)
        where = to.tensor;
    llvm::erase(*ctx.sink, result->definition);
  } else if (!copyTensor(ctx, result, &to, 0, IndexExpr(0), span)) {
    return false;
  }
  to.isComplete = true;
  return true;
}
