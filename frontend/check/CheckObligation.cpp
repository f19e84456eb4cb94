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

#include "frontend/check/Checker.h"

using namespace tegula;
using namespace tegula::checked;

/// What a read needs of the sizes, as text; and, where enlarging one dim of a parameter gives it,
/// that dim and what it must be at least.
Checker::Suggestion Checker::suggest(const Outcome &outcome, const Obligation &what) {
  Suggestion result;
  if (outcome.suffices.empty() || outcome.suffices.size() > 3)
    return result;
  for (const Condition &condition : outcome.suffices)
    result.needs += (result.needs.empty() ? "" : " and ") + show(condition);
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

bool Checker::failsWhereTried(const Outcome &outcome, llvm::ArrayRef<Image> images) {
  if (!outcome.failsEverywhereTried)
    return false;
  const SizeFacts &facts = prover->facts();
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

bool Checker::guardNonEmpty(const IndexExpr &index, const IndexExpr &size, Domain domain,
                            const Obligation &what) {
  if (!pathIsComplete() || usesData(size))
    return false;
  Domain nonEmpty = domain;
  nonEmpty.conditions.push_back(Condition::nonNegative(size - 1));
  if (!prover->provesInBounds(index, size, nonEmpty))
    return false;
  // The points at which it is read: those of the indices that the data vary along.
  llvm::SmallVector<IndexExpr> vars{size};
  std::set<unsigned> seen;
  bool known = true;
  auto visit = [&](auto &&visit, unsigned id) -> void {
    if (!seen.insert(id).second)
      return;
    const Var &var = program->vars[id];
    if (var.kind == Var::Data) {
      for (unsigned axis : var.data->axes)
        visit(visit, axis);
      return;
    }
    known &= !usesData(var.lo) && !usesData(var.hi);
    vars.push_back(IndexExpr::dim(id));
  };
  for (const RangedVar &var : domain.vars)
    visit(visit, var.position);
  for (const IndexVar &var : index.variables())
    if (!var.isSymbol())
      visit(visit, var.position());
  if (!known)
    return false;
  Domain points = domainOf(vars, true, true);
  if (!prover->provesInBounds(IndexExpr(0), size, points))
    addGuard(Guard::InBounds, IndexExpr(0), size,
             what.what + " leaves " +
                 (what.tensor ? "'" + what.tensor->tensor->name + "'" : "its tensor") + " in dim " +
                 std::to_string(what.dim + 1) + ", which is empty",
             what.span, &points);
  return true;
}

Checker::Bound Checker::requireInBounds(const IndexExpr &index, const IndexExpr &size,
                                        const Obligation &what) {
  if (isSilent())
    return Bound::Proved;
  llvm::SmallVector<IndexExpr, 2> both{index, size};
  if (prover->provesInBounds(index, size, domainOf(both, false, false)))
    return Bound::Proved;
  if (!path.empty() && prover->provesInBounds(index, size, domainOf(both, false, true)))
    return Bound::OnPath;
  // What the data says is known only while running, and so is what a condition on data protects.
  Domain domain = domainOf(both, true, true);
  bool onData = usesData(index) || !pathIsComplete();
  for (const RangedVar &var : domain.vars)
    onData |= usesData(IndexExpr::dim(var.position));
  if (onData)
    return guardNonEmpty(index, size, domain, what) ? Bound::OnPath : Bound::Runtime;
  Outcome outcome = prover->inBounds(index, size, domain);
  if (outcome.proved())
    return Bound::OnPath;
  std::string tensor = what.tensor ? "'" + what.tensor->tensor->name + "'" : "its tensor";
  std::string example;
  if (outcome.counterexample && !showSizes(*outcome.counterexample).empty())
    example = "with " + showSizes(*outcome.counterexample) + " subscript " +
              std::to_string(what.dim + 1) + " is " +
              std::to_string(outcome.counterexample->value) + " and the dim has " +
              std::to_string(outcome.counterexample->bound);
  bool isRefuted = outcome.verdict == Verdict::Refuted;
  if (isRefuted || failsWhereTried(outcome, Image{domain, {index, size}})) {
    Report record = report(what.isWrite ? Code::WriteOutOfBounds : Code::ReadOutOfBounds, what.span,
                           what.what + " leaves " + tensor +
                               (isRefuted ? " for every size" : " at every size tried") +
                               ": subscript " + llvm::Twine(what.dim + 1) + " is " + show(index) +
                               ", the dim has " + show(size));
    if (!example.empty())
      record.note(example);
    if (!what.permuted.empty())
      record.fix(what.permuted + " stays inside", {{what.access, what.permuted}});
    if (!what.isWrite && text(what.access).ends_with("]"))
      record.fix("read 0 outside",
                 {{{what.access.file, what.access.end - 1, what.access.end - 1}, ", fill=0"}});
    return Bound::Wrong;
  }
  Suggestion suggestion = suggest(outcome, what);
  Guard &guard =
      addGuard(Guard::InBounds, index, size,
               what.what + " leaves " + tensor + " in dim " + std::to_string(what.dim + 1),
               what.span, &domain);
  if (!suggestion.symbol.empty())
    wantedDims.push_back({suggestion.symbol, suggestion.needed,
                          static_cast<size_t>(&guard - program->guards.data()), std::nullopt});
  // `x[N - 1]` of no elements: nothing to declare, nothing to warn of.
  bool onlySmall = outcome.suffices.size() == 1;
  for (const Condition &condition : outcome.suffices)
    for (const IndexExpr::Term &term : condition.lhs.terms())
      onlySmall &= condition.kind == Condition::NonNegative &&
                   (term.factors.empty() || term.coefficient > 0);
  if (std::optional<Report> record =
          warnGuard(onlySmall ? Code::GuardNonNegative : Code::GuardBounds, what.span,
                    what.what + " leaves " + tensor + " for some sizes", !onlySmall)) {
    if (!example.empty())
      record->note(example);
    record->note(suggestion.needs.empty()
                     ? "every launch checks it"
                     : "inside where " + suggestion.needs + "; every launch checks it");
    if (!what.permuted.empty())
      record->fix(what.permuted + " stays inside", {{what.access, what.permuted}});
    if (!suggestion.symbol.empty())
      wantedDims.back().report.emplace(*record);
  }
  return path.empty() ? Bound::Guarded : Bound::OnPath;
}

bool Checker::requireEqual(const IndexExpr &a, const IndexExpr &b, Span span,
                           const llvm::Twine &what, Code refuted,
                           llvm::function_ref<void(Report &)> addNotes) {
  if (isSilent() || a == b || isAssumed(Condition::equal(a, b)) ||
      isAssumed(Condition::equal(b, a)))
    return true;
  Outcome outcome = prover->equal(a, b);
  if (outcome.proved())
    return true;
  auto explain = [&](Report &record) {
    if (outcome.counterexample)
      if (std::string sizes = showSizes(*outcome.counterexample); !sizes.empty())
        record.note("with " + sizes + " they differ");
    if (addNotes)
      addNotes(record);
  };
  if (outcome.verdict == Verdict::Refuted) {
    Report record =
        report(refuted, span, what + ": " + show(a) + " and " + show(b) + " never agree");
    explain(record);
    return false;
  }
  // A dim that has a name of its own, of which the other size is not made.
  auto declare = [&](const IndexExpr &dim, const IndexExpr &size) -> std::string {
    std::optional<IndexVar> var = asWritten(dim).asVariable();
    if (!var || !var->isSymbol() || llvm::is_contained(asWritten(size).variables(), *var))
      return "";
    return "declare " + show(dim) + " as " + show(size);
  };
  std::string advice = declare(b, a);
  if (advice.empty())
    advice = declare(a, b);
  addGuard(Guard::Zero, a - b, IndexExpr(0),
           (what + ": " + show(a) + " and " + show(b) + " differ").str(), span)
      .advice = advice;
  assume(Condition::equal(a, b));
  if (std::optional<Report> record =
          warnGuard(Code::GuardAgree, span,
                    what + ": " + show(a) + " and " + show(b) + " may differ", true)) {
    suggestOneDim(*record, a, b);
    explain(*record);
    record->note("every launch checks that they agree" +
                 (advice.empty() ? "" : "; to prove it, " + advice));
  }
  return true;
}

bool Checker::requireNonNegative(const IndexExpr &size, Span span, const llvm::Twine &what) {
  if (isSilent() || isAssumed(Condition::nonNegative(size)))
    return true;
  Outcome outcome = prover->nonNegative(size);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    report(Code::NegativeSize, span, what + " is " + show(size) + ", which is never 0 or more");
    return false;
  }
  addGuard(Guard::NonNegative, size, IndexExpr(0), (what + " is negative: " + show(size)).str(),
           span);
  assume(Condition::nonNegative(size));
  if (std::optional<Report> record =
          warnGuard(Code::GuardNonNegative, span,
                    what + " is " + show(size) + ", which is negative for some sizes", false)) {
    if (outcome.counterexample)
      record->note("for instance with " + showSizes(*outcome.counterexample));
    record->note("every launch checks it");
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

bool Checker::requireDivides(const IndexExpr &numerator, const IndexExpr &denominator, Span span,
                             const llvm::Twine &violation) {
  if (isSilent())
    return true;
  IndexExpr n = named(numerator), d = named(denominator);
  if (isAssumed(Condition::divides(n, d)))
    return true;
  Outcome outcome = prover->holds(Condition::divides(n, d));
  if (outcome.proved())
    return true;
  if (!violation.isTriviallyEmpty()) {
    if (outcome.verdict == Verdict::Refuted || neverDivides(n, d)) {
      report(Code::NotDivisible, span, violation);
      return false;
    }
    addGuard(Guard::Divides, n, d, violation.str(), span);
    assume(Condition::divides(n, d));
    return true;
  }
  if (outcome.verdict == Verdict::Refuted || neverDivides(n, d)) {
    Report record =
        report(Code::NotDivisible, span,
               "'/' between sizes is exact, and " + show(n) + " is never a multiple of " + show(d));
    record.note("'//' rounds down");
    suggestFloor(record, span);
    return false;
  }
  addGuard(Guard::Divides, n, d, show(n) + " is not a multiple of " + show(d), span);
  assume(Condition::divides(n, d));
  if (std::optional<Report> record = warnGuard(
          Code::GuardDivisible, span, show(n) + " must be a multiple of " + show(d), false))
    record->note("every launch checks it; '//' rounds down instead");
  return true;
}

bool Checker::isDivisor(const IndexExpr &divisor) {
  if (usesData(divisor))
    return false;
  IndexExpr d = named(divisor);
  Condition nonZero = Condition::nonZero(d);
  if (isSilent() || isAssumed(nonZero) || prover->proves(nonZero, domainOf({d}, false, false)))
    return true;
  return d.isSize() && (path.empty() || !prover->proves(nonZero, domainOf({d}, false, true)));
}

bool Checker::requireNonZero(const IndexExpr &divisor, Span span) {
  if (std::optional<int64_t> value = divisor.asConstant()) {
    if (*value != 0 || isSilent())
      return *value != 0;
    report(Code::DivisionByZero, span, "this divides by zero");
    return false;
  }
  if (isSilent() || usesData(divisor))
    return true;
  IndexExpr d = named(divisor);
  if (isAssumed(Condition::nonZero(d)))
    return true;
  Domain domain = domainOf({d}, false, true);
  Outcome outcome = prover->holds(Condition::nonZero(d), domain);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    report(Code::DivisionByZero, span, "this divides by " + show(d) + ", which is zero");
    return false;
  }
  std::string message = "division by " + show(d) + ", which is zero";
  if (d.isSize()) {
    addGuard(Guard::NonZero, d, IndexExpr(0), message, span);
    assume(Condition::nonZero(d));
  } else if (pathIsComplete()) {
    // 0 <= d*d - 1 < d*d holds where d is not zero.
    addGuard(Guard::InBounds, d * d - 1, d * d, message, span, &domain);
  }
  return true;
}

bool Checker::requireNonEmpty(const IndexExpr &lo, const IndexExpr &hi, Span span,
                              const llvm::Twine &what) {
  IndexExpr slack = hi - lo - 1;
  if (isSilent() || usesData(slack))
    return true;
  Domain domain = domainOf({slack}, false, true);
  Outcome outcome = prover->nonNegative(slack, domain);
  if (outcome.proved())
    return true;
  if (outcome.verdict == Verdict::Refuted) {
    report(Code::EmptyReduction, span, what);
    return false;
  }
  // A launch does not know what conditions on data say: it is refused where sizes leave nothing.
  llvm::erase_if(domain.conditions,
                 [&](const Condition &one) { return usesData(one.lhs) || usesData(one.rhs); });
  if (slack.isSize() && domain.conditions.empty()) {
    addGuard(Guard::NonNegative, slack, IndexExpr(0), what.str(), span);
    assume(Condition::nonNegative(slack));
  } else {
    addGuard(Guard::InBounds, slack, slack + 1, what.str(), span, &domain);
  }
  return true;
}

void Checker::requireExact(llvm::ArrayRef<ExactDivision> divisions, Span span) {
  if (isSilent())
    return;
  for (const auto &[numerator, denominator] : divisions) {
    IndexExpr n = named(numerator), d = named(denominator);
    if (n.isSize() && d.isSize()) {
      requireDivides(n, d, span);
      continue;
    }
    if (usesData(n) || usesData(d))
      continue;
    requireNonZero(d, span);
    Domain domain = domainOf({n, d}, false, true);
    // A launch does not know conditions on data, so it asks for more than them.
    llvm::erase_if(domain.conditions,
                   [&](const Condition &one) { return usesData(one.lhs) || usesData(one.rhs); });
    llvm::erase_if(domain.vars,
                   [&](const RangedVar &one) { return usesData(IndexExpr::dim(one.position)); });
    Outcome outcome = prover->holds(Condition::divides(n, d), domain);
    if (outcome.proved())
      continue;
    if (outcome.verdict == Verdict::Refuted || (domain.conditions.empty() && neverDivides(n, d))) {
      report(Code::NotDivisible, span,
             "'/' is exact here, and " + show(n) + " is never a multiple of " + show(d))
          .note("'//' rounds down; in a read, fill= gives the value where it is not exact");
      continue;
    }
    addGuard(Guard::InBounds, IndexExpr::mod(n, d), IndexExpr(1),
             show(n) + " is not a multiple of " + show(d), span, &domain);
    if (std::optional<Report> record = warnGuard(
            Code::GuardDivisible, span, show(n) + " must be a multiple of " + show(d), true))
      record->note("'//' rounds down; in a read, fill= gives the value where it is not exact");
  }
}
