//===- Fuse.cpp - Groups statements into launches ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Nest.h"
#include "passes/Passes.h"

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

namespace {
struct FusePass : Counted<tegula::impl::FusePassBase<FusePass>> {
  using Counted::Counted;

  void runOnOperation() override { makeLaunches(getOperation().getBody().front()); }

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
