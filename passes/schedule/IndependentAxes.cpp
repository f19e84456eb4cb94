//===- IndependentAxes.cpp - Axes along which statements never meet -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/IndependentAxes.h"
#include "passes/fuse/Access.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class AxisFinder {
public:
  AxisFinder(ArrayRef<ParallelOp> statements, bool runOnce) : statements(statements) {
    DenseSet<Value> changing;
    for (ParallelOp statement : statements)
      for (Value tensor : accessesOf(statement).writes)
        if (!runOnce || llvm::any_of(statements, [&](ParallelOp other) {
              Accesses accesses = accessesOf(other);
              return accesses.reads.contains(tensor) ||
                     (other != statement && accesses.writes.contains(tensor));
            }))
          changing.insert(tensor);
    for (ParallelOp statement : statements)
      for (Access &access : accessesIn(statement))
        if (changing.contains(access.tensor))
          accesses[statement].push_back(std::move(access));
  }

  /// The independent axis that is this one of the first statement.
  std::optional<IndependentAxis> find(unsigned axis) {
    range = getAxisRange(axesOf(statements.front()), axis);
    name = getAxisName(axesOf(statements.front()), axis);
    if (!range.lo.operands().empty() || !range.hi.operands().empty())
      return std::nullopt;
    State state;
    if (!assign(state, statements.front(), axis))
      return std::nullopt;
    // Statements that share no tensor with those so far.
    for (ParallelOp statement : statements)
      if (!state.axisOf.contains(statement) && !assignAny(state, statement))
        return std::nullopt;
    return state.axisOf;
  }

  /// An axis of a statement is one axis of the result.
  void take(const IndependentAxis &axis) {
    for (auto [statement, number] : axis)
      taken.insert({statement, number});
  }

private:
  struct State {
    IndependentAxis axisOf;
    DenseMap<Value, unsigned> dimOf; // by tensor
  };

  static AxesOp axesOf(ParallelOp statement) { return cast<AxesOp>(statement.getOperation()); }

  /// Makes it the statement's axis, and follows the tensors that the statement accesses to others.
  bool assign(State &state, ParallelOp first, unsigned firstAxis) {
    SmallVector<ParallelOp> open;
    auto set = [&](ParallelOp statement, unsigned axis) {
      AxisRange own = getAxisRange(axesOf(statement), axis);
      if (!(own.lo == range.lo && own.hi == range.hi) || taken.contains({statement, axis}))
        return false;
      state.axisOf[statement] = axis;
      open.push_back(statement);
      return true;
    };
    if (!set(first, firstAxis))
      return false;
    while (!open.empty()) {
      ParallelOp statement = open.pop_back_val();
      Value axis = statement.getAxes()[state.axisOf[statement]];
      for (const Access &access : accesses[statement]) {
        std::optional<unsigned> dim = dimOf(state, access, axis);
        if (!dim)
          return false;
        for (ParallelOp other : statements)
          for (const Access &theirs : accesses[other]) {
            if (theirs.tensor != access.tensor || state.axisOf.contains(other))
              continue;
            std::optional<unsigned> number = axisAt(theirs, *dim, other);
            if (!number || !set(other, *number))
              return false;
          }
      }
    }
    return true;
  }

  /// The dim of the access's tensor that the axis subscripts; nothing where another one does in
  /// other accesses.
  static std::optional<unsigned> dimOf(State &state, const Access &access, Value axis) {
    auto is = [&](unsigned dim) {
      return dim < access.subscripts.size() && access.subscripts[dim] &&
             access.subscripts[dim]->asValue() == axis;
    };
    if (auto known = state.dimOf.find(access.tensor); known != state.dimOf.end())
      return is(known->second) ? std::optional(known->second) : std::nullopt;
    for (unsigned dim = 0; dim < access.subscripts.size(); ++dim)
      if (is(dim)) {
        state.dimOf[access.tensor] = dim;
        return dim;
      }
    return std::nullopt;
  }

  static std::optional<unsigned> axisAt(const Access &access, unsigned dim, ParallelOp statement) {
    if (!access.subscripts[dim])
      return std::nullopt;
    for (auto [number, axis] : llvm::enumerate(statement.getAxes()))
      if (access.subscripts[dim]->asValue() == axis)
        return number;
    return std::nullopt;
  }

  /// Axes of the same name first: they are meant as one.
  bool assignAny(State &state, ParallelOp statement) {
    for (bool isNamesake : {true, false})
      for (unsigned axis = 0; axis < statement.getAxes().size(); ++axis) {
        if ((getAxisName(axesOf(statement), axis) == name) != isNamesake)
          continue;
        State attempt = state;
        if (assign(attempt, statement, axis)) {
          state = std::move(attempt);
          return true;
        }
      }
    return false;
  }

  ArrayRef<ParallelOp> statements;
  DenseMap<Operation *, SmallVector<Access>> accesses; // to tensors that a statement writes
  DenseSet<std::pair<Operation *, unsigned>> taken;
  AxisRange range;
  StringRef name;
};
} // namespace

SmallVector<IndependentAxis> tegula::independentAxes(ArrayRef<ParallelOp> statements,
                                                     bool runOnce) {
  SmallVector<IndependentAxis> found;
  if (statements.empty())
    return found;
  AxisFinder finder(statements, runOnce);
  ParallelOp first = statements.front();
  for (unsigned axis = 0; axis < first.getAxes().size(); ++axis)
    if (std::optional<IndependentAxis> one = finder.find(axis)) {
      finder.take(*one);
      found.push_back(std::move(*one));
    }
  return found;
}
