//===- Schedule.cpp - A strategy and a mapping for each launch -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Remarks.h"
#include "passes/Passes.h"
#include "strategies/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
struct SchedulePass : Counted<tegula::impl::SchedulePassBase<SchedulePass>> {
  using Counted::Counted;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    ScheduleRequest request{*machine, tensorTile, !llvm::is_contained(without, "async-stores")};
    ScheduleCounts counts; // of all launches: `tensorTile` goes by the number of the statement
    getOperation().walk([&](LaunchOp launch) {
      for (const Strategy *strategy : strategies())
        if (!llvm::is_contained(without, strategy->name()) && strategy->applies(launch, request)) {
          strategy->schedule(launch, request, counts);
          launch.setStrategy(strategy->name());
          remark::passed(launch.getLoc(), remark::RemarkOpts::name("strategy")
                                              .category(strategy->name())
                                              .function(launch.getName()));
          break;
        }
    });
    count("parallels reordered", counts.axesReordered);
    count("statements tiled for tensor cores", counts.tiled);
    count("loops with resident weights", counts.resident);
  }
};
} // namespace
