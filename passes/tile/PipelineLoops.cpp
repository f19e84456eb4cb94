//===- PipelineLoops.cpp - Copies of operands ahead of products ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"
#include "passes/tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_PIPELINELOOPSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
/// A loop whose steps are `barrier`, copies, `commit`, `await`, `barrier`, products and waits for
/// them, and loops around it that have nothing else to do with shared memory. What comes as bytes
/// is unpacked before the products that take it, which one more barrier divides from that.
class Nest {
public:
  /// Nothing where the loop is no such.
  static std::optional<Nest> around(tile::ForOp inner) {
    Nest nest;
    if (!nest.matchStep(inner))
      return std::nullopt;
    nest.loops = {inner};
    if (!nest.canGoAhead())
      return std::nullopt;
    while (auto outer = dyn_cast<tile::ForOp>(nest.loops.front()->getParentOp())) {
      nest.loops.insert(nest.loops.begin(), outer);
      if (nest.isAlone() && nest.canGoAhead())
        continue;
      nest.loops.erase(nest.loops.begin());
      break;
    }
    nest.canGoAhead(); // what copies need in these loops
    return nest;
  }

  tile::ForOp outermost() const { return loops.front(); }

  /// Whether products are under way when their step ends.
  bool isAsynchronous() const { return !productWaits.empty(); }

  /// Registers of a block that the sums of its products take.
  int64_t accumulators() const {
    int64_t elements = 0;
    for (tile::AwaitProductsOp wait : productWaits)
      elements += wait.getSums().getType().getShape()[0] * wait.getSums().getType().getShape()[1];
    return elements;
  }

  /// Whether operands are unpacked.
  bool hasUnpacks() const { return !unpacks.empty(); }

  /// Bytes of a step's operands.
  int64_t stageBytes() const {
    int64_t bytes = 0;
    for (tile::CopyOp copy : copies)
      bytes += allocOf(copy).getBytes();
    return bytes;
  }

  /// Nothing where data or sizes decide.
  std::optional<int64_t> knownSteps() const {
    int64_t steps = 1;
    for (tile::ForOp loop : loops) {
      std::optional<int64_t> extent = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
      if (!extent)
        return std::nullopt;
      steps *= std::max<int64_t>(0, llvm::divideCeil(*extent, int64_t(loop.getStep())));
    }
    return steps;
  }

  void pipeline(unsigned stages);

private:
  /// Steps that copies are ahead of products: the stage that they go to has been left.
  unsigned numAhead(unsigned stages) const { return stages - (isAsynchronous() ? 2 : 1); }

  SmallVector<tile::ForOp> loops; ///< outermost first
  SmallVector<tile::CopyOp> copies;
  SmallVector<tile::BarrierOp>
      barriers; ///< before the copies, behind them, where tiles are unpacked
  tile::CommitOp commit;
  tile::AwaitOp await;
  SmallVector<tile::UnpackOp> unpacks;
  SmallVector<tile::AwaitProductsOp> productWaits; ///< one behind each product
  llvm::SetVector<Operation *> needed; ///< ops of the loops that copies use, definitions first
  DenseMap<Operation *, Value> rings;  ///< by copy

  static tile::AllocOp allocOf(tile::CopyOp copy) {
    return copy.getTarget().getDefiningOp<tile::AllocOp>();
  }

  bool matchStep(tile::ForOp inner);
  bool isAlone() const;
  bool canGoAhead();
  bool isNeeded(Value value);
  Value start(OpBuilder &builder, tile::AdvanceOp advance);
  void carry(ValueRange values);
  SmallVector<Value> step(ValueRange carried, unsigned stages);
};
} // namespace

/// The ops of a step come in the order of their kinds.
bool Nest::matchStep(tile::ForOp inner) {
  for (Operation &op : inner.getBody().front().without_terminator()) {
    if (auto barrier = dyn_cast<tile::BarrierOp>(op))
      barriers.push_back(barrier);
    else if (auto copy = dyn_cast<tile::CopyOp>(op))
      copies.push_back(copy);
    else if (auto one = dyn_cast<tile::CommitOp>(op); one && !commit)
      commit = one;
    else if (auto one = dyn_cast<tile::AwaitOp>(op); one && !await)
      await = one;
    else if (auto wait = dyn_cast<tile::AwaitProductsOp>(op))
      productWaits.push_back(wait);
    else if (auto unpack = dyn_cast<tile::UnpackOp>(op))
      unpacks.push_back(unpack);
    else if (!isPure(&op) && !isa<tile::MmaOp, tile::MapOp, tile::OperandOp>(op))
      return false;
  }
  // A tile that is unpacked is there once: no product of the step before may still read it.
  bool areUnpacked = unpacks.empty() ? barriers.size() == 2
                                     : barriers.size() > 2 && productWaits.empty() &&
                                           barriers[1]->isBeforeInBlock(unpacks.front());
  if (!areUnpacked || copies.empty() || !commit || !await ||
      await.getToken() != commit.getResult() || !await->isBeforeInBlock(barriers[1]))
    return false;
  // A product goes on from that of the step before, which therefore has ended when it is waited
  // for.
  for (tile::AwaitProductsOp wait : productWaits) {
    auto product = wait.getSums().getDefiningOp<tile::MmaOp>();
    if (!product || product->getBlock() != wait->getBlock() ||
        !llvm::is_contained(inner.getIterArgs(), product.getC()))
      return false;
  }
  for (tile::CopyOp copy : copies) {
    tile::AllocOp alloc = allocOf(copy);
    if (!alloc || !isa<tile::SharedType>(alloc.getType()) || copy->isBeforeInBlock(barriers[0]) ||
        commit->isBeforeInBlock(copy))
      return false;
    for (Operation *user : alloc->getUsers()) {
      bool isUse = isa<tile::MmaOp, tile::UnpackOp>(user) && user->getBlock() == copy->getBlock() &&
                   barriers[1]->isBeforeInBlock(user);
      if (user != copy && !isUse)
        return false;
    }
  }
  return true;
}

/// Whether the outermost loop has, beside the one inside, only what computes values, and that one's
/// bounds are the same in each of its turns.
bool Nest::isAlone() const {
  tile::ForOp outer = loops[0], inside = loops[1];
  for (Operation &op : outer.getBody().front().without_terminator())
    if (&op != inside && !isPure(&op) && !isa<tile::MapOp, tile::ReadyOp>(op))
      return false;
  return llvm::none_of(inside.getIndices(), [&](Value index) {
    return outer.getBody().isAncestor(index.getParentRegion());
  });
}

/// Whether copies need nothing of the loops but their variables.
bool Nest::canGoAhead() {
  needed.clear();
  return llvm::all_of(copies, [&](tile::CopyOp copy) {
    bool isKnown = true;
    copy->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!copy->isAncestor(operand.getParentBlock()->getParentOp()))
          isKnown &= isNeeded(operand);
    });
    return isKnown;
  });
}

bool Nest::isNeeded(Value value) {
  if (!loops.front().getBody().isAncestor(value.getParentRegion()))
    return true;
  for (tile::ForOp loop : loops)
    if (value == loop.getLoopVar())
      return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isPure(op) ||
      !llvm::all_of(op->getOperands(), [&](Value operand) { return isNeeded(operand); }))
    return false;
  needed.insert(op);
  return true;
}

/// Starts the copies of a step, where there is one; their token.
Value Nest::start(OpBuilder &builder, tile::AdvanceOp advance) {
  Location loc = outermost()->getLoc();
  auto ifExists = tile::IfOp::create(builder, loc, advance.getExists());
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&ifExists.getBody().front());
    IRMapping mapping;
    for (auto [loop, at] : llvm::zip_equal(loops, advance.getAt()))
      mapping.map(loop.getLoopVar(), at);
    for (Operation *op : needed)
      builder.clone(*op, mapping);
    for (tile::CopyOp copy : copies) {
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
void Nest::carry(ValueRange values) {
  for (tile::ForOp &loop : loops) {
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
SmallVector<Value> Nest::step(ValueRange carried, unsigned stages) {
  OpBuilder builder(barriers[1]);
  Location loc = barriers[1].getLoc();
  unsigned distance = numAhead(stages);
  ValueRange tokens = carried.take_front(distance);
  tile::AwaitOp::create(builder, loc, tokens.front());
  // All have what they waited for, and have left the step before, or the one before that.
  tile::BarrierOp::create(builder, loc, barriers[1].getPublish());
  auto ahead =
      tile::AdvanceOp::create(builder, outermost()->getLoc(), loops, carried.drop_front(distance));
  Value token;
  if (!isAsynchronous())
    token = start(builder, ahead);
  for (tile::CopyOp copy : copies) {
    // The step that is before `ahead` by the distance, round the ring.
    Value stage =
        tile::StageOp::create(builder, loc, rings.lookup(copy),
                              ValueExpr(ahead.getNumber()) + ValueExpr(int64_t(stages - distance)));
    copy.getTarget().replaceUsesWithIf(
        stage, [&](OpOperand &use) { return isa<tile::MmaOp, tile::UnpackOp>(use.getOwner()); });
  }
  if (isAsynchronous()) {
    // Copies while the product runs, then a wait for that of the step before.
    builder.setInsertionPointAfter(productWaits.back());
    token = start(builder, ahead);
    for (tile::AwaitProductsOp wait : productWaits) {
      auto product = wait.getSums().getDefiningOp<tile::MmaOp>();
      tile::AwaitProductsOp::create(builder, wait.getLoc(), product.getC());
      wait->erase();
    }
  }
  await->erase();
  commit->erase();
  for (tile::BarrierOp barrier : ArrayRef(barriers).take_front(2))
    barrier->erase();
  for (tile::CopyOp copy : copies) {
    tile::AllocOp alloc = allocOf(copy);
    copy->erase();
    alloc->erase();
  }
  for (Operation *op : llvm::reverse(needed))
    if (isOpTriviallyDead(op))
      op->erase();
  SmallVector<Value> after(tokens.drop_front());
  after.push_back(token);
  after.push_back(ahead.getNumber());
  llvm::append_range(after, ahead.getAt());
  return after;
}

void Nest::pipeline(unsigned stages) {
  OpBuilder builder(outermost());
  Location loc = outermost().getLoc();
  for (tile::CopyOp copy : copies) {
    tile::AllocOp alloc = allocOf(copy);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(alloc);
    auto type =
        tile::RingType::get(builder.getContext(), stages, cast<tile::SharedType>(alloc.getType()));
    rings[copy] = tile::AllocOp::create(builder, alloc.getLoc(), type, IntegerAttr());
  }
  // In the last turn of a loop around others may still multiply.
  if (isa<tile::ForOp>(outermost()->getParentOp()))
    tile::BarrierOp::create(builder, loc);
  SmallVector<Value> carried, last;
  for (unsigned step = 0; step < numAhead(stages); ++step) {
    auto advance = tile::AdvanceOp::create(builder, loc, loops, last);
    carried.push_back(start(builder, advance));
    last = {advance.getNumber()};
    llvm::append_range(last, advance.getAt());
  }
  llvm::append_range(carried, last);
  size_t count = carried.size();
  carry(carried);
  SmallVector<Value> after = step(loops.back().getIterArgs().take_back(count), stages);
  for (tile::ForOp loop : llvm::reverse(loops)) {
    loop.getYield().getValuesMutable().append(after);
    llvm::copy(loop.getResults().take_back(count), after.begin());
  }
}

/// The op of the kernel's block that the nest is in, or is: nests of one have memory at a time.
static Operation *placeOf(tile::KernelOp kernel, const Nest &nest) {
  return kernel.getBody().front().findAncestorOpInBlock(*nest.outermost());
}

/// Bytes of shared memory beside the nests'.
static int64_t otherBytes(tile::KernelOp kernel, ArrayRef<Nest> nests) {
  int64_t bytes = 0;
  kernel.getBody().walk([&](tile::AllocOp alloc) { bytes += alloc.getBytes(); });
  for (const Nest &nest : nests)
    bytes -= nest.stageBytes();
  return bytes;
}

/// As many stages as hide the latency of memory, or as fit; 0: none. Blocks of one warp share a
/// multiprocessor with those of its other partitions. Where unpacking makes their steps long they
/// have few stages each: then there is room for others, which hide what one waits for.
static unsigned numStages(const Nest &nest, int64_t bytes, int64_t threads) {
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
      std::vector<Nest> nests;
      kernel.getBody().walk([&](tile::ForOp loop) {
        if (std::optional<Nest> nest = Nest::around(loop))
          nests.push_back(std::move(*nest));
      });
      int64_t bytes = machine->sharedBytes - otherBytes(kernel, nests);
      DenseMap<Operation *, unsigned> together;
      for (const Nest &nest : nests)
        ++together[placeOf(kernel, nest)];
      SmallVector<unsigned> counts;
      for (const Nest &nest : nests)
        counts.push_back(
            numStages(nest, bytes / together[placeOf(kernel, nest)], *kernel.getThreads()));
      for (auto [nest, stages] : llvm::zip_equal(nests, counts)) {
        if (!stages)
          continue;
        nest.pipeline(stages);
        count("loops pipelined");
        count("stages", stages);
      }
    });
  }
};
} // namespace
