//===- SplitScans.cpp - Long scans in tiles -----------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/scan/plan/ScanTile.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITSCANSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// What of its statement a loop needs: ops that are done again, and values that are kept in
/// temporaries.
struct Needs {
  SetVector<Operation *> again;
  SetVector<Value> kept;
};

struct SplitScansPass : Counted<tegula::impl::SplitScansPassBase<SplitScansPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation())) {
      SmallVector<ForOp> loops(statement.getBody().getOps<ForOp>());
      // Later ones first: what a loop becomes stands right after its statement.
      for (ForOp loop : llvm::reverse(loops))
        if (split(statement, loop))
          count("scans split");
      Block &block = statement.getBody().front();
      eraseUnusedOps(block);
      if (!loops.empty() && block.empty())
        statement.erase();
    }
  }

  bool split(ParallelOp statement, ForOp loop) {
    auto refuse = [&](const Mismatch &why) {
      remarkMismatch(statement, "scan-tiles", why);
      return false;
    };
    Matched<PrefixLoop> prefix = matchPrefixLoop(loop);
    if (!prefix)
      return refuse(prefix.mismatch());
    if (!loop.getResults()[0].use_empty())
      return refuse({"the last value of the scan is used by the statement", "", loop});
    Matched<ScanTile> tile = chooseScanTile(statement, *prefix, threads);
    if (!tile)
      return refuse(tile.mismatch());
    std::optional<Needs> needs = needsOf(statement, loop);
    if (!needs)
      return refuse({"the scan shares tensors with the statement that it stands in", "", loop});
    loop->setAttr(ScanTile::attributeName, tile->toAttribute(loop.getContext()));
    moveOut(statement, loop, *needs);
    return true;
  }

  /// The loop in a statement of its own, after the one it stands in.
  static void moveOut(ParallelOp statement, ForOp loop, const Needs &needs) {
    auto axes = cast<AxesOp>(statement.getOperation());
    auto placeIn = [&](const IRMapping &map) {
      SmallVector<ValueExpr> place;
      for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
        place.push_back(ValueExpr(map.lookupOrDefault(axes.getAxes()[axis])) -
                        getAxisRange(axes, axis).lo);
      return place;
    };
    MLIRContext *context = statement.getContext();
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(context, *knownPoints(axes, axis)));
    OpBuilder around(statement), outside(statement);
    outside.setInsertionPointAfter(statement);
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    IRMapping map;
    ParallelOp made = copyAxes(outside, loop.getLoc(), all, map);
    OpBuilder inside = OpBuilder::atBlockEnd(&made.getBody().front()), before(loop);
    for (Value value : needs.kept) {
      auto type = TglTensorType::get(context, dims, value.getType());
      Value temp = TempOp::create(around, loop.getLoc(), type, "kept").getTensor();
      WriteOp::create(before, loop.getLoc(), value, temp, placeIn(IRMapping()));
      map.map(value, ReadOp::create(inside, loop.getLoc(), temp, placeIn(map)).getResult());
    }
    for (Operation &op : statement.getBody().front())
      if (needs.again.contains(&op))
        inside.clone(op, map);
    inside.clone(*loop, map);
    loop.erase();
  }

  /// Nothing where the loop cannot run after its statement.
  static std::optional<Needs> needsOf(ParallelOp statement, ForOp loop) {
    Accesses own = accessesOf(loop), all = accessesOf(statement);
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
      Accesses its = accessesOf(op);
      auto meets = [](const auto &some, const auto &others) {
        return llvm::any_of(some, [&](Value tensor) { return others.contains(tensor); });
      };
      if (meets(its.writes, own.reads) || meets(its.writes, own.writes) ||
          meets(its.reads, own.writes))
        return std::nullopt;
    }
    Needs needs;
    Block &block = statement.getBody().front();
    SmallVector<Operation *> work{loop};
    while (!work.empty())
      for (Value value : valuesUsedBy(work.pop_back_val())) {
        Operation *definition = value.getDefiningOp();
        if (!definition || definition->getBlock() != &block || needs.kept.contains(value))
          continue;
        if (isa<TempOp>(definition))
          return std::nullopt; // a point's own
        auto read = dyn_cast<ReadOp>(definition);
        bool isCheap =
            !definition->getNumRegions() && (!read || !all.writes.contains(read.getTensor()));
        if (!isCheap && !value.getType().isIntOrFloat())
          return std::nullopt;
        if (!isCheap)
          needs.kept.insert(value);
        else if (needs.again.insert(definition))
          work.push_back(definition);
      }
    return needs;
  }
};
} // namespace
