//===- EliminateDeadEquations.cpp - Removes writes that nothing reads -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include <map>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ELIMINATEDEADEQUATIONSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Whether anything but writes (and sorts, which write what they read) uses the temporary. Of two
/// temporaries that are sorted together one may be read.
static bool isRead(TempOp temp, DenseSet<Operation *> &seen) {
  if (!seen.insert(temp).second)
    return false;
  for (Operation *user : temp->getUsers()) {
    if (isa<WriteOp>(user))
      continue;
    auto sort = dyn_cast<SortOp>(user);
    if (!sort)
      return true;
    for (Value other : {sort.getValues(), sort.getPositions()}) {
      auto otherTemp = other.getDefiningOp<TempOp>();
      if (!otherTemp || isRead(otherTemp, seen))
        return true;
    }
  }
  return false;
}

/// The tensor all of whose accesses in the statement are its writes, and which alone it writes; or
/// null.
static Value onlyWritten(ParallelOp statement) {
  Accesses accesses = accessesOf(statement);
  Value tensor = accesses.writes.size() == 1 ? accesses.writes.front() : Value();
  return tensor && !accesses.reads.contains(tensor) ? tensor : Value();
}

/// Whether the statement writes every element of the tensor, at each of its points one.
static bool writesAll(ParallelOp statement, Value tensor, Prover &prover) {
  for (auto write : statement.getBody().front().getOps<WriteOp>()) {
    if (write.getTensor() != tensor || write.getGuard() || write.getCombine() || write.getChecked())
      continue;
    AxisScope scope(prover, write);
    // An axis of one point is its low.
    auto axes = cast<AxesOp>(statement.getOperation());
    auto known = [&](Value value) -> std::optional<ValueExpr> {
      auto axis = dyn_cast<BlockArgument>(value);
      if (!axis || axis.getOwner() != axes.getAxesBlock() ||
          knownPoints(axes, {axis.getArgNumber()}) != 1)
        return std::nullopt;
      return getAxisRange(axes, axis.getArgNumber()).lo;
    };
    Image image;
    for (const ValueExpr &subscript : write.getSubscriptExprs())
      image.subscripts.push_back(scope.toDims(subscript.substitute(known)));
    image.domain = scope.domain();
    SmallVector<IndexExpr> dims;
    for (IndexExprAttr dim : write.getTensorType().getDims())
      dims.push_back(dim.getExpr());
    if (prover.covers(image, dims).proved())
      return true;
  }
  return false;
}

namespace {
/// Which statements are overwritten: what is asked of a statement is asked once, however many come
/// before it.
class Overwritten {
public:
  explicit Overwritten(Prover &prover) : prover(prover) {}

  /// Whether a later statement writes all of what this one does before anything reads it.
  bool find(ParallelOp statement) {
    Value tensor = onlyWritten(statement);
    if (!tensor)
      return false;
    for (Operation *op = nextUser(tensor, statement); op; op = nextUser(tensor, op)) {
      const Accesses &accesses = accessesAt(op);
      if (accesses.reads.contains(tensor))
        return false;
      if (accesses.writes.contains(tensor))
        if (auto later = dyn_cast<ParallelOp>(op); later && writes(later, tensor))
          return true;
    }
    return false;
  }

private:
  /// The next statement behind `statement` that touches the tensor.
  static Operation *nextUser(Value tensor, Operation *statement) {
    Operation *next = nullptr;
    for (Operation *user : tensor.getUsers()) {
      Operation *op = statement->getBlock()->findAncestorOpInBlock(*user);
      if (op && op != next && statement->isBeforeInBlock(op) &&
          (!next || op->isBeforeInBlock(next)))
        next = op;
    }
    return next;
  }
  const Accesses &accessesAt(Operation *op) {
    auto [found, isNew] = known.try_emplace(op);
    if (isNew)
      found->second = accessesOf(op);
    return found->second;
  }
  bool writes(ParallelOp later, Value tensor) {
    auto [found, isNew] = whole.try_emplace({later.getOperation(), tensor.getAsOpaquePointer()});
    if (isNew)
      found->second = writesAll(later, tensor, prover);
    return found->second;
  }

  Prover &prover;
  std::map<Operation *, Accesses> known;
  std::map<std::pair<Operation *, void *>, bool> whole;
};
} // namespace

namespace {
struct EliminateDeadEquationsPass
    : Counted<tegula::impl::EliminateDeadEquationsPassBase<EliminateDeadEquationsPass>> {
  void runOnOperation() override {
    Prover prover(sizeFacts(getOperation()));
    SmallVector<ParallelOp> statements(getOperation().getBody().front().getOps<ParallelOp>());
    Overwritten overwritten(prover);
    for (ParallelOp statement : statements)
      if (overwritten.find(statement)) {
        statement.erase();
        count("overwritten statements removed");
      }
    bool changed = true;
    while (changed) {
      changed = false;
      SmallVector<TempOp> temps;
      getOperation().walk([&](TempOp temp) { temps.push_back(temp); });
      // Pairs of sorted temporaries die together: decide about all before erasing any.
      SmallVector<TempOp> dead;
      for (TempOp temp : temps)
        if (DenseSet<Operation *> seen; !isRead(temp, seen))
          dead.push_back(temp);
      DenseSet<Operation *> users;
      for (TempOp temp : dead)
        users.insert_range(temp->getUsers());
      for (Operation *user : users) {
        count("writes removed", isa<WriteOp>(user));
        user->erase();
      }
      for (TempOp temp : dead)
        temp.erase();
      count("temporaries removed", dead.size());
      changed = !dead.empty();
      eraseUnusedOps(getOperation().getBody().front());
    }
  }
};
} // namespace
