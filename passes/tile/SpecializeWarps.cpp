//===- SpecializeWarps.cpp - Warps that load, and warps that multiply ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/tile/CopyNest.h"
#include "passes/tile/TilePasses.h"
#include "strategies/product_reduction/plan/ProductReduction.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_SPECIALIZEWARPSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

static tile::SpanOp spanOf(Value span) { return span.getDefiningOp<tile::SpanOp>(); }

/// Whether TMA can copy it: lines along the sum, which lie a multiple of 16 bytes apart, and all
/// but lines and places along them is the same in the loops.
static bool isBox(tile::CopyOp copy, tile::ForOp outermost) {
  tile::SharedType type = copy.getTarget().getType();
  Block &point = *copy.getPoint();
  auto read = dyn_cast<tgl::ReadOp>(point.front());
  if (copy.getKind() != tile::CopyKind::CpAsync || !type.getKMajor() || type.isOfBytes() ||
      type.getShape()[0] > tile::TmaDescriptorType::maxLines || !read || read.getGuard() ||
      read.getChecked() || read->getNextNode() != point.getTerminator())
    return false;
  Region &loops = outermost.getBody();
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  for (Value operand : offset.operands())
    if (operand.getParentBlock() != &point && loops.isAncestor(operand.getParentRegion()))
      return false;
  for (Value span : copy.getSpans())
    for (Value operand : spanOf(span).getEndExpr().operands())
      if (loops.isAncestor(operand.getParentRegion()))
        return false;
  const int64_t unit = 128 / type.getElementType().getIntOrFloatBitWidth();
  std::optional<int64_t> apart = stepAlong(offset, point.getArgument(0));
  return apart && *apart > 0 && *apart % unit == 0;
}

/// Whether an op is the same for all threads and needs no tile: it stays before the roles.
static bool isOfBoth(Operation &op) {
  return isa<tile::AllocOp, tile::SpanOp>(op) || !isa<tile::TileDialect>(op.getDialect());
}

namespace {
/// Makes roles of a kernel whose copies are all in one nest.
class Specialization {
public:
  Specialization(tile::KernelOp kernel, CopyNest &nest, int64_t stages)
      : kernel(kernel), nest(nest), stages(stages), loc(nest.outermost().getLoc()) {}

  void run();

private:
  tile::KernelOp kernel;
  CopyNest &nest;
  int64_t stages;
  Location loc;
  Value pipe;
  DenseMap<Operation *, Value> rings; ///< by copy

  ValueExpr stepNumber(ValueRange at);
  ValueExpr numSteps(unsigned firstLoop);
  void allocate();
  Value makeMap(OpBuilder &builder, tile::CopyOp copy);
  void produce(OpBuilder builder);
  void consume();
};
} // namespace

/// Steps of the loops from this one on, in one turn of those around.
ValueExpr Specialization::numSteps(unsigned firstLoop) {
  ValueExpr steps = int64_t(1);
  for (tile::ForOp loop : ArrayRef(nest.loops).drop_front(firstLoop)) {
    int64_t step = loop.getStep();
    ValueExpr extent = loop.getHighExpr() - loop.getLowExpr() + ValueExpr(step - 1);
    steps = steps * ValueExpr::max(ValueExpr::floorDiv(extent, step), ValueExpr(int64_t(0)));
  }
  return steps;
}

/// The number of a step among all of the block's, where the loops' variables are these.
ValueExpr Specialization::stepNumber(ValueRange at) {
  ValueExpr number = int64_t(0);
  for (auto [level, loop] : llvm::enumerate(nest.loops)) {
    ValueExpr turn = ValueExpr::floorDiv(ValueExpr(at[level]) - tile::ForOp(loop).getLowExpr(),
                                         int64_t(tile::ForOp(loop).getStep()));
    number = number + turn * numSteps(level + 1);
  }
  return number;
}

void Specialization::allocate() {
  OpBuilder builder(&kernel.getBody().front(), kernel.getBody().front().begin());
  for (tile::CopyOp copy : nest.copies) {
    auto type = tile::RingType::get(builder.getContext(), stages, copy.getTarget().getType());
    rings[copy] = tile::AllocOp::create(builder, copy.getLoc(), type, IntegerAttr());
  }
  pipe = tile::AllocOp::create(builder, loc, tile::PipeType::get(builder.getContext(), stages),
                               IntegerAttr());
}

/// Describes what a copy reads, from the first point of each span's axis on.
Value Specialization::makeMap(OpBuilder &builder, tile::CopyOp copy) {
  tile::SharedType type = copy.getTarget().getType();
  SmallVector<Value> spans;
  for (Value span : copy.getSpans())
    spans.push_back(tile::SpanOp::create(builder, copy.getLoc(), spanOf(span).getSize(),
                                         ValueExpr(int64_t(0)), spanOf(span).getEndExpr()));
  auto map = tile::TmaDescriptorOp::create(
      builder, copy.getLoc(),
      tile::TmaDescriptorType::get(builder.getContext(), type.getShape(), type.getElementType()),
      spans);
  IRMapping mapping;
  for (auto [from, to] :
       llvm::zip_equal(copy.getPoint()->getArguments(), map.getPoint()->getArguments()))
    mapping.map(from, to);
  OpBuilder inside(&map.getBody());
  inside.setInsertionPointToEnd(map.getPoint());
  for (Operation &op : *copy.getPoint())
    inside.clone(op, mapping);
  if (copy.getNames())
    map.setNamesAttr(*copy.getNames());
  return map;
}

/// The loops, with copies alone.
void Specialization::produce(OpBuilder builder) {
  DenseMap<Operation *, Value> maps;
  for (tile::CopyOp copy : nest.copies)
    maps[copy] = makeMap(builder, copy);
  IRMapping mapping;
  SmallVector<Value> at;
  for (tile::ForOp loop : nest.loops) {
    auto own = tile::ForOp::create(builder, loc, loop.getLowExpr(), loop.getHighExpr(),
                                   loop.getStep(), ValueRange());
    mapping.map(loop.getLoopVar(), own.getLoopVar());
    at.push_back(own.getLoopVar());
    builder.setInsertionPointToStart(&own.getBody().front());
    auto end = tile::YieldOp::create(builder, loc, ValueRange());
    builder.setInsertionPoint(end);
  }
  for (Operation *op : nest.needed)
    builder.clone(*op, mapping);
  auto fill = tile::FillOp::create(builder, loc, pipe, stepNumber(at));
  builder.setInsertionPointToStart(&fill.getBody().front());
  for (tile::CopyOp copy : nest.copies) {
    Value stage = tile::StageOp::create(builder, loc, rings.lookup(copy), stepNumber(at));
    tile::CopyBoxOp::create(builder, copy.getLoc(), maps.lookup(copy),
                            mapping.lookupOrDefault(copy.getSpans()[0]),
                            mapping.lookupOrDefault(copy.getSpans()[1]), stage);
  }
}

/// A step waits for its stage, and gives that of the step before back when it has been read.
void Specialization::consume() {
  SmallVector<Value> at;
  for (tile::ForOp loop : nest.loops)
    at.push_back(loop.getLoopVar());
  OpBuilder builder(nest.barriers[1]);
  ValueExpr number = stepNumber(at);
  tile::WaitOp::create(builder, loc, pipe, number);
  // The wait for products comes between what `takeStages` is given and what follows it.
  tile::AwaitProductsOp last = nest.productWaits.back();
  Operation *behind = last->getNextNode();
  nest.takeStages(
      [&](tile::CopyOp copy) -> Value {
        return tile::StageOp::create(builder, loc, rings.lookup(copy), number);
      },
      [](OpBuilder &) {});
  builder.setInsertionPoint(behind);
  tile::ReleaseOp::create(builder, loc, pipe, number - ValueExpr(int64_t(1)), numSteps(0));
}

void Specialization::run() {
  // A warpgroup of producers leaves what is not a box's coordinate to those that multiply: 128
  // threads of 40 and 256 of 232 are 64,512 of a multiprocessor's 65,536 registers.
  constexpr int64_t producerRegisters = 40, consumerRegisters = 232;
  allocate();
  Block &block = kernel.getBody().front();
  OpBuilder builder(&block, block.end());
  auto roles = tile::RolesOp::create(builder, loc, producerRegisters, *kernel.getThreads(),
                                     consumerRegisters);
  produce(OpBuilder::atBlockBegin(&roles.getProducer().front()));
  Block &consumer = roles.getConsumer().front();
  for (Operation &op : llvm::make_early_inc_range(block))
    if (&op != roles && !isOfBoth(op))
      op.moveBefore(&consumer, consumer.end());
  consume();
  kernel.setThreads(roles.getThreads());
}

/// The nest that has all of the kernel's copies, if nothing else of it is for all threads together.
static std::optional<CopyNest> onlyNest(tile::KernelOp kernel) {
  std::optional<CopyNest> only;
  unsigned nests = 0, barriers = 0, copies = 0;
  kernel.getBody().walk([&](Operation *op) {
    if (auto loop = dyn_cast<tile::ForOp>(op))
      if (std::optional<CopyNest> nest = CopyNest::around(loop)) {
        only = std::move(nest);
        ++nests;
      }
    barriers += isa<tile::BarrierOp>(op);
    copies += isa<tile::CopyOp>(op);
  });
  bool isOnly = nests == 1 && barriers == only->barriers.size() && copies == only->copies.size() &&
                isa<tile::KernelOp>(only->outermost()->getParentOp());
  return isOnly ? std::move(only) : std::nullopt;
}

/// Stages in the memory that there is; 0: the kernel stays as it is.
static int64_t numStages(tile::KernelOp kernel, const CopyNest &nest, const TargetInfo &machine) {
  constexpr int64_t minStages = 3, mostStages = 6, consumers = 256;
  bool areBoxes =
      llvm::all_of(nest.copies, [&](tile::CopyOp copy) { return isBox(copy, nest.outermost()); });
  if (!nest.isAsynchronous() || nest.hasUnpacks() || int64_t(*kernel.getThreads()) != consumers ||
      !areBoxes || nest.knownSteps().value_or(minStepsOfRoles) < minStepsOfRoles)
    return 0;
  int64_t others = -nest.stageBytes();
  kernel.getBody().walk([&](tile::AllocOp alloc) { others += alloc.getBytes(); });
  int64_t free = machine.sharedBytes - others - tile::SharedType::alignment;
  int64_t stages = std::min(mostStages, free / nest.stageBytes());
  return stages < minStages ? 0 : stages;
}

namespace {
struct SpecializeWarpsPass : Counted<tegula::impl::SpecializeWarpsPassBase<SpecializeWarpsPass>> {
  using Base = Counted<tegula::impl::SpecializeWarpsPassBase<SpecializeWarpsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    getOperation().walk([&](tile::KernelOp kernel) {
      std::optional<CopyNest> nest = kernel.isPlaced() ? onlyNest(kernel) : std::nullopt;
      int64_t stages = nest ? numStages(kernel, *nest, *machine) : 0;
      if (!stages)
        return;
      Specialization(kernel, *nest, stages).run();
      count("kernels with roles");
      count("stages", stages);
    });
  }
};
} // namespace
