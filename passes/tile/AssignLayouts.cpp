//===- AssignLayouts.cpp - Layouts of tiles, and shared memory of operands -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "passes/Passes.h"
#include "passes/tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tegula;

namespace tegula {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

static bool isInRegisters(tile::OperandOp operand) { return !operand.getInputs().empty(); }

/// Warps one above the other, of 32 rows where that comes out even; of 16 where each carries the
/// sums of a second product too.
static tile::FragmentLayout layoutFor(MLIRContext *context, int64_t rows, bool isChained) {
  constexpr int64_t maxWarps = 8, usualRows = 32, minRows = 16;
  int64_t each = rows % usualRows == 0 && !isChained ? usualRows : minRows;
  while (rows / each > maxWarps)
    each *= 2;
  return cast<tile::FragmentLayout>(Attribute(tile::MmaLayoutAttr::get(context, rows / each, 1)));
}

static Type withLayout(Type type, tile::FragmentLayout layout) {
  if (auto value = dyn_cast<tile::TileType>(type))
    return tile::TileType::get(type.getContext(), value.getShape(), value.getElementType(), layout);
  if (auto state = dyn_cast<tile::StateType>(type))
    return tile::StateType::get(type.getContext(), state.getKind(), state.getRows(),
                                state.getElementType(), layout);
  return type;
}

/// Whether neighbours along the sum are neighbours in memory.
static bool isKMajor(tile::OperandOp operand) {
  auto read = operand.getYielded().getDefiningOp<tgl::ReadOp>();
  if (!read)
    return true;
  tgl::ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  return stepAlong(offset, operand.getBody().getArgument(0)) != 1;
}

static tile::OperandOp operandOf(Value factor) { return factor.getDefiningOp<tile::OperandOp>(); }

/// Warpgroups of 64 rows each, where wgmma can multiply all products, from shared memory; null: it
/// cannot, or does not pay: of fewer than 128 columns each product reads its rows more often than
/// shared memory gives them.
static tile::FragmentLayout warpgroupsFor(ArrayRef<tile::DotOp> products,
                                          const TargetInfo &target) {
  using Wgmma = tile::WgmmaLayoutAttr;
  constexpr int64_t minColumns = 128, maxRows = 8 * Wgmma::rows;
  int64_t rows = tile::DotOp(products.front()).getType().getShape()[0];
  if (!target.hasWgmma || rows % Wgmma::rows != 0 || rows > maxRows)
    return {};
  for (tile::DotOp dot : products) {
    ArrayRef<int64_t> shape = dot.getType().getShape();
    if (dot.getSplit() || shape[0] != rows || shape[1] % Wgmma::columnUnit != 0 ||
        shape[1] < minColumns || shape[1] > Wgmma::maxColumns)
      return {};
    for (Value factor : {dot.getA(), dot.getB()}) {
      tile::OperandOp operand = operandOf(factor);
      if (isInRegisters(operand) || !isKMajor(operand) ||
          operand.getType().getElementType().getIntOrFloatBitWidth() != 16)
        return {};
    }
  }
  return cast<tile::FragmentLayout>(
      Attribute(Wgmma::get(tile::DotOp(products.front()).getContext(), rows / Wgmma::rows)));
}

/// Values of sums that are under way, where they are used by anything but products, waits and
/// loops.
static void makeReady(tile::KernelOp kernel) {
  llvm::SetVector<Value> underWay;
  kernel.getBody().walk([&](tile::MmaOp mma) { underWay.insert(mma.getResult()); });
  for (size_t next = 0; next < underWay.size(); ++next) { // grows
    Value sums = underWay[next];
    SmallVector<OpOperand *> uses;
    auto follow = [&](tile::ForOp loop, unsigned number) {
      underWay.insert(loop.getIterArgs()[number]);
      underWay.insert(loop.getResult(number));
    };
    for (OpOperand &use : sums.getUses()) {
      Operation *user = use.getOwner();
      if (auto loop = dyn_cast<tile::ForOp>(user))
        follow(loop, use.getOperandNumber() - loop.getIndices().size());
      else if (auto loop = dyn_cast<tile::ForOp>(user->getParentOp());
               loop && isa<tile::YieldOp>(user))
        follow(loop, use.getOperandNumber());
      else if (!isa<tile::MmaOp, tile::AwaitProductsOp>(user))
        uses.push_back(&use);
    }
    if (uses.empty())
      continue;
    OpBuilder builder(kernel.getContext());
    builder.setInsertionPointAfterValue(sums);
    Value ready = tile::ReadyOp::create(builder, sums.getLoc(), sums);
    for (OpOperand *use : uses)
      use->set(ready);
  }
}

/// An operand's tile in shared memory, and the copy that fills it.
static Value placeOperand(tile::OperandOp operand, Block &kernel) {
  OpBuilder builder(&kernel, kernel.begin());
  auto type = tile::SharedType::get(operand.getContext(), operand.getType().getShape(),
                                    operand.getType().getElementType(), isKMajor(operand));
  Value shared = tile::AllocOp::create(builder, operand.getLoc(), type, IntegerAttr());
  builder.setInsertionPoint(operand);
  auto copy = tile::CopyOp::create(builder, operand.getLoc(), tile::CopyKind::Registers,
                                   operand.getSpans(), shared);
  copy.getBody().takeBody(operand.getBody());
  if (operand.getNames())
    copy.setNamesAttr(*operand.getNames());
  return shared;
}

/// Barriers between the block's copies and the products that use them: before the first copy after
/// products, which may be those of the last turn of a loop, and before the first product after
/// copies. `publish`: products have a way of their own to shared memory.
static void synchronize(Block &block, bool publish) {
  bool isCopied = false, isUsed = true;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool copies = isa<tile::CopyOp>(op), multiplies = false;
    op.walk([&](tile::MmaOp) { multiplies = true; });
    OpBuilder builder(&op);
    if ((copies && isUsed) || (multiplies && isCopied))
      tile::BarrierOp::create(builder, op.getLoc(), publish && !copies);
    if (copies)
      isCopied = true, isUsed = false;
    else if (multiplies)
      isCopied = false, isUsed = true;
    for (Region &region : op.getRegions())
      if (isa<tile::ForOp>(op))
        synchronize(region.front(), publish);
  }
}

static LogicalResult place(tile::KernelOp kernel, const TargetInfo &target) {
  SmallVector<tile::DotOp> products;
  kernel.getBody().walk([&](tile::DotOp dot) { products.push_back(dot); });
  if (products.empty() || kernel.isPlaced())
    return success();
  constexpr int64_t depthBytes = 128, stepBytes = 32;
  for (tile::DotOp dot : products) {
    tile::OperandOp a = operandOf(dot.getA()), b = operandOf(dot.getB());
    int64_t bytes = dot.getA().getType().getShape()[1] *
                    dot.getA().getType().getElementType().getIntOrFloatBitWidth() / 8;
    auto isOfProducts = [](tile::OperandOp operand) {
      return operand && llvm::all_of(operand->getUsers(), llvm::IsaPred<tile::DotOp>);
    };
    bool isSplit = dot.getSplit() == dot.getA().getType().getElementType().isF32();
    if (!isOfProducts(a) || !isOfProducts(b) || !isSplit || isInRegisters(b))
      return success(); // it stays abstract
    // A line in memory along K has a length, a factor in registers and lines across K have steps.
    bool isInSteps = isInRegisters(a) && !isKMajor(b) && bytes % stepBytes == 0;
    if (bytes != depthBytes && !isInSteps)
      return success();
  }
  tile::FragmentLayout layout = warpgroupsFor(products, target);
  if (!layout)
    layout = layoutFor(kernel.getContext(), products.front().getType().getShape()[0],
                       llvm::any_of(products, [](tile::DotOp dot) {
                         return isInRegisters(operandOf(dot.getA()));
                       }));
  DenseMap<Operation *, Value> shared; // by operand, which several products may have
  for (tile::DotOp dot : products) {
    for (Value operand : {dot.getA(), dot.getB()}) {
      Value &place = shared[operand.getDefiningOp()];
      if (!place)
        place = isInRegisters(operandOf(operand))
                    ? operand
                    : placeOperand(operandOf(operand), kernel.getBody().front());
    }
    OpBuilder builder(dot);
    auto mma =
        tile::MmaOp::create(builder, dot.getLoc(), shared.lookup(dot.getA().getDefiningOp()),
                            shared.lookup(dot.getB().getDefiningOp()), dot.getC(), dot.getSplit());
    if (layout.isAsynchronous())
      tile::AwaitProductsOp::create(builder, dot.getLoc(), mma.getResult());
    dot.replaceAllUsesWith(mma.getResult());
    dot.erase();
  }
  for (auto [operand, place] : shared)
    if (!isInRegisters(cast<tile::OperandOp>(operand)))
      operand->erase();
  synchronize(kernel.getBody().front(), layout.isAsynchronous());
  kernel.getBody().walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(withLayout(result.getType(), layout));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        argument.setType(withLayout(argument.getType(), layout));
  });
  if (layout.isAsynchronous())
    makeReady(kernel);
  kernel.setThreads(layout.getThreads());
  return success();
}

namespace {
struct AssignLayoutsPass : Counted<tegula::impl::AssignLayoutsPassBase<AssignLayoutsPass>> {
  using Base = Counted<tegula::impl::AssignLayoutsPassBase<AssignLayoutsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    unsigned placed = 0;
    WalkResult result = getOperation().walk([&](tile::KernelOp kernel) {
      if (failed(place(kernel, *machine)))
        return WalkResult::interrupt();
      placed += kernel.isPlaced();
      return WalkResult::skip();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    count("kernels with layouts", placed);
  }
};
} // namespace
