//===- DeriveLoop.cpp - Adjoints of loops of steps -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop is gone through in reverse by another loop. Its state is the adjoint of the states at the
// end of a step; a step computes its values again from the states at its beginning, which a loop
// ahead of it has kept in a tensor, and adds what flows to the tensors that it reads.
//
//===----------------------------------------------------------------------===//
#include "grad/DeriveImpl.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

/// The element of the history for a read of the state at the beginning of a step.
static const Expr *inHistory(Builder &b, const Loop &loop, const Tensor *history,
                             const Expr *read) {
  Expr *result = b.copy(read);
  result->tensor = history;
  result->subscripts.insert(result->subscripts.begin(),
                            IndexExpr::dim(loop.var->id) - loop.var->lo);
  for (auto &[dim, first] : result->groups)
    ++dim;
  return result;
}

static bool readsTensor(const Builder &b, const Equation &equation, const Tensor *tensor) {
  DenseSet<const Tensor *> found;
  b.tensorsOf(equation, found);
  return found.contains(tensor);
}

/// state[...] = from[...] at the end of a step, or in place of the equation that defines `from`,
/// where nothing behind it reads the state's value before.
static void assignState(Builder &b, std::vector<Equation> &body, const Tensor *state,
                        const Tensor *from) {
  if (state == from)
    return;
  Equation *definition = nullptr;
  bool isOnly = true;
  for (Equation &one : body)
    if (one.target == from) {
      isOnly &= !definition && !one.accumulate && !one.guard;
      definition = &one;
    }
  if (definition && isOnly && from->kind == Tensor::Temp &&
      computeType(from->type) == computeType(state->type) && from->type == state->type) {
    size_t at = definition - body.data();
    bool isReadBehind = any_of(ArrayRef(body).drop_front(at + 1),
                               [&](const Equation &one) { return readsTensor(b, one, state); });
    if (!isReadBehind) {
      definition->target = state;
      for (Equation &one : MutableArrayRef(body).drop_front(at + 1))
        b.replaceReads(one, [&](const Expr *read) -> const Expr * {
          if (read->tensor != from)
            return nullptr;
          Expr *made = b.copy(read);
          made->tensor = state;
          return made;
        });
      return;
    }
  }
  body.push_back(b.equationOf(
      state, [&](ArrayRef<IndexExpr> at) -> const Expr * { return b.read(from, at); }));
}

/// Whether the loop or what it changes has an adjoint.
bool Deriver::hasAdjoint(const Loop &loop) {
  bool result = false;
  for (const Carried &state : loop.states)
    result |= active.contains(state.after) && finish(state.after);
  forKept(loop, loop.body, [&](const Equation &one) {
    result |= active.contains(one.target) && adjoints.count(one.target) && finish(one.target);
  });
  return result;
}

/// What a whole tensor gives to another one's adjoint.
Contribution Deriver::wholeOf(const Tensor *tensor, bool isMasked) {
  Contribution result;
  SmallVector<IndexExpr> at;
  for (auto [d, dim] : enumerate(tensor->dims)) {
    result.layout.push_back({b.newAxis(std::string(1, "ijklmnpqrstuv"[d % 13]), 0, dim)});
    at.push_back(IndexExpr::dim(result.layout.back()[0]->id));
  }
  result.value = b.read(tensor, at);
  result.isMasked = isMasked;
  return result;
}

/// A state that begins as an adjoint, or as 0.
void Deriver::beginState(const Tensor *state, const Adjoint *from) {
  Equation made = b.equationOf(state, [&](ArrayRef<IndexExpr> at) -> const Expr * {
    return from ? adjointAt(*from, at) : b.number(0);
  });
  made.isState = true;
  backward.push_back(std::move(made));
}

static const Tensor *newState(Builder &b, const Twine &name, const Tensor *like) {
  return b.newTensor(name.str(), computeType(like->type), like->dims, Tensor::State);
}

/// What flows to tensors from outside adds up over the steps, of the loops around too where these
/// tensors are no steps' own.
void Deriver::addUp(StepScope &scope) {
  for (auto &[tensor, contributions] : scope.elsewhere) {
    StepScope *at = &scope;
    while (at->outer && !at->outer->own.contains(tensor))
      at = at->outer;
    StepScope::Sum &sum = at->sums[tensor];
    if (!sum.state)
      sum.state = newState(b, "sum_" + tensor->name, tensor);
    sum.isMasked |= any_of(contributions, [](const Contribution &one) { return one.isMasked; });
    emitInto(sum.state, contributions, /*isFirst=*/false);
  }
}

/// Tensors that the equations define, those of loops among them too.
static void definedBy(ArrayRef<Equation> body, DenseSet<const Tensor *> &into) {
  for (const Equation &one : body) {
    if (!one.loop) {
      into.insert(one.target);
      continue;
    }
    definedBy(one.loop->body, into);
    for (const Carried &state : one.loop->states) {
      into.insert(state.first);
      into.insert(state.after);
    }
  }
}

bool Deriver::reverseLoop(const Equation &equation) {
  Loop &loop = *equation.loop;
  // Adjoints of what the steps write elsewhere are complete; those of their own values begin here.
  if (!hasAdjoint(loop))
    return true;
  StepScope scope;
  definedBy(loop.body, scope.own);
  bool isMasked = false;
  SmallVector<std::pair<Carried *, const Tensor *>> gradientStates;
  for (Carried &state : loop.states) {
    scope.own.insert(state.first);
    if (!active.contains(state.first))
      continue;
    Adjoint *after = finish(state.after);
    isMasked |= after && after->isMasked;
    const Tensor *gradient = newState(b, "grad_" + state.first->name, state.first);
    beginState(gradient, after);
    gradientStates.push_back({&state, gradient});
  }
  std::vector<Equation> outside = std::move(backward);
  auto storedOutside = stored;
  backward.clear();
  scope.outer = steps;
  steps = &scope;
  for (auto [state, gradient] : gradientStates)
    adjoints[state->last].contributions.push_back(wholeOf(gradient, isMasked));
  bool fine = all_of(llvm::reverse(std::vector<Equation>(loop.body)),
                     [&](const Equation &one) { return reverse(one); });
  steps = scope.outer;
  if (!fine)
    return false;
  addUp(scope);
  // The states' adjoints at the beginning of the step, when all that needs the others is there.
  SmallVector<std::pair<const Tensor *, const Tensor *>> next;
  for (auto [state, gradient] : gradientStates) {
    Adjoint *first = finish(state->first);
    if (!first || !first->tensor || first->tensor == gradient) {
      const Tensor *made = b.newTensor(gradient->name, gradient->type, gradient->dims);
      backward.push_back(b.equationOf(made, [&](ArrayRef<IndexExpr> at) -> const Expr * {
        return first ? adjointAt(*first, at) : b.number(0);
      }));
      next.push_back({gradient, made});
    } else {
      next.push_back({gradient, first->tensor});
    }
  }
  for (auto [gradient, made] : next)
    assignState(b, backward, gradient, made);

  // The step's own values come from the states at its beginning. What it wrote elsewhere is there.
  Equation made;
  made.loop = std::make_shared<Loop>();
  made.loop->var = loop.var;
  made.loop->isReverse = !loop.isReverse;
  made.loop->depth = loop.depth;
  made.span = equation.span;
  std::vector<Equation> &body = made.loop->body;
  spell(loop.body, body, /*withHistory=*/true, &loop);
  append_range(body, backward);
  for (Carried &state : loop.states) {
    if (none_of(body, [&](const Equation &one) { return readsTensor(b, one, state.first); }))
      continue;
    std::vector<IndexExpr> dims = state.first->dims;
    dims.insert(dims.begin(), loop.var->hi - loop.var->lo);
    if (!state.history)
      state.history =
          b.newTensor(state.first->name + "_before", state.first->type, dims, Tensor::State);
    for (Equation &one : body)
      b.replaceReads(one, [&](const Expr *read) -> const Expr * {
        return read->tensor == state.first ? inHistory(b, loop, state.history, read) : nullptr;
      });
  }
  backward = std::move(outside);
  stored = std::move(storedOutside);
  for (const auto &[tensor, sum] : scope.sums)
    beginState(sum.state, nullptr);
  backward.push_back(std::move(made));

  auto give = [&](const Tensor *tensor, Contribution contribution) {
    bool isElsewhere = steps && !steps->own.contains(tensor);
    (isElsewhere ? steps->elsewhere[tensor] : adjoints[tensor].contributions)
        .push_back(std::move(contribution));
  };
  for (const auto &[tensor, sum] : scope.sums)
    give(tensor, wholeOf(sum.state, sum.isMasked));
  for (auto [state, gradient] : gradientStates)
    if (active.contains(state->before))
      give(state->before, wholeOf(gradient, isMasked));
  return true;
}

void Deriver::spell(ArrayRef<Equation> from, std::vector<Equation> &into, bool withHistory,
                    const Loop *inStepOf) {
  for (const Equation &one : from)
    if (one.loop)
      spellLoop(one, into, withHistory, inStepOf);
    else if (!inStepOf || !inStepOf->isKept(one))
      into.push_back(one);
}

/// A loop that is computed again, with its states and their histories, as it is written. In a step
/// of a loop that is gone through in reverse, what is there behind that loop is left out.
void Deriver::spellLoop(const Equation &equation, std::vector<Equation> &into, bool withHistory,
                        const Loop *inStepOf) {
  const Loop &loop = *equation.loop;
  Equation made;
  made.loop = std::make_shared<Loop>();
  made.loop->var = loop.var;
  made.loop->isReverse = loop.isReverse;
  made.loop->depth = loop.depth;
  made.span = equation.span;
  std::vector<Equation> &body = made.loop->body;
  SmallVector<std::pair<const Carried *, const Tensor *>> states;
  for (const Carried &one : loop.states) {
    const Tensor *state =
        b.newTensor(one.first->name, one.first->type, one.first->dims, Tensor::State);
    auto defines = [&](const Equation &other) { return other.target == one.before; };
    auto source = find_if(into, defines);
    bool isNumber = count_if(into, defines) == 1 && source->value->kind == Expr::Constant;
    Equation begin = b.equationOf(state, [&](ArrayRef<IndexExpr> at) -> const Expr * {
      return isNumber ? source->value : b.read(one.before, at);
    });
    begin.isState = true;
    into.push_back(std::move(begin));
    if (one.history && withHistory) {
      Equation empty = b.equationOf(
          one.history, [&](ArrayRef<IndexExpr>) -> const Expr * { return b.number(0); });
      empty.isState = true;
      into.push_back(std::move(empty));
      Equation keep = b.equationOf(
          state, [&](ArrayRef<IndexExpr> at) -> const Expr * { return b.read(state, at); });
      keep.target = one.history;
      keep.subscripts.insert(keep.subscripts.begin(), IndexExpr::dim(loop.var->id) - loop.var->lo);
      body.push_back(std::move(keep));
    }
    states.push_back({&one, state});
  }
  // Loops inside keep their states for the steps that are gone through in reverse, which run them
  // again.
  spell(loop.body, body, /*withHistory=*/false, inStepOf);
  for (auto [one, state] : states) {
    for (Equation &step : body)
      b.replaceReads(step, [&](const Expr *read) -> const Expr * {
        if (read->tensor != one->first)
          return nullptr;
        Expr *here = b.copy(read);
        here->tensor = state;
        return here;
      });
    if (one->last != one->first)
      assignState(b, body, state, one->last);
  }
  into.push_back(std::move(made));
  for (auto [one, state] : states)
    into.push_back(b.equationOf(
        one->after, [&, state = state](ArrayRef<IndexExpr> at) { return b.read(state, at); }));
}

} // namespace tegula::grad
