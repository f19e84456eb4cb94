//===- SpreadNests.cpp - Moves nests of few points into launches of their own ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/ScheduleBlock.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPREADNESTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
struct SpreadNestsPass : Counted<tegula::impl::SpreadNestsPassBase<SpreadNestsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    if (settingOf(scheduleSettings(getOperation()),
                  "cluster")) // blocks of a cluster share nests with their rows
      return;
    for (ParallelOp statement : outermostStatements(getOperation()))
      while (spread(statement))
        count("nests spread");
  }

  /// Threads of a block that take a point, at four neighbouring elements each.
  static constexpr int64_t teamThreads = 1024;

  bool spread(ParallelOp statement) {
    Block &block = statement.getBody().front();
    if (block.empty())
      return false;
    auto nest = dyn_cast<ParallelOp>(block.back());
    if (!nest || &block.front() == nest.getOperation() || chooseTile(statement))
      return false;
    auto outer = cast<AxesOp>(statement.getOperation()), inner = cast<AxesOp>(nest.getOperation());
    std::optional<int64_t> points = knownPoints(outer), each = knownPoints(inner);
    if (!points || !each || *points == 0)
      return false;
    int64_t team = std::clamp<int64_t>(*each / 16, 1, teamThreads), busy;
    // Less than that is done before another launch has started.
    constexpr int64_t longNest = 16384;
    int64_t enough =
        *each >= veryLongRow ? 8 * threads : threads; // as for the reductions before it
    if (*each < longNest || llvm::MulOverflow(*points, team, busy) || busy >= enough)
      return false;

    SmallVector<Value> kept; // of the statement, that the nest uses
    for (Value value : valuesUsedBy(nest)) {
      Operation *definition = value.getDefiningOp();
      if (!definition || definition->getBlock() != &block || matchConstant(definition))
        continue;
      if (!value.getType().isIntOrFloat())
        return false; // a temporary, or an index that data decides
      kept.push_back(value);
    }

    Location loc = nest.getLoc();
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < outer.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(&getContext(), *knownPoints(outer, axis)));
    auto placeOf = [&](const IRMapping &map) {
      SmallVector<ValueExpr> place;
      for (unsigned axis = 0; axis < outer.getAxes().size(); ++axis)
        place.push_back(ValueExpr(map.lookupOrDefault(outer.getAxes()[axis])) -
                        getAxisRange(outer, axis).lo);
      return place;
    };
    // parallel (outer axes, inner axes) { values read; the nest's body }
    OpBuilder after(statement);
    after.setInsertionPointAfter(statement);
    SmallVector<Value> all(outer.getAxes().begin(), outer.getAxes().end());
    all.append(inner.getAxes().begin(), inner.getAxes().end());
    IRMapping map;
    ParallelOp spreadOut = copyAxes(after, loc, all, map);
    OpBuilder inside = OpBuilder::atBlockEnd(&spreadOut.getBody().front());
    for (Operation &op : block)
      if (matchConstant(&op))
        inside.clone(op, map);
    OpBuilder before(statement), store(nest);
    for (Value value : kept) {
      auto temp = TempOp::create(before, loc,
                                 TglTensorType::get(&getContext(), dims, value.getType()), "kept");
      WriteOp::create(store, loc, value, temp.getTensor(), placeOf(IRMapping()));
      map.map(value, ReadOp::create(inside, loc, temp.getTensor(), placeOf(map)));
    }
    for (Operation &op : nest.getBody().front())
      if (!op.hasTrait<OpTrait::IsTerminator>())
        inside.clone(op, map);
    eraseUnusedOps(spreadOut.getBody().front());
    nest.erase();
    return true;
  }

  static bool matchConstant(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); }
};
} // namespace
