//===- Fuse.cpp - Groups statements into launches ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/fuse/InlineProducers.h"
#include "passes/fuse/MergeLoops.h"
#include "passes/fuse/MergeNests.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// A launch is called after the first tensor that it writes.
static std::string nameFor(Operation *statement) {
  std::string name = "launch";
  statement->walk([&](Operation *op) {
    if (!isa<WriteOp, SortOp>(op))
      return WalkResult::advance();
    Value tensor = isa<WriteOp>(op) ? cast<WriteOp>(op).getTensor() : cast<SortOp>(op).getValues();
    if (auto temp = tensor.getDefiningOp<TempOp>()) {
      name = temp.getName().str();
    } else {
      auto argument = cast<BlockArgument>(tensor);
      auto kernel = cast<KernelOp>(argument.getOwner()->getParentOp());
      name = kernel.getArgName(argument.getArgNumber()).str();
    }
    return WalkResult::interrupt();
  });
  return name;
}

/// Moves temporaries and scalars that nothing before them decides to the front, so that statements
/// are neighbours.
static void gatherDefinitions(Block &block) {
  Operation *front = nullptr; // the last op that has been moved
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool moves = isa<TempOp>(op) || (op.getNumRegions() == 0 && isMemoryEffectFree(&op) &&
                                     !op.hasTrait<OpTrait::IsTerminator>() &&
                                     llvm::all_of(op.getOperands(), [&](Value value) {
                                       Operation *def = value.getDefiningOp();
                                       return !def || def->getBlock() != &block ||
                                              (front && def->isBeforeInBlock(front)) ||
                                              def == front;
                                     }));
    if (!moves)
      continue;
    if (front)
      op.moveAfter(front);
    else
      op.moveBefore(&block.front());
    front = &op;
  }
}

namespace {
struct FusePass : Counted<tegula::impl::FusePassBase<FusePass>> {
  using Counted::Counted;

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    if (!singletons) {
      count("axes of one point dropped", dropSinglePoints(getOperation()));
      Prover prover(sizeFacts(getOperation()));
      fuse(body, prover);
    }
    makeLaunches(body);
  }

  /// Fuses the statements of a block, then those inside each nest that this makes.
  void fuse(Block &block, Prover &prover) {
    gatherDefinitions(block);
    count("producers inlined", inlineProducers(block, skinnyProducts, prover));
    // Only what stands at the top has the whole machine.
    bool isTop = !block.getParentOp()->getParentOfType<ParallelOp>() &&
                 !isa<ParallelOp>(block.getParentOp());
    MergeOptions options{batchedProducts, groupedProducts, reducedProducts, isTop ? minPoints : 0};
    count("statements merged", mergeNests(block, options, prover));
    PrivatizeCounts counts = privatizeTemps(block, prover);
    count("temporaries privatized", counts.privatized);
    count("temporaries forwarded", counts.forwarded);
    // A loop that stands in no nest is run by the host, also one in another.
    if (!isTop)
      count("statements merged", mergeIntoLoops(block));
    for (Operation &op : block)
      if (isa<ParallelOp, ForOp, TilesOp>(op))
        fuse(op.getRegion(0).front(), prover);
  }

  /// Wraps every statement of a kernel, or of a sequential loop at its top, in a launch.
  void makeLaunches(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<ForOp, TilesOp>(op)) {
        makeLaunches(op.getRegion(0).front());
      } else if (isa<ParallelOp>(op)) {
        OpBuilder builder(&op);
        auto launch = LaunchOp::create(builder, op.getLoc(), nameFor(&op));
        op.moveBefore(&launch.getBody().front(), launch.getBody().front().end());
        count("launches");
      }
    }
  }
};
} // namespace
