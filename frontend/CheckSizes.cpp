//===- CheckSizes.cpp - Derived sizes, obligations and guards ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes are polynomials over symbols: every floor division, minimum, maximum or conditional of
// sizes gets a symbol of its own, once, so that equal sizes are equal expressions. What must hold
// for sizes, subscripts and ranges is proved, refuted (an error), or becomes a guard of the launch,
// and a fact from then on.
//
//===----------------------------------------------------------------------===//

#include "frontend/Checker.h"

using namespace tegula;
using namespace tegula::checked;

//===----------------------------------------------------------------------===//
// Derived sizes
//===----------------------------------------------------------------------===//

std::string Checker::uniqueSymbol(llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; !symbols.insert(name).second; ++i)
    name = base.str() + "_" + std::to_string(i);
  return name;
}

IndexExpr Checker::addDerived(llvm::StringRef base, const IndexExpr &definition) {
  std::string name = uniqueSymbol(base);
  checked::Size size;
  size.name = name;
  size.definition = definition;
  program->sizes.push_back(std::move(size));
  prover->define(name, definition);
  return IndexExpr::symbol(name);
}

static IndexExpr atomExpr(const IndexExpr::Atom &atom, llvm::ArrayRef<IndexExpr> operands) {
  switch (atom.kind) {
  case IndexExpr::AtomKind::Variable:
    return IndexExpr::variable(atom.var);
  case IndexExpr::AtomKind::FloorDiv:
    return IndexExpr::floorDiv(operands[0], operands[1]);
  case IndexExpr::AtomKind::Min:
  case IndexExpr::AtomKind::Max: {
    IndexExpr result = operands[0];
    for (const IndexExpr &operand : operands.drop_front())
      result = atom.kind == IndexExpr::AtomKind::Min ? IndexExpr::min(result, operand)
                                                     : IndexExpr::max(result, operand);
    return result;
  }
  case IndexExpr::AtomKind::Select:
    return IndexExpr::select(atom.cmp, operands[0], operands[1], operands[2], operands[3]);
  }
  return {};
}

static bool isPolynomial(const IndexExpr &expr) {
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[atom, power] : term.factors)
      if (atom->kind != IndexExpr::AtomKind::Variable)
        return false;
  return true;
}

IndexExpr Checker::rebuildAtom(const IndexExpr::Atom &atom) {
  llvm::SmallVector<IndexExpr, 4> operands;
  for (const IndexExpr &operand : atom.operands)
    operands.push_back(named(operand));
  return atomExpr(atom, operands);
}

IndexExpr Checker::named(const IndexExpr &expr) {
  if (keepAtoms || dead || expr.isOverflow() || isPolynomial(expr))
    return expr;
  IndexExpr result(0);
  for (const IndexExpr::Term &term : expr.terms()) {
    IndexExpr product(term.coefficient);
    for (const auto &[atom, power] : term.factors) {
      IndexExpr factor;
      if (atom->kind == IndexExpr::AtomKind::Variable) {
        factor = IndexExpr::variable(atom->var);
      } else {
        factor = rebuildAtom(*atom);
        if (factor.isSize() && !isPolynomial(factor) && factor.terms().size() == 1) {
          auto known = atomNames.find(factor);
          if (known == atomNames.end()) {
            IndexExpr symbol = addDerived("q", factor);
            autoDefinitions[symbol.str()] = factor;
            known = atomNames.emplace(factor, symbol).first;
          }
          factor = known->second;
        } else if (factor.isSize() && !isPolynomial(factor)) {
          factor = named(factor);
        }
      }
      for (unsigned i = 0; i != power; ++i)
        product = product * factor;
    }
    result = result + product;
  }
  return result;
}

IndexExpr Checker::defineSize(llvm::StringRef name, const IndexExpr &definition) {
  if (definition.isOverflow() || isPolynomial(definition) || dead)
    return definition;
  // `P = (H - KH)//2 + 1`: the symbol P stands for the whole, and the division for P - 1.
  IndexExpr rest(0), atom;
  unsigned atoms = 0;
  for (const IndexExpr::Term &term : definition.terms()) {
    bool simple = true;
    for (const auto &[factor, power] : term.factors)
      simple &= factor->kind == IndexExpr::AtomKind::Variable;
    IndexExpr product(term.coefficient);
    for (const auto &[factor, power] : term.factors)
      for (unsigned i = 0; i != power; ++i)
        product = product * (factor->kind == IndexExpr::AtomKind::Variable
                                 ? IndexExpr::variable(factor->var)
                                 : rebuildAtom(*factor));
    if (simple) {
      rest = rest + product;
      continue;
    }
    atoms += term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].second == 1 ? 1 : 2;
    atom = product;
  }
  if (atoms != 1 || !atom.isSize() || isPolynomial(atom) || atom.terms().size() != 1 ||
      atomNames.count(atom))
    return named(definition);
  IndexExpr symbol = addDerived(name, atom + rest);
  if (frame && frame->caller)
    calleeDefinitions[symbol.str()] = atom + rest;
  atomNames.emplace(atom, symbol - rest);
  return symbol;
}

IndexExpr Checker::asWritten(const IndexExpr &expr) {
  IndexExpr written = expr;
  for (unsigned depth = 0; depth != 16; ++depth) {
    IndexExpr next = written.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (!var.isSymbol())
        return std::nullopt;
      for (const auto *definitions : {&autoDefinitions, &calleeDefinitions})
        if (auto found = definitions->find(var.name()); found != definitions->end())
          return found->second;
      return std::nullopt;
    });
    if (next == written)
      break;
    written = next;
  }
  return written;
}

std::string Checker::show(const IndexExpr &expr) {
  std::string result;
  llvm::raw_string_ostream os(result);
  asWritten(expr).print(os, [&](llvm::raw_ostream &out, unsigned position) {
    out << program->vars[position].name;
  });
  return result;
}

std::string Checker::show(const Condition &condition) {
  // `a - b - 1 >= 0` reads better as `a >= b + 1`.
  IndexExpr left(0), right(0);
  for (const IndexExpr::Term &term : condition.lhs.terms()) {
    IndexExpr product(term.coefficient < 0 ? -term.coefficient : term.coefficient);
    for (const auto &[atom, power] : term.factors)
      for (unsigned i = 0; i != power; ++i)
        product = product * atomExpr(*atom, atom->operands);
    (term.coefficient < 0 ? right : left) = (term.coefficient < 0 ? right : left) + product;
  }
  switch (condition.kind) {
  case Condition::NonNegative:
    return show(left) + " >= " + show(right);
  case Condition::Zero:
    return show(left) + " == " + show(right);
  case Condition::NonZero:
    return show(left) + " != " + show(right);
  case Condition::Divides:
    return show(condition.lhs) + " is a multiple of " + show(condition.rhs);
  }
  return {};
}

std::string Checker::showSizes(const Counterexample &example) {
  std::string result;
  auto add = [&](llvm::StringRef name, int64_t value) {
    result += (result.empty() ? "" : ", ") + name.str() + " = " + std::to_string(value);
  };
  for (const auto &[name, value] : example.sizes)
    if (!autoDefinitions.contains(name) && !calleeDefinitions.contains(name))
      add(name, value);
  for (const auto &[position, value] : example.point)
    if (position < program->vars.size())
      add(program->vars[position].name, value);
  return result;
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

bool Checker::usesData(const IndexExpr &expr) {
  for (const IndexVar &var : expr.variables())
    if (!var.isSymbol()) {
      const Var &bound = program->vars[var.position()];
      if (bound.kind == Var::Data || usesData(bound.lo) || usesData(bound.hi))
        return true;
    }
  return false;
}

void Checker::collectConditions(const Expr *condition, bool isTrue,
                                llvm::SmallVectorImpl<Condition> &conditions, bool &complete) {
  // Operands may be shared, and every condition costs the prover time.
  constexpr size_t maxConditions = 64;
  if (conditions.size() >= maxConditions) {
    complete = false;
    return;
  }
  if (condition->kind == Expr::Unary && condition->unary == Unary::Not)
    return collectConditions(condition->operands[0], !isTrue, conditions, complete);
  if (condition->kind != Expr::Binary) {
    complete = false;
    return;
  }
  if (condition->binary == (isTrue ? Binary::And : Binary::Or)) {
    collectConditions(condition->operands[0], isTrue, conditions, complete);
    collectConditions(condition->operands[1], isTrue, conditions, complete);
    return;
  }
  const Expr *x = condition->operands[0], *y = condition->operands[1];
  if (condition->binary < Binary::LT || !isInteger(x->type)) {
    complete = false;
    return;
  }
  std::optional<IndexExpr> a = toIndex(x), b = toIndex(y);
  if (!a || !b) {
    complete = false;
    return;
  }
  if (usesData(*a) || usesData(*b))
    complete = false;
  Binary op = condition->binary;
  if (!isTrue) {
    static const std::pair<Binary, Binary> inverse[] = {
        {Binary::LT, Binary::GE}, {Binary::LE, Binary::GT}, {Binary::GT, Binary::LE},
        {Binary::GE, Binary::LT}, {Binary::EQ, Binary::NE}, {Binary::NE, Binary::EQ}};
    for (auto [from, to] : inverse)
      if (op == from) {
        op = to;
        break;
      }
  }
  switch (op) {
  case Binary::LT:
    conditions.push_back(Condition::lessThan(*a, *b));
    break;
  case Binary::LE:
    conditions.push_back(Condition::lessEqual(*a, *b));
    break;
  case Binary::GT:
    conditions.push_back(Condition::lessThan(*b, *a));
    break;
  case Binary::GE:
    conditions.push_back(Condition::lessEqual(*b, *a));
    break;
  case Binary::EQ:
    conditions.push_back(Condition::equal(*a, *b));
    break;
  default:
    conditions.push_back(Condition::nonZero(*a - *b));
    break;
  }
}

Domain Checker::domainOf(llvm::ArrayRef<IndexExpr> exprs, bool withLoops, bool withPath) {
  Domain domain;
  if (withPath) {
    bool complete = true;
    for (const PathCondition &at : path)
      collectConditions(at.condition, at.isTrue, domain.conditions, complete);
  }
  std::set<unsigned> used;
  auto visit = [&](auto &&visit, const IndexExpr &expr) -> void {
    for (const IndexVar &var : expr.variables()) {
      if (var.isSymbol() || !used.insert(var.position()).second)
        continue;
      const Var &bound = program->vars[var.position()];
      if (bound.hasRange) {
        visit(visit, bound.lo);
        visit(visit, bound.hi);
      }
    }
  };
  for (const IndexExpr &expr : exprs)
    visit(visit, expr);
  for (const Condition &condition : domain.conditions) {
    visit(visit, condition.lhs);
    visit(visit, condition.rhs);
  }
  if (withLoops)
    for (unsigned loop : loops)
      visit(visit, IndexExpr::dim(loop));
  for (unsigned id : used)
    if (program->vars[id].hasRange)
      domain.add(id, program->vars[id].lo, program->vars[id].hi);
  return domain;
}

bool Checker::pathIsComplete() {
  bool complete = true;
  llvm::SmallVector<Condition> conditions;
  for (const PathCondition &at : path)
    collectConditions(at.condition, at.isTrue, conditions, complete);
  return complete;
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

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

/// What a read needs of the sizes, as text; and, where enlarging one dim of a parameter gives it, that
/// dim and what it must be at least.
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

//===----------------------------------------------------------------------===//
// Obligations
//===----------------------------------------------------------------------===//

void Checker::assume(const Condition &fact) {
  prover->assume(fact);
  assumed.push_back(fact);
}

bool Checker::isAssumed(const Condition &fact) const {
  return llvm::any_of(assumed, [&](const Condition &one) {
    return one.kind == fact.kind && one.lhs == fact.lhs && one.rhs == fact.rhs;
  });
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
           llvm::any_of(facts.definitions, [&](const auto &one) { return one.first == atom.var.name(); });
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
             what.what + " leaves " + (what.tensor ? "'" + what.tensor->tensor->name + "'" : "its tensor") +
                 " in dim " + std::to_string(what.dim + 1) + ", which is empty",
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
  Guard &guard = addGuard(Guard::InBounds, index, size,
                          what.what + " leaves " + tensor + " in dim " +
                              std::to_string(what.dim + 1),
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
  if (isSilent() || a == b || isAssumed(Condition::equal(a, b)) || isAssumed(Condition::equal(b, a)))
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
    Report record = report(refuted, span, what + ": " + show(a) + " and " + show(b) + " never agree");
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
  if (std::optional<Report> record = warnGuard(
          Code::GuardAgree, span, what + ": " + show(a) + " and " + show(b) + " may differ", true)) {
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
  addGuard(Guard::NonNegative, size, IndexExpr(0), (what + " is negative: " + show(size)).str(), span);
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

bool Checker::requireDivides(const IndexExpr &numerator, const IndexExpr &denominator, Span span) {
  if (isSilent())
    return true;
  IndexExpr n = named(numerator), d = named(denominator);
  if (isAssumed(Condition::divides(n, d)))
    return true;
  Outcome outcome = prover->holds(Condition::divides(n, d));
  if (outcome.proved())
    return true;
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
  if (std::optional<Report> record =
          warnGuard(Code::GuardDivisible, span,
                    show(n) + " must be a multiple of " + show(d), false))
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
  if (slack.isSize() && domain.conditions.empty()) {
    addGuard(Guard::NonNegative, slack, IndexExpr(0), what.str(), span);
    assume(Condition::nonNegative(slack));
  } else if (pathIsComplete()) {
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
    Outcome outcome = prover->holds(Condition::divides(n, d), domain);
    if (outcome.proved())
      continue;
    if (outcome.verdict == Verdict::Refuted || (path.empty() && neverDivides(n, d))) {
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
