//===- IndexExprEval.cpp - Variables, evaluation, substitution --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "symbolic/IndexExprBuilder.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace tegula;
using llvm::SmallVector;

/// `seen`: atoms stand in many places of one expression, each is looked into once.
static void collectVariables(const IndexExpr &expr, llvm::SmallVectorImpl<IndexVar> &vars,
                             llvm::SmallPtrSetImpl<const IndexExpr::Atom *> &seen) {
  for (const IndexExpr::Term &term : expr.terms()) {
    for (const auto &[atom, power] : term.factors) {
      if (atom->kind == IndexExpr::AtomKind::Variable)
        vars.push_back(atom->var);
      else if (seen.insert(atom.get()).second)
        for (const IndexExpr &operand : atom->operands)
          collectVariables(operand, vars, seen);
    }
  }
}

SmallVector<IndexVar> IndexExpr::variables() const {
  SmallVector<IndexVar> result;
  llvm::SmallPtrSet<const Atom *, 8> seen;
  collectVariables(*this, result, seen);
  llvm::sort(result);
  result.erase(llvm::unique(result), result.end());
  return result;
}

bool IndexExpr::isSize() const {
  return llvm::all_of(variables(), [](const IndexVar &var) { return var.isSymbol(); });
}
bool IndexExpr::uses(const IndexVar &var) const { return llvm::is_contained(variables(), var); }

using ValueFn = llvm::function_ref<std::optional<int64_t>(const IndexVar &)>;

static std::optional<int64_t> evaluateAtom(const IndexExpr::Atom &atom, ValueFn value) {
  using Kind = IndexExpr::AtomKind;
  if (atom.kind == Kind::Variable)
    return value(atom.var);
  if (atom.kind == Kind::Float) {
    llvm::SmallVector<int64_t, 16> steps;
    for (const IndexExpr &operand : atom.operands) {
      std::optional<int64_t> step = operand.evaluate(value);
      if (!step)
        return std::nullopt;
      steps.push_back(*step);
    }
    return IndexExpr::runFloats(steps);
  }
  std::optional<int64_t> first = atom.operands[0].evaluate(value);
  std::optional<int64_t> second = atom.operands[1].evaluate(value);
  if (!first || !second)
    return std::nullopt;
  if (atom.kind == Kind::FloorDiv) {
    if (*second == 0 || (*first == INT64_MIN && *second == -1))
      return std::nullopt;
    return llvm::divideFloorSigned(*first, *second);
  }
  if (atom.kind == Kind::Select) {
    bool holds = atom.cmp == IndexExpr::Cmp::EQ ? *first == *second : *first <= *second;
    return atom.operands[holds ? 2 : 3].evaluate(value);
  }
  int64_t result = *first;
  for (const IndexExpr &operand : llvm::drop_begin(atom.operands)) {
    std::optional<int64_t> next = operand.evaluate(value);
    if (!next)
      return std::nullopt;
    result = atom.kind == Kind::Min ? std::min(result, *next) : std::max(result, *next);
  }
  return result;
}

std::optional<int64_t> IndexExpr::evaluate(ValueFn value) const {
  if (isOverflow())
    return std::nullopt;
  // 128 bits: an intermediate sum may leave the range although the result does not.
  __int128 sum = 0;
  for (const Term &term : terms()) {
    __int128 product = term.coefficient;
    for (const auto &[atom, power] : term.factors) {
      std::optional<int64_t> factor = evaluateAtom(*atom, value);
      if (!factor)
        return std::nullopt;
      for (unsigned i = 0; i < power; ++i)
        if (__builtin_mul_overflow(product, __int128(*factor), &product))
          return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  if (sum < INT64_MIN || sum > INT64_MAX)
    return std::nullopt;
  return int64_t(sum);
}

IndexExpr IndexExpr::substitute(
    llvm::function_ref<std::optional<IndexExpr>(const IndexVar &)> replacement) const {
  if (isOverflow())
    return *this;
  // What an atom becomes; nothing where it stays.
  auto substituteAtom = [&](const std::shared_ptr<const Atom> &atom) -> std::optional<IndexExpr> {
    if (atom->kind == AtomKind::Variable) {
      std::optional<IndexExpr> found = replacement(atom->var);
      return found && found->asVariable() == atom->var ? std::nullopt : found;
    }
    SmallVector<IndexExpr, 4> operands;
    bool changed = false;
    for (const IndexExpr &operand : atom->operands) {
      operands.push_back(operand.substitute(replacement));
      changed |= operands.back().storage != operand.storage;
    }
    if (!changed)
      return std::nullopt;
    switch (atom->kind) {
    case AtomKind::FloorDiv:
      return floorDiv(operands[0], operands[1]);
    case AtomKind::Select:
      return select(atom->cmp, operands[0], operands[1], operands[2], operands[3]);
    case AtomKind::Float:
      return IndexExprBuilder::ofFloats(operands);
    default:
      break;
    }
    IndexExpr result = operands[0];
    for (const IndexExpr &operand : llvm::drop_begin(operands))
      result = atom->kind == AtomKind::Min ? min(result, operand) : max(result, operand);
    return result;
  };
  // Most substitutions rename nothing in most expressions.
  llvm::SmallDenseMap<const Atom *, std::optional<IndexExpr>, 8> replaced;
  bool changed = false;
  for (const Term &term : terms())
    for (const auto &[atom, power] : term.factors)
      if (auto [place, isNew] = replaced.try_emplace(atom.get()); isNew) {
        place->second = substituteAtom(atom);
        changed |= place->second.has_value();
      }
  if (!changed)
    return *this;
  IndexExprBuilder::Terms sum;
  for (const Term &term : terms()) {
    Term kept{term.coefficient, {}};
    for (const auto &[atom, power] : term.factors)
      if (!replaced.lookup(atom.get()))
        kept.factors.push_back({atom, power});
    if (kept.factors.size() == term.factors.size()) {
      sum.push_back(term);
      continue;
    }
    IndexExpr product = IndexExprBuilder::normalise({std::move(kept)});
    for (const auto &[atom, power] : term.factors)
      if (std::optional<IndexExpr> factor = replaced.lookup(atom.get()))
        for (unsigned i = 0; i < power && !product.isOverflow(); ++i)
          product = product * *factor;
    if (product.isOverflow())
      return product;
    llvm::append_range(sum, product.terms());
  }
  return IndexExprBuilder::normalise(std::move(sum));
}
