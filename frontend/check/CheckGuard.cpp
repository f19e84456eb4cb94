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

#include "frontend/check/Checker.h"

using namespace tegula;
using namespace tegula::checked;

checked::Guard &Checker::addGuard(Guard::Kind kind, IndexExpr lhs, IndexExpr rhs,
                                  std::string message, Span span, const Domain *domain) {
  Guard guard;
  guard.kind = kind;
  guard.lhs = std::move(lhs);
  guard.rhs = std::move(rhs);
  guard.message = std::move(message);
  guard.span = expansions.empty() ? span : expansions.front().call;
  if (domain) {
    for (const RangedVar &var : domain->vars)
      guard.vars.push_back(&program->vars[var.position]);
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
  for (Guard &old : program->guards)
    if (old.kind == guard.kind && old.lhs == guard.lhs && old.rhs == guard.rhs &&
        old.vars == guard.vars && old.conditions == guard.conditions)
      return old;
  program->guards.push_back(std::move(guard));
  return program->guards.back();
}

std::optional<Report> Checker::warnGuard(Code code, Span span, const llvm::Twine &message,
                                         bool evenInLibrary) {
  bool inLibrary = false;
  Span place = span;
  for (const Expansion &expansion : llvm::reverse(expansions)) {
    inLibrary |= expansion.isLibrary;
    if (expansion.isKernel || expansion.isLibrary)
      place = expansion.call;
  }
  if (inLibrary && !evenInLibrary)
    return std::nullopt;
  if (codeInfo(code).severity == Severity::Remark && !options.remarks)
    return std::nullopt;
  std::string key = std::to_string(unsigned(code)) + ":" + std::to_string(place.begin) + ":" +
                    std::to_string(place.file) + ":" + message.str();
  if (!reportedGuards.insert(key).second)
    return std::nullopt;
  return report(code, span, message);
}

void Checker::assume(const Condition &fact) {
  prover->assume(fact);
  assumed.push_back(fact);
}

bool Checker::isAssumed(const Condition &fact) const {
  return llvm::any_of(assumed, [&](const Condition &one) {
    return one.kind == fact.kind && one.lhs == fact.lhs && one.rhs == fact.rhs;
  });
}
