//===- CheckObligation.cpp - Obligations on sizes and bounds ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What must hold for sizes, subscripts and ranges is proved, refuted (an error), or becomes a guard
// of the launch.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckSuggest.h"

using namespace tegula;
using namespace tegula::checked;

namespace {
struct Suggestion {
  std::string needs;  // `M >= N + 2`
  std::string symbol; // M; empty: no one dim
  IndexExpr needed;   // N + 2
};
} // namespace

/// What a read needs of the sizes, as text; and, where enlarging one dim of a parameter gives it,
/// that dim and what it must be at least.
static Suggestion suggestRequirement(CheckContext &ctx, const Outcome &outcome,
                                     const Obligation &what) {
  Suggestion result;
  if (outcome.suffices.empty() || outcome.suffices.size() > 3)
    return result;
  for (const Condition &condition : outcome.suffices)
    result.needs += (result.needs.empty() ? "" : " and ") + show(ctx, condition);
  const Condition &condition = outcome.suffices[0];
  if (outcome.suffices.size() != 1 || !what.tensor || condition.kind != Condition::NonNegative ||
      what.dim >= what.tensor->tensor->dims.size())
    return result;
  std::optional<IndexVar> dim = what.tensor->tensor->dims[what.dim].asVariable();
  if (!dim || !dim->isSymbol())
    return result;
  IndexExpr needed = IndexExpr::variable(*dim) - condition.lhs;
  // By a constant, only small sizes are refused.
  if (needed.uses(*dim) || needed.asConstant())
    return result;
  result.symbol = dim->name().str();
  result.needed = needed;
  return result;
}

/// Formulas without large numbers: what holds for some sizes holds for some small ones.
static bool isPlain(const IndexExpr &expr) {
  constexpr int64_t largest = 8;
  for (const IndexExpr::Term &term : expr.terms()) {
    if (term.coefficient > largest || term.coefficient < -largest)
      return false;
    for (const auto &[atom, power] : term.factors)
      if (!llvm::all_of(atom->operands, isPlain))
        return false;
  }
  return true;
}

bool tegula::failsWhereTried(CheckContext &ctx, const Outcome &outcome,
                             llvm::ArrayRef<Image> images) {
  if (!outcome.failsEverywhereTried)
    return false;
  const SizeFacts &facts = ctx.prover->facts();
  // Constants may be negative, sizes made of others too.
  auto mayBeNegative = [&](const auto &factor) {
    const IndexExpr::Atom &atom = *factor.first;
    return atom.kind != IndexExpr::AtomKind::Variable || !atom.var.isSymbol() ||
           llvm::is_contained(facts.signedSymbols, atom.var.name()) ||
           llvm::any_of(facts.definitions,
                        [&](const auto &one) { return one.first == atom.var.name(); });
  };
  // A condition that some size satisfies, however large, is for the launch to decide.
  auto mayHold = [&](const Condition &condition) {
    return condition.kind != Condition::NonNegative ||
           llvm::any_of(condition.lhs.terms(), [&](const IndexExpr::Term &term) {
             return term.coefficient > 0 || llvm::any_of(term.factors, mayBeNegative);
           });
  };
  if (!outcome.suffices.empty())
    return !llvm::all_of(outcome.suffices, mayHold);
  for (const Image &image : images) {
    for (const RangedVar &var : image.domain.vars)
      if (!isPlain(var.lo) || !isPlain(var.hi))
        return false;
    for (const Condition &condition : image.domain.conditions)
      if (!isPlain(condition.lhs) || !isPlain(condition.rhs))
        return false;
    if (!llvm::all_of(image.subscripts, isPlain))
      return false;
  }
  return llvm::all_of(facts.definitions,
                      [](const auto &definition) { return isPlain(definition.second); });
}

/// Data whose form keeps it inside a dim that has an element (`x[a[i] % N]`) needs that guard
/// alone, and no check while running. False where that is not so.
static bool guardNonEmpty(CheckContext &ctx, const IndexExpr &index, const IndexExpr &size,
                          Domain domain, const Obligation &what) {
  if (!pathIsComplete(ctx) || usesData(ctx, size))
    return false;
  Domain nonEmpty = domain;
  nonEmpty.conditions.push_back(Condition::nonNegative(size - 1));
  if (!ctx.prover->provesInBounds(index, size, nonEmpty))
    return false;
  // The points at which it is read: those of the indices that the data vary along.
  llvm::SmallVector<IndexExpr> vars{size};
  std::set<unsigned> seen;
  bool known = true;
  auto visit = [&](auto &&visit, unsigned id) -> void {
    if (!seen.insert(id).second)
      return;
    const Var &var = ctx.program->vars[id];
    if (var.kind == Var::Data) {
      for (unsigned axis : var.data->axes)
        visit(visit, axis);
      return;
    }
    known &= !usesData(ctx, var.lo) && !usesData(ctx, var.hi);
    vars.push_back(IndexExpr::dim(id));
  };
  for (const RangedVar &var : domain.vars)
    visit(visit, var.position);
  for (const IndexVar &var : index.variables())
    if (!var.isSymbol())
      visit(visit, var.position());
  if (!known)
    return false;
  Domain points = domainOf(ctx, vars, true, true);
  if (!ctx.prover->provesInBounds(IndexExpr(0), size, points))
    addGuard(ctx, Guard::InBounds, IndexExpr(0), size,
             what.what + " leaves " +
                 (what.tensor ? "'" + what.tensor->tensor->name + "'" : "its tensor") + " in dim " +
                 std::to_string(what.dim + 1) + ", which is empty",
             what.span, &points);
  return true;
}

Bound tegula::requireInBounds(CheckContext &ctx, const IndexExpr &index, const IndexExpr &size,
                              const Obligation &what) {
  if (ctx.isSilent())
    return Bound::Proved;
  llvm::SmallVector<IndexExpr, 2> both{index, size};
  if (ctx.prover->provesInBounds(index, size, domainOf(ctx, both, false, false)))
    return Bound::Proved;
  if (!ctx.path.empty() &&
      ctx.prover->provesInBounds(index, size, domainOf(ctx, both, false, true)))
    return Bound::OnPath;
  // What the data says is known only while running, and so is what a condition on data protects.
  Domain domain = domainOf(ctx, both, true, true);
  bool onData = usesData(ctx, index) || !pathIsComplete(ctx);
  for (const RangedVar &var : domain.vars)
    onData |= usesData(ctx, IndexExpr::dim(var.position));
  if (onData)
    return guardNonEmpty(ctx, index, size, domain, what) ? Bound::OnPath : Bound::Runtime;
  Outcome outcome = ctx.prover->inBounds(index, size, domain);
  if (outcome.proved())
    return Bound::OnPath;
  std::string tensor = what.tensor ? "'" + what.tensor->tensor->name + "'" : "its tensor";
  std::string example;
  if (outcome.counterexample && !showSizes(ctx, *outcome.counterexample).empty())
    example = "with " + showSizes(ctx, *outcome.counterexample) + " subscript " +
              std::to_string(what.dim + 1) + " is " +
              std::to_string(outcome.counterexample->value) + " and the dim has " +
              std::to_string(outcome.counterexample->bound);
  bool isRefuted = outcome.verdict == Verdict::Refuted;
  if (isRefuted || failsWhereTried(ctx, outcome, Image{domain, {index, size}})) {
    Report record = ctx.report(
        what.isWrite ? Code::WriteOutOfBounds : Code::ReadOutOfBounds, what.span,
        what.what + " leaves " + tensor + (isRefuted ? " for every size" : " at every size tried") +
            ": subscript " + llvm::Twine(what.dim + 1) + " is " + show(ctx, index) +
            ", the dim has " + show(ctx, size));
    if (!example.empty())
      record.note(example);
    if (!what.permuted.empty())
      record.fix(what.permuted + " stays inside", {{what.access, what.permuted}});
    if (!what.isWrite && ctx.text(what.access).ends_with("]"))
      record.fix("read 0 outside",
                 {{{what.access.file, what.access.end - 1, what.access.end - 1}, ", fill=0"}});
    return Bound::Wrong;
  }
  Suggestion suggestion = suggestRequirement(ctx, outcome, what);
  Guard &guard =
      addGuard(ctx, Guard::InBounds, index, size,
               what.what + " leaves " + tensor + " in dim " + std::to_string(what.dim + 1),
               what.span, &domain);
  if (!suggestion.symbol.empty())
    ctx.wantedDims.push_back({suggestion.symbol, suggestion.needed,
                              static_cast<size_t>(&guard - ctx.program->guards.data()),
                              std::nullopt});
  // `x[N - 1]` of no elements: nothing to declare, nothing to warn of.
  bool onlySmall = outcome.suffices.size() == 1;
  for (const Condition &condition : outcome.suffices)
    for (const IndexExpr::Term &term : condition.lhs.terms())
      onlySmall &= condition.kind == Condition::NonNegative &&
                   (term.factors.empty() || term.coefficient > 0);
  if (std::optional<Report> record =
          warnGuard(ctx, onlySmall ? Code::GuardNonNegative : Code::GuardBounds, what.span,
                    what.what + (outcome.counterexample ? " leaves " : " may leave ") + tensor +
                        " for some sizes",
                    !onlySmall)) {
    if (!example.empty())
      record->note(example);
    record->note(
        suggestion.needs.empty()
            ? (ctx.checkedBy() + " checks it").str()
            : ("inside where " + suggestion.needs + "; " + ctx.checkedBy() + " checks it").str());
    if (!what.permuted.empty())
      record->fix(what.permuted + " stays inside", {{what.access, what.permuted}});
    if (!suggestion.symbol.empty())
      ctx.wantedDims.back().report.emplace(*record);
  }
  return ctx.path.empty() ? Bound::Guarded : Bound::OnPath;
}

bool tegula::requireEqual(CheckContext &ctx, const IndexExpr &a, const IndexExpr &b, Span span,
                          const llvm::Twine &what, Code refuted,
                          llvm::function_ref<void(Report &)> addNotes) {
  if (ctx.isSilent() || a == b || isAssumed(ctx, Condition::equal(a, b)) ||
      isAssumed(ctx, Condition::equal(b, a)))
    return true;
  Outcome outcome = ctx.prover->equal(a, b);
  if (outcome.proved())
    return true;
  auto explain = [&](Report &record) {
    if (outcome.counterexample)
      if (std::string sizes = showSizes(ctx, *outcome.counterexample); !sizes.empty())
        record.note("with " + sizes + " they differ");
    if (addNotes)
      addNotes(record);
  };
  if (outcome.verdict == Verdict::Refuted) {
    Report record = ctx.report(
        refuted, span, what + ": " + show(ctx, a) + " and " + show(ctx, b) + " never agree");
    explain(record);
    return false;
  }
  // A dim that has a name of its own, of which the other size is not made.
  auto declare = [&](const IndexExpr &dim, const IndexExpr &size) -> std::string {
    std::optional<IndexVar> var = asWritten(ctx, dim).asVariable();
    if (!var || !var->isSymbol() || llvm::is_contained(asWritten(ctx, size).variables(), *var))
      return "";
    return "declare " + show(ctx, dim) + " as " + show(ctx, size);
  };
  std::string advice = declare(b, a);
  if (advice.empty())
    advice = declare(a, b);
  addGuard(ctx, Guard::Zero, a - b, IndexExpr(0),
           (what + ": " + show(ctx, a) + " and " + show(ctx, b) + " differ").str(), span)
      .advice = advice;
  assume(ctx, Condition::equal(a, b));
  if (std::optional<Report> record =
          warnGuard(ctx, Code::GuardAgree, span,
                    what + ": " + show(ctx, a) + " and " + show(ctx, b) + " may differ", true)) {
    suggestOneDim(ctx, *record, a, b);
    explain(*record);
    record->note((ctx.checkedBy() + " checks that they agree" +
                  (advice.empty() ? "" : "; to prove it, " + advice))
                     .str());
  }
  return true;
}

bool tegula::requireNonNegative(CheckContext &ctx, const IndexExpr &size, Span span,
                                const llvm::Twine &what) {
  if (ctx.isSilent() || isAssumed(ctx, Condition::nonNegative(size)))
    return true;
  Outcome outcome = ctx.prover->nonNegative(size);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    ctx.report(Code::NegativeSize, span,
               what + " is " + show(ctx, size) + ", which is never 0 or more");
    return false;
  }
  addGuard(ctx, Guard::NonNegative, size, IndexExpr(0),
           (what + " is negative: " + show(ctx, size)).str(), span);
  assume(ctx, Condition::nonNegative(size));
  if (std::optional<Report> record = warnGuard(
          ctx, Code::GuardNonNegative, span,
          what + " is " + show(ctx, size) + ", which is negative for some sizes", false)) {
    if (outcome.counterexample)
      record->note("for instance with " + showSizes(ctx, *outcome.counterexample));
    record->note((ctx.checkedBy() + " checks it").str());
  }
  return true;
}

/// `2*N + 1` is never even: a constant divides all terms but the constant one.
static bool neverDivides(const IndexExpr &numerator, const IndexExpr &denominator) {
  std::optional<int64_t> divisor = denominator.asConstant();
  if (!divisor || *divisor == 0)
    return false;
  int64_t rest = 0;
  for (const IndexExpr::Term &term : numerator.terms()) {
    if (term.coefficient % *divisor == 0)
      continue;
    if (!term.factors.empty())
      return false;
    rest = term.coefficient;
  }
  return rest % *divisor != 0;
}

bool tegula::requireDivides(CheckContext &ctx, const IndexExpr &numerator,
                            const IndexExpr &denominator, Span span, const llvm::Twine &violation) {
  if (ctx.isSilent())
    return true;
  IndexExpr n = named(ctx, numerator), d = named(ctx, denominator);
  if (isAssumed(ctx, Condition::divides(n, d)))
    return true;
  Outcome outcome = ctx.prover->holds(Condition::divides(n, d));
  if (outcome.proved())
    return true;
  if (!violation.isTriviallyEmpty()) {
    if (outcome.verdict == Verdict::Refuted || neverDivides(n, d)) {
      ctx.report(Code::NotDivisible, span, violation);
      return false;
    }
    addGuard(ctx, Guard::Divides, n, d, violation.str(), span);
    assume(ctx, Condition::divides(n, d));
    return true;
  }
  if (outcome.verdict == Verdict::Refuted || neverDivides(n, d)) {
    Report record = ctx.report(Code::NotDivisible, span,
                               "'/' between sizes is exact, and " + show(ctx, n) +
                                   " is never a multiple of " + show(ctx, d));
    record.note("'//' rounds down");
    suggestFloor(ctx, record, span);
    return false;
  }
  addGuard(ctx, Guard::Divides, n, d, show(ctx, n) + " is not a multiple of " + show(ctx, d), span);
  assume(ctx, Condition::divides(n, d));
  if (std::optional<Report> record =
          warnGuard(ctx, Code::GuardDivisible, span,
                    show(ctx, n) + " must be a multiple of " + show(ctx, d), false))
    record->note((ctx.checkedBy() + " checks it; '//' rounds down instead").str());
  return true;
}

bool tegula::isDivisor(CheckContext &ctx, const IndexExpr &divisor) {
  if (usesData(ctx, divisor))
    return false;
  IndexExpr d = named(ctx, divisor);
  Condition nonZero = Condition::nonZero(d);
  if (ctx.isSilent() || isAssumed(ctx, nonZero) ||
      ctx.prover->proves(nonZero, domainOf(ctx, {d}, false, false)))
    return true;
  return d.isSize() &&
         (ctx.path.empty() || !ctx.prover->proves(nonZero, domainOf(ctx, {d}, false, true)));
}

bool tegula::requireNonZero(CheckContext &ctx, const IndexExpr &divisor, Span span) {
  if (std::optional<int64_t> value = divisor.asConstant()) {
    if (*value != 0 || ctx.isSilent())
      return *value != 0;
    ctx.report(Code::DivisionByZero, span, "this divides by zero");
    return false;
  }
  if (ctx.isSilent() || usesData(ctx, divisor))
    return true;
  IndexExpr d = named(ctx, divisor);
  if (isAssumed(ctx, Condition::nonZero(d)))
    return true;
  Domain domain = domainOf(ctx, {d}, false, true);
  Outcome outcome = ctx.prover->holds(Condition::nonZero(d), domain);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    ctx.report(Code::DivisionByZero, span, "this divides by " + show(ctx, d) + ", which is zero");
    return false;
  }
  std::string message = "division by " + show(ctx, d) + ", which is zero";
  if (d.isSize()) {
    addGuard(ctx, Guard::NonZero, d, IndexExpr(0), message, span);
    assume(ctx, Condition::nonZero(d));
  } else if (pathIsComplete(ctx)) {
    // 0 <= d*d - 1 < d*d holds where d is not zero.
    addGuard(ctx, Guard::InBounds, d * d - 1, d * d, message, span, &domain);
  }
  return true;
}

bool tegula::requireNonEmpty(CheckContext &ctx, const IndexExpr &lo, const IndexExpr &hi, Span span,
                             const llvm::Twine &what) {
  IndexExpr slack = hi - lo - 1;
  if (ctx.isSilent() || usesData(ctx, slack))
    return true;
  Domain domain = domainOf(ctx, {slack}, false, true);
  Outcome outcome = ctx.prover->nonNegative(slack, domain);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    ctx.report(Code::EmptyReduction, span, what);
    return false;
  }
  // A launch does not know what conditions on data say: it is refused where sizes leave nothing.
  llvm::erase_if(domain.conditions, [&](const Condition &one) {
    return usesData(ctx, one.lhs) || usesData(ctx, one.rhs);
  });
  if (slack.isSize() && domain.conditions.empty()) {
    addGuard(ctx, Guard::NonNegative, slack, IndexExpr(0), what.str(), span);
    assume(ctx, Condition::nonNegative(slack));
  } else {
    addGuard(ctx, Guard::InBounds, slack, slack + 1, what.str(), span, &domain);
  }
  return true;
}

void tegula::requireExact(CheckContext &ctx, llvm::ArrayRef<ExactDivision> divisions, Span span) {
  if (ctx.isSilent())
    return;
  for (const auto &[numerator, denominator] : divisions) {
    IndexExpr n = named(ctx, numerator), d = named(ctx, denominator);
    if (n.isSize() && d.isSize()) {
      requireDivides(ctx, n, d, span);
      continue;
    }
    if (usesData(ctx, n) || usesData(ctx, d))
      continue;
    requireNonZero(ctx, d, span);
    Domain domain = domainOf(ctx, {n, d}, false, true);
    // A launch does not know conditions on data, so it asks for more than them.
    llvm::erase_if(domain.conditions, [&](const Condition &one) {
      return usesData(ctx, one.lhs) || usesData(ctx, one.rhs);
    });
    llvm::erase_if(domain.vars, [&](const RangedVar &one) {
      return usesData(ctx, IndexExpr::dim(one.position));
    });
    Outcome outcome = ctx.prover->holds(Condition::divides(n, d), domain);
    if (outcome.proved())
      continue;
    if (outcome.verdict == Verdict::Refuted || (domain.conditions.empty() && neverDivides(n, d))) {
      ctx.report(Code::NotDivisible, span,
                 "'/' is exact here, and " + show(ctx, n) + " is never a multiple of " +
                     show(ctx, d))
          .note("'//' rounds down; in a read, fill= gives the value where it is not exact");
      continue;
    }
    addGuard(ctx, Guard::InBounds, IndexExpr::mod(n, d), IndexExpr(1),
             show(ctx, n) + " is not a multiple of " + show(ctx, d), span, &domain);
    if (std::optional<Report> record =
            warnGuard(ctx, Code::GuardDivisible, span,
                      show(ctx, n) + " must be a multiple of " + show(ctx, d), true))
      record->note("'//' rounds down; in a read, fill= gives the value where it is not exact");
  }
}
