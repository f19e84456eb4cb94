//===- Distribute.cpp - Each value once per point of its own axes --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglFunctions.h"
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "passes/analysis/SplitBlock.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_DISTRIBUTEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static bool isInReduction(Operation *op) { return op->getParentOfType<ReduceOp>() != nullptr; }

/// What the temporary of a value is called.
static std::string nameFor(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return stringifyReduceKind(reduce.getKind()).str();
  return op->getName().stripDialect().str();
}

namespace {
struct DistributePass : Counted<tegula::impl::DistributePassBase<DistributePass>> {
  using Counted::Counted;

  void runOnOperation() override {
    Prover prover(sizeFacts(getOperation()));
    hoistAll(prover);
    SmallVector<ParallelOp> blocks;
    getOperation().walk([&](ParallelOp block) { blocks.push_back(block); });
    for (ParallelOp block : blocks)
      count("blocks split", splitBlock(block, prover, tileSize));
    hoistAll(prover);
    eraseUnusedOps(getOperation().getBody().front());
  }

  void hoistAll(Prover &prover) {
    hoistEach(prover, [](Operation *op) { return isa<ReduceOp>(op); });
    // Reductions stand where they belong now; what is still repeated inside them is.
    hoistEach(prover, [](Operation *op) { return isCostly(op) && isInReduction(op); });
  }

  void hoistEach(Prover &prover, llvm::function_ref<bool(Operation *)> isWanted) {
    // Innermost first: what an outer value is computed from has its own statement already. Ops that
    // went with a larger expression are gone from the list (`hoisted`).
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PostOrder>([&](Operation *op) {
      if (isWanted(op))
        ops.push_back(op);
    });
    DenseSet<Operation *> hoisted;
    for (Operation *op : ops)
      if (!hoisted.contains(op))
        hoist(op, prover, hoisted);
  }

  void hoist(Operation *op, Prover &prover, DenseSet<Operation *> &hoisted) {
    std::optional<Outline> where =
        outline(op, valuesUsedBy(op).getArrayRef(), OutlineMode::IfRepeated);
    if (!where)
      return;
    if (!isa<ReduceOp>(op)) {
      op = largestAlike(op, where->axes.size());
      where = outline(op, valuesUsedBy(op).getArrayRef(), OutlineMode::IfRepeated);
    }
    if (where->axes.empty() && where->anchor->getParentOfType<ParallelOp>()) {
      // One value at a point of what is around: no temporary.
      IRMapping map;
      OpBuilder before(where->anchor);
      for (Operation *needed : where->ops)
        accessOnlyWithin(before.clone(*needed, map), where->left, map, prover);
      Operation *copy = before.clone(*op, map);
      accessOnlyWithin(copy, where->left, map, prover);
      op->getResult(0).replaceAllUsesWith(copy->getResult(0));
    } else if (!storeOutlined(op, *where, nameFor(op), prover, tileSize)) {
      return;
    }
    hoisted.insert(op);
    op->walk([&](Operation *nested) { hoisted.insert(nested); });
    // What only this value needed would be looked at again: it goes now.
    SmallVector<Operation *> dead{op};
    while (!dead.empty()) {
      Operation *unused = dead.pop_back_val();
      if (!unused->use_empty())
        continue;
      hoisted.insert(unused);
      SmallVector<Value> operands = llvm::to_vector(valuesUsedBy(unused));
      unused->walk([&](Operation *nested) { hoisted.insert(nested); });
      unused->erase();
      for (Value operand : operands)
        if (Operation *def = operand.getDefiningOp();
            def && def->use_empty() && isMemoryEffectFree(def))
          dead.push_back(def);
    }
    count("values hoisted");
  }
};
} // namespace
