//===- TileLoopLowering.cpp - Launches of a fused tile loop ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/TileLoopStrategy.h"
#include "strategies/lower/StrategyLowering.h"
#include "strategies/tile_loop/lower/FusedTileLoop.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// What the function does is for launches without a workspace, or of which its first word is not
/// 0.
static void returnUnlessFlagged(Function &function) {
  BasicBlock &entry = function.getEntryBlock();
  auto isWait = [](const Instruction &instruction) { // for the launch that leaves the word
    auto *call = dyn_cast<IntrinsicInst>(&instruction);
    return call && call->getIntrinsicID() == Intrinsic::nvvm_griddepcontrol_wait;
  };
  auto place = entry.getFirstNonPHIOrDbgOrAlloca();
  if (auto wait = find_if(entry, isWait); wait != entry.end())
    place = std::next(wait);
  BasicBlock *body = entry.splitBasicBlock(place, "body");
  LLVMContext &context = function.getContext();
  BasicBlock *ask = BasicBlock::Create(context, "ask", &function, body);
  BasicBlock *end = BasicBlock::Create(context, "done", &function);
  entry.getTerminator()->eraseFromParent();
  Value *workspace = function.getArg(function.arg_size() - 1);
  IRBuilder<> b(&entry);
  b.CreateCondBr(b.CreateIsNull(workspace), body, ask);
  b.SetInsertPoint(ask);
  b.CreateCondBr(b.CreateIsNull(b.CreateAlignedLoad(b.getInt32Ty(), workspace, Align(4))), end,
                 body);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
}

namespace {
class TileLoopLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &options) const override {
    return options.checked || !options.target.hasWgmma ? Coverage::None : Coverage::WithGeneral;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    const auto &loop = cast<TileLoopMatch>(match);
    DeviceEmitter none = statement.kernel.newEmitter();
    FusedTileLoop facts(none, loop.plan, loop.shape); // what the host knows of it
    statement.align(facts.block().alignedTensors());
    auto emit = [&](PlanTileLaunch launch, void (FusedTileLoop::*body)(Value *workspace)) {
      statement.emitTileLaunch(std::move(launch), [&](DeviceEmitter &emitter, Value *workspace) {
        FusedTileLoop rows(emitter, loop.plan, loop.shape);
        (rows.*body)(workspace);
      });
    };
    const std::string &name = statement.name;
    if (!facts.block().numBlocks().asConstant())
      statement.step.tiles.largestNumber = facts.block().numBlocks();
    if (facts.block().usesSplitPrecision()) {
      statement.step.tiles.workspaceBytes = facts.precision().workspaceBytes();
      emit({name + "_largest", facts.precision().numBlocks(), TileLoopBlock::splitPrecisionThreads,
            0, "largest numbers of factors"},
           &FusedTileLoop::emitLargest);
      emit({name + "_planes", facts.precision().numBlocks(), TileLoopBlock::splitPrecisionThreads,
            0, "factors split"},
           &FusedTileLoop::emitSplitPrecision);
    }
    if (!loop.plan.masks.empty()) {
      statement.step.tiles.workspaceBytes = facts.block().maskRanges->end();
      statement.emitTileLaunch({name + "_ranges", facts.block().maskRanges->count(),
                                MaskRanges::threads, MaskRanges::sharedBytes,
                                "ranges of columns that rows see"},
                               [&](DeviceEmitter &emitter, Value *workspace) {
                                 TileLoopBlock block(emitter, loop.plan, loop.shape);
                                 block.maskRanges->emit(workspace);
                               });
    }
    emit({name + "_rows", facts.block().numBlocks(), facts.block().threads(),
          facts.block().sharedBytes(), "rows together", facts.block().cluster()},
         &FusedTileLoop::emit);
    if (facts.block().usesSplitPrecision())
      emitAgain(statement);
  }

private:
  /// After tiles that may have a doubt: the statement's general code, for which they leave a word.
  static void emitAgain(StatementLowering &statement) {
    constexpr int64_t blocksOfMultiprocessor = 4;
    constexpr const char *unit = "points again, where the accuracy check fails";
    KernelLowering &kernel = statement.kernel;
    int64_t blocks = blocksOfMultiprocessor * kernel.options.target.multiprocessors;
    PlanStep &step = statement.step;
    PlanTiles &tiles = step.tiles;
    // One function is both where the general launch has no workspace.
    const PlanFunction &general = step.byTeam.name.empty() ? step.byThread : step.byTeam;
    if (general.cluster == 1 && general.workspaceBytes == IndexExpr(0)) {
      returnUnlessFlagged(*kernel.module.getFunction(general.name));
      tiles.launches.push_back({general.name, blocks, general.threads, general.sharedBytes, unit});
      return;
    }
    EmitterOptions alone = kernel.options;
    alone.target.clusterBlocks = 1;
    DeviceEmitter emitter(kernel.module, alone, kernel.code.sites);
    std::string name = statement.name + "_again";
    DeviceShape shape = statement.team;
    IndexExpr ofBlock = emitter.emitFunction(statement.ordered, name, statement.inputs,
                                             statement.outer, shape, &tiles.workspaceBytes);
    tiles.workspaceBytes = tiles.workspaceBytes + ofBlock * IndexExpr(blocks);
    tiles.launches.push_back({name, blocks, shape.threads, shape.sharedBytes, unit});
    kernel.finish(emitter);
  }
};
} // namespace

const StrategyLowering &tegula::tileLoopLowering() {
  static const TileLoopLowering instance;
  return instance;
}
