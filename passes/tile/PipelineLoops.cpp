//===- PipelineLoops.cpp - Copies of operands ahead of products ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/tile/CopyNest.h"
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_PIPELINELOOPSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
/// Makes a pipeline of a nest.
class Pipeline {
public:
  Pipeline(CopyNest &nest, unsigned stages) : nest(nest), stages(stages) {}
  void run();

private:
  CopyNest &nest;
  unsigned stages;
  DenseMap<Operation *, Value> rings; ///< by copy

  /// Steps that copies are ahead of products: the stage that they go to has been left.
  unsigned numAhead() const { return stages - (nest.isAsynchronous() ? 2 : 1); }
  Value start(OpBuilder &builder, tile::AdvanceOp advance);
  void carry(ValueRange values);
  SmallVector<Value> step(ValueRange carried);
};
} // namespace

/// Starts the copies of a step, where there is one; their token.
Value Pipeline::start(OpBuilder &builder, tile::AdvanceOp advance) {
  Location loc = nest.outermost()->getLoc();
  auto ifExists = tile::IfOp::create(builder, loc, advance.getExists());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&ifExists.getBody().front());
    IRMapping mapping;
    for (auto [loop, at] : llvm::zip_equal(nest.loops, advance.getAt()))
      mapping.map(loop.getLoopVar(), at);
    for (Operation *op : nest.needed)
      builder.clone(*op, mapping);
    for (tile::CopyOp copy : nest.copies) {
      Value stage =
          tile::StageOp::create(builder, loc, rings.lookup(copy), ValueExpr(advance.getNumber()));
      IRMapping own = mapping;
      own.map(copy.getTarget(), stage);
      builder.clone(*copy, own);
    }
  }
  return tile::CommitOp::create(builder, loc, tile::TokenType::get(builder.getContext()));
}

/// Gives all loops these values to carry, behind their own.
void Pipeline::carry(ValueRange values) {
  for (tile::ForOp &loop : nest.loops) {
    OpBuilder builder(loop);
    SmallVector<Value> inits(loop.getInits());
    llvm::append_range(inits, values);
    auto wider = tile::ForOp::create(builder, loop.getLoc(), loop.getLowExpr(), loop.getHighExpr(),
                                     loop.getStep(), inits);
    Block &from = loop.getBody().front(), &to = wider.getBody().front();
    to.getOperations().splice(to.end(), from.getOperations());
    for (auto [old, argument] : llvm::zip(from.getArguments(), to.getArguments()))
      old.replaceAllUsesWith(argument);
    loop.replaceAllUsesWith(wider.getResults().drop_back(values.size()));
    loop.erase();
    loop = wider;
    values = wider.getIterArgs().take_back(values.size());
  }
}

/// Makes the step of the innermost loop one of the pipeline: from tokens of copies under way, the
/// oldest first, and the last step whose copies have been started, to the same a step later.
SmallVector<Value> Pipeline::step(ValueRange carried) {
  tile::BarrierOp barrier = nest.barriers[1];
  OpBuilder builder(barrier);
  Location loc = barrier.getLoc();
  unsigned distance = numAhead();
  ValueRange tokens = carried.take_front(distance);
  tile::AwaitOp::create(builder, loc, tokens.front());
  // All have what they waited for, and have left the step before, or the one before that.
  tile::BarrierOp::create(builder, loc, barrier.getPublish());
  auto ahead = tile::AdvanceOp::create(builder, nest.outermost()->getLoc(), nest.loops,
                                       carried.drop_front(distance));
  Value token;
  if (!nest.isAsynchronous())
    token = start(builder, ahead);
  nest.takeStages(
      [&](tile::CopyOp copy) -> Value {
        // The step that is before `ahead` by the distance, round the ring.
        return tile::StageOp::create(builder, loc, rings.lookup(copy),
                                     ValueExpr(ahead.getNumber()) +
                                         ValueExpr(int64_t(stages - distance)));
      },
      // Copies while the product runs, then a wait for that of the step before.
      [&](OpBuilder &behind) { token = start(behind, ahead); });
  SmallVector<Value> after(tokens.drop_front());
  after.push_back(token);
  after.push_back(ahead.getNumber());
  llvm::append_range(after, ahead.getAt());
  return after;
}

void Pipeline::run() {
  OpBuilder builder(nest.outermost());
  Location loc = nest.outermost().getLoc();
  for (tile::CopyOp copy : nest.copies) {
    tile::AllocOp alloc = CopyNest::allocOf(copy);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(alloc);
    auto type =
        tile::RingType::get(builder.getContext(), stages, cast<tile::SharedType>(alloc.getType()));
    rings[copy] = tile::AllocOp::create(builder, alloc.getLoc(), type, IntegerAttr());
  }
  // In the last turn of a loop around others may still multiply.
  if (isa<tile::ForOp>(nest.outermost()->getParentOp()))
    tile::BarrierOp::create(builder, loc);
  SmallVector<Value> carried, last;
  for (unsigned step = 0; step < numAhead(); ++step) {
    auto advance = tile::AdvanceOp::create(builder, loc, nest.loops, last);
    carried.push_back(start(builder, advance));
    last = {advance.getNumber()};
    llvm::append_range(last, advance.getAt());
  }
  llvm::append_range(carried, last);
  size_t count = carried.size();
  carry(carried);
  SmallVector<Value> after = step(nest.loops.back().getIterArgs().take_back(count));
  for (tile::ForOp loop : llvm::reverse(nest.loops)) {
    loop.getYield().getValuesMutable().append(after);
    llvm::copy(loop.getResults().take_back(count), after.begin());
  }
}

/// The op of the kernel's block that the nest is in, or is: nests of one have memory at a time.
static Operation *placeOf(tile::KernelOp kernel, const CopyNest &nest) {
  return kernel.getBody().front().findAncestorOpInBlock(*nest.outermost());
}

/// Bytes of shared memory beside the nests'.
static int64_t otherBytes(tile::KernelOp kernel, ArrayRef<CopyNest> nests) {
  int64_t bytes = 0;
  kernel.getBody().walk([&](tile::AllocOp alloc) { bytes += alloc.getBytes(); });
  for (const CopyNest &nest : nests)
    bytes -= nest.stageBytes();
  return bytes;
}

/// As many stages as hide the latency of memory, or as fit; 0: none. Blocks of one warp share a
/// multiprocessor with those of its other partitions. Where unpacking makes their steps long they
/// have few stages each: then there is room for others, which hide what one waits for.
static unsigned numStages(const CopyNest &nest, int64_t bytes, int64_t threads) {
  constexpr int64_t usual = 4, warpThreads = 32, registers = 65536;
  const int64_t least = nest.isAsynchronous() ? 3 : 2;
  bool isWarp = threads == warpThreads, hasFew = isWarp && nest.hasUnpacks();
  const int64_t blocks = isWarp ? 4 : 2 * nest.accumulators() >= registers ? 1 : 2;
  int64_t most = std::min(hasFew ? least : usual, nest.knownSteps().value_or(usual) + (least - 2));
  int64_t fit = bytes / blocks / nest.stageBytes();
  int64_t stages = std::min(most, fit < least ? std::min(least, bytes / nest.stageBytes()) : fit);
  return stages < least ? 0 : stages;
}

namespace {
struct PipelineLoopsPass : Counted<tegula::impl::PipelineLoopsPassBase<PipelineLoopsPass>> {
  using Base = Counted<tegula::impl::PipelineLoopsPassBase<PipelineLoopsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    getOperation().walk([&](tile::KernelOp kernel) {
      if (!kernel.isPlaced())
        return;
      std::vector<CopyNest> nests;
      kernel.getBody().walk([&](tile::ForOp loop) {
        if (std::optional<CopyNest> nest = CopyNest::around(loop))
          nests.push_back(std::move(*nest));
      });
      int64_t bytes = machine->sharedBytes - otherBytes(kernel, nests);
      DenseMap<Operation *, unsigned> together;
      for (const CopyNest &nest : nests)
        ++together[placeOf(kernel, nest)];
      SmallVector<unsigned> counts;
      for (const CopyNest &nest : nests)
        counts.push_back(
            numStages(nest, bytes / together[placeOf(kernel, nest)], *kernel.getThreads()));
      for (auto [nest, stages] : llvm::zip_equal(nests, counts)) {
        if (!stages)
          continue;
        Pipeline(nest, stages).run();
        count("loops pipelined");
        count("stages", stages);
      }
    });
  }
};
} // namespace
