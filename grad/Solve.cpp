//===- Solve.cpp - From what reads an element to the element -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Solve.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

static IndexExpr replaceVar(const IndexExpr &expr, unsigned var, const IndexExpr &by) {
  return expr.substitute([&](const IndexVar &at) -> std::optional<IndexExpr> {
    if (!at.isSymbol() && at.position() == var)
      return by;
    return std::nullopt;
  });
}

std::optional<IndexExpr> coefficientOf(const IndexExpr &expr, unsigned var) {
  IndexExpr rest = replaceVar(expr, var, 0);
  IndexExpr coefficient = replaceVar(expr, var, 1) - rest;
  if (coefficient.uses(IndexVar::dim(var)) || rest + coefficient * IndexExpr::dim(var) != expr)
    return std::nullopt;
  return coefficient;
}

SmallVector<unsigned, 4> digitsOf(const Builder &builder, const IndexExpr &subscript,
                                  const IndexExpr &first) {
  std::optional<IndexVar> leading = first.asVariable();
  if (!leading || leading->isSymbol() || builder.var(leading->position()).kind == Var::Data ||
      builder.var(leading->position()).lo != IndexExpr(0))
    return {};
  SmallVector<unsigned, 4> result;
  IndexExpr rest = subscript, stride(1);
  while (rest != IndexExpr::dim(leading->position()) * stride) {
    bool found = false;
    for (const IndexVar &at : rest.variables()) {
      if (at.isSymbol() || at == *leading)
        continue;
      const Var &var = builder.var(at.position());
      std::optional<IndexExpr> coefficient = coefficientOf(rest, var.id);
      if (var.kind == Var::Data || var.lo != IndexExpr(0) || !coefficient ||
          *coefficient != stride || is_contained(result, var.id))
        continue;
      result.push_back(var.id);
      rest = replaceVar(rest, var.id, 0);
      stride = stride * var.hi;
      found = true;
      break;
    }
    if (!found)
      return {};
  }
  result.push_back(leading->position());
  std::reverse(result.begin(), result.end());
  return result;
}

bool areEqualSizes(const Builder &builder, const IndexExpr &a, const IndexExpr &b) {
  IndexExpr difference = a - b;
  // Sizes with a definition are what they stand for; the last may use earlier ones.
  for (const Size &size : llvm::reverse(builder.program.sizes))
    if (!size.boundBy && !size.isOpen)
      difference = difference.substitute([&](const IndexVar &at) -> std::optional<IndexExpr> {
        return at == IndexVar::symbol(size.name) ? std::optional(size.definition) : std::nullopt;
      });
  if (difference == IndexExpr(0))
    return true;
  return any_of(builder.program.guards, [&](const Guard &guard) {
    if (!guard.vars.empty() || !guard.conditions.empty())
      return false;
    IndexExpr zero = guard.lhs;
    if (guard.kind == Guard::Divides)
      zero = guard.rhs * IndexExpr::floorDiv(guard.lhs, guard.rhs) - guard.lhs;
    else if (guard.kind != Guard::Zero)
      return false;
    return zero == difference || zero == -difference;
  });
}

std::optional<IndexExpr> firstDigit(const Builder &builder, const IndexExpr &subscript,
                                    const IndexExpr &dim) {
  for (const IndexVar &at : subscript.variables()) {
    if (at.isSymbol())
      continue;
    IndexExpr first = IndexExpr::dim(at.position());
    SmallVector<unsigned, 4> digits = digitsOf(builder, subscript, first);
    IndexExpr product(1);
    for (unsigned id : digits)
      product = product * builder.var(id).hi;
    if (digits.size() > 1 && areEqualSizes(builder, product, dim))
      return first;
  }
  return std::nullopt;
}

namespace {
class Solver {
public:
  Solver(Builder &builder, const Expr *read, const Expr *adjoint, const Expr *condition,
         ArrayRef<const Var *> domain, unsigned outer, bool isInStep)
      : b(builder), read(read), adjoint(adjoint), condition(condition),
        domain(domain.begin(), domain.end()), outer(outer), isInStep(isInStep) {}
  /// `outerIndicesFirst`: those of the result are solved for before those of reductions.
  std::optional<Contribution> gatherAll(bool outerIndicesFirst);
  Contribution scatter();

private:
  struct Solution {
    unsigned var;
    IndexExpr value;                                      // floored, where it is a quotient
    std::optional<std::pair<IndexExpr, IndexExpr>> exact; // what must divide
    bool isWhole = false;                                 // the dim's own range is the var's
  };
  bool solveDim(unsigned d);
  bool usesStep(const IndexExpr &expr) const;
  bool solveGroup(unsigned d);
  bool solveVar(unsigned d, const IndexExpr &expr, const IndexExpr &wanted);
  void add(Solution solution);
  std::optional<Contribution> gather();
  std::optional<IndexExpr> wholeRange(const Var &var) const;
  bool isOpen(unsigned var) const {
    return !solved.contains(var) && any_of(domain, [&](const Var *one) { return one->id == var; });
  }
  const Expr *withFill(const Expr *value, Solution &solution);
  const Expr *rangeOf(const Solution &solution);
  std::string axisName(unsigned d) const;

  Builder &b;
  const Expr *read, *adjoint, *condition;
  SmallVector<const Var *> domain;
  unsigned outer;
  bool isInStep;
  bool outerFirst = true;
  SmallDenseMap<unsigned, IndexExpr, 2> fixed;
  Replacement solved;
  SmallVector<Solution> solutions;
  SmallVector<SmallVector<const Var *, 1>, 4> layout;
  const Expr *extra = nullptr; // conditions m == s of dims without an index
};
} // namespace

/// The new axis of a dim is called like the dim's size.
std::string Solver::axisName(unsigned d) const {
  if (std::optional<IndexVar> only = read->subscripts[d].asVariable();
      only && !only->isSymbol() && b.var(only->position()).kind != Var::Data)
    return b.var(only->position()).name;
  std::optional<IndexVar> size = read->tensor->dims[d].asVariable();
  if (size && size->isSymbol() && size->name().size() == 1)
    return size->name().lower();
  return std::string(1, "ijklmnpqrstuv"[d % 13]);
}

void Solver::add(Solution solution) {
  for (auto &[var, value] : solved)
    value = replaceVar(value, solution.var, solution.value);
  for (Solution &earlier : solutions) {
    earlier.value = replaceVar(earlier.value, solution.var, solution.value);
    if (earlier.exact)
      earlier.exact->first = replaceVar(earlier.exact->first, solution.var, solution.value);
  }
  solved[solution.var] = solution.value;
  solutions.push_back(std::move(solution));
}

/// A group whose members are open indices that make up the whole dim: they stay what they are.
bool Solver::solveGroup(unsigned d) {
  const IndexExpr *first = nullptr;
  for (const auto &[dim, member] : read->groups)
    if (dim == d)
      first = &member;
  std::optional<IndexExpr> found;
  if (!first && (found = firstDigit(b, read->subscripts[d], read->tensor->dims[d])))
    first = &*found;
  if (!first)
    return false;
  SmallVector<unsigned, 4> digits = digitsOf(b, read->subscripts[d], *first);
  IndexExpr product(1);
  for (unsigned id : digits) {
    const Var &var = b.var(id);
    if (!isOpen(id) || !var.hi.isSize())
      return false;
    product = product * var.hi;
  }
  if (digits.size() < 2 || !areEqualSizes(b, product, read->tensor->dims[d]))
    return false;
  for (unsigned id : digits) {
    const Var *axis = b.newAxis(b.var(id).name, 0, b.var(id).hi);
    layout.back().push_back(axis);
    add({id, IndexExpr::dim(axis->id), std::nullopt, true});
  }
  return true;
}

/// Solves `expr` = `wanted` for one of its open indices.
bool Solver::solveVar(unsigned d, const IndexExpr &expr, const IndexExpr &wanted) {
  // Indices of the result before those of reductions, which are shorter sums; steps of 1 before
  // longer ones.
  for (bool isOuter : {outerFirst, !outerFirst})
    for (int64_t step : {1, 2})
      for (auto [position, var] : enumerate(domain)) {
        if ((position < outer) != isOuter || !isOpen(var->id))
          continue;
        std::optional<IndexExpr> symbolic = coefficientOf(expr, var->id);
        std::optional<int64_t> c = symbolic ? symbolic->asConstant() : std::nullopt;
        if (!c || *c == 0 || (step == 1) != (*c == 1 || *c == -1))
          continue;
        IndexExpr rest = wanted - replaceVar(expr, var->id, 0);
        if (*c < 0)
          rest = -rest;
        int64_t divisor = *c < 0 ? -*c : *c;
        Solution solution{var->id, rest, std::nullopt, false};
        if (divisor != 1) {
          solution.value = IndexExpr::floorDiv(rest, divisor);
          solution.exact = {rest, IndexExpr(divisor)};
        }
        solution.isWhole = rest == wanted && divisor == 1 && var->lo == IndexExpr(0) &&
                           var->hi == read->tensor->dims[d] && wanted.asVariable().has_value();
        add(std::move(solution));
        return true;
      }
  return false;
}

/// Whether the subscript depends on the step of a loop.
bool Solver::usesStep(const IndexExpr &expr) const {
  VarSet used;
  b.freeVars(expr, used);
  return any_of(used, [&](unsigned id) { return b.var(id).kind == Var::Loop; });
}

bool Solver::solveDim(unsigned d) {
  layout.emplace_back();
  if (isInStep && usesStep(read->subscripts[d])) {
    VarSet used;
    b.freeVars(read->subscripts[d], used);
    if (used.size() != 1 || read->fill || b.usesData(read->subscripts[d]))
      return false;
    fixed[d] = read->subscripts[d];
    return true;
  }
  if (solveGroup(d))
    return true;
  const Var *axis = b.newAxis(axisName(d), 0, read->tensor->dims[d]);
  layout.back().push_back(axis);
  IndexExpr wanted = IndexExpr::dim(axis->id);
  IndexExpr expr = b.substitute(read->subscripts[d], solved);
  if (b.usesData(expr))
    return false;
  for (const auto &[numerator, denominator] : read->exact) {
    if (IndexExpr::floorDiv(numerator, denominator) != read->subscripts[d])
      continue;
    return solveVar(d, b.substitute(numerator, solved), wanted * denominator);
  }
  if (solveVar(d, expr, wanted))
    return true;
  VarSet used;
  b.freeVars(expr, used);
  if (any_of(used, [&](unsigned id) { return isOpen(id); }))
    return false;
  extra = b.both(extra, b.compare(Binary::EQ, b.index(wanted), b.index(expr)));
  return true;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

const Expr *Solver::rangeOf(const Solution &solution) {
  const Var &var = b.var(solution.var);
  const Expr *value = b.index(solution.value);
  IndexExpr lo = b.substitute(var.lo, solved), hi = b.substitute(var.hi, solved);
  const Expr *result = nullptr;
  if (solution.exact)
    result = b.compare(Binary::EQ,
                       b.index(solution.exact->first - solution.exact->second * solution.value),
                       b.index(0));
  // An axis has bounds of its own.
  std::optional<IndexVar> axis = solution.value.asVariable();
  const Var *own = axis && !axis->isSymbol() ? &b.var(axis->position()) : nullptr;
  if (!own || own->lo != lo)
    result = b.both(result, b.compare(Binary::LE, b.index(lo), value));
  if (!own || own->hi != hi)
    result = b.both(result, b.compare(Binary::LT, value, b.index(hi)));
  return result;
}

/// Where every factor that varies along a solved index is a plain read along a whole dim, reads
/// with fill=0 take the place of its range's condition. Null where that is not so.
const Expr *Solver::withFill(const Expr *value, Solution &solution) {
  const Var &var = b.var(solution.var);
  if (var.lo != IndexExpr(0))
    return nullptr;
  if (!b.dependsOn(value, var.id))
    return nullptr;
  auto visit = [&](auto &&self, const Expr *at) -> const Expr * {
    if (!b.dependsOn(at, var.id))
      return at;
    if (at->kind == Expr::Binary && at->binary == Binary::Mul) {
      const Expr *lhs = self(self, at->operands[0]);
      const Expr *rhs = lhs ? self(self, at->operands[1]) : nullptr;
      if (!rhs)
        return nullptr;
      Expr *result = b.copy(at);
      result->operands = {lhs, rhs};
      return result;
    }
    if (at->kind == Expr::Binary && at->binary == Binary::Div &&
        !b.dependsOn(at->operands[1], var.id)) {
      const Expr *inner = self(self, at->operands[0]);
      return inner ? b.div(inner, at->operands[1]) : nullptr;
    }
    if (at->kind == Expr::Unary && at->unary == Unary::Neg) {
      const Expr *inner = self(self, at->operands[0]);
      return inner ? b.neg(inner) : nullptr;
    }
    if (at->kind != Expr::Read || at->guard || at->dataDependent || !isFloat(at->type) ||
        (at->fill && !isNumber(at->fill, 0)))
      return nullptr;
    Expr *result = b.copy(at);
    bool isPlain = false;
    for (auto [d, subscript] : enumerate(at->subscripts)) {
      if (!subscript.uses(IndexVar::dim(var.id)) && !b.usesData(subscript))
        continue;
      if (subscript != IndexExpr::dim(var.id) || at->tensor->dims[d] != var.hi || isPlain)
        return nullptr;
      isPlain = true;
      if (solution.exact)
        result->exact.push_back(*solution.exact);
    }
    if (!isPlain)
      return nullptr;
    result->fill = b.number(0);
    return result;
  };
  return visit(visit, value);
}

/// Nothing where the range of an index that is left would depend on that index or a later one:
/// that of j in x[i + j] for j in 0:i + 1, solved for i.
std::optional<Contribution> Solver::gather() {
  Contribution result;
  const Expr *value = adjoint;
  const Expr *ranges = nullptr;
  bool isFilled = false;
  for (Solution &solution : solutions) {
    if (solution.isWhole)
      continue;
    bool inCondition = condition && b.dependsOn(condition, solution.var);
    if (const Expr *filled = inCondition ? nullptr : withFill(value, solution)) {
      value = filled;
      isFilled = true;
    } else {
      ranges = b.both(ranges, rangeOf(solution));
    }
  }
  value = b.substitute(value, solved);
  const Expr *all = b.both(extra, ranges);
  if (condition)
    all = b.both(all, b.substitute(condition, solved));
  result.isMasked = all || isFilled;
  // Indices that are left are summed over; ranges that depend on solved ones are new.
  SmallVector<const Var *> left;
  Replacement renamed;
  for (auto [position, var] : enumerate(domain)) {
    if (solved.contains(var->id))
      continue;
    IndexExpr lo = b.substitute(b.substitute(var->lo, solved), renamed);
    IndexExpr hi = b.substitute(b.substitute(var->hi, solved), renamed);
    VarSet bounds;
    b.freeVars(lo, bounds);
    b.freeVars(hi, bounds);
    for (const Var *later : ArrayRef(domain).drop_front(position))
      if (!solved.contains(later->id) && bounds.contains(later->id))
        return std::nullopt;
    const Var *own = var;
    if (lo != var->lo || hi != var->hi || var->kind != Var::Axis) {
      own = b.newAxis(var->name, lo, hi);
      renamed[var->id] = IndexExpr::dim(own->id);
    }
    left.push_back(own);
  }
  if (!renamed.empty()) {
    value = b.substitute(value, renamed);
    if (all)
      all = b.substitute(all, renamed);
  }
  result.layout = std::move(layout);
  result.fixed = std::move(fixed);
  // What no index of the sum occurs in stands outside of it.
  result.value = left.empty() ? b.select(all, value) : b.reduce(Reduction::Sum, left, value, all);
  return result;
}

/// The dim that some read shows the index bare in.
std::optional<IndexExpr> Solver::wholeRange(const Var &var) const {
  std::optional<IndexExpr> result;
  auto visit = [&](auto &&self, const Expr *at) -> void {
    if (at->kind == Expr::Read)
      for (auto [subscript, dim] : zip_equal(at->subscripts, at->tensor->dims)) {
        if (subscript == IndexExpr::dim(var.id) && !at->fill)
          result = dim;
        for (const IndexVar &used : subscript.variables())
          if (!used.isSymbol() && b.var(used.position()).kind == Var::Data)
            self(self, b.var(used.position()).data);
      }
    Builder::forParts(at, [&](const Expr *part) { self(self, part); });
  };
  visit(visit, read);
  visit(visit, adjoint);
  return result;
}

Contribution Solver::scatter() {
  Contribution result;
  result.isScatter = result.isMasked = true;
  Equation &made = result.scatter;
  made.accumulate = true;
  made.subscripts = read->subscripts;
  made.groups = read->groups;
  VarSet used;
  for (const IndexExpr &subscript : read->subscripts)
    b.freeVars(subscript, used);
  for (const Var *var : domain)
    if (used.contains(var->id)) {
      b.freeVars(var->lo, used);
      b.freeVars(var->hi, used);
    }
  SmallVector<const Var *> summed;
  const Expr *inside = nullptr;
  Replacement renamed;
  for (const Var *var : domain) {
    if (!used.contains(var->id)) {
      summed.push_back(var);
      continue;
    }
    if (var->lo.isSize() && var->hi.isSize()) {
      made.vars.push_back(var);
      continue;
    }
    // An axis ranges over a size: that of a dim that the index subscripts, under a condition.
    std::optional<IndexExpr> whole = wholeRange(*var);
    if (!whole) {
      result.isRefused = true;
      return result;
    }
    const Var *axis = b.newAxis(var->name, 0, *whole);
    made.vars.push_back(axis);
    const Expr *at = b.index(IndexExpr::dim(axis->id));
    inside = b.both(inside, b.compare(Binary::LE, b.index(b.substitute(var->lo, renamed)), at));
    inside = b.both(inside, b.compare(Binary::LT, at, b.index(b.substitute(var->hi, renamed))));
    renamed[var->id] = IndexExpr::dim(axis->id);
  }
  if (read->fill) {
    for (auto [subscript, dim] : zip_equal(read->subscripts, read->tensor->dims)) {
      const Expr *at = b.index(subscript);
      inside = b.both(inside, b.compare(Binary::LE, b.index(0), at));
      inside = b.both(inside, b.compare(Binary::LT, at, b.index(dim)));
    }
    for (const auto &[numerator, denominator] : read->exact)
      inside =
          b.both(b.compare(Binary::EQ, b.index(IndexExpr::mod(numerator, denominator)), b.index(0)),
                 inside);
  }
  bool varies =
      any_of(summed, [&](const Var *var) { return condition && b.dependsOn(condition, var->id); });
  made.guard = varies ? inside : b.both(inside, condition);
  made.value = b.reduce(Reduction::Sum, summed, adjoint, varies ? condition : nullptr);
  if (!renamed.empty()) {
    made.value = b.substitute(made.value, renamed);
    made.guard = b.substitute(made.guard, renamed);
    for (IndexExpr &subscript : made.subscripts)
      subscript = b.substitute(subscript, renamed);
  }
  return result;
}

std::optional<Contribution> Solver::gatherAll(bool outerIndicesFirst) {
  outerFirst = outerIndicesFirst;
  for (unsigned d = 0; d != read->subscripts.size(); ++d)
    if (!solveDim(d))
      return std::nullopt;
  return gather();
}

Contribution solve(Builder &builder, const Expr *read, const Expr *adjoint, const Expr *condition,
                   ArrayRef<const Var *> domain, unsigned outer, bool isInStep) {
  if (read->guard)
    condition = builder.both(condition, read->guard);
  auto solver = [&] { return Solver(builder, read, adjoint, condition, domain, outer, isInStep); };
  for (bool outerFirst : {true, false})
    if (std::optional<Contribution> sum = solver().gatherAll(outerFirst))
      return std::move(*sum);
  return solver().scatter();
}

} // namespace tegula::grad
