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

static void replaceReads(Builder &b, Equation &equation,
                         function_ref<const Expr *(const Expr *)> replace) {
  equation.value = b.replaceReads(equation.value, replace);
  if (equation.guard)
    equation.guard = b.replaceReads(equation.guard, replace);
  for (IndexExpr &subscript : equation.subscripts)
    subscript = b.replaceReads(subscript, replace);
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
        replaceReads(b, one, [&](const Expr *read) -> const Expr * {
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
  for (const Carried &state : loop.states)
    if (active.contains(state.after) && finish(state.after))
      return true;
  return any_of(loop.body, [&](const Equation &one) {
    return active.contains(one.target) && adjoints.count(one.target) && finish(one.target);
  });
}

bool Deriver::reverseLoop(const Equation &equation) {
  Loop &loop = *equation.loop;
  // Adjoints of what the steps write elsewhere are complete; those of their own values begin here.
  if (!hasAdjoint(loop))
    return true;
  auto stateOf = [&](StringRef name, const Tensor *like) {
    return b.newTensor(name, computeType(like->type), like->dims, Tensor::State);
  };
  auto begin = [&](const Tensor *state, const Adjoint *from) {
    Equation made = b.equationOf(state, [&](ArrayRef<IndexExpr> at) -> const Expr * {
      return from ? adjointAt(*from, at) : b.number(0);
    });
    made.isState = true;
    backward.push_back(std::move(made));
  };
  auto whole = [&](const Tensor *tensor, bool isMasked) {
    Contribution result;
    SmallVector<IndexExpr> at;
    for (auto [d, dim] : enumerate(tensor->dims)) {
      result.layout.push_back({b.newAxis(std::string(1, "ijklmnpqrstuv"[d % 13]), 0, dim)});
      at.push_back(IndexExpr::dim(result.layout.back()[0]->id));
    }
    result.value = b.read(tensor, at);
    result.isMasked = isMasked;
    return result;
  };

  StepScope scope;
  for (const Equation &one : loop.body)
    scope.own.insert(one.target);
  bool isMasked = false;
  SmallVector<std::pair<Carried *, const Tensor *>> gradientStates;
  for (Carried &state : loop.states) {
    scope.own.insert(state.first);
    if (!active.contains(state.first))
      continue;
    Adjoint *after = finish(state.after);
    isMasked |= after && after->isMasked;
    const Tensor *gradient = stateOf("grad_" + state.first->name, state.first);
    begin(gradient, after);
    gradientStates.push_back({&state, gradient});
  }
  std::vector<Equation> outside = std::move(backward);
  auto storedOutside = stored;
  backward.clear();
  scope.outer = steps;
  steps = &scope;
  for (auto [state, gradient] : gradientStates)
    adjoints[state->last].contributions.push_back(whole(gradient, isMasked));
  bool fine = all_of(llvm::reverse(std::vector<Equation>(loop.body)),
                     [&](const Equation &one) { return reverse(one); });
  steps = scope.outer;
  if (!fine)
    return false;

  // What flows to tensors from outside adds up over the steps.
  std::vector<std::pair<const Tensor *, Contribution>> sums;
  for (auto &[tensor, contributions] : scope.elsewhere) {
    const Tensor *sum = stateOf("sum_" + tensor->name, tensor);
    bool isSomeMasked = any_of(contributions, [](const Contribution &one) { return one.isMasked; });
    emitInto(sum, contributions, /*isFirst=*/false);
    sums.push_back({tensor, whole(sum, isSomeMasked)});
  }
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
  made.span = equation.span;
  std::vector<Equation> &body = made.loop->body;
  copy_if(loop.body, std::back_inserter(body), [](const Equation &one) { return !one.isKept; });
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
      replaceReads(b, one, [&](const Expr *read) -> const Expr * {
        return read->tensor == state.first ? inHistory(b, loop, state.history, read) : nullptr;
      });
  }
  backward = std::move(outside);
  stored = std::move(storedOutside);
  for (const auto &[tensor, sum] : sums)
    begin(sum.value->tensor, nullptr);
  backward.push_back(std::move(made));

  for (auto &[tensor, sum] : sums)
    adjoints[tensor].contributions.push_back(std::move(sum));
  for (auto [state, gradient] : gradientStates)
    if (active.contains(state->before))
      adjoints[state->before].contributions.push_back(whole(gradient, isMasked));
  return true;
}

/// A loop that is computed again, with its states and their histories, as it is written.
void Deriver::spellLoop(const Equation &equation, std::vector<Equation> &into) {
  const Loop &loop = *equation.loop;
  Equation made;
  made.loop = std::make_shared<Loop>();
  made.loop->var = loop.var;
  made.loop->isReverse = loop.isReverse;
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
    if (one.history) {
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
  append_range(body, loop.body);
  for (auto [one, state] : states) {
    for (Equation &step : body)
      replaceReads(b, step, [&](const Expr *read) -> const Expr * {
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
