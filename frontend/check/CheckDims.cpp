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

#include "frontend/check/Checker.h"

using namespace tegula;
using namespace tegula::checked;

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

const ast::Ident *Checker::sizeBoundBy(const ast::Expr &dim) {
  const ast::Ident *found = nullptr;
  bool isSolvable = true;
  forEachName(dim, [&](const ast::Ident &name) {
    if (isReserved(name.name) || frame->scope.names.contains(name.name))
      return;
    isSolvable &= (!found || found->name == name.name) && !declares(*frame->kernel, name.name);
    found = &name;
  });
  return found && isSolvable && isLinear(dim, found->name) ? found : nullptr;
}

bool Checker::declares(const ast::Kernel &kernel, llvm::StringRef name) {
  auto isNamed = [&](const auto &one) { return one.name.name == name; };
  return llvm::any_of(kernel.sizes, isNamed) || llvm::any_of(kernel.params, isNamed);
}

bool Checker::bindLinearDims() {
  // What is bound now may leave one size open in a dim before: each round goes the other way, so
  // that chains take few.
  for (bool isAnyBound = true; std::exchange(isAnyBound, false);) {
    std::vector<OpenDim> left;
    for (const OpenDim &one : frame->openDims) {
      const ast::Ident *name = sizeBoundBy(*one.dim->expr);
      if (!name)
        left.push_back(one);
      else if (!bindLinearDim(one, *name))
        return false;
      isAnyBound |= name != nullptr;
    }
    std::reverse(left.begin(), left.end());
    frame->openDims = std::move(left);
  }
  return true;
}

bool Checker::bindLinearDim(const OpenDim &one, const ast::Ident &name) {
  // A dim is not used by being declared.
  llvm::SmallVector<Entity *> unused;
  forEachName(*one.dim->expr, [&](const ast::Ident &mentioned) {
    auto found = frame->scope.names.find(mentioned.name);
    if (found != frame->scope.names.end() && !found->second.isUsed)
      unused.push_back(&found->second);
  });
  Entity entity;
  entity.kind = Entity::Scalar;
  entity.isSize = true;
  entity.value = indexValue(IndexExpr(0), name.span);
  if (!define(frame->scope, name, std::move(entity)))
    return false;
  auto valueAt = [&](int64_t size) {
    frame->scope.names[name.name].value = indexValue(IndexExpr(size), name.span);
    return evalSize(*one.dim->expr, "a dim");
  };
  std::optional<IndexExpr> offset = valueAt(0), next = offset ? valueAt(1) : std::nullopt;
  Entity &bound = frame->scope.names[name.name];
  bound.isUsed = false;
  for (Entity *entity : unused)
    entity->isUsed = false;
  if (!next) {
    bound.kind = Entity::Poison;
    return false;
  }
  std::string where =
      "dim " + std::to_string(one.position + 1) + " of '" + one.param->name.name + "'";
  std::string formula = text(one.dim->span).str();
  IndexExpr factor = *next - *offset;
  if (factor.asConstant() == 0) {
    report(Code::UnboundDim, name.span,
           where + ", " + formula + ", does not depend on '" + name.name + "'");
    bound.kind = Entity::Poison;
    return false;
  }
  bool isEntry = !one.extent;
  IndexExpr extent;
  if (isEntry) {
    std::string unnamed =
        uniqueSymbol(one.param->name.name + "_dim" + std::to_string(one.position + 1));
    addSize(unnamed, one.input, one.position);
    extent = IndexExpr::symbol(unnamed);
  } else {
    extent = *one.extent;
  }
  IndexExpr rest = extent - *offset;
  bool isExact = factor.asConstant() == 1 || factor.asConstant() == -1;
  IndexExpr value = isExact ? rest * factor : IndexExpr::floorDiv(rest, factor);
  if (!isExact) {
    if (!factor.asConstant() && !requireNonZero(factor, one.dim->span))
      return false;
    std::string violation = where + (isEntry ? "" : ", " + show(extent) + ",") + " is not " +
                            formula + " for any whole " + name.name;
    if (isEntry)
      addGuard(Guard::Divides, rest, factor, violation, one.dim->span);
    else if (!requireDivides(rest, factor, one.dim->span, violation))
      return false;
  }
  if (!isEntry) {
    value = named(value);
    if (!requireNonNegative(value, one.dim->span, "'" + name.name + "'"))
      return false;
    bound.value = indexValue(value, name.span);
    return true;
  }
  checked::Size size;
  size.name = name.name;
  size.definition = value;
  program->sizes.push_back(std::move(size));
  IndexExpr symbol = IndexExpr::symbol(name.name);
  addGuard(Guard::NonNegative, symbol, IndexExpr(0),
           where + " is less than " + formula + " with " + name.name + " = 0", one.dim->span);
  bound.value = indexValue(fixedSize(name.name, one.dim->span).value_or(symbol), name.span);
  return true;
}

std::optional<IndexExpr> Checker::fixedSize(llvm::StringRef name, Span span) {
  auto fixed = options.sizes.find(name.str());
  if (fixed == options.sizes.end())
    return std::nullopt;
  addGuard(Guard::Zero, IndexExpr::symbol(name) - fixed->second, IndexExpr(0),
           (name + " is not " + llvm::Twine(fixed->second)).str(), span);
  return IndexExpr(fixed->second);
}
