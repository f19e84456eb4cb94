//===- ScanLowering.cpp - The launch of a long scan -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/ScanStrategy.h"
#include "strategies/lower/StrategyLowering.h"
#include "strategies/scan/lower/LookBackScan.h"

using namespace llvm;
using namespace tegula;

namespace {
class ScanLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &options) const override {
    return options.checked ? Coverage::None : Coverage::Whole;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    DeviceEmitter emitter = statement.kernel.newEmitter();
    LookBackScan scan(emitter, statement.op, cast<ScanMatch>(match).plan);
    PlanTiles &tiles = statement.step.tiles;
    std::string function = statement.name + "_scan";
    tiles.launches = {
        {function, scan.numBlocks(), unsigned(ScanTile::threads), 0, "a part of a scan"}};
    tiles.workspaceBytes = scan.workspaceBytes();
    tiles.isZeroed = scan.looksBack();
    emitter.emitTileFunction(statement.op, function, statement.inputs, ScanTile::threads,
                             [&](Value *workspace) { scan.emit(workspace); });
    statement.kernel.finish(emitter);
  }
};
} // namespace

const StrategyLowering &tegula::scanLowering() {
  static const ScanLowering instance;
  return instance;
}
