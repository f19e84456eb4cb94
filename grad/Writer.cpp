//===- Writer.cpp - Equations and indices as text ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Writer.h"

#include "grad/Solve.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

// Operators from the loosest on.
constexpr int sums = 9, products = 10, signs = 11, atoms = 13;

Writer::Writer(const Builder &builder, std::map<DType, std::string> typeNames, std::string ellipsis,
               Refusal &refusal)
    : b(builder), typeNames(std::move(typeNames)), ellipsis(std::move(ellipsis)), refusal(refusal) {
  for (StringRef word :
       {"for", "in", "if", "and", "or", "not", "return", "inf", "nan", "pi", "true", "false"})
    taken.insert(word);
}

void Writer::fail(Span span, StringRef reason) {
  if (!failed)
    refusal = {reason.str(), span};
  failed = true;
}

std::string Writer::unique(StringRef name) {
  std::string result = name.str();
  for (unsigned i = 2; taken.contains(result); ++i)
    result = (name + Twine(i)).str();
  taken.insert(result);
  return result;
}

void Writer::name(const Tensor *tensor) {
  if (!names.contains(tensor))
    names[tensor] = unique(tensor->name);
}

std::string Writer::typeName(DType type) const {
  auto found = typeNames.find(type);
  return found == typeNames.end() ? toString(type).str() : found->second;
}

std::string Writer::size(const IndexExpr &expr) { return index(expr).text; }

std::string Writer::declaration(const Tensor &tensor, StringRef type) {
  std::string result = type.str();
  if (tensor.dims.empty())
    return result;
  result += '[';
  for (auto [d, dim] : enumerate(tensor.dims)) {
    bool isRun = !ellipsis.empty() && dim == IndexExpr::symbol(ellipsis);
    result += (d ? ", " : "") + (isRun ? std::string("...") : size(dim));
  }
  return result + "]";
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

bool Writer::isEllipsisVar(const Var &var) const {
  return !ellipsis.empty() && var.kind == Var::Axis && var.hi == IndexExpr::symbol(ellipsis) &&
         var.lo == IndexExpr(0);
}

std::string Writer::axis(unsigned id) {
  if (auto step = steps.find(id); step != steps.end())
    return step->second;
  auto known = axes.find(id);
  if (known != axes.end())
    return known->second;
  const Var &var = b.var(id);
  StringRef hint = var.name;
  if (hint.empty() || !(isAlpha(hint[0]) || hint[0] == '_'))
    hint = "i";
  std::string result = hint.str();
  for (unsigned i = 2; taken.contains(result) || axisNames.contains(result); ++i)
    result = (hint + Twine(i)).str();
  axisNames.insert(result);
  return axes[id] = result;
}

/// n - d*(n // d) + rest as n % d + rest.
std::optional<Writer::Text> Writer::remainder(const IndexExpr &expr) {
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[factor, power] : term.factors) {
      if (factor->kind != IndexExpr::AtomKind::FloorDiv || power != 1)
        continue;
      const IndexExpr &numerator = factor->operands[0], &denominator = factor->operands[1];
      IndexExpr whole = IndexExpr::mod(numerator, denominator);
      IndexExpr rest = expr - whole;
      if (rest.terms().size() + 2 > expr.terms().size())
        continue;
      Text n = index(numerator), d = index(denominator);
      std::string text = (n.strength < products ? "(" + n.text + ")" : n.text) + " % " +
                         (d.strength < signs ? "(" + d.text + ")" : d.text);
      if (rest == IndexExpr(0))
        return Text{text, products};
      Text more = index(rest);
      bool isNegative = StringRef(more.text).starts_with("-");
      return Text{isNegative ? text + " - " + more.text.substr(1) : text + " + " + more.text, sums};
    }
  return std::nullopt;
}

Writer::Text Writer::atom(const IndexExpr::Atom &atom) {
  auto comma = [&](StringRef name) {
    std::string text = index(atom.operands.front()).text;
    for (const IndexExpr &operand : ArrayRef(atom.operands).drop_front())
      text = (name + "(" + text + ", " + index(operand).text + ")").str();
    return Text{text, atoms};
  };
  switch (atom.kind) {
  case IndexExpr::AtomKind::Variable: {
    if (atom.var.isSymbol()) {
      if (atom.var.name() == ellipsis) {
        ellipsisWrong = true;
        fail({}, "the number of elements of '...' is used");
      }
      for (const checked::Size &size : b.program.sizes)
        if (size.isUnnamed && size.name == atom.var.name())
          return index(size.definition);
      auto given = symbolTexts.find(atom.var.name());
      return {given == symbolTexts.end() ? atom.var.name().str() : given->second, atoms};
    }
    const Var &var = b.var(atom.var.position());
    if (var.kind == Var::Data)
      return value(var.data);
    if (isEllipsisVar(var)) {
      ellipsisWrong = true;
      fail({}, "an index of '...' is used as a number");
    }
    return {axis(var.id), atoms};
  }
  case IndexExpr::AtomKind::FloorDiv: {
    Text n = index(atom.operands[0]), d = index(atom.operands[1]);
    // A division that every launch checks to be exact says so.
    bool isExact = any_of(b.program.guards, [&](const Guard &guard) {
      return guard.kind == Guard::Divides && guard.vars.empty() && guard.conditions.empty() &&
             guard.lhs == atom.operands[0] && guard.rhs == atom.operands[1];
    });
    return {(n.strength < products ? "(" + n.text + ")" : n.text) + (isExact ? "/" : "//") +
                (d.strength < signs ? "(" + d.text + ")" : d.text),
            products};
  }
  case IndexExpr::AtomKind::Min:
    return comma("minimum");
  case IndexExpr::AtomKind::Max:
    return comma("maximum");
  case IndexExpr::AtomKind::Select:
    return {"where(" + index(atom.operands[0]).text +
                (atom.cmp == IndexExpr::Cmp::EQ ? " == " : " <= ") + index(atom.operands[1]).text +
                ", " + index(atom.operands[2]).text + ", " + index(atom.operands[3]).text + ")",
            atoms};
  case IndexExpr::AtomKind::Float:
    fail({}, "a size is computed from floats");
    return {"0", atoms};
  }
  llvm_unreachable("all atoms are listed");
}

Writer::Text Writer::index(const IndexExpr &expr) {
  if (std::optional<int64_t> constant = expr.asConstant())
    return {std::to_string(*constant), *constant < 0 ? signs : atoms};
  if (std::optional<Text> found = remainder(expr))
    return *found;
  std::string result;
  unsigned count = 0;
  int strength = atoms;
  // What is added first, what is taken away last.
  for (bool negative : {false, true})
    for (const IndexExpr::Term &term : expr.terms()) {
      if ((term.coefficient < 0) != negative)
        continue;
      std::string text;
      uint64_t size = negative ? -static_cast<uint64_t>(term.coefficient)
                               : static_cast<uint64_t>(term.coefficient);
      unsigned parts = 0;
      if (size != 1 || term.factors.empty()) {
        text = std::to_string(size);
        ++parts;
      }
      int own = atoms;
      for (const auto &[factor, power] : term.factors)
        for (unsigned i = 0; i != power; ++i) {
          Text one = atom(*factor);
          bool needsBrackets =
              one.strength <
              (parts || term.factors.size() > 1 || power > 1 || size != 1 ? signs : products);
          text += (parts ? "*" : "") + (needsBrackets ? "(" + one.text + ")" : one.text);
          own = one.strength;
          ++parts;
        }
      if (count == 0) {
        result = negative ? "-" + text : text;
        strength = negative ? signs : parts > 1 ? products : own;
      } else {
        result += (negative ? " - " : " + ") + text;
        strength = sums;
      }
      ++count;
    }
  return {result, strength};
}

std::string Writer::range(const IndexExpr &lo, const IndexExpr &hi) {
  if (lo == IndexExpr(0))
    return size(hi);
  return size(lo) + ":" + size(hi);
}

/// Whether the reads of these values show the var bare, in dims that are its range.
bool Writer::isInferred(const Var &var, ArrayRef<const Expr *> from) const {
  if (var.lo != IndexExpr(0))
    return false;
  bool isShown = false, isOther = false;
  auto visit = [&](auto &&self, const Expr *at) -> void {
    if (at->kind == Expr::Read)
      for (auto [subscript, dim] : zip_equal(at->subscripts, at->tensor->dims)) {
        if (subscript != IndexExpr::dim(var.id))
          continue;
        isShown |= dim == var.hi && !at->fill;
        isOther |= dim != var.hi;
      }
    Builder::forParts(at, [&](const Expr *part) { self(self, part); });
    auto ofIndex = [&](const IndexExpr &index) {
      for (const IndexVar &used : index.variables())
        if (!used.isSymbol() && b.var(used.position()).kind == Var::Data)
          self(self, b.var(used.position()).data);
    };
    ofIndex(at->index);
    for (const IndexExpr &subscript : at->subscripts)
      ofIndex(subscript);
    for (const Var *bound : at->vars) {
      ofIndex(bound->lo);
      ofIndex(bound->hi);
    }
  };
  for (const Expr *one : from)
    if (one)
      visit(visit, one);
  return isShown && !isOther;
}

//===----------------------------------------------------------------------===//
// Equations
//===----------------------------------------------------------------------===//

/// One subscript: a group where its members are known, else an expression. `bare` says what is
/// written for an index alone.
std::string Writer::subscript(const IndexExpr &expr,
                              const std::vector<std::pair<unsigned, IndexExpr>> &groups,
                              unsigned dim, ArrayRef<std::pair<IndexExpr, IndexExpr>> exact,
                              function_ref<std::string(unsigned)> bare) {
  std::optional<IndexVar> only = expr.asVariable();
  if (only && !only->isSymbol() && b.var(only->position()).kind != Var::Data) {
    if (isEllipsisVar(b.var(only->position())))
      return "...";
    return bare(only->position());
  }
  for (const auto &[at, first] : groups) {
    if (at != dim)
      continue;
    SmallVector<unsigned, 4> digits = digitsOf(b, expr, first);
    if (digits.size() < 2)
      continue;
    std::string result = "(";
    for (auto [i, id] : enumerate(digits))
      result += (i ? ", " : "") + bare(id);
    return result + ")";
  }
  for (const auto &[numerator, denominator] : exact)
    if (IndexExpr::floorDiv(numerator, denominator) == expr) {
      Text n = index(numerator), d = index(denominator);
      return (n.strength < products ? "(" + n.text + ")" : n.text) + "/" +
             (d.strength < signs ? "(" + d.text + ")" : d.text);
    }
  return index(expr).text;
}

static bool isTopK(const Expr *value) {
  return value->kind == Expr::Scan &&
         (value->scan == Scan::TopKValue || value->scan == Scan::TopKIndex);
}

/// `v[i, r], e[i, r] = topk(x[i, j] for j, k=K)`, of which one result is wanted.
std::string Writer::topk(const Equation &equation, const std::string &target) {
  const Expr *scan = equation.value;
  std::optional<IndexVar> rank = scan->positions[0].asVariable();
  bool isValue = scan->scan == Scan::TopKValue;
  if (!rank || rank->isSymbol() || equation.guard || equation.accumulate) {
    fail(equation.span, "'topk' at a rank that is no index");
    return "";
  }
  StringRef wanted = StringRef(target).split('[').first.split(':').first;
  std::string other =
      unique((isValue ? "rank_of_" : "value_at_") + wanted.str()) + target.substr(target.find('['));
  std::string text = "topk(" + value(scan->operands[0]).text + " for " + axis(scan->vars[0]->id);
  if (!isInferred(*scan->vars[0], {scan->operands[0]}))
    text += " in " + range(scan->vars[0]->lo, scan->vars[0]->hi);
  return (isValue ? target + ", " + other : other + ", " + target) + " = " + text +
         ", k=" + size(b.var(rank->position()).hi) + ")";
}

void Writer::nameTargets(ArrayRef<Equation> equations) {
  for (const Equation &equation : equations)
    if (equation.loop)
      nameTargets(equation.loop->body);
    else
      name(equation.target);
}

std::string Writer::statements(ArrayRef<Equation> equations) {
  std::string result;
  for (const Equation &equation : equations)
    result += "  " + (equation.loop ? loop(*equation.loop) : statement(equation)) + "\n";
  return result;
}

std::string Writer::loop(const Loop &loop) {
  axes.clear();
  axisNames.clear();
  std::string name = unique(loop.var->name);
  steps[loop.var->id] = name;
  std::string result = "for " + name + " in " + range(loop.var->lo, loop.var->hi) +
                       (loop.isReverse ? ", reverse" : "") + " {\n" + statements(loop.body) + "  }";
  steps.erase(loop.var->id);
  taken.erase(name);
  return result;
}

std::string Writer::statement(const Equation &equation) {
  axes.clear();
  axisNames.clear();
  known.clear();
  const Tensor &target = *equation.target;
  bool isOutput = outputs.contains(&target);
  // Indices of the result take their names first.
  std::vector<const Var *> open;
  unsigned runs = 0;
  for (const Var *var : equation.vars) {
    if (isEllipsisVar(*var)) {
      ++runs;
      continue;
    }
    axis(var->id);
    open.push_back(var);
  }
  if (runs > 1) {
    ellipsisWrong = true;
    fail(equation.span, "two indices run over '...'");
  }
  DenseSet<unsigned> ranged;
  SmallVector<const Expr *> shown{equation.value};
  if (equation.guard)
    shown.push_back(equation.guard);
  auto isKnownRange = [&](const Var &var) {
    if (isOutput)
      for (auto [subscript, dim] : zip_equal(equation.subscripts, target.dims))
        if (subscript == IndexExpr::dim(var.id) && dim == var.hi && var.lo == IndexExpr(0))
          return true;
    return !isOutput && !equation.accumulate && isInferred(var, shown);
  };
  std::string result = (equation.isState ? "state " : "") + nameOf(&target).str();
  DType own = equation.value->type;
  bool isTyped = !isOutput && !equation.accumulate && target.type != own &&
                 !declared.contains(&target) && target.kind != Tensor::State;
  if (isTyped)
    result += ": " + typeName(target.type);
  declared.insert(&target);
  if (!target.dims.empty()) {
    result += '[';
    for (auto [d, expr] : enumerate(equation.subscripts)) {
      result += d ? ", " : "";
      result += subscript(expr, equation.groups, d, {}, [&](unsigned id) {
        const Var &var = b.var(id);
        if (var.kind == Var::Loop)
          return axis(id);
        // What depends on other indices, or has a condition, follows these at the end.
        bool isLast =
            (equation.guard && open.back()->id == id) || !var.lo.isSize() || !var.hi.isSize();
        if (isLast || !ranged.insert(id).second || isKnownRange(var))
          return axis(id);
        return axis(id) + " in " + range(var.lo, var.hi);
      });
    }
    result += ']';
  }
  if (isTopK(equation.value))
    return topk(equation, result);
  if (equation.guard)
    known.push_back(equation.guard);
  std::string items;
  for (const Var *var : open)
    if (!ranged.contains(var->id))
      items += (items.empty() ? "" : ", ") + axis(var->id) + " in " + range(var->lo, var->hi);
  if (equation.guard) {
    if (open.empty())
      fail(equation.span, "a condition on a single element");
    items += " if " + value(equation.guard).text;
  }
  std::string text = value(equation.value).text;
  return result + (equation.accumulate ? " += " : " = ") + text +
         (items.empty() ? "" : " for " + items);
}

} // namespace tegula::grad
