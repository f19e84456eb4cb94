//===- TilePipeline.cpp - The passes of the tile dialect in order ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/TilePipeline.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/tile/TilePasses.h"
#include "strategies/StatementMatches.h"

using namespace mlir;
using namespace tegula;

using Passes = std::vector<std::unique_ptr<Pass>>;

static Passes tilePasses() {
  Passes passes;
  passes.push_back(createFormTilesPass());
  passes.push_back(createMergeTileLoopsPass());
  passes.push_back(createSplitPrecisionPass());
  return passes;
}

static Passes placePasses(const TargetInfo &target) {
  AssignLayoutsPassOptions layoutOptions;
  layoutOptions.target = target.text();
  SpecializeWarpsPassOptions roleOptions;
  roleOptions.target = target.text();
  PipelineLoopsPassOptions pipelineOptions;
  pipelineOptions.target = target.text();
  Passes passes;
  passes.push_back(createStreamOperandsPass());
  passes.push_back(createAssignLayoutsPass(layoutOptions));
  passes.push_back(createChooseCopiesPass());
  passes.push_back(createSpecializeWarpsPass(roleOptions));
  passes.push_back(createPipelineLoopsPass(pipelineOptions));
  passes.push_back(createAllocateSharedPass());
  return passes;
}

static void add(OpPassManager &manager, const PipelineOptions &options, Passes passes) {
  for (std::unique_ptr<Pass> &pass : passes) {
    StringRef flag = pass->getArgument();
    if ((options.runs && !options.runs->shouldRun(flag, "")) ||
        llvm::is_contained(options.disabled, flag))
      continue;
    if (auto *counted = dynamic_cast<CountedBase *>(pass.get()))
      counted->counters = options.counters;
    if (auto *matching = dynamic_cast<MatchingPass *>(pass.get()); matching && options.matches)
      matching->matches = options.matches;
    manager.addNestedPass<tgl::KernelOp>(std::move(pass));
  }
}

void tegula::buildTilePipeline(OpPassManager &manager, const PipelineOptions &options) {
  add(manager, options, tilePasses());
}
void tegula::buildPlacePipeline(OpPassManager &manager, const PipelineOptions &options) {
  add(manager, options, placePasses(options.target));
}

std::vector<PipelinePass> tegula::tilePipelinePasses() {
  std::vector<PipelinePass> result;
  auto list = [&](const Passes &passes) {
    for (const std::unique_ptr<Pass> &pass : passes)
      result.push_back({pass->getArgument().str(), pass->getDescription().str(), Phase::Lower,
                        /*onCpu=*/false, /*onGpu=*/true});
  };
  list(tilePasses());
  list(placePasses(TargetInfo::measured()));
  return result;
}

void tegula::registerTilePasses(const std::shared_ptr<Counters> &counters) {
  auto registerCounted = [&](auto create) {
    registerPass([create, counters] {
      std::unique_ptr<Pass> pass = create();
      if (auto *counted = dynamic_cast<CountedBase *>(pass.get()))
        counted->counters = counters;
      return pass;
    });
  };
  registerCounted([] { return createFormTilesPass(); });
  registerCounted([] { return createMergeTileLoopsPass(); });
  registerCounted([] { return createSplitPrecisionPass(); });
  registerCounted([] { return createStreamOperandsPass(); });
  registerCounted([] { return createAssignLayoutsPass(); });
  registerCounted([] { return createChooseCopiesPass(); });
  registerCounted([] { return createSpecializeWarpsPass(); });
  registerCounted([] { return createPipelineLoopsPass(); });
  registerCounted([] { return createAllocateSharedPass(); });
}
