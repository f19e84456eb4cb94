//===- StreamOperands.cpp - Operands of products that stay in registers ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product of few columns whose left operand is computed gets the layout in which warps have
// slices of the sum. What its operands read becomes `tile.vectors`, a turn of the loop ahead; the
// rest of their regions runs in the registers that mma.sync takes them from.
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Runs.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "passes/tile/PointRegions.h"
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_STREAMOPERANDSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

static constexpr int64_t warps = 8, lanesAlongSum = 4, rowsOfLanes = 8, mostColumns = 32;

//===----------------------------------------------------------------------===//
// What is streamed
//===----------------------------------------------------------------------===//

/// Whether its elements are other numbers than those of a tensor of its type.
static bool isComputed(tile::OperandOp operand) {
  auto read = operand.getYielded().getDefiningOp<tgl::ReadOp>();
  return !read || read.getTensorType().getElementType() != operand.getType().getElementType();
}

/// The loop around a product that carries its sums and nothing else.
static tile::ForOp loopOfSums(tile::DotOp dot) {
  auto loop = dyn_cast<tile::ForOp>(dot->getParentOp());
  bool isSum = loop && loop.getInits().size() == 1 && dot.getC() == loop.getIterArgs().front() &&
               loop.getYield().getValues().front() == dot.getResult() && dot->hasOneUse() &&
               loop.getInits()[0].getDefiningOp<tile::ZeroOp>();
  return isSum ? loop : tile::ForOp();
}

static bool canStream(tile::DotOp dot) {
  auto a = dot.getA().getDefiningOp<tile::OperandOp>(),
       b = dot.getB().getDefiningOp<tile::OperandOp>();
  tile::ForOp loop = loopOfSums(dot);
  if (!loop || !a || !b || !a->hasOneUse() || !b->hasOneUse() || !a.getInputs().empty() ||
      !b.getInputs().empty() || !isComputed(a) || a.getType().getElementType().isF32())
    return false;
  // Nothing but the epilogue takes the sums.
  if (!llvm::all_of(loop.getResult(0).getUsers(), llvm::IsaPred<tile::StoreOp>))
    return false;
  ArrayRef<int64_t> ofA = a.getType().getShape(), ofB = b.getType().getShape();
  return ofA[0] % 16 == 0 && ofB[0] % rowsOfLanes == 0 && ofB[0] <= mostColumns &&
         ofA[1] % (4 * lanesAlongSum * warps) == 0;
}

//===----------------------------------------------------------------------===//
// Reads that become vectors
//===----------------------------------------------------------------------===//

namespace {
/// Takes reads out of an operand.
class Streamer {
public:
  Streamer(tile::OperandOp operand, tile::MmaLayoutAttr layout)
      : operand(operand), layout(layout), point(operand.getBody().front()),
        depth(operand.getType().getShape()[1]), vector(depth / (warps * lanesAlongSum)),
        rowsOfLane(operand.getType().getShape()[0] / rowsOfLanes),
        along(point.getArgument(1), depth),
        across(point.getArgument(0),
               llvm::isPowerOf2_64(rowsOfLane) && hasWholeRows() ? rowsOfLane : 1),
        builder(operand) {}

  /// The operand in the layout, with what it reads as inputs.
  tile::OperandOp run() {
    SmallVector<tgl::ReadOp> reads;
    SmallVector<Value> loaded;
    for (tgl::ReadOp read : point.getOps<tgl::ReadOp>())
      if (std::optional<int64_t> run = vectorRun(read)) {
        reads.push_back(read);
        loaded.push_back(load(read, *run));
      }
    auto type = tile::TileType::get(operand.getContext(), operand.getType().getShape(),
                                    operand.getType().getElementType(), layout);
    auto made =
        tile::OperandOp::create(builder, operand.getLoc(), type, operand.getSpans(), loaded);
    Block &block = made.getBody().front();
    for (auto [before, now] : llvm::zip(point.getArguments(), block.getArguments()))
      before.replaceAllUsesWith(now);
    block.getOperations().splice(block.end(), point.getOperations());
    for (auto [read, input] : llvm::zip_equal(reads, block.getArguments().drop_front(2))) {
      read.getResult().replaceAllUsesWith(input);
      read.erase();
    }
    tile::finishPoint(block);
    SmallVector<StringRef> names;
    if (std::optional<ArrayAttr> before = operand.getNames())
      for (auto name : before->getAsRange<StringAttr>())
        names.push_back(name.getValue());
    tile::setPointNames(cast<tile::PointsOp>(made.getOperation()), names);
    operand.replaceAllUsesWith(made.getResult());
    operand.erase();
    return made;
  }

private:
  tile::OperandOp operand;
  tile::MmaLayoutAttr layout;
  Block &point;
  int64_t depth, vector, rowsOfLane;
  tgl::Runs along, across; ///< the sum, and rows
  OpBuilder builder;
  DenseMap<int64_t, Value> spans; ///< of runs along the sum

  /// Whether lanes have all of their rows or none.
  bool hasWholeRows() {
    auto span = operand.getSpans()[0].getDefiningOp<tile::SpanOp>();
    return span && tile::isMultipleEverywhere(span.getBaseExpr(), rowsOfLane) &&
           tile::isMultipleEverywhere(span.getEndExpr(), rowsOfLane);
  }

  /// Whether the place of a line, and whether it exists, is the same along an axis.
  static bool isPlaceSame(tgl::ReadOp read, BlockArgument axis, tgl::Runs &runs, int64_t most) {
    return llvm::all_of(read->getOperands(), [&](Value value) {
      return value == axis || value == read.getTensor() || runs.of(value) == most;
    });
  }

  bool isOfReads(tgl::ReadOp read) {
    SmallVector<Value> pending(read->getOperands());
    while (!pending.empty()) {
      Operation *definition = pending.pop_back_val().getDefiningOp();
      if (!definition || definition->getBlock() != &point)
        continue;
      if (isa<tgl::ReadOp>(definition))
        return true;
      llvm::append_range(pending, definition->getOperands());
    }
    return false;
  }

  /// Whether a lane's nibbles begin where a byte does, as rows of them do.
  bool beginsWithByte(tgl::ReadOp read) {
    BlockArgument k = point.getArgument(1);
    ValueExpr last = read.getSubscriptExprs().back();
    return tile::isMultipleEverywhere(last.substitute(k, ValueExpr(k) * ValueExpr(vector)), 2);
  }

  /// The neighbours along the sum that share an element, where a lane's elements are worth loading
  /// before they are needed: they are few, or neighbours in memory.
  std::optional<int64_t> vectorRun(tgl::ReadOp read) {
    Type element = read.getTensorType().getElementType();
    unsigned bits = element.getIntOrFloatBitWidth();
    if (read.getFill() || !read.getExactExprs().empty() || bits > 32)
      return std::nullopt;
    bool isNibble = bits == 4;
    int64_t run = along.of(read.getOperation());
    // Elements of a lane for each of its rows.
    int64_t count = std::max<int64_t>(1, vector / run);
    BlockArgument row = point.getArgument(0), k = point.getArgument(1);
    ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
    ValueExpr inRuns = offset.substitute(k, ValueExpr(k) * ValueExpr(run));
    if (count > 1 && stepAlong(inRuns, k) == 1 && isPlaceSame(read, k, along, depth) &&
        tile::isInsideTogether(read, k) && (!isNibble || beginsWithByte(read)))
      return run;
    if (isNibble) // loads are of bytes
      return std::nullopt;
    bool isAcross = across.of(row) == 1 && rowsOfLane > 1 && stepAlong(offset, row) == 1 &&
                    across.most() == rowsOfLane && isPlaceSame(read, row, across, rowsOfLane) &&
                    tile::isInsideTogether(read, row);
    if (isAcross || (count == 1 && !isOfReads(read)))
      return run;
    return std::nullopt;
  }

  Value spanOfRuns(int64_t run) {
    Value &span = spans[run];
    if (!span) {
      auto all = operand.getSpans()[1].getDefiningOp<tile::SpanOp>();
      span = tile::SpanOp::create(builder, operand.getLoc(), depth / run,
                                  ValueExpr::floorDiv(all.getBaseExpr(), run),
                                  ValueExpr::floorDiv(all.getEndExpr() + (run - 1), run));
    }
    return span;
  }

  Value load(tgl::ReadOp read, int64_t run) {
    auto type =
        tile::TileType::get(operand.getContext(), {operand.getType().getShape()[0], depth / run},
                            read.getTensorType().getElementType(), layout);
    auto made = tile::VectorsOp::create(builder, operand.getLoc(), type,
                                        ValueRange{operand.getSpans()[0], spanOfRuns(run)});
    OpBuilder::InsertionGuard guard(builder);
    Block &block = made.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside;
    inside.map(point.getArgument(0), block.getArgument(0));
    inside.map(point.getArgument(1),
               tgl::materialize(builder, operand.getLoc(),
                                ValueExpr(block.getArgument(1)) * ValueExpr(run)));
    Value element = tile::cloneValue(builder, read.getResult(), operand, inside);
    tile::YieldOp::create(builder, operand.getLoc(), element);
    tile::finishPoint(block);
    SmallVector<StringRef> names;
    if (std::optional<ArrayAttr> before = operand.getNames())
      names.push_back(cast<StringAttr>((*before)[0]).getValue());
    tile::setPointNames(cast<tile::PointsOp>(made.getOperation()), names);
    return made;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Loads a turn ahead
//===----------------------------------------------------------------------===//

/// Clones the loads, and the spans that they have, to where the loop's variable has this value.
static SmallVector<Value> cloneLoads(OpBuilder &builder, tile::ForOp loop,
                                     ArrayRef<tile::VectorsOp> loads, const ValueExpr &at) {
  IRMapping map;
  Value variable = tgl::materialize(builder, loop.getLoc(), at);
  map.map(loop.getLoopVar(), variable);
  SmallVector<Value> cloned;
  for (tile::VectorsOp load : loads) {
    for (Value span : load.getSpans())
      if (span.getParentBlock() == &loop.getBody().front() && !map.contains(span))
        foldIndices(cast<tgl::IndexedOp>(builder.clone(*span.getDefiningOp(), map)));
    cloned.push_back(builder.clone(*load, map)->getResult(0));
  }
  if (variable.use_empty() && variable.getDefiningOp())
    variable.getDefiningOp()->erase();
  return cloned;
}

/// The loop loads what its next turn needs before it multiplies. Behind the last one it loads what
/// exists, which nobody uses.
static bool loadAhead(tile::ForOp loop) {
  std::optional<int64_t> low = loop.getLowExpr().asConstant(),
                         high = loop.getHighExpr().asConstant();
  auto all = loop.getBody().front().getOps<tile::VectorsOp>();
  SmallVector<tile::VectorsOp> loads(all.begin(), all.end());
  if (loads.empty() || (low && high && *high - *low <= loop.getStep()))
    return false;
  OpBuilder builder(loop);
  SmallVector<Value> inits(loop.getInits());
  llvm::append_range(inits, cloneLoads(builder, loop, loads, loop.getLowExpr()));
  auto made = tile::ForOp::create(builder, loop.getLoc(), loop.getLowExpr(), loop.getHighExpr(),
                                  loop.getStep(), inits);
  Block &body = made.getBody().front(), &before = loop.getBody().front();
  builder.setInsertionPoint(loads.front());
  SmallVector<Value> next =
      cloneLoads(builder, loop, loads, ValueExpr(loop.getLoopVar()) + ValueExpr(loop.getStep()));
  for (auto [load, carried] :
       llvm::zip_equal(loads, body.getArguments().drop_front(1 + loop.getInits().size()))) {
    load.getResult().replaceAllUsesWith(carried);
    load.erase();
  }
  for (auto [from, to] : llvm::zip(before.getArguments(), body.getArguments()))
    from.replaceAllUsesWith(to);
  SmallVector<Value> yields(loop.getYield().getValues());
  llvm::append_range(yields, next);
  loop.getYield().erase();
  body.getOperations().splice(body.end(), before.getOperations());
  builder.setInsertionPointToEnd(&body);
  tile::YieldOp::create(builder, loop.getLoc(), yields);
  for (auto [from, to] : llvm::zip(loop.getResults(), made.getResults()))
    from.replaceAllUsesWith(to);
  loop.erase();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<tile::SpanOp>(op) && op.use_empty())
      op.erase();
  return true;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The product in registers, and the sum of its slices behind the loop.
static void stream(tile::DotOp dot, tile::MmaLayoutAttr layout, tile::KernelOp kernel) {
  tile::ForOp loop = loopOfSums(dot);
  Streamer(dot.getA().getDefiningOp<tile::OperandOp>(), layout).run();
  Streamer(dot.getB().getDefiningOp<tile::OperandOp>(), layout).run();
  tile::TileType before = dot.getType();
  auto type =
      tile::TileType::get(dot.getContext(), before.getShape(), before.getElementType(), layout);
  Value zero = loop.getInits()[0];
  OpBuilder builder(loop);
  Value start = tile::ZeroOp::create(builder, dot.getLoc(), type);
  loop->replaceUsesOfWith(zero, start);
  if (zero.use_empty())
    zero.getDefiningOp()->erase();
  loop.getIterArgs().front().setType(type);
  loop.getResult(0).setType(type);
  builder.setInsertionPoint(dot);
  Value sum = tile::MmaOp::create(builder, dot.getLoc(), dot.getA(), dot.getB(), dot.getC());
  dot.replaceAllUsesWith(sum);
  dot.erase();
  builder.setInsertionPointToStart(&kernel.getBody().front());
  auto scratchType = tile::ScratchType::get(kernel.getContext(),
                                            {warps, before.getShape()[1], before.getShape()[0]},
                                            before.getElementType());
  Value scratch = tile::AllocOp::create(builder, loop.getLoc(), scratchType, IntegerAttr());
  builder.setInsertionPointAfter(loop);
  Value terms = loop.getResult(0);
  auto total = tile::SumWarpsOp::create(builder, loop.getLoc(), terms, scratch);
  terms.replaceAllUsesExcept(total.getResult(), total);
}

namespace {
struct StreamOperandsPass : Counted<tegula::impl::StreamOperandsPassBase<StreamOperandsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    unsigned streamed = 0, loaded = 0, ahead = 0;
    getOperation().walk([&](tile::KernelOp kernel) {
      SmallVector<tile::DotOp> products;
      kernel.getBody().walk([&](tile::DotOp dot) { products.push_back(dot); });
      if (products.empty() || kernel.isPlaced() || !llvm::all_of(products, canStream))
        return;
      auto layout = tile::MmaLayoutAttr::get(kernel.getContext(), 1, 1, warps);
      for (tile::DotOp dot : products)
        stream(dot, layout, kernel);
      kernel.setThreads(layout.getThreads());
      streamed += products.size();
      kernel.getBody().walk([&](tile::VectorsOp) { ++loaded; });
      for (tile::ForOp loop : llvm::to_vector(kernel.getBody().front().getOps<tile::ForOp>()))
        ahead += loadAhead(loop);
    });
    count("products streamed", streamed);
    count("operands loaded in vectors", loaded);
    count("loops that load ahead", ahead);
  }
};
} // namespace
