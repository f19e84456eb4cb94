//===- Schedule.cpp - A strategy and a mapping for each launch -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Invariance.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Remarks.h"
#include "passes/Passes.h"
#include "passes/schedule/ApproximateFunctions.h"
#include "strategies/StatementMatches.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "support/Switches.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Rounds what the statement computes as it is written. Whether a product and a sum become one
/// instruction follows from where code for a tile's shape puts them.
static void keepRoundings(ParallelOp op) {
  op->walk([](arith::ArithFastMathInterface each) {
    auto given = each.getFastMathFlagsAttr();
    if (given && bitEnumContainsAny(given.getValue(), arith::FastMathFlags::contract))
      each->setAttr(each.getFastMathAttrName(),
                    arith::FastMathFlagsAttr::get(
                        each->getContext(), given.getValue() & ~arith::FastMathFlags::contract));
  });
}

namespace {
struct SchedulePass : Counted<tegula::impl::SchedulePassBase<SchedulePass>>, MatchingPass {
  using Counted::Counted;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    std::vector<std::string> off(without.begin(), without.end());
    SmallVector<ScheduleSetting> settings = scheduleSettings(getOperation());
    ScheduleRequest request{*machine, tensorTile, off, settings};
    unsigned approximated = 0;
    ScheduleCounts counts; // of all launches: `tensorTile` goes by the number of the statement
    getOperation().walk([&](LaunchOp launch) {
      orderAxes(launch, counts);
      for (const Strategy *strategy : strategies())
        if (!request.isOff(strategy->name()) && strategy->isFor(request.target) &&
            schedule(launch, *strategy, request, counts))
          break;
      if (request.target.isGpu() && launch.getStrategy() == generalStrategy().name() &&
          !request.isOff(shortFunctions))
        approximated += approximateFunctions(launch);
    });
    count("parallels reordered", counts.axesReordered);
    count("statements tiled for tensor cores", counts.tiled);
    count("loops with resident weights", counts.resident);
    count("functions approximated", approximated);
  }

  /// Whether the strategy computes the launch: some statement of it, or, if no other strategy does,
  /// whatever it has. Where it does not, and somebody listens, remarks say why.
  bool schedule(LaunchOp launch, const Strategy &strategy, ScheduleRequest &request,
                ScheduleCounts &counts) {
    SmallVector<Mismatch> mismatches;
    bool isTaken = !strategy.isOptional();
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>()) {
      request.tiledBefore = counts.tiled;
      Strategy::Match match = strategy.match(op, request);
      if (!match) {
        mismatches.push_back(match.mismatch());
        if (!mismatches.back().where)
          mismatches.back().where = op;
        continue;
      }
      isTaken = true;
      ++strategy.counterIn(counts);
      op->setAttr(strategy.attributeName(), (*match)->attribute());
      if (TensorTile::of(op) && !Invariance::of(op).isFree()) // launches have several shapes
        keepRoundings(op);
      matches->keep(std::move(*match));
    }
    if (!isTaken) {
      for (const Mismatch &mismatch : mismatches)
        if (!mismatch.reason.empty())
          remarkMismatch(launch, strategy.name(), mismatch);
      return false;
    }
    launch.setStrategy(strategy.name());
    remark::passed(
        launch.getLoc(),
        remark::RemarkOpts::name("strategy").category(strategy.name()).function(launch.getName()));
    return true;
  }
};
} // namespace
