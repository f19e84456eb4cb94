//===- Flatten.cpp - A program as a list of simple equations ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "grad/Flatten.h"

#include "grad/Match.h"
#include "grad/Solve.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tegula::checked;

namespace tegula::grad {

namespace {
class Flattener {
public:
  Flattener(Builder &builder, Refusal &refusal) : builder(builder), refusal(refusal) {}
  bool walk(ArrayRef<Stmt *> body);
  std::vector<Equation> take() { return std::move(equations); }

private:
  bool refuse(Span span, const Twine &reason) {
    refusal = {reason.str(), span};
    return false;
  }
  bool equation(const Stmt &stmt);
  bool define(Equation made, const Expr *whole);
  bool call(const Stmt &stmt);
  bool loop(const Stmt &stmt);
  bool update(const Tensor *state, Equation made, const Stmt &stmt);
  bool checkSteps(const Equation &made, const Stmt &stmt);
  bool checkReplaced(const Equation &made, const Stmt &stmt);
  bool readsData(const Expr *condition) const {
    DenseSet<const Tensor *> found;
    builder.tensorsOf(condition, found);
    return !found.empty();
  }
  void dropUnitVars(Equation &equation);
  void shareParts(Equation &equation);
  bool checkWrites(const Stmt &stmt, const Tensor *target);

  /// Names of values, parameters and arguments of calls replaced by what they stand for.
  const Expr *resolve(const Expr *value);
  IndexExpr resolve(const IndexExpr &index);
  const Tensor *resolve(const Tensor *tensor) const {
    auto found = tensors.find(tensor);
    if (found != tensors.end())
      tensor = found->second;
    auto version = versions.find(tensor);
    return version == versions.end() ? tensor : version->second;
  }
  void setVersion(const Tensor *state, const Tensor *version) {
    versions[state] = version;
    resolved.clear();
  }
  /// Reductions and scans inside of the value as reads of temporaries. `isRoot`: the node itself
  /// stays. Null, refused, where a temporary would not be a box.
  const Expr *hoist(const Expr *value, bool isRoot);
  const Expr *toTemporary(const Expr *value);

  /// What an equation writes of a tensor, and in the steps of which loop.
  struct Piece {
    std::vector<IndexExpr> subscripts;
    const Var *step = nullptr;
  };

  Builder &builder;
  Refusal &refusal;
  std::vector<Equation> equations;
  std::vector<const Var *> blockVars;
  DenseMap<const Tensor *, const Tensor *> tensors; // parameters of calls
  /// States by the tensor that holds the value that each has here, in the order of the text.
  MapVector<const Tensor *, const Tensor *> versions;
  DenseMap<const Let *, const Expr *> lets; // with the states' values where they are defined
  const Var *step = nullptr;                // of the loop that is being gone through
  DenseSet<const Tensor *> ownTemps;        // begin their lives in a step
  DenseMap<const ScalarParam *, const Expr *> scalars;
  DenseMap<const Expr *, const Expr *> resolved, hoisted;
  DenseMap<const Tensor *, SmallVector<Piece, 2>> pieces;
  DenseSet<const Tensor *> read;   // by equations so far
  DenseSet<const Tensor *> zeroed; // filled with 0 before their pieces
  enum Contents { zeros = 1, values = 2 };
  DenseMap<const Tensor *, Contents> defined;
  DenseSet<const Tensor *> replaced; // where a condition on data held
};
} // namespace

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

IndexExpr Flattener::resolve(const IndexExpr &index) {
  return index.substitute([&](const IndexVar &at) -> std::optional<IndexExpr> {
    if (at.isSymbol() || builder.var(at.position()).kind != Var::Data)
      return std::nullopt;
    const Expr *old = builder.var(at.position()).data;
    const Expr *data = resolve(old);
    if (data == old)
      return std::nullopt;
    Var fresh = builder.var(at.position());
    fresh.id = static_cast<unsigned>(builder.program.vars.size());
    fresh.data = data;
    builder.program.vars.push_back(fresh);
    return IndexExpr::dim(fresh.id);
  });
}

const Expr *Flattener::resolve(const Expr *value) {
  if (!value)
    return value;
  if (const Expr *known = resolved.lookup(value))
    return known;
  if (value->kind == Expr::Let) {
    const Expr *known = lets.lookup(value->let);
    return resolved[value] = known ? known : resolve(value->let->value);
  }
  if (value->kind == Expr::Scalar) {
    auto found = scalars.find(value->scalar);
    return resolved[value] = found == scalars.end() ? value : found->second;
  }
  Expr made = *value;
  bool changed = false;
  auto update = [&](auto &part, auto now) {
    changed |= part != now;
    part = now;
  };
  for (const Expr *&operand : made.operands)
    update(operand, resolve(operand));
  update(made.fill, resolve(made.fill));
  update(made.guard, resolve(made.guard));
  update(made.filter, resolve(made.filter));
  if (made.tensor)
    update(made.tensor, resolve(made.tensor));
  update(made.index, resolve(made.index));
  for (IndexExpr &subscript : made.subscripts)
    update(subscript, resolve(subscript));
  for (auto &[numerator, denominator] : made.exact) {
    update(numerator, resolve(numerator));
    update(denominator, resolve(denominator));
  }
  for (const Var *&bound : made.vars) {
    IndexExpr lo = resolve(bound->lo), hi = resolve(bound->hi);
    if (lo != bound->lo || hi != bound->hi) {
      // The same var keeps its id: its uses stay what they are.
      Var &own = builder.program.vars[bound->id];
      own.lo = lo;
      own.hi = hi;
    }
  }
  if (!changed)
    return resolved[value] = value;
  builder.program.exprs.push_back(std::move(made));
  return resolved[value] = &builder.program.exprs.back();
}

//===----------------------------------------------------------------------===//
// Reductions inside of values
//===----------------------------------------------------------------------===//

static StringRef nameOfReduction(const Expr *value) {
  if (value->kind == Expr::Scan)
    return value->scan == Scan::Softmax      ? "p"
           : value->scan == Scan::LogSoftmax ? "logp"
           : value->scan == Scan::Recurrence ? "state"
                                             : "scanned";
  if (value->kind != Expr::Reduce)
    return "part";
  switch (value->reduction) {
  case Reduction::Sum:
    return "total";
  case Reduction::Mean:
    return "average";
  case Reduction::Max:
    return "highest";
  case Reduction::Min:
    return "lowest";
  case Reduction::Var:
    return "variance";
  case Reduction::Prod:
    return "product";
  default:
    return "lse";
  }
}

const Expr *Flattener::toTemporary(const Expr *value) {
  VarSet used;
  builder.freeVars(value, used);
  SmallVector<unsigned> order(used.begin(), used.end());
  sort(order);
  Equation made;
  std::vector<IndexExpr> dims;
  for (unsigned id : order) {
    const Var &var = builder.var(id);
    if (var.kind == Var::Loop)
      continue; // one value in each step
    if (!var.lo.isSize() || !var.hi.isSize()) {
      refuse(value->span, "a reduction stands under the index '" + Twine(var.name) +
                              "', whose range depends on another index");
      return nullptr;
    }
    const Var *axis = &var;
    made.vars.push_back(axis);
    made.subscripts.push_back(IndexExpr::dim(id) - var.lo);
    dims.push_back(var.hi - var.lo);
  }
  const Tensor *temporary = builder.newTensor(nameOfReduction(value), value->type, dims);
  made.target = temporary;
  made.value = value;
  made.span = value->span;
  equations.push_back(made);
  const Expr *read = builder.read(temporary, made.subscripts);
  const_cast<Expr *>(read)->span = value->span;
  return read;
}

const Expr *Flattener::hoist(const Expr *value, bool isRoot) {
  if (!isRoot)
    if (const Expr *known = hoisted.lookup(value))
      return known;
  // An integer has no gradient, but what a condition compares is the same value as elsewhere.
  bool isCondition = value->type == DType::Bool && value->kind != Expr::Reduce;
  if (!isFloat(value->type) && !isCondition)
    return value;
  Expr made = *value;
  bool changed = false;
  for (const Expr *&operand : made.operands) {
    const Expr *now = hoist(operand, false);
    if (!now)
      return nullptr;
    changed |= now != operand;
    operand = now;
  }
  const Expr *result = value;
  if (changed) {
    builder.program.exprs.push_back(std::move(made));
    result = &builder.program.exprs.back();
  }
  if (!isRoot && (value->kind == Expr::Reduce || value->kind == Expr::Scan)) {
    result = toTemporary(result);
    if (!result)
      return nullptr;
  }
  if (!isRoot)
    hoisted[value] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// A tensor that was read keeps its values: what is read again is the same.
bool Flattener::checkWrites(const Stmt &stmt, const Tensor *target) {
  if (target->kind == Tensor::Inout)
    return refuse(stmt.span, "it changes the tensor '" + target->name + "' in place");
  if (target->kind != Tensor::State && (stmt.readsTarget || read.contains(target)))
    return refuse(stmt.span, "'" + target->name + "' changes after it has been read");
  if (stmt.accumulate && stmt.combine != Reduction::Sum)
    return refuse(stmt.span, "of 'max=' and 'min=' nothing says which of the points won");
  bool isScatter = any_of(stmt.subscripts,
                          [&](const IndexExpr &subscript) { return builder.usesData(subscript); });
  if (!stmt.accumulate && (isScatter || stmt.dataDependent || stmt.meeting != Stmt::Never))
    return refuse(stmt.span,
                  "elements of '" + target->name + "' are replaced at places that data decides");
  return true;
}

bool Flattener::equation(const Stmt &stmt) {
  bool isState = stmt.tensor->kind == Tensor::State;
  const Tensor *target = isState ? stmt.tensor : resolve(stmt.tensor);
  if (!checkWrites(stmt, target))
    return false;
  Equation made;
  made.target = target;
  made.accumulate = stmt.accumulate;
  made.span = stmt.span;
  made.guard = resolve(stmt.guard);
  const Expr *whole = resolve(stmt.value);
  for (const IndexExpr &subscript : stmt.subscripts)
    made.subscripts.push_back(resolve(subscript));
  // The block's axes that the equation varies along come first.
  VarSet used;
  builder.freeVars(whole, used);
  for (const IndexExpr &subscript : made.subscripts)
    builder.freeVars(subscript, used);
  if (made.guard)
    builder.freeVars(made.guard, used);
  for (const Var *var : blockVars)
    if (stmt.accumulate || used.contains(var->id))
      made.vars.push_back(var);
  append_range(made.vars, stmt.vars);
  made.value = whole;
  dropUnitVars(made);
  if (isState)
    return update(target, std::move(made), stmt);
  if (step && !checkSteps(made, stmt))
    return false;
  made.isKept = step && !ownTemps.contains(target);
  if (!checkReplaced(made, stmt))
    return false;
  return define(std::move(made), whole);
}

/// An equation whose target is no state.
bool Flattener::define(Equation made, const Expr *whole) {
  const Tensor *target = made.target;
  made.value = hoist(made.value, /*isRoot=*/true);
  if (!made.value)
    return false;
  shareParts(made);
  // A value with a rule that needs the result takes it unrounded, and before others are added.
  bool isReduction = made.value->kind == Expr::Reduce || made.value->kind == Expr::Scan;
  bool isSum = made.value->kind == Expr::Reduce && (made.value->reduction == Reduction::Sum ||
                                                    made.value->reduction == Reduction::Mean);
  bool isExact = target->kind == Tensor::Temp && target->type == made.value->type &&
                 !made.accumulate && !made.guard;
  if (isReduction && isFloat(made.value->type) && !isSum && !isExact) {
    made.value = toTemporary(made.value);
    if (!made.value)
      return false;
  }
  Equation original = made;
  original.value = whole;
  builder.tensorsOf(original, read);
  // Where pieces need not cover a tensor the checker fills it with 0 first: they add to that.
  bool isZero = made.vars.size() == target->dims.size() && isNumber(made.value, 0) &&
                all_of(zip_equal(made.subscripts, made.vars), [](auto pair) {
                  return std::get<0>(pair) == IndexExpr::dim(std::get<1>(pair)->id);
                });
  if (!made.accumulate) {
    // A condition on data replaces what is there: once, and only zeros.
    bool replaces = made.guard && readsData(made.guard) && defined.contains(target);
    if (replaced.contains(target) || (replaces && defined.lookup(target) != zeros))
      return refuse(made.span, "elements of '" + target->name +
                                   "' are replaced where a condition on "
                                   "data holds");
    if (replaces)
      replaced.insert(target);
    if (zeroed.contains(target))
      made.accumulate = true;
    else if (isZero)
      zeroed.insert(target);
  }
  bool isOnlyZero = isZero && !made.accumulate && !defined.contains(target);
  defined[target] = isOnlyZero ? zeros : values;
  for (auto [d, subscript] : enumerate(made.subscripts))
    if (std::optional<IndexExpr> first = firstDigit(builder, subscript, target->dims[d]))
      made.groups.push_back({d, *first});
  equations.push_back(std::move(made));
  return true;
}

//===----------------------------------------------------------------------===//
// Loops of steps
//===----------------------------------------------------------------------===//

/// What several steps write may only be added up.
bool Flattener::checkSteps(const Equation &made, const Stmt &stmt) {
  if (ownTemps.contains(made.target))
    return true; // fresh in each step
  bool isOwn = any_of(made.subscripts, [&](const IndexExpr &subscript) {
    VarSet used;
    builder.freeVars(subscript, used);
    std::optional<IndexExpr> factor = coefficientOf(subscript, step->id);
    return used.size() == 1 && factor && factor->asConstant().value_or(0) != 0;
  });
  if (!isOwn && !made.accumulate)
    return refuse(stmt.span,
                  "more than one step of a loop writes an element of '" + made.target->name + "'");
  return true;
}

/// The first and last value of a subscript of at most one index. Nothing for others.
static std::optional<std::pair<IndexExpr, IndexExpr>> boundsOf(const Builder &b,
                                                               const IndexExpr &subscript) {
  VarSet used;
  b.freeVars(subscript, used);
  if (used.empty())
    return std::pair(subscript, subscript);
  const Var &var = b.var(used[0]);
  IndexExpr rest = subscript - IndexExpr::dim(var.id);
  if (used.size() > 1 || var.kind == Var::Data || rest.uses(IndexVar::dim(var.id)))
    return std::nullopt;
  return std::pair(rest + var.lo, rest + var.hi - 1);
}

/// Elements that steps write are none that other equations have defined, but for numbers. The
/// checker says so of equations without a loop and of those of one step.
bool Flattener::checkReplaced(const Equation &made, const Stmt &stmt) {
  SmallVector<Piece, 2> &earlier = pieces[made.target];
  auto isApart = [&](const Piece &piece) {
    return any_of(zip_equal(piece.subscripts, made.subscripts), [&](auto pair) {
      auto a = boundsOf(builder, std::get<0>(pair)), b = boundsOf(builder, std::get<1>(pair));
      return a && b &&
             ((a->first - b->second).asConstant().value_or(0) > 0 ||
              (b->first - a->second).asConstant().value_or(0) > 0);
    });
  };
  if (!stmt.accumulate)
    for (const Piece &piece : earlier)
      if (piece.step != step && !isApart(piece))
        return refuse(stmt.span, "elements of '" + made.target->name +
                                     "' are replaced that another equation has defined");
  if (made.value->kind != Expr::Constant)
    earlier.push_back({made.subscripts, step});
  return true;
}

/// A state's next value is a tensor of its own: elements that the equation does not write are those
/// of the value before.
bool Flattener::update(const Tensor *state, Equation made, const Stmt &stmt) {
  const Tensor *old = versions.lookup(state);
  const Tensor *next = builder.newTensor(state->name, state->type, state->dims);
  auto isWholeAxis = [&](const IndexExpr &subscript, const IndexExpr &dim) {
    std::optional<IndexVar> at = subscript.asVariable();
    if (!at || at->isSymbol())
      return false;
    const Var &var = builder.var(at->position());
    return var.kind == Var::Axis && var.lo == IndexExpr(0) && var.hi == dim;
  };
  bool isWhole = !made.accumulate && !made.guard && made.vars.size() == made.subscripts.size();
  for (auto [subscript, dim] : zip_equal(made.subscripts, state->dims))
    isWhole &= isWholeAxis(subscript, dim);
  if (!isWhole) {
    if (!old)
      return refuse(stmt.span, "the state '" + state->name + "' begins in parts");
    made.value = hoist(made.value, /*isRoot=*/false);
    if (!made.value)
      return false;
    Equation merged;
    Replacement solved;
    const Expr *inside = nullptr;
    for (auto [subscript, dim] : zip_equal(made.subscripts, state->dims)) {
      const Var *axis =
          builder.newAxis("ijklmnpqrstuv"[merged.vars.size() % 13] + std::string(), 0, dim);
      IndexExpr here = IndexExpr::dim(axis->id);
      merged.vars.push_back(axis);
      merged.subscripts.push_back(here);
      const Var *open = nullptr;
      for (const Var *var : made.vars)
        if (subscript.uses(IndexVar::dim(var->id)) && !solved.contains(var->id))
          open = var;
      if (!open) {
        inside = builder.both(
            inside, builder.compare(Binary::EQ, builder.index(here),
                                    builder.index(builder.substitute(subscript, solved))));
        continue;
      }
      IndexExpr rest = subscript - IndexExpr::dim(open->id);
      if (rest.uses(IndexVar::dim(open->id)) || builder.usesData(subscript))
        return refuse(stmt.span, "elements of the state '" + state->name +
                                     "' are written at places that are no index plus a number");
      IndexExpr value = here - builder.substitute(rest, solved);
      solved[open->id] = value;
      if (isWholeAxis(subscript, dim))
        continue;
      inside = builder.both(
          inside, builder.compare(Binary::LE, builder.index(open->lo), builder.index(value)));
      inside = builder.both(
          inside, builder.compare(Binary::LT, builder.index(value), builder.index(open->hi)));
    }
    if (any_of(made.vars, [&](const Var *var) { return !solved.contains(var->id); }))
      return refuse(stmt.span, "several points of an equation write an element of the state '" +
                                   state->name + "'");
    const Expr *value = builder.substitute(made.value, solved);
    if (made.guard)
      inside = builder.both(inside, builder.substitute(made.guard, solved));
    const Expr *before = builder.read(old, merged.subscripts);
    merged.value = made.accumulate ? builder.add(before, builder.select(inside, value))
                   : inside        ? builder.where(inside, value, before)
                                   : value;
    merged.span = made.span;
    made = std::move(merged);
  }
  made.target = next;
  const Expr *whole = made.value;
  if (!define(std::move(made), whole))
    return false;
  setVersion(state, next);
  return true;
}

bool Flattener::loop(const Stmt &stmt) {
  const Var *var = stmt.vars[0];
  if (step)
    return refuse(stmt.span, "a loop of steps in another one has no rule yet");
  if (!blockVars.empty())
    return refuse(stmt.span, "a loop of steps in a parallel block has no rule yet");
  if (!var->lo.isSize() || !var->hi.isSize())
    return refuse(stmt.span, "data decides how many steps a loop has");
  auto made = std::make_shared<Loop>();
  made->var = var;
  made->isReverse = var->reverse;
  std::vector<Equation> outside = std::move(equations);
  equations.clear();
  auto hoistedOutside = hoisted;
  for (auto &[state, version] : versions) {
    Carried carried;
    carried.before = version;
    carried.first = builder.newTensor(state->name, state->type, state->dims);
    made->states.push_back(carried);
    version = carried.first;
  }
  resolved.clear();
  step = var;
  bool fine = walk(stmt.body);
  step = nullptr;
  if (!fine)
    return false;
  for (auto [carried, entry] : zip(made->states, versions)) {
    carried.last = entry.second;
    carried.after = builder.newTensor(entry.first->name, entry.first->type, entry.first->dims);
    entry.second = carried.after;
  }
  resolved.clear();
  hoisted = std::move(hoistedOutside);
  made->body = std::move(equations);
  equations = std::move(outside);
  // What a step reads another one must not write, but for states.
  DenseSet<const Tensor *> known;
  for (const Equation &one : made->body)
    builder.tensorsOf(one, known);
  for (const Equation &one : made->body)
    if (one.isKept && known.contains(one.target))
      return refuse(stmt.span, "steps of the loop read '" + one.target->name +
                                   "', which steps write, and which is no state");
  Equation result;
  result.loop = std::move(made);
  result.span = stmt.span;
  equations.push_back(std::move(result));
  return true;
}

/// An index with one value is that value.
void Flattener::dropUnitVars(Equation &equation) {
  Replacement fixed;
  erase_if(equation.vars, [&](const Var *var) {
    bool isUnit = (var->hi - var->lo).asConstant() == 1 && var->lo.asConstant();
    if (isUnit)
      fixed[var->id] = var->lo;
    return isUnit;
  });
  auto visit = [&](auto &&self, const Expr *at) -> const Expr * {
    Expr made = *at;
    bool changed = false;
    for (const Expr *&operand : made.operands) {
      const Expr *now = self(self, operand);
      changed |= now != operand;
      operand = now;
    }
    Replacement inside;
    if (at->kind == Expr::Reduce && at->reduction != Reduction::ArgMax &&
        at->reduction != Reduction::ArgMin)
      erase_if(made.vars, [&](const Var *var) {
        bool isUnit =
            (var->hi - var->lo).asConstant() == 1 && var->lo.asConstant() && made.vars.size() > 1;
        if (isUnit)
          inside[var->id] = var->lo;
        return isUnit;
      });
    if (!inside.empty()) {
      changed = true;
      made.operands[0] = builder.substitute(made.operands[0], inside);
      if (made.filter)
        made.filter = builder.substitute(made.filter, inside);
    }
    if (!changed)
      return at;
    builder.program.exprs.push_back(std::move(made));
    return &builder.program.exprs.back();
  };
  equation.value = visit(visit, equation.value);
  if (fixed.empty())
    return;
  equation.value = builder.substitute(equation.value, fixed);
  if (equation.guard)
    equation.guard = builder.substitute(equation.guard, fixed);
  for (IndexExpr &subscript : equation.subscripts)
    subscript = builder.substitute(subscript, fixed);
}

/// Parts of a large value that stand in it several times, as temporaries: as text it would be a
/// tree.
void Flattener::shareParts(Equation &equation) {
  constexpr unsigned large = 48, small = 5;
  if (weigh(equation.value) < large)
    return;
  DenseMap<const Expr *, unsigned> uses;
  SmallVector<const Expr *> order; // parts before what they stand in
  auto count = [&](auto &&self, const Expr *at) -> void {
    if (++uses[at] > 1)
      return;
    if (const Expr *x = matchWhole(at))
      self(self, x);
    else
      for (const Expr *operand : at->operands)
        self(self, operand);
    order.push_back(at);
  };
  count(count, equation.value);
  DenseMap<const Expr *, const Expr *> replaced;
  auto rebuild = [&](auto &&self, const Expr *at) -> const Expr * {
    if (const Expr *known = replaced.lookup(at))
      return known;
    Expr made = *at;
    bool changed = false;
    for (const Expr *&operand : made.operands) {
      const Expr *now = self(self, operand);
      changed |= now != operand;
      operand = now;
    }
    const Expr *result = at;
    if (changed) {
      builder.program.exprs.push_back(std::move(made));
      result = &builder.program.exprs.back();
    }
    return replaced[at] = result;
  };
  Refusal kept = refusal;
  for (const Expr *part : order) {
    bool isShared = uses.lookup(part) > 1 && isFloat(part->type) && part != equation.value &&
                    part->kind != Expr::Reduce && part->kind != Expr::Scan;
    if (!isShared)
      continue;
    const Expr *now = rebuild(rebuild, part);
    if (weigh(now) < small)
      continue;
    if (const Expr *read = toTemporary(now))
      replaced[part] = read;
  }
  refusal = kept; // what is no box stays inside
  equation.value = rebuild(rebuild, equation.value);
}

bool Flattener::call(const Stmt &stmt) {
  const Callee &callee = *stmt.callee;
  for (const auto &[parameter, argument] : callee.arguments) {
    if (parameter->kind == Tensor::Inout)
      return refuse(stmt.span, "the call of '" + callee.name + "' changes a tensor in place");
    tensors[parameter] = resolve(argument);
  }
  for (const auto &[output, where] : callee.results)
    tensors[output] = resolve(where);
  for (const auto &[parameter, value] : callee.scalars)
    scalars[parameter] = resolve(value);
  return walk(callee.body);
}

bool Flattener::walk(ArrayRef<Stmt *> body) {
  for (const Stmt *stmt : body) {
    switch (stmt->kind) {
    case Stmt::TensorDef:
      if (step && stmt->tensor->kind == Tensor::Temp)
        ownTemps.insert(stmt->tensor);
      break;
    case Stmt::Define: { // stands where it is used: what it reads must not change
      const Expr *value = resolve(stmt->let->value);
      lets[stmt->let] = value;
      builder.tensorsOf(value, read);
      break;
    }
    case Stmt::Equation:
      if (!equation(*stmt))
        return false;
      break;
    case Stmt::Call:
      if (!call(*stmt))
        return false;
      break;
    case Stmt::Parallel: {
      size_t outer = blockVars.size();
      append_range(blockVars, stmt->vars);
      bool fine = walk(stmt->body);
      blockVars.resize(outer);
      if (!fine)
        return false;
      break;
    }
    case Stmt::For:
      if (!loop(*stmt))
        return false;
      break;
    case Stmt::Tiles:
      return refuse(stmt->span, "a loop over tiles has no rule yet");
    case Stmt::StateInit:
    case Stmt::Update:
      return refuse(stmt->span, "a state outside of a loop has no rule");
    }
  }
  return true;
}

std::optional<std::vector<Equation>> flatten(Builder &builder, Refusal &refusal) {
  Flattener flattener(builder, refusal);
  // Statements refer to the program's own list, which does not change.
  if (!flattener.walk(builder.program.body))
    return std::nullopt;
  return flattener.take();
}

} // namespace tegula::grad
