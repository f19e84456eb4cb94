//===- VerifyPhase.cpp - Verifies the invariants of each phase ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/Phases.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_VERIFYPHASEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static LogicalResult afterSimplify(Operation *op) {
  if (isa<CallOp>(op))
    return op->emitError() << "a call is left after phase simplify (pass tgl-inline)";
  if (auto kernel = dyn_cast<KernelOp>(op); kernel && kernel.isCalled())
    return op->emitError() << "a private kernel is left after phase simplify (pass tgl-inline)";
  if (auto indexed = dyn_cast<IndexedOp>(op))
    if (llvm::any_of(indexed.getIndices(),
                     [](Value index) { return index.getDefiningOp<IndexOp>(); }) &&
        hasFoldableIndices(indexed))
      return op->emitError() << "an index is not folded into this access after phase simplify "
                                "(pass tgl-simplify-accesses)";
  return success();
}

/// Variances may come back in the next phase, which knows who computes them in one pass
/// (tgl-fuse-variances); a logsumexp may stay that is of a product, or of its parts then.
static LogicalResult afterFuse(Operation *op, bool isScheduled) {
  if (isa<ScanOp>(op))
    return op->emitError() << "a scan is left after phase fuse (pass tgl-expand-scans)";
  if (auto reduce = dyn_cast<ReduceOp>(op))
    if (reduce.getKind() == ReduceKind::Mean ||
        (reduce.getKind() == ReduceKind::Var && !isScheduled) ||
        (reduce.getKind() == ReduceKind::LogSumExp && !isScheduled &&
         reduce.getBody().getOps<ReduceOp>().empty()))
      return op->emitError() << "reduction " << stringifyReduceKind(reduce.getKind())
                             << " is left after phase fuse (pass tgl-expand-reductions)";
  if (isa<ParallelOp, WriteOp, SortOp>(op) && !op->getParentOfType<LaunchOp>())
    return op->emitError() << "a statement is in no launch after phase fuse (pass tgl-fuse)";
  return success();
}

static LogicalResult afterSchedule(Operation *op) {
  if (auto launch = dyn_cast<LaunchOp>(op); launch && !launch.getStrategy())
    return op->emitError() << "a launch has no strategy after phase schedule (pass tgl-schedule)";
  if (auto parallel = dyn_cast<ParallelOp>(op); parallel && !parallel.getMapping())
    return op->emitError() << "a parallel has no mapping after phase schedule (pass tgl-schedule)";
  return success();
}

namespace {
struct VerifyPhasePass : tegula::impl::VerifyPhasePassBase<VerifyPhasePass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<Phase> ended = parsePhase(phase);
    if (!ended) {
      getOperation()->emitError() << "no phase is called '" << phase << "'";
      return signalPassFailure();
    }
    // A phase also keeps what those before it guarantee.
    WalkResult result = getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (*ended >= Phase::Simplify && failed(afterSimplify(op)))
        return WalkResult::interrupt();
      if (*ended >= Phase::Fuse && failed(afterFuse(op, *ended >= Phase::Schedule)))
        return WalkResult::interrupt();
      if (*ended >= Phase::Schedule && failed(afterSchedule(op)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
