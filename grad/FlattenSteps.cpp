//===- FlattenSteps.cpp - What changes while a program runs ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the list of equations no tensor changes after it was read. What the program writes again has
// versions, each a tensor of its own: elements that an equation leaves alone are those of the
// version before. A loop takes the versions at its beginning to those at its end.
//
// A state of a parallel block is a value, which later values are built from; only where a loop of
// steps begins or ends it is kept in a tensor, as such a loop of all points at once.
//
//===----------------------------------------------------------------------===//
#include "grad/FlattenImpl.h"
#include "grad/Solve.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

const Tensor *Flattener::newTemporary(StringRef name, DType type, std::vector<IndexExpr> dims) {
  const Tensor *made = builder.newTensor(name, type, std::move(dims));
  if (!levels.empty())
    levels.back().fresh.insert(made);
  return made;
}

unsigned Flattener::levelOf(const Tensor *tensor) const {
  unsigned level = levels.size();
  while (level && !levels[level - 1].fresh.contains(tensor))
    --level;
  return level;
}

//===----------------------------------------------------------------------===//
// Versions of tensors
//===----------------------------------------------------------------------===//

static Equation wholeEquation(Builder &builder, const Tensor *target) {
  return builder.equationOf(target,
                            [&](ArrayRef<IndexExpr>) -> const Expr * { return builder.number(0); });
}

/// next = old, with what the equation adds, or puts at places where no two points meet.
bool Flattener::scatter(const Tensor *next, const Tensor *old, Equation made) {
  Equation copy = wholeEquation(builder, next);
  copy.span = made.span;
  copy.value = builder.read(old, copy.subscripts);
  if (!made.accumulate) {
    const Tensor *hits = newTemporary("hits", DType::I64, next->dims);
    Equation none = wholeEquation(builder, hits), hit = made;
    none.value = builder.index(0);
    hit.target = hits;
    findGroups(hit);
    hit.value = builder.index(1);
    hit.accumulate = true;
    const Expr *isFree =
        builder.compare(Binary::EQ, builder.read(hits, copy.subscripts), builder.index(0));
    add(std::move(none));
    add(std::move(hit));
    copy.value = builder.select(isFree, copy.value);
  }
  const Expr *before = copy.value, *whole = made.value;
  made.target = next;
  made.accumulate = true;
  return define(std::move(copy), before) && define(std::move(made), whole);
}

bool Flattener::update(const Tensor *base, Equation made, const Stmt &stmt) {
  const Tensor *old = versions.lookup(base);
  const Tensor *next = newTemporary(base->name, base->type, base->dims);
  auto isWholeAxis = [&](const IndexExpr &subscript, const IndexExpr &dim) {
    std::optional<IndexVar> at = subscript.asVariable();
    if (!at || at->isSymbol())
      return false;
    const Var &var = builder.var(at->position());
    return var.kind == Var::Axis && var.lo == IndexExpr(0) && var.hi == dim;
  };
  bool isWhole = !made.accumulate && !made.guard && made.vars.size() == made.subscripts.size();
  for (auto [subscript, dim] : zip_equal(made.subscripts, base->dims))
    isWhole &= isWholeAxis(subscript, dim);
  if (isWhole) {
    made.target = next;
    const Expr *whole = made.value;
    if (!define(std::move(made), whole))
      return false;
    setVersion(base, next);
    return true;
  }
  if (!old)
    return refuse(stmt.span, "the state '" + base->name + "' begins in parts");
  made.value = hoist(made.value, /*isRoot=*/false);
  if (!made.value)
    return false;
  // Each element from its own point, where subscripts can be solved for the indices.
  Equation merged;
  Replacement solved;
  const Expr *inside = nullptr;
  bool isSolved = true;
  for (auto [subscript, dim] : zip_equal(made.subscripts, base->dims)) {
    const Var *axis =
        builder.newAxis("ijklmnpqrstuv"[merged.vars.size() % 13] + std::string(), 0, dim);
    IndexExpr here = IndexExpr::dim(axis->id);
    merged.vars.push_back(axis);
    merged.subscripts.push_back(here);
    const Var *open = nullptr;
    for (const Var *var : made.vars)
      if (subscript.uses(IndexVar::dim(var->id)) && !solved.contains(var->id))
        open = var;
    isSolved &= !builder.usesData(subscript);
    if (!open) {
      inside = builder.both(inside,
                            builder.compare(Binary::EQ, builder.index(here),
                                            builder.index(builder.substitute(subscript, solved))));
      continue;
    }
    IndexExpr rest = subscript - IndexExpr::dim(open->id);
    isSolved &= !rest.uses(IndexVar::dim(open->id));
    IndexExpr value = here - builder.substitute(rest, solved);
    solved[open->id] = value;
    if (isWholeAxis(subscript, dim))
      continue;
    inside = builder.both(
        inside, builder.compare(Binary::LE, builder.index(open->lo), builder.index(value)));
    inside = builder.both(
        inside, builder.compare(Binary::LT, builder.index(value), builder.index(open->hi)));
  }
  isSolved &= all_of(made.vars, [&](const Var *var) { return solved.contains(var->id); });
  if (!isSolved) {
    if (!scatter(next, old, std::move(made)))
      return false;
    setVersion(base, next);
    return true;
  }
  const Expr *value = builder.substitute(made.value, solved);
  if (made.guard)
    inside = builder.both(inside, builder.substitute(made.guard, solved));
  const Expr *before = builder.read(old, merged.subscripts);
  merged.value = made.accumulate ? builder.add(before, builder.select(inside, value))
                 : inside        ? builder.where(inside, value, before)
                                 : value;
  merged.span = made.span;
  merged.target = next;
  const Expr *whole = merged.value;
  if (!define(std::move(merged), whole))
    return false;
  setVersion(base, next);
  return true;
}

/// Outputs are their last versions. An inout is an input, its value before, and an output of
/// another name, its value behind.
void Flattener::finishVersions() {
  for (auto [base, version] : versions) {
    if (version == base || base->kind == Tensor::State || base->kind == Tensor::Temp)
      continue;
    const Tensor *last = base;
    if (base->kind == Tensor::Inout) {
      last = builder.newTensor(base->name + "_after", base->type, base->dims, Tensor::Out);
      builder.program.outputs.push_back(last);
    } else {
      // The name stands for the first version so far.
      builder.renameTensor(equations, base, builder.newTensor(base->name, base->type, base->dims));
    }
    const Tensor *from = version;
    Equation copy = builder.equationOf(
        last, [&](ArrayRef<IndexExpr> at) -> const Expr * { return builder.read(from, at); });
    equations.push_back(std::move(copy));
  }
}

//===----------------------------------------------------------------------===//
// States of blocks
//===----------------------------------------------------------------------===//

void Flattener::setState(const StateDef &state, const Expr *value) {
  if (state.storage)
    value = builder.rounded(value, *state.storage);
  states[&state] = value;
  builder.tensorsOf(value, read);
  resolved.clear();
}

const Expr *Flattener::readState(const StateDef &state, const Tensor *tensor) {
  SmallVector<IndexExpr> at;
  for (unsigned id : state.axes)
    at.push_back(IndexExpr::dim(id) - builder.var(id).lo);
  return builder.read(tensor, at);
}

/// The state's value for all points of its axes; null, refused, where it cannot be kept.
const Tensor *Flattener::materialize(const StateDef &state, const Expr *value) {
  std::vector<IndexExpr> dims;
  Equation made;
  for (unsigned id : state.axes) {
    const Var &var = builder.var(id);
    made.vars.push_back(&var);
    made.subscripts.push_back(IndexExpr::dim(id) - var.lo);
    dims.push_back(var.hi - var.lo);
  }
  const Tensor *tensor =
      newTemporary(state.name, state.storage.value_or(state.type), std::move(dims));
  made.target = tensor;
  made.value = value;
  made.span = state.span;
  return define(std::move(made), value) ? tensor : nullptr;
}

//===----------------------------------------------------------------------===//
// Loops of steps
//===----------------------------------------------------------------------===//

/// Whether each step of the loop writes elements of its own.
bool Flattener::isOwnElement(ArrayRef<IndexExpr> subscripts, const Var &step) const {
  return any_of(subscripts, [&](const IndexExpr &subscript) {
    VarSet used;
    builder.freeVars(subscript, used);
    std::optional<IndexExpr> factor = coefficientOf(subscript, step.id);
    return used.size() == 1 && factor && factor->asConstant().value_or(0) != 0;
  });
}

namespace {
/// What the statements of a loop's body do with tensors that were there before it.
struct BodyUses {
  struct Write {
    const Stmt *stmt;
    const Tensor *tensor;
    SmallVector<const Var *> steps; // of the loops around it
  };
  DenseSet<const Tensor *> own, read;
  std::vector<Write> written;
};
} // namespace

/// Tensors that are no states and that the steps of the innermost loop read as well as write, or
/// write in a way that may replace an element, get versions.
bool Flattener::findChanging(ArrayRef<Stmt *> body) {
  BodyUses uses;
  DenseMap<const Tensor *, const Tensor *> local; // parameters of calls in the body
  auto base = [&](const Tensor *tensor) {
    const Tensor *at = baseOf(tensor);
    while (const Tensor *argument = local.lookup(at))
      at = argument;
    return at;
  };
  auto reads = [&](const Expr *value) {
    DenseSet<const Tensor *> found;
    if (value)
      builder.tensorsOf(value, found);
    for (const Tensor *one : found)
      uses.read.insert(base(one));
  };
  SmallVector<const Var *> steps{levels.back().step};
  auto visit = [&](auto &&self, ArrayRef<Stmt *> stmts) -> void {
    for (const Stmt *stmt : stmts) {
      if (stmt->kind == Stmt::TensorDef)
        uses.own.insert(stmt->tensor);
      if (stmt->kind == Stmt::Define)
        reads(stmt->let->value);
      if (stmt->kind == Stmt::StateInit)
        reads(stmt->state->init);
      reads(stmt->value);
      reads(stmt->guard);
      for (const IndexExpr &subscript : stmt->subscripts)
        for (const IndexVar &at : subscript.variables())
          if (!at.isSymbol() && builder.var(at.position()).kind == Var::Data)
            reads(builder.var(at.position()).data);
      if (stmt->kind == Stmt::Equation)
        uses.written.push_back({stmt, base(stmt->tensor), steps});
      if (stmt->callee) {
        for (const auto &[parameter, argument] : stmt->callee->arguments)
          local[parameter] = base(argument);
        for (const auto &[output, where] : stmt->callee->results)
          local[output] = base(where);
        for (const auto &[parameter, value] : stmt->callee->scalars)
          reads(value);
        self(self, stmt->callee->body);
      }
      if (stmt->kind == Stmt::For)
        steps.push_back(stmt->vars[0]);
      self(self, stmt->body);
      if (stmt->kind == Stmt::For)
        steps.pop_back();
    }
  };
  visit(visit, body);
  for (const auto &[stmt, tensor, around] : uses.written) {
    bool isOutside = tensor->kind == Tensor::Out || tensor->kind == Tensor::Temp;
    if (!isOutside || uses.own.contains(tensor) || versions.contains(tensor))
      continue;
    Equation made;
    made.target = tensor;
    made.accumulate = stmt->accumulate;
    made.subscripts = stmt->subscripts;
    made.guard = stmt->guard;
    bool isOwn =
        all_of(around, [&](const Var *step) { return isOwnElement(made.subscripts, *step); });
    bool replaces = isReplacing(made, *stmt) || (made.guard && readsData(made.guard)) || !isOwn ||
                    !isApart(made);
    bool isRead = uses.read.contains(tensor) || read.contains(tensor);
    if (!isRead && (stmt->accumulate || !replaces))
      continue;
    if (levelOf(tensor) + 1 < levels.size())
      return refuse(stmt->span, "'" + tensor->name +
                                    "' begins outside of two loops and changes in the inner one");
    const Tensor *first = tensor;
    if (!defined.contains(tensor)) {
      Level inner = std::move(levels.back()); // it begins ahead of the loop
      levels.pop_back();
      first = newTemporary(tensor->name, tensor->type, tensor->dims);
      Equation none = wholeEquation(builder, first);
      const Expr *zero = none.value;
      bool fine = define(std::move(none), zero);
      levels.push_back(std::move(inner));
      if (!fine)
        return false;
    }
    setVersion(tensor, first);
  }
  return true;
}

/// What no step changes is no state.
void Flattener::dropUnchanged(Loop &loop) {
  for (const Carried &state : loop.states) {
    if (state.last != state.first)
      continue;
    builder.renameTensor(loop.body, state.first, state.before);
    for (auto &entry : versions)
      if (entry.second == state.after)
        entry.second = state.before;
    for (auto &[state2, value] : states)
      if (value->kind == Expr::Read && value->tensor == state.after)
        value = readState(*state2, state.before);
  }
  erase_if(loop.states, [](const Carried &state) { return state.last == state.first; });
}

bool Flattener::loop(const Stmt &stmt) {
  const Var *var = stmt.vars[0];
  if (!var->lo.isSize() || !var->hi.isSize())
    return refuse(stmt.span, blockVars.empty()
                                 ? "data decides how many steps a loop has"
                                 : "the points of a parallel block take different steps");
  levels.push_back({var, {}});
  if (!findChanging(stmt.body))
    return false;
  Level own = std::move(levels.back());
  levels.pop_back();
  auto made = std::make_shared<Loop>();
  made->var = var;
  made->isReverse = var->reverse;
  made->depth = levels.size() + 1;
  // What the states are ahead of the loop.
  for (auto &[state, value] : states) {
    Carried carried;
    carried.before = materialize(*state, value);
    if (!carried.before)
      return false;
    carried.first = builder.newTensor(state->name, carried.before->type, carried.before->dims);
    made->states.push_back(carried);
  }
  std::vector<Equation> outside = std::move(equations);
  equations.clear();
  auto hoistedOutside = hoisted;
  for (auto [carried, entry] : zip(made->states, states))
    entry.second = readState(*entry.first, carried.first);
  size_t numStates = states.size(), numVersions = versions.size();
  for (auto &[state, version] : versions) {
    Carried carried;
    carried.before = version;
    carried.first = builder.newTensor(state->name, state->type, state->dims);
    made->states.push_back(carried);
    version = carried.first;
  }
  resolved.clear();
  levels.push_back(std::move(own));
  bool fine = walk(stmt.body);
  // What began in a step ends with it.
  while (states.size() > numStates)
    states.pop_back();
  while (versions.size() > numVersions)
    versions.pop_back();
  for (auto [carried, entry] : zip(made->states, states)) {
    const Expr *value = entry.second;
    bool isSame = value->kind == Expr::Read && value->tensor == carried.first;
    carried.last = isSame ? carried.first : fine ? materialize(*entry.first, value) : nullptr;
    fine &= carried.last != nullptr;
  }
  levels.pop_back();
  if (!fine)
    return false;
  for (auto [carried, entry] : zip(made->states, states)) {
    carried.after = newTemporary(entry.first->name, carried.first->type, carried.first->dims);
    entry.second = readState(*entry.first, carried.after);
  }
  for (auto [carried, entry] : zip(drop_begin(made->states, numStates), versions)) {
    carried.last = entry.second;
    carried.after = newTemporary(entry.first->name, entry.first->type, entry.first->dims);
    entry.second = carried.after;
  }
  resolved.clear();
  hoisted = std::move(hoistedOutside);
  made->body = std::move(equations);
  equations = std::move(outside);
  dropUnchanged(*made);
  Equation result;
  result.loop = std::move(made);
  result.span = stmt.span;
  equations.push_back(std::move(result));
  return true;
}

} // namespace tegula::grad
