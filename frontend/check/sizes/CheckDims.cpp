//===- CheckDims.cpp - Dims that bind a size by a formula --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `x: f32[2*P + 1]` binds P where no tensor shows P bare: the dim is linear in the one size that
// nothing else binds. In the entry the extent of the dim is a size without a name of its own, P is
// derived from it, and a launch checks that the division is exact. In a called kernel P is an
// expression in its caller's sizes.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckDims.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckSizes.h"

using namespace tegula;
using namespace tegula::checked;

static bool bindLinearDim(CheckContext &ctx, const OpenDim &dim, const ast::Ident &name);

namespace {
bool uses(const ast::Expr &e, llvm::StringRef name) {
  if (e.kind == ast::Expr::Name && e.name.name == name)
    return true;
  auto inside = [&](const ast::ExprPtr &operand) { return operand && uses(*operand, name); };
  return llvm::any_of(e.operands, inside) ||
         llvm::any_of(e.arguments, [&](const ast::Argument &one) { return inside(one.value); });
}

void forEachName(const ast::Expr &e, llvm::function_ref<void(const ast::Ident &)> visit) {
  if (e.kind == ast::Expr::Name)
    visit(e.name);
  for (const ast::ExprPtr &operand : e.operands)
    if (operand)
      forEachName(*operand, visit);
  for (const ast::Argument &argument : e.arguments)
    if (argument.value)
      forEachName(*argument.value, visit);
}

/// Whether the formula is made of sums, differences and products, with the name in one factor of a
/// product at most.
bool isLinear(const ast::Expr &e, llvm::StringRef name) {
  if (!uses(e, name) || e.kind == ast::Expr::Name)
    return true;
  auto isLinearIn = [&](const ast::ExprPtr &operand) {
    return operand && isLinear(*operand, name);
  };
  if (e.kind == ast::Expr::Unary && e.unaryOp == ast::UnaryOp::Neg)
    return isLinearIn(e.operands[0]);
  if (e.kind != ast::Expr::Binary || !llvm::all_of(e.operands, isLinearIn))
    return false;
  switch (e.binaryOp) {
  case ast::BinaryOp::Add:
  case ast::BinaryOp::Sub:
    return true;
  case ast::BinaryOp::Mul:
    return !uses(*e.operands[0], name) || !uses(*e.operands[1], name);
  default:
    return false;
  }
}
} // namespace

/// The one size of the dim that nothing has bound, if the dim can bind it.
static const ast::Ident *sizeBoundBy(CheckContext &ctx, const ast::Expr &dim) {
  const ast::Ident *found = nullptr;
  bool isSolvable = true;
  forEachName(dim, [&](const ast::Ident &name) {
    if (isReserved(name.name) || ctx.frame->scope.names.contains(name.name))
      return;
    isSolvable &= (!found || found->name == name.name) && !declares(*ctx.frame->kernel, name.name);
    found = &name;
  });
  return found && isSolvable && isLinear(dim, found->name) ? found : nullptr;
}

bool tegula::declares(const ast::Kernel &kernel, llvm::StringRef name) {
  auto isNamed = [&](const auto &one) { return one.name.name == name; };
  return llvm::any_of(kernel.sizes, isNamed) || llvm::any_of(kernel.params, isNamed);
}

bool tegula::bindLinearDims(CheckContext &ctx) {
  // What is bound now may leave one size open in a dim before: each round goes the other way, so
  // that chains take few.
  for (bool isAnyBound = true; std::exchange(isAnyBound, false);) {
    std::vector<OpenDim> left;
    for (const OpenDim &one : ctx.frame->openDims) {
      const ast::Ident *name = sizeBoundBy(ctx, *one.dim->expr);
      if (!name)
        left.push_back(one);
      else if (!bindLinearDim(ctx, one, *name))
        return false;
      isAnyBound |= name != nullptr;
    }
    std::reverse(left.begin(), left.end());
    ctx.frame->openDims = std::move(left);
  }
  return true;
}

static bool bindLinearDim(CheckContext &ctx, const OpenDim &one, const ast::Ident &name) {
  // A dim is not used by being declared.
  llvm::SmallVector<Entity *> unused;
  forEachName(*one.dim->expr, [&](const ast::Ident &mentioned) {
    auto found = ctx.frame->scope.names.find(mentioned.name);
    if (found != ctx.frame->scope.names.end() && !found->second.isUsed)
      unused.push_back(&found->second);
  });
  Entity entity;
  entity.kind = Entity::Scalar;
  entity.isSize = true;
  entity.value = indexValue(ctx, IndexExpr(0), name.span);
  if (!ctx.define(ctx.frame->scope, name, std::move(entity)))
    return false;
  auto valueAt = [&](int64_t size) {
    ctx.frame->scope.names[name.name].value = indexValue(ctx, IndexExpr(size), name.span);
    return evalSize(ctx, *one.dim->expr, "a dim");
  };
  std::optional<IndexExpr> offset = valueAt(0), next = offset ? valueAt(1) : std::nullopt;
  Entity &bound = ctx.frame->scope.names[name.name];
  bound.isUsed = false;
  for (Entity *entity : unused)
    entity->isUsed = false;
  if (!next) {
    bound.kind = Entity::Poison;
    return false;
  }
  std::string where =
      "dim " + std::to_string(one.position + 1) + " of '" + one.param->name.name + "'";
  std::string formula = ctx.text(one.dim->span).str();
  IndexExpr factor = *next - *offset;
  if (factor.asConstant() == 0) {
    ctx.report(Code::UnboundDim, name.span,
               where + ", " + formula + ", does not depend on '" + name.name + "'");
    bound.kind = Entity::Poison;
    return false;
  }
  bool isEntry = !one.extent;
  IndexExpr extent;
  if (isEntry) {
    std::string unnamed =
        uniqueSymbol(ctx, one.param->name.name + "_dim" + std::to_string(one.position + 1));
    addSize(ctx, unnamed, one.input, one.position);
    extent = IndexExpr::symbol(unnamed);
  } else {
    extent = *one.extent;
  }
  IndexExpr rest = extent - *offset;
  bool isExact = factor.asConstant() == 1 || factor.asConstant() == -1;
  IndexExpr value = isExact ? rest * factor : IndexExpr::floorDiv(rest, factor);
  if (!isExact) {
    if (!factor.asConstant() && !requireNonZero(ctx, factor, one.dim->span))
      return false;
    std::string violation = where + (isEntry ? "" : ", " + show(ctx, extent) + ",") + " is not " +
                            formula + " for any whole " + name.name;
    if (isEntry)
      addGuard(ctx, Guard::Divides, rest, factor, violation, one.dim->span);
    else if (!requireDivides(ctx, rest, factor, one.dim->span, violation))
      return false;
  }
  if (!isEntry) {
    value = named(ctx, value);
    if (!requireNonNegative(ctx, value, one.dim->span, "'" + name.name + "'"))
      return false;
    bound.value = indexValue(ctx, value, name.span);
    return true;
  }
  checked::Size size;
  size.name = name.name;
  size.definition = value;
  ctx.program->sizes.push_back(std::move(size));
  IndexExpr symbol = IndexExpr::symbol(name.name);
  addGuard(ctx, Guard::NonNegative, symbol, IndexExpr(0),
           where + " is less than " + formula + " with " + name.name + " = 0", one.dim->span);
  bound.value =
      indexValue(ctx, fixedSize(ctx, name.name, one.dim->span).value_or(symbol), name.span);
  return true;
}

std::optional<IndexExpr> tegula::fixedSize(CheckContext &ctx, llvm::StringRef name, Span span) {
  auto fixed = ctx.options.sizes.find(name.str());
  if (fixed == ctx.options.sizes.end())
    return std::nullopt;
  addGuard(ctx, Guard::Zero, IndexExpr::symbol(name) - fixed->second, IndexExpr(0),
           (name + " is not " + llvm::Twine(fixed->second)).str(), span);
  return IndexExpr(fixed->second);
}
