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
/// but lines and places along them is the same in the loops. Coordinates have 32 bits: no memory
/// holds more lines than that which do not overlap.
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
  return apart && *apart >= type.getLineLength() && *apart % unit == 0;
}

/// Whether an op is the same for all threads and needs no tile: it stays before the roles.
static bool isOfBoth(Operation &op) {
  return isa<tile::AllocOp, tile::SpanOp>(op) || !isa<tile::TileDialect>(op.getDialect());
}

namespace {
/// Copies of a step that go through one pipe.
struct Pipe {
  SmallVector<tile::CopyOp> copies;
  ArrayRef<tile::ForOp> loops; ///< whose steps fill a stage each
  int64_t stages = 0;
  Value barriers;
  DenseMap<Operation *, Value> rings; ///< by copy

  int64_t stageBytes() const {
    int64_t bytes = 0;
    for (tile::CopyOp copy : copies)
      bytes += CopyNest::allocOf(copy).getBytes();
    return bytes;
  }
};

/// What goes through pipes, and how many stages these have.
struct Pipes {
  Pipe streamed; ///< filled anew at each step
  Pipe resident; ///< the same in all turns of the loops around the innermost one, a stage for each
                 ///< step
};
} // namespace

/// Whether the copy depends on the innermost loop alone.
static bool isSameAround(tile::CopyOp copy, const CopyNest &nest) {
  return llvm::all_of(copy.getSpans(), [&](Value span) {
    return llvm::all_of(span.getDefiningOp()->getOperands(), [&](Value operand) {
      return operand == tile::ForOp(nest.loops.back()).getLoopVar() ||
             !nest.outermost().getBody().isAncestor(operand.getParentRegion());
    });
  });
}

/// The pipes of the kernel's nest in the memory that there is; nothing: it stays as it is.
static std::optional<Pipes> planPipes(tile::KernelOp kernel, const CopyNest &nest,
                                      const TargetInfo &machine) {
  constexpr int64_t minStages = 3, mostStages = 6, consumers = 256;
  bool areBoxes =
      llvm::all_of(nest.copies, [&](tile::CopyOp copy) { return isBox(copy, nest.outermost()); });
  if (!nest.isAsynchronous() || nest.hasUnpacks() || int64_t(*kernel.getThreads()) != consumers ||
      !areBoxes || nest.knownSteps().value_or(minStepsOfRoles) < minStepsOfRoles)
    return std::nullopt;
  int64_t others = -nest.stageBytes();
  kernel.getBody().walk([&](tile::AllocOp alloc) { others += alloc.getBytes(); });
  int64_t free = machine.sharedBytes - others - tile::SharedType::alignment;
  Pipes pipes;
  pipes.streamed.loops = nest.loops;
  pipes.resident.loops = ArrayRef(nest.loops).take_back(1);
  tile::ForOp innermost = nest.loops.back();
  std::optional<int64_t> extent = (innermost.getHighExpr() - innermost.getLowExpr()).asConstant();
  for (tile::CopyOp copy : nest.copies)
    (nest.loops.size() > 1 && extent && isSameAround(copy, nest) ? pipes.resident : pipes.streamed)
        .copies.push_back(copy);
  auto stagesIn = [&](int64_t bytes) {
    return std::min(mostStages, bytes / pipes.streamed.stageBytes());
  };
  int64_t streamedAlone = std::max(minStages, std::min(mostStages, free / nest.stageBytes()));
  if (!pipes.resident.copies.empty() && !pipes.streamed.copies.empty()) {
    int64_t steps = llvm::divideCeil(*extent, int64_t(innermost.getStep()));
    pipes.resident.stages = steps;
    pipes.streamed.stages = stagesIn(free - steps * pipes.resident.stageBytes());
    if (steps <= tile::PipeType::maxStages && pipes.streamed.stages >= streamedAlone)
      return pipes;
  }
  // All is streamed, where what stays would leave fewer stages.
  pipes.resident = Pipe();
  pipes.streamed.copies = nest.copies;
  pipes.streamed.stages = stagesIn(free);
  return pipes.streamed.stages < minStages ? std::nullopt : std::optional(std::move(pipes));
}

namespace {
/// Makes roles of a kernel whose copies are all in one nest.
class Specialization {
public:
  Specialization(tile::KernelOp kernel, CopyNest &nest, Pipes pipes)
      : kernel(kernel), nest(nest), pipes(std::move(pipes)), loc(nest.outermost().getLoc()) {}

  void run();

private:
  tile::KernelOp kernel;
  CopyNest &nest;
  Pipes pipes;
  Location loc;

  void allocate(Pipe &pipe);
  Value describe(OpBuilder &builder, tile::CopyOp copy);
  void produce(OpBuilder builder, const Pipe &pipe);
  void consume();
};
} // namespace

/// Steps of the loops in all.
static ValueExpr numSteps(ArrayRef<tile::ForOp> loops) {
  ValueExpr steps = int64_t(1);
  for (tile::ForOp loop : loops) {
    int64_t step = loop.getStep();
    ValueExpr extent = loop.getHighExpr() - loop.getLowExpr() + ValueExpr(step - 1);
    steps = steps * ValueExpr::max(ValueExpr::floorDiv(extent, step), ValueExpr(int64_t(0)));
  }
  return steps;
}

/// The number of a step among all of the loops', whose variables are these.
static ValueExpr stepNumber(ArrayRef<tile::ForOp> loops, ValueRange at) {
  ValueExpr number = int64_t(0);
  for (auto [level, loop] : llvm::enumerate(loops)) {
    ValueExpr turn = ValueExpr::floorDiv(ValueExpr(at[level]) - tile::ForOp(loop).getLowExpr(),
                                         int64_t(tile::ForOp(loop).getStep()));
    number = number + turn * numSteps(loops.drop_front(level + 1));
  }
  return number;
}

void Specialization::allocate(Pipe &pipe) {
  OpBuilder builder(&kernel.getBody().front(), kernel.getBody().front().begin());
  for (tile::CopyOp copy : pipe.copies) {
    auto type = tile::RingType::get(builder.getContext(), pipe.stages, copy.getTarget().getType());
    pipe.rings[copy] = tile::AllocOp::create(builder, copy.getLoc(), type, IntegerAttr());
  }
  if (!pipe.copies.empty())
    pipe.barriers = tile::AllocOp::create(
        builder, loc, tile::PipeType::get(builder.getContext(), pipe.stages), IntegerAttr());
}

/// Describes what a copy reads, from the first point of each span's axis on.
Value Specialization::describe(OpBuilder &builder, tile::CopyOp copy) {
  tile::SharedType type = copy.getTarget().getType();
  SmallVector<Value> spans;
  for (Value span : copy.getSpans())
    spans.push_back(tile::SpanOp::create(builder, copy.getLoc(), spanOf(span).getSize(),
                                         ValueExpr(int64_t(0)), spanOf(span).getEndExpr()));
  auto described = tile::TmaDescriptorOp::create(
      builder, copy.getLoc(),
      tile::TmaDescriptorType::get(builder.getContext(), type.getShape(), type.getElementType()),
      spans);
  IRMapping mapping;
  for (auto [from, to] :
       llvm::zip_equal(copy.getPoint()->getArguments(), described.getPoint()->getArguments()))
    mapping.map(from, to);
  OpBuilder inside(&described.getBody());
  inside.setInsertionPointToEnd(described.getPoint());
  for (Operation &op : *copy.getPoint())
    inside.clone(op, mapping);
  if (copy.getNames())
    described.setNamesAttr(*copy.getNames());
  return described;
}

/// The pipe's loops, with its copies alone.
void Specialization::produce(OpBuilder builder, const Pipe &pipe) {
  if (pipe.copies.empty())
    return;
  DenseMap<Operation *, Value> descriptors;
  for (tile::CopyOp copy : pipe.copies)
    descriptors[copy] = describe(builder, copy);
  IRMapping mapping;
  SmallVector<Value> at;
  for (tile::ForOp loop : pipe.loops) {
    auto own = tile::ForOp::create(builder, loc, loop.getLowExpr(), loop.getHighExpr(),
                                   loop.getStep(), ValueRange());
    mapping.map(loop.getLoopVar(), own.getLoopVar());
    at.push_back(own.getLoopVar());
    builder.setInsertionPointToStart(&own.getBody().front());
    auto end = tile::YieldOp::create(builder, loc, ValueRange());
    builder.setInsertionPoint(end);
  }
  auto isUsed = [&](Operation *op) {
    return llvm::any_of(op->getResults(), [&](Value result) {
      return llvm::any_of(pipe.copies, [&](tile::CopyOp copy) {
        return llvm::is_contained(copy.getSpans(), result);
      });
    });
  };
  for (Operation *op : nest.needed)
    if (!isa<tile::SpanOp>(op) || isUsed(op))
      builder.clone(*op, mapping);
  ValueExpr number = stepNumber(pipe.loops, at);
  auto fill = tile::FillOp::create(builder, loc, pipe.barriers, number);
  builder.setInsertionPointToStart(&fill.getBody().front());
  for (tile::CopyOp copy : pipe.copies) {
    Value stage = tile::StageOp::create(builder, loc, pipe.rings.lookup(copy), number);
    tile::CopyBoxOp::create(builder, copy.getLoc(), descriptors.lookup(copy),
                            mapping.lookupOrDefault(copy.getSpans()[0]),
                            mapping.lookupOrDefault(copy.getSpans()[1]), stage);
  }
}

/// A step waits for its stages, and gives the streamed one of the step before back when it has been
/// read.
void Specialization::consume() {
  OpBuilder builder(nest.barriers[1]);
  DenseMap<Operation *, Value> stages;
  auto waitFor = [&](const Pipe &pipe) {
    SmallVector<Value> at;
    for (tile::ForOp loop : pipe.loops)
      at.push_back(loop.getLoopVar());
    ValueExpr number = stepNumber(pipe.loops, at);
    if (!pipe.copies.empty())
      tile::WaitOp::create(builder, loc, pipe.barriers, number);
    for (tile::CopyOp copy : pipe.copies)
      stages[copy] = tile::StageOp::create(builder, loc, pipe.rings.lookup(copy), number);
    return number;
  };
  waitFor(pipes.resident);
  ValueExpr number = waitFor(pipes.streamed);
  // The wait for products comes between what `takeStages` is given and what follows it.
  tile::AwaitProductsOp last = nest.productWaits.back();
  Operation *behind = last->getNextNode();
  nest.takeStages([&](tile::CopyOp copy) { return stages.lookup(copy); }, [](OpBuilder &) {});
  builder.setInsertionPoint(behind);
  tile::ReleaseOp::create(builder, loc, pipes.streamed.barriers, number - ValueExpr(int64_t(1)),
                          numSteps(nest.loops));
}

void Specialization::run() {
  // A warpgroup of producers leaves what is not a box's coordinate to those that multiply: 128
  // threads of 40 and 256 of 232 are 64,512 of a multiprocessor's 65,536 registers.
  constexpr int64_t producerRegisters = 40, consumerRegisters = 232;
  for (Pipe *pipe : {&pipes.streamed, &pipes.resident})
    allocate(*pipe);
  Block &block = kernel.getBody().front();
  OpBuilder builder(&block, block.end());
  auto roles = tile::RolesOp::create(builder, loc, producerRegisters, *kernel.getThreads(),
                                     consumerRegisters);
  Block &producer = roles.getProducer().front();
  for (const Pipe *pipe : {&pipes.resident, &pipes.streamed})
    produce(OpBuilder::atBlockEnd(&producer), *pipe);
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
      std::optional<Pipes> pipes = nest ? planPipes(kernel, *nest, *machine) : std::nullopt;
      if (!pipes)
        return;
      count("kernels with roles");
      count("stages", pipes->streamed.stages);
      count("operands that stay", pipes->resident.copies.size());
      Specialization(kernel, *nest, std::move(*pipes)).run();
    });
  }
};
} // namespace
