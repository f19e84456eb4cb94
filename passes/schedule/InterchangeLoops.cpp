//===- InterchangeLoops.cpp - Puts loops on the host into launches --------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Matched.h"
#include "passes/fuse/MergeNests.h"
#include "passes/schedule/HoistSteps.h"
#include "passes/schedule/IndependentAxes.h"
#include "passes/schedule/LoopCosts.h"
#include "passes/schedule/StatementPoints.h"
#include "passes/schedule/WalkTogether.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_INTERCHANGELOOPSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

//===----------------------------------------------------------------------===//
// What one launch may compute
//===----------------------------------------------------------------------===//

namespace {
/// Launches and loops of one block, in order, that become one launch.
struct Group {
  SmallVector<Operation *> ops;

  SmallVector<ParallelOp> statements() const { return statementsOf(ops); }
};
} // namespace

/// Whether the op holds statements, and around them launches and loops that carry no values.
static bool isHostCode(Operation *op) {
  if (isa<ParallelOp, TempOp, YieldOp>(op))
    return true;
  auto loop = dyn_cast<ForOp>(op);
  if (!isa<LaunchOp>(op) && !(loop && loop.getInits().empty()))
    return op->getNumRegions() == 0 && isMemoryEffectFree(op);
  return llvm::all_of(op->getRegion(0).front(),
                      [](Operation &nested) { return isHostCode(&nested); });
}

/// Whether each point of the launch is one of an element of a tensor that the group changes: what
/// fills a state before a loop, or takes it afterwards.
static bool followsStates(LaunchOp launch, const Accesses &ofGroup) {
  for (Operation &op : launch.getBody().front()) {
    auto statement = dyn_cast<ParallelOp>(op);
    if (!statement)
      return false;
    bool isSimple = true, follows = false;
    statement.walk([&](Operation *nested) {
      isSimple &= nested == statement || nested->getNumRegions() == 0;
      SmallVector<ValueExpr> subscripts;
      Value tensor;
      if (auto read = dyn_cast<ReadOp>(nested))
        tensor = read.getTensor(), subscripts = read.getSubscriptExprs();
      else if (auto write = dyn_cast<WriteOp>(nested))
        tensor = write.getTensor(), subscripts = write.getSubscriptExprs();
      else
        return;
      follows |=
          ofGroup.writes.contains(tensor) && llvm::all_of(statement.getAxes(), [&](Value axis) {
            return llvm::any_of(subscripts, [&](const ValueExpr &subscript) {
              return subscript.asValue() == axis;
            });
          });
    });
    if (!isSimple || !follows)
      return false;
  }
  return true;
}

/// Adds launches and loops beside the group that have the same independent axes.
static void addNeighbours(Group &group, size_t numAxes) {
  auto isPassedOver = [](Operation *op) {
    return isa<TempOp>(op) || (op->getNumRegions() == 0 && isMemoryEffectFree(op));
  };
  auto add = [&](bool before) {
    Operation *next = before ? group.ops.front()->getPrevNode() : group.ops.back()->getNextNode();
    while (next && isPassedOver(next))
      next = before ? next->getPrevNode() : next->getNextNode();
    if (!next || !isHostCode(next))
      return false;
    Accesses accesses;
    for (Operation *op : group.ops)
      accesses.writes.insert_range(accessesOf(op).writes);
    auto launch = dyn_cast<LaunchOp>(next);
    if (launch ? !followsStates(launch, accesses) : !isa<ForOp>(next))
      return false;
    Group larger = group;
    larger.ops.insert(before ? larger.ops.begin() : larger.ops.end(), next);
    if (independentAxes(larger.statements()).size() != numAxes)
      return false;
    group = std::move(larger);
    return true;
  };
  while (add(/*before=*/true))
    ;
  while (add(/*before=*/false))
    ;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

/// A temporary of one element that each step writes before it reads it becomes a value.
static unsigned forwardInLoop(TempOp temp) {
  ForOp loop;
  for (Operation *user : temp->getUsers()) {
    auto around = user->getParentOfType<ForOp>();
    while (around && around->getBlock() != temp->getBlock())
      around = around->getParentOfType<ForOp>();
    if (!around || (loop && around != loop))
      return 0;
    loop = around;
  }
  if (!loop)
    return 0;
  Operation *place = temp->getNextNode();
  temp->moveBefore(&loop.getBody().front().front());
  if (forwardTemp(temp))
    return 1;
  temp->moveBefore(place);
  return 0;
}

namespace {
struct InterchangeLoopsPass
    : Counted<tegula::impl::InterchangeLoopsPassBase<InterchangeLoopsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    visit(getOperation().getBody().front());
    for (ParallelOp points : outermostStatements(getOperation()))
      if (unsigned loops = walkTogether(points))
        count("loops of rows walked together", loops);
  }

  void visit(Block &block) {
    for (ForOp loop : llvm::to_vector(block.getOps<ForOp>()))
      if (loop->getBlock() == &block && !tryLoop(loop)) // else it went along with another
        visit(loop.getBody().front());
  }

  /// Temporaries that only the statement uses become those of its points.
  unsigned privatize(ParallelOp statement, bool isOnePoint) {
    if (!isOnePoint) {
      Prover prover(sizeFacts(getOperation()));
      return privatizeTemps(*statement->getBlock(), prover).privatized;
    }
    unsigned moved = 0;
    for (TempOp temp : llvm::to_vector(statement->getBlock()->getOps<TempOp>()))
      if (!temp->use_empty() && llvm::all_of(temp->getUsers(), [&](Operation *user) {
            return statement->isAncestor(user);
          })) {
        temp->moveBefore(&statement.getBody().front().front());
        ++moved;
      }
    return moved;
  }

  /// That of the loop's first launch.
  static std::string nameOf(ForOp loop) {
    std::string name = "loop";
    loop.walk([&](LaunchOp launch) {
      name = launch.getName().str();
      return WalkResult::interrupt();
    });
    return name;
  }

  bool refuse(ForOp loop, const Twine &why) {
    remarkMismatch(loop, "interchange", {why.str(), "", loop});
    return false;
  }

  bool tryLoop(ForOp loop) {
    if (!isHostCode(loop))
      return refuse(loop, "the loop carries values, or holds more than equations");
    Group group{{loop}};
    SmallVector<ParallelOp> statements = group.statements();
    if (statements.empty())
      return false;
    SmallVector<IndependentAxis> axes = independentAxes(statements);
    if (std::optional<std::string> why = whyLaunchEachStep(loop, statements, axes)) {
      // Without what does not need the state there may be more independent axes.
      SmallVector<LaunchOp> free = launchesWithoutState(loop);
      SmallVector<ParallelOp> others;
      llvm::copy_if(statements, std::back_inserter(others), [&](ParallelOp statement) {
        return !llvm::is_contained(free, statement->getParentOfType<LaunchOp>());
      });
      if (free.empty() || others.empty())
        return refuse(loop, *why);
      axes = independentAxes(others);
      if (std::optional<std::string> still = whyLaunchEachStep(loop, others, axes))
        return refuse(loop, *why);
      hoistLaunches(loop, free);
      count("launches put before loops", unsigned(free.size()));
    }
    addNeighbours(group, axes.size());
    axes = independentAxes(group.statements());
    std::string name = nameOf(loop);
    ParallelOp statement = putIntoPoints(group.ops, axes);
    count("temporaries made private", privatize(statement, axes.empty()));
    for (TempOp temp : llvm::to_vector(statement.getBody().front().getOps<TempOp>()))
      count("temporaries made values", forwardInLoop(temp));
    OpBuilder builder(statement);
    auto launch = LaunchOp::create(builder, statement.getLoc(), name);
    statement->moveBefore(&launch.getBody().front(), launch.getBody().front().end());
    count("loops put into launches");
    return true;
  }
};
} // namespace
