//===- CheckSizes.cpp - Derived sizes ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes are polynomials over symbols: every floor division, minimum, maximum or conditional of
// sizes gets a symbol of its own, once, so that equal sizes are equal expressions. Messages show
// them as they were written.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckSizes.h"

using namespace tegula;
using namespace tegula::checked;

std::string tegula::uniqueSymbol(CheckContext &ctx, llvm::StringRef base) {
  std::string name = base.str();
  for (unsigned i = 1; !ctx.sizeNames.symbols.insert(name).second; ++i)
    name = base.str() + "_" + std::to_string(i);
  return name;
}

static IndexExpr addDerived(CheckContext &ctx, llvm::StringRef base, const IndexExpr &definition) {
  std::string name = uniqueSymbol(ctx, base);
  checked::Size size;
  size.name = name;
  size.definition = definition;
  ctx.program->sizes.push_back(std::move(size));
  ctx.prover->define(name, definition);
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
  case IndexExpr::AtomKind::Float: {
    llvm::SmallVector<std::pair<IndexExpr::FloatStep, IndexExpr>> steps;
    for (size_t i = 0; i + 1 < operands.size(); i += 2)
      steps.push_back(
          {static_cast<IndexExpr::FloatStep>(*operands[i].asConstant()), operands[i + 1]});
    return IndexExpr::ofFloats(steps);
  }
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

static IndexExpr rebuildAtom(CheckContext &ctx, const IndexExpr::Atom &atom) {
  llvm::SmallVector<IndexExpr, 4> operands;
  for (const IndexExpr &operand : atom.operands)
    operands.push_back(named(ctx, operand));
  return atomExpr(atom, operands);
}

IndexExpr tegula::named(CheckContext &ctx, const IndexExpr &expr) {
  if (ctx.sizeNames.keepAtoms || ctx.dead || expr.isOverflow() || isPolynomial(expr))
    return expr;
  IndexExpr result(0);
  for (const IndexExpr::Term &term : expr.terms()) {
    IndexExpr product(term.coefficient);
    for (const auto &[atom, power] : term.factors) {
      IndexExpr factor;
      if (atom->kind == IndexExpr::AtomKind::Variable) {
        factor = IndexExpr::variable(atom->var);
      } else {
        factor = rebuildAtom(ctx, *atom);
        if (factor.isSize() && !isPolynomial(factor) && factor.terms().size() == 1) {
          auto known = ctx.sizeNames.atomNames.find(factor);
          if (known == ctx.sizeNames.atomNames.end()) {
            IndexExpr symbol = addDerived(ctx, "q", factor);
            ctx.sizeNames.autoDefinitions[symbol.str()] = factor;
            known = ctx.sizeNames.atomNames.emplace(factor, symbol).first;
          }
          factor = known->second;
        } else if (factor.isSize() && !isPolynomial(factor)) {
          factor = named(ctx, factor);
        }
      }
      for (unsigned i = 0; i != power; ++i)
        product = product * factor;
    }
    result = result + product;
  }
  return result;
}

IndexExpr tegula::defineSize(CheckContext &ctx, llvm::StringRef name, const IndexExpr &definition) {
  if (definition.isOverflow() || isPolynomial(definition) || ctx.dead)
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
                                 : rebuildAtom(ctx, *factor));
    if (simple) {
      rest = rest + product;
      continue;
    }
    atoms +=
        term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].second == 1 ? 1 : 2;
    atom = product;
  }
  if (atoms != 1 || !atom.isSize() || isPolynomial(atom) || atom.terms().size() != 1 ||
      ctx.sizeNames.atomNames.count(atom))
    return named(ctx, definition);
  IndexExpr symbol = addDerived(ctx, name, atom + rest);
  if (ctx.frame && ctx.frame->caller)
    ctx.sizeNames.calleeDefinitions[symbol.str()] = atom + rest;
  ctx.sizeNames.atomNames.emplace(atom, symbol - rest);
  return symbol;
}

IndexExpr tegula::asWritten(CheckContext &ctx, const IndexExpr &expr) {
  IndexExpr written = expr;
  for (unsigned depth = 0; depth != 16; ++depth) {
    IndexExpr next = written.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (!var.isSymbol())
        return std::nullopt;
      for (const auto *definitions :
           {&ctx.sizeNames.autoDefinitions, &ctx.sizeNames.calleeDefinitions})
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

std::string tegula::show(CheckContext &ctx, const IndexExpr &expr) {
  std::string result;
  llvm::raw_string_ostream os(result);
  asWritten(ctx, expr).print(os, [&](llvm::raw_ostream &out, unsigned position) {
    out << ctx.program->vars[position].name;
  });
  return result;
}

std::string tegula::show(CheckContext &ctx, const Condition &condition) {
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
    return show(ctx, left) + " >= " + show(ctx, right);
  case Condition::Zero:
    return show(ctx, left) + " == " + show(ctx, right);
  case Condition::NonZero:
    return show(ctx, left) + " != " + show(ctx, right);
  case Condition::Divides:
    return show(ctx, condition.lhs) + " is a multiple of " + show(ctx, condition.rhs);
  }
  return {};
}

std::string tegula::showSizes(CheckContext &ctx, const Counterexample &example) {
  std::string result;
  auto add = [&](llvm::StringRef name, int64_t value) {
    result += (result.empty() ? "" : ", ") + name.str() + " = " + std::to_string(value);
  };
  for (const auto &[name, value] : example.sizes)
    if (!ctx.sizeNames.autoDefinitions.contains(name) &&
        !ctx.sizeNames.calleeDefinitions.contains(name))
      add(name, value);
  for (const auto &[position, value] : example.point)
    if (position < ctx.program->vars.size())
      add(ctx.program->vars[position].name, value);
  return result;
}
