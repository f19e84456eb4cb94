//===- Derive.cpp - Reverse mode over a list of equations -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/DeriveImpl.h"
#include "grad/Match.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

bool Deriver::refuse(Span span, const Twine &reason) {
  refusal = {reason.str(), span};
  return false;
}

//===----------------------------------------------------------------------===//
// What has a gradient
//===----------------------------------------------------------------------===//

/// Whether the value can change with an active tensor; not by which place is read.
bool Deriver::isActive(const Expr *value) {
  if (!isFloat(value->type))
    return false;
  auto known = activity.find(value);
  if (known != activity.end())
    return known->second;
  bool result = value->kind == Expr::Read && active.contains(value->tensor);
  if (value->fill)
    result |= isActive(value->fill);
  bool isConstant =
      (value->kind == Expr::Convert || value->kind == Expr::Quantize) && !isFloat(value->target);
  if (!isConstant && value->kind != Expr::Random)
    for (const Expr *operand : value->operands)
      result |= isActive(operand);
  activity[value] = result;
  return result;
}

/// Equations come in order: what a value reads is known. An answer about a tensor that becomes
/// active later would be about an element that is not defined yet.
void Deriver::findActive(ArrayRef<Equation> from) {
  auto add = [&](const Tensor *tensor) {
    if (isFloat(tensor->type) && active.insert(tensor).second)
      activity.clear();
  };
  for (const Equation &equation : from) {
    if (!equation.loop) {
      if (isFloat(equation.target->type) && isActive(equation.value))
        add(equation.target);
      continue;
    }
    // A state that becomes active in a step is so in all steps behind it.
    for (size_t known = 0; known != active.size();) {
      known = active.size();
      for (const Carried &state : equation.loop->states)
        if (active.contains(state.before) || active.contains(state.last))
          for (const Tensor *one : {state.first, state.after})
            add(one);
      findActive(equation.loop->body);
    }
  }
  activity.clear();
}

//===----------------------------------------------------------------------===//
// Adjoints
//===----------------------------------------------------------------------===//

bool Deriver::contribute(const Expr *read, const Expr *adjoint, const Expr *condition,
                         ArrayRef<const Var *> domain, unsigned outer) {
  if (read->fill && isActive(read->fill))
    return refuse(read->span, "the value outside of '" + read->tensor->name +
                                  "', which fill= gives, has a gradient of its own");
  bool isElsewhere = steps && !steps->own.contains(read->tensor);
  Contribution made = solve(b, read, adjoint, condition, domain, outer, isElsewhere);
  if (made.isRefused)
    return refuse(read->span, "'" + read->tensor->name +
                                  "' is read at an index between bounds that other indices or data "
                                  "decide, which subscripts no dim alone");
  // An element of which nothing is left gives nothing onwards either.
  made.isMasked |= isReversedMasked;
  (isElsewhere ? steps->elsewhere[read->tensor] : adjoints[read->tensor].contributions)
      .push_back(std::move(made));
  return true;
}

/// Whether two sums have the same digits in each dim.
static bool haveSameLayout(const Contribution &a, const Contribution &b) {
  if (a.layout.size() != b.layout.size() || a.fixed.size() != b.fixed.size())
    return false;
  for (const auto &[d, at] : a.fixed)
    if (auto other = b.fixed.find(d); other == b.fixed.end() || other->second != at)
      return false;
  for (auto [x, y] : zip_equal(a.layout, b.layout)) {
    if (x.size() != y.size())
      return false;
    for (auto [p, q] : zip_equal(x, y))
      if (p->hi != q->hi)
        return false;
  }
  return true;
}

static Equation equationOf(const Tensor *target, const Contribution &first, const Expr *value) {
  Equation result;
  result.target = target;
  result.value = value;
  for (auto [d, digits] : enumerate(first.layout)) {
    IndexExpr subscript = digits.empty() ? first.fixed.lookup(d) : IndexExpr(0);
    for (const Var *digit : digits) {
      subscript = subscript * digit->hi + IndexExpr::dim(digit->id);
      result.vars.push_back(digit);
    }
    result.subscripts.push_back(subscript);
    if (digits.size() > 1)
      result.groups.push_back({d, IndexExpr::dim(digits.front()->id)});
  }
  return result;
}

/// Sums of one layout are one equation, `=` the first time; scattered points are added after it.
void Deriver::emitInto(const Tensor *target, std::vector<Contribution> &contributions,
                       bool isFirst) {
  std::vector<bool> done(contributions.size());
  for (size_t i = 0; i != contributions.size(); ++i) {
    if (done[i] || contributions[i].isScatter)
      continue;
    const Contribution &first = contributions[i];
    const Expr *value = first.value;
    for (size_t k = i + 1; k != contributions.size(); ++k) {
      const Contribution &other = contributions[k];
      if (done[k] || other.isScatter || !haveSameLayout(first, other))
        continue;
      done[k] = true;
      Replacement renamed;
      for (auto [x, y] : zip_equal(first.layout, other.layout))
        for (auto [p, q] : zip_equal(x, y))
          renamed[q->id] = IndexExpr::dim(p->id);
      value = b.add(value, b.substitute(other.value, renamed));
    }
    Equation made = equationOf(target, first, value);
    made.accumulate = !isFirst;
    isFirst = false;
    backward.push_back(std::move(made));
  }
  if (isFirst) {
    Contribution zero;
    for (const IndexExpr &dim : target->dims)
      zero.layout.push_back({b.newAxis("i", 0, dim)});
    backward.push_back(equationOf(target, zero, b.number(0)));
  }
  for (const Contribution &contribution : contributions)
    if (contribution.isScatter) {
      Equation made = contribution.scatter;
      made.target = target;
      backward.push_back(std::move(made));
    }
}

void Deriver::emitAdjoint(const Tensor *tensor, Adjoint &adjoint) {
  std::vector<Contribution> &contributions = adjoint.contributions;
  if (adjoint.seed) {
    Contribution seed;
    SmallVector<IndexExpr> subscripts;
    for (auto [d, dim] : enumerate(tensor->dims)) {
      seed.layout.push_back({b.newAxis(std::string(1, "ijklmnpqrstuv"[d % 13]), 0, dim)});
      subscripts.push_back(IndexExpr::dim(seed.layout.back()[0]->id));
    }
    seed.value = b.read(adjoint.seed, subscripts);
    contributions.insert(contributions.begin(), std::move(seed));
  }
  bool isWanted = wanted.contains(tensor);
  // A small value of plain indices stands where it is used.
  if (contributions.size() == 1 && !isWanted && !contributions[0].isScatter &&
      weigh(contributions[0].value) <= 3 &&
      all_of(contributions[0].layout, [](const auto &digits) { return digits.size() == 1; })) {
    for (const auto &digits : contributions[0].layout)
      adjoint.axes.push_back(digits[0]);
    adjoint.formula = contributions[0].value;
    return;
  }
  DType type = computeType(tensor->type);
  if (!isWanted) {
    adjoint.tensor = b.newTensor("grad_" + tensor->name, type, tensor->dims);
    emitInto(adjoint.tensor, contributions);
    return;
  }
  const Tensor *result =
      b.newTensor("grad_" + tensor->name, tensor->type, tensor->dims, Tensor::Out);
  gradients[tensor] = result;
  bool isOne = all_of(contributions, [&](const Contribution &one) {
    return !one.isScatter && haveSameLayout(one, contributions[0]);
  });
  // Several statements add up in the type of arithmetic and are rounded once.
  if (isOne || result->type == type) {
    emitInto(result, contributions);
  } else {
    const Tensor *sum = b.newTensor("sum_" + tensor->name, type, tensor->dims);
    emitInto(sum, contributions);
    Contribution copy;
    SmallVector<IndexExpr> subscripts;
    for (auto [d, dim] : enumerate(tensor->dims)) {
      copy.layout.push_back({b.newAxis(std::string(1, "ijklmnpqrstuv"[d % 13]), 0, dim)});
      subscripts.push_back(IndexExpr::dim(copy.layout.back()[0]->id));
    }
    backward.push_back(equationOf(result, copy, b.read(sum, subscripts)));
  }
  adjoint.tensor = result;
}

/// The tensor's adjoint, of which all contributions are there. Null where it is 0.
Adjoint *Deriver::finish(const Tensor *tensor) {
  auto found = adjoints.find(tensor);
  if (found == adjoints.end())
    return nullptr;
  if (!found->second.isFinal) {
    Adjoint &adjoint = found->second;
    adjoint.isFinal = true;
    adjoint.isMasked =
        any_of(adjoint.contributions, [](const Contribution &one) { return one.isMasked; });
    if (adjoint.contributions.empty())
      adjoint.tensor = adjoint.seed;
    else
      emitAdjoint(tensor, adjoint);
  }
  return &found->second;
}

const Expr *Deriver::adjointAt(const Adjoint &adjoint, ArrayRef<IndexExpr> subscripts) {
  if (!adjoint.formula)
    return b.read(adjoint.tensor, subscripts);
  Replacement at;
  for (auto [axis, subscript] : zip_equal(adjoint.axes, subscripts))
    at[axis->id] = subscript;
  return b.substitute(adjoint.formula, at);
}

//===----------------------------------------------------------------------===//
// Equations
//===----------------------------------------------------------------------===//

/// Functions that are finite where their operand is, as are their derivatives.
static bool isTame(Unary function) {
  switch (function) {
  case Unary::Neg:
  case Unary::Abs:
  case Unary::Not:
  case Unary::Sign:
  case Unary::Floor:
  case Unary::Ceil:
  case Unary::Round:
  case Unary::Trunc:
  case Unary::Tanh:
  case Unary::Sin:
  case Unary::Cos:
  case Unary::Atan:
  case Unary::Asinh:
  case Unary::Erf:
  case Unary::Erfc:
    return true;
  default:
    return false;
  }
}

/// Whether the value or its derivative can be infinite or no number: such functions, those of sizes
/// and constants left out, and functions that are not linear in a tensor whose elements can be so.
bool Deriver::canBeInfinite(const Expr *value) const {
  auto isKnown = [](auto &&self, const Expr *at) -> bool {
    return at->kind != Expr::Read && at->kind != Expr::Scalar && at->kind != Expr::Random &&
           all_of(at->operands, [&](const Expr *one) { return self(self, one); });
  };
  if (isKnown(isKnown, value))
    return false;
  if (const Expr *x = matchWhole(value))
    return canBeInfinite(x);
  bool isDangerous = (value->kind == Expr::Unary && !isTame(value->unary)) ||
                     (value->kind == Expr::Binary &&
                      (value->binary == Binary::Div || value->binary == Binary::Pow ||
                       value->binary == Binary::Mod)) ||
                     (value->kind == Expr::Reduce && value->reduction != Reduction::Sum &&
                      value->reduction != Reduction::Mean);
  bool isCurved = (value->kind == Expr::Unary && value->unary != Unary::Neg) ||
                  (value->kind == Expr::Binary && value->binary == Binary::Mul);
  return isDangerous || (isCurved && readsInfinite(value)) ||
         any_of(value->operands, [&](const Expr *one) { return canBeInfinite(one); });
}

bool Deriver::readsInfinite(const Expr *value) const {
  return (value->kind == Expr::Read && infinite.contains(value->tensor)) ||
         any_of(value->operands, [&](const Expr *one) { return readsInfinite(one); });
}

void Deriver::findInfinite(ArrayRef<Equation> from) {
  for (const Equation &equation : from) {
    if (!equation.loop) {
      if (canBeInfinite(equation.value) || readsInfinite(equation.value))
        infinite.insert(equation.target);
      continue;
    }
    for (size_t known = SIZE_MAX; known != infinite.size();) {
      known = infinite.size();
      for (const Carried &state : equation.loop->states)
        if (infinite.contains(state.before) || infinite.contains(state.last)) {
          infinite.insert(state.first);
          infinite.insert(state.after);
        }
      findInfinite(equation.loop->body);
    }
  }
}

void Deriver::findChanged(ArrayRef<Equation> from) {
  for (const Equation &equation : from)
    if (equation.loop)
      findChanged(equation.loop->body);
    else if (equation.accumulate)
      changed.insert(equation.target);
}

bool Deriver::reverse(const Equation &equation) {
  if (equation.loop)
    return reverseLoop(equation);
  if (!active.contains(equation.target) || !isActive(equation.value))
    return true;
  Adjoint *adjoint = finish(equation.target);
  if (!adjoint)
    return true;
  isReversedMasked = adjoint->isMasked;
  bool isResult =
      equation.value->kind == Expr::Scan ||
      (equation.value->kind == Expr::Reduce && equation.value->reduction != Reduction::Sum &&
       equation.value->reduction != Reduction::Mean);
  if (isResult && changed.contains(equation.target))
    return refuse(equation.span, "the gradient of what defines '" + equation.target->name +
                                     "' needs its value, which an equation behind it adds to");
  // The equation's own value is there already.
  if (!changed.contains(equation.target) && !equation.accumulate && !equation.guard &&
      equation.target->type == equation.value->type && equation.target->kind == Tensor::Temp &&
      weigh(equation.value) > 1)
    stored[equation.value] = b.read(equation.target, equation.subscripts);
  if (equation.value->kind == Expr::Scan)
    return reverseScan(equation, *adjoint);
  const Expr *g = adjointAt(*adjoint, equation.subscripts);
  if (!equation.groups.empty() && g->kind == Expr::Read)
    const_cast<Expr *>(g)->groups = equation.groups;
  const Expr *condition = equation.guard;
  if (adjoint->isMasked && canBeInfinite(equation.value))
    condition = b.both(condition, b.compare(Binary::NE, g, b.number(0)));
  if (equation.value->kind == Expr::Reduce)
    return reverseReduction(equation, g, condition);
  return descend(equation.value, g, condition, equation.vars,
                 static_cast<unsigned>(equation.vars.size()));
}

/// Whether each element is a reduction: computing it again costs more than reading it.
bool Deriver::isReduced(const Tensor *tensor) const {
  auto visit = [&](auto &&self, const Equation &one, bool isStep) -> bool {
    if (one.loop)
      return any_of(one.loop->body, [&](const Equation &step) { return self(self, step, true); });
    return one.target == tensor && (isStep || one.value->kind == Expr::Reduce);
  };
  return any_of(equations, [&](const Equation &one) { return visit(visit, one, false); });
}

/// What the needed equations of a loop's body need, of the same step or of one before.
static void findNeeded(const Builder &b, ArrayRef<Equation> body, DenseSet<const Tensor *> &needed,
                       const DenseSet<const Tensor *> &given) {
  for (size_t known = SIZE_MAX; known != needed.size();) {
    known = needed.size();
    for (const Equation &one : llvm::reverse(body))
      if (one.loop)
        findNeeded(b, one.loop->body, needed, given);
      else if (needed.contains(one.target) && !given.contains(one.target))
        b.tensorsOf(one, needed);
  }
}

static void eraseUnneeded(std::vector<Equation> &body, const DenseSet<const Tensor *> &needed,
                          const DenseSet<const Tensor *> &given) {
  erase_if(body, [&](Equation &one) {
    if (!one.loop)
      return !needed.contains(one.target) || given.contains(one.target);
    eraseUnneeded(one.loop->body, needed, given);
    return one.loop->body.empty();
  });
}

/// Moves what is needed, and what that needs, in order.
static void keepNeeded(const Builder &b, std::vector<Equation> &from, std::vector<Equation> &to,
                       DenseSet<const Tensor *> &needed, const DenseSet<const Tensor *> &given) {
  for (Equation &equation : llvm::reverse(from)) {
    if (equation.loop) {
      findNeeded(b, equation.loop->body, needed, given);
      eraseUnneeded(equation.loop->body, needed, given);
      if (!equation.loop->body.empty())
        to.push_back(std::move(equation));
      continue;
    }
    if (!needed.contains(equation.target) || given.contains(equation.target))
      continue;
    b.tensorsOf(equation, needed);
    to.push_back(std::move(equation));
  }
  std::reverse(to.begin(), to.end());
}

void forKept(const Loop &loop, ArrayRef<Equation> body,
             function_ref<void(const Equation &)> visit) {
  for (const Equation &one : body)
    if (one.loop)
      forKept(loop, one.loop->body, visit);
    else if (loop.isKept(one))
      visit(one);
}

/// A temporary that points are added to begins as zeros of its whole size, and one that steps write
/// ahead of their loop.
static void beginSums(Builder &b, std::vector<Equation> &equations,
                      DenseSet<const Tensor *> &defined) {
  std::vector<Equation> complete;
  auto begin = [&](const Equation &equation, bool isKept) {
    if (equation.target->kind != Tensor::State && defined.insert(equation.target).second &&
        (isKept || equation.accumulate))
      complete.push_back(b.equationOf(
          equation.target, [&](ArrayRef<IndexExpr>) -> const Expr * { return b.number(0); }));
  };
  for (Equation &equation : equations) {
    if (equation.loop) {
      forKept(*equation.loop, equation.loop->body,
              [&](const Equation &one) { begin(one, /*isKept=*/true); });
      DenseSet<const Tensor *> inStep = defined;
      beginSums(b, equation.loop->body, inStep);
    } else {
      begin(equation, /*isKept=*/false);
    }
    complete.push_back(std::move(equation));
  }
  equations = std::move(complete);
}

/// States begin outside of all loops, as the language wants it: those of a loop inside of another
/// one are set anew by each step.
static void beginOutside(Builder &b, std::vector<Equation> &body, std::vector<Equation> &ahead) {
  for (Equation &one : body) {
    if (one.loop) {
      beginOutside(b, one.loop->body, ahead);
      continue;
    }
    if (!one.isState)
      continue;
    Equation begin =
        b.equationOf(one.target, [&](ArrayRef<IndexExpr>) -> const Expr * { return b.number(0); });
    begin.isState = true;
    ahead.push_back(std::move(begin));
    one.isState = false;
  }
}

static void beginStates(Builder &b, std::vector<Equation> &equations) {
  std::vector<Equation> complete;
  for (Equation &equation : equations) {
    if (equation.loop)
      beginOutside(b, equation.loop->body, complete);
    complete.push_back(std::move(equation));
  }
  equations = std::move(complete);
}

/// Of both parts what the gradients need.
void Deriver::keepNeeded(Derivation &result) {
  DenseSet<const Tensor *> needed;
  for (const auto &entry : gradients)
    needed.insert(entry.second);
  DenseSet<const Tensor *> saved;
  MapVector<const Tensor *, const Tensor *> outputOf; // of temporaries that outputs copy
  for (const Equation &one : equations) {
    bool isCopy =
        !one.loop && !one.accumulate && !one.guard && one.value->kind == Expr::Read &&
        one.value->subscripts == one.subscripts && !one.value->fill &&
        one.value->tensor->kind == Tensor::Temp && one.value->tensor->type == one.target->type &&
        one.value->tensor->dims.size() == one.target->dims.size() &&
        all_of(zip_equal(one.value->tensor->dims, one.target->dims),
               [&](auto pair) { return areEqualSizes(b, std::get<0>(pair), std::get<1>(pair)); });
    if (isCopy && is_contained(b.program.outputs, one.target))
      outputOf[one.value->tensor] = one.target;
  }
  for (const Tensor *output : b.program.outputs)
    if (save == SavedOutputs::All || (save == SavedOutputs::ByCost && isReduced(output)))
      saved.insert(output);
  for (auto [temporary, output] : outputOf)
    if (save == SavedOutputs::All || (save == SavedOutputs::ByCost && isReduced(temporary))) {
      saved.insert(output);
      b.renameTensor(backward, temporary, output);
    }
  grad::keepNeeded(b, backward, result.backward, needed, {});
  std::vector<Equation> spelled;
  spell(equations, spelled, /*withHistory=*/true);
  grad::keepNeeded(b, spelled, result.forward, needed, saved);
  for (const Tensor *output : b.program.outputs)
    if (saved.contains(output) && needed.contains(output))
      result.saved.push_back(output);
  DenseSet<const Tensor *> defined;
  beginSums(b, result.forward, defined);
  beginStates(b, result.forward);
  beginStates(b, result.backward);
}

std::optional<Derivation> Deriver::run(ArrayRef<const Tensor *> wrt, bool keepsZeros) {
  wanted.insert(wrt.begin(), wrt.end());
  active.insert(wrt.begin(), wrt.end());
  findActive(equations);
  findInfinite(equations);
  findChanged(equations);
  Derivation result;
  for (const Tensor *output : b.program.outputs)
    if (active.contains(output)) {
      const Tensor *seed =
          b.newTensor("grad_" + output->name, output->type, output->dims, Tensor::In);
      adjoints[output].seed = seed;
      result.seeds.push_back(seed);
    }
  std::vector<Equation> order = equations;
  for (const Equation &equation : llvm::reverse(order))
    if (!reverse(equation))
      return std::nullopt;
  bool isAny = false;
  for (const Tensor *tensor : wrt)
    isAny |= finish(tensor) != nullptr;
  if (!isAny && !keepsZeros) {
    refuse({}, "no output of floats changes with a tensor of floats");
    return std::nullopt;
  }
  for (const Tensor *tensor : wrt) {
    if (!finish(tensor)) {
      if (!keepsZeros)
        continue;
      adjoints[tensor].isFinal = true;
      emitAdjoint(tensor, adjoints[tensor]);
    }
    result.gradients.push_back(gradients[tensor]);
  }
  keepNeeded(result);
  return result;
}

std::optional<Derivation> derive(Builder &builder, std::vector<Equation> equations,
                                 ArrayRef<const Tensor *> wrt, bool keepsZeros, SavedOutputs saved,
                                 Refusal &refusal) {
  return Deriver(builder, std::move(equations), saved, refusal).run(wrt, keepsZeros);
}

} // namespace tegula::grad
