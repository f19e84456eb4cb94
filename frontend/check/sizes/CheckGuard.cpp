//===- CheckGuard.cpp - Guards and facts ------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What holds for some sizes alone becomes a guard of the launch, once, and a fact from then on.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckGuard.h"

using namespace tegula;
using namespace tegula::checked;

checked::Guard &tegula::addGuard(CheckContext &ctx, Guard::Kind kind, IndexExpr lhs, IndexExpr rhs,
                                 std::string message, Span span, const Domain *domain) {
  Guard guard;
  guard.kind = kind;
  guard.lhs = std::move(lhs);
  guard.rhs = std::move(rhs);
  guard.message = std::move(message);
  guard.span = ctx.expansions.empty() ? span : ctx.expansions.front().call;
  if (domain) {
    for (const RangedVar &var : domain->vars)
      guard.vars.push_back(&ctx.program->vars[var.position]);
    for (const Condition &condition : domain->conditions) {
      switch (condition.kind) {
      case Condition::NonNegative:
        guard.conditions.push_back(condition.lhs);
        break;
      case Condition::Zero:
        guard.conditions.push_back(condition.lhs);
        guard.conditions.push_back(-condition.lhs);
        break;
      case Condition::NonZero:
        guard.conditions.push_back(condition.lhs * condition.lhs - 1);
        break;
      case Condition::Divides:
        break;
      }
    }
  }
  for (Guard &old : ctx.program->guards)
    if (old.kind == guard.kind && old.lhs == guard.lhs && old.rhs == guard.rhs &&
        old.vars == guard.vars && old.conditions == guard.conditions)
      return old;
  ctx.program->guards.push_back(std::move(guard));
  return ctx.program->guards.back();
}

static Guard::Kind guardKind(const Condition &condition) {
  switch (condition.kind) {
  case Condition::NonNegative:
    return Guard::NonNegative;
  case Condition::Zero:
    return Guard::Zero;
  case Condition::NonZero:
    return Guard::NonZero;
  case Condition::Divides:
    return Guard::Divides;
  }
  llvm_unreachable("all kinds are above");
}

void tegula::requireAtLaunch(CheckContext &ctx, const Condition &condition, std::string message,
                             Span span) {
  addGuard(ctx, guardKind(condition), condition.lhs, condition.rhs, std::move(message), span);
  assume(ctx, condition);
}

std::optional<Report> tegula::warnGuard(CheckContext &ctx, Code code, Span span,
                                        const llvm::Twine &message, bool evenInLibrary) {
  bool inLibrary = false;
  Span place = span;
  for (const Expansion &expansion : llvm::reverse(ctx.expansions)) {
    inLibrary |= expansion.isLibrary;
    if (expansion.isKernel || expansion.isLibrary)
      place = expansion.call;
  }
  if (inLibrary && !evenInLibrary)
    return std::nullopt;
  if (codeInfo(code).severity == Severity::Remark && !ctx.options.remarks)
    return std::nullopt;
  std::string key = std::to_string(unsigned(code)) + ":" + std::to_string(place.begin) + ":" +
                    std::to_string(place.file) + ":" + message.str();
  if (!ctx.reportedGuards.insert(key).second)
    return std::nullopt;
  return ctx.report(code, span, message);
}

void tegula::assume(CheckContext &ctx, const Condition &fact) {
  ctx.prover->assume(fact);
  ctx.assumed.push_back(fact);
}

bool tegula::isAssumed(const CheckContext &ctx, const Condition &fact) {
  return llvm::any_of(ctx.assumed, [&](const Condition &one) {
    return one.kind == fact.kind && one.lhs == fact.lhs && one.rhs == fact.rhs;
  });
}
