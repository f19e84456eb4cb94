//===- ContractionLowering.cpp - Launches of a matrix product -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/ContractionStrategy.h"
#include "strategies/contraction/lower/DeviceContraction.h"
#include "strategies/lower/StrategyLowering.h"

using namespace llvm;
using namespace tegula;

namespace {
class ContractionLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &options) const override {
    return options.checked ? Coverage::None : Coverage::WithGeneral;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    const auto &contraction = cast<ContractionMatch>(match);
    const auto &[plan, operands] = contraction.product;
    PlanTiles &tiles = statement.step.tiles;
    const std::string &name = statement.name;
    ContractionNumbers numbers(statement.options(), plan, contraction.tile, operands);
    tiles.workspaceBytes = numbers.workspaceBytes();
    tiles.largestNumber = numbers.largestNumber();
    statement.align(numbers.alignedTensors());
    if (numbers.isPrepacked())
      emit(statement, numbers,
           {name + "_pack", numbers.prepackBlocks(), numbers.prepackThreads(),
            numbers.prepackSharedBytes(), "lines of operands split"},
           &DeviceContraction::emitPrepack);
    if (numbers.usesTma() && !numbers.makesTmaDescriptors())
      emit(statement, numbers,
           {name + "_maps", 1, numbers.tmaDescriptorThreads(), 0, "maps of operands"},
           &DeviceContraction::emitTmaDescriptors);
    emit(statement, numbers,
         {name + "_tile", numbers.numBlocks(), numbers.blockThreads(), numbers.sharedBytes(),
          "a tile", numbers.cluster()},
         &DeviceContraction::emitTile);
    if (numbers.storesPartials())
      emitCombine(statement, numbers);
    if (std::optional<ContractionNumbers::RemainderTiles> left = numbers.remainderTiles())
      emitCombine(statement,
                  ContractionNumbers(statement.options(), plan, left->tile, operands, left->range));
    if (!numbers.numTiles().isSize()) // it changes in a loop on the host
      tiles = {};
  }

private:
  using Body = void (DeviceContraction::*)(Value *workspace);

  static void emit(StatementLowering &statement, const ContractionNumbers &numbers,
                   const PlanTileLaunch &launch, Body body) {
    statement.emitTileLaunch(launch, [&](DeviceEmitter &emitter, Value *workspace) {
      DeviceContraction contraction(emitter, numbers);
      (contraction.*body)(workspace);
      if (body == &DeviceContraction::emitTile)
        statement.kernel.code.layouts.push_back(contraction.layout(launch.function));
    });
  }

  static void emitCombine(StatementLowering &statement, const ContractionNumbers &numbers) {
    PlanTileLaunch launch{statement.name + "_combine", numbers.numCombineBlocks(),
                          numbers.blockThreads(), numbers.combineSharedBytes(),
                          "a tile's parts added up"};
    launch.usesDependentLaunch = statement.options().earlyCombine;
    emit(statement, numbers, launch, &DeviceContraction::emitCombine);
  }
};
} // namespace

const StrategyLowering &tegula::contractionLowering() {
  static const ContractionLowering instance;
  return instance;
}
