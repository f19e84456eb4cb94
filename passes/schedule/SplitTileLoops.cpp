//===- SplitTileLoops.cpp - Divides tile loops of few rows among blocks ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Invariance.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/schedule/LoopStates.h"
#include "strategies/few_rows/plan/FewRows.h"
#include "strategies/tile_loop/plan/TileLoop.h"
#include "strategies/tile_loop/plan/TileLoopBounds.h"
#include "target/TargetInfo.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITTILELOOPSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// The loop with other bounds.
static TilesOp replaceBounds(TilesOp loop, const ValueExpr &low, const ValueExpr &high,
                             ValueRange inits) {
  OpBuilder builder(loop);
  SmallVector<StringRef> names;
  if (std::optional<ArrayAttr> all = loop.getNames())
    names = llvm::to_vector(all->getAsValueRange<StringAttr>());
  std::optional<int64_t> size = loop.getSize();
  auto made = TilesOp::create(builder, loop.getLoc(), names, low, high, inits, size);
  Block &from = loop.getBody().front(), &to = made.getBody().front();
  to.clear();
  to.getOperations().splice(to.end(), from.getOperations());
  for (auto [old, argument] : llvm::zip_equal(from.getArguments(), to.getArguments()))
    old.replaceAllUsesWith(argument);
  loop.replaceAllUsesWith(made.getResults());
  loop.erase();
  return made;
}

namespace {
/// Bounds of the loop that its masks imply, the same for all rows of a block.
class MaskBounds {
public:
  explicit MaskBounds(const FewRowsPlan &plan) : plan(plan), loop(plan.tiles) {}

  /// Whether they are tighter than the loop's.
  bool find() {
    TileLoopPlan asTileLoop;
    asTileLoop.op = plan.op;
    asTileLoop.tiles = plan.tiles;
    asTileLoop.row = plan.rows.empty() ? 0 : plan.rows.back();
    hoistData();
    low = loop.getLowExpr();
    high = loop.getHighExpr();
    for (const TileLoopPlan::Bound &bound : boundsOfTiles(asTileLoop)) {
      const ValueExpr &expr = bound.comparison.expr;
      int64_t step = stepAlong(expr, bound.axis).value_or(0);
      std::optional<ValueExpr> rest =
          beforeLoop(expr - ValueExpr(step) * ValueExpr(Value(bound.axis)));
      if (!rest)
        continue;
      if (step > 0)
        low = ValueExpr::max(low, ValueExpr(int64_t(0)) - *rest);
      else
        high = ValueExpr::min(high, *rest + ValueExpr(int64_t(1)));
    }
    return !(low == loop.getLowExpr() && high == loop.getHighExpr());
  }

  ValueExpr low, high;

private:
  const FewRowsPlan &plan;
  TilesOp loop;

  /// Whether all rows of a block have the same value of it, wherever the loop is.
  bool isOfBlock(Value value) {
    return llvm::all_of(axesOf(value), [&](BlockArgument axis) {
      return axis.getOwner()->getParentOp() == ParallelOp(plan.op).getOperation() &&
             !plan.isRow(axis.getArgNumber());
    });
  }

  /// Numbers of 32 bits that masks compare, such as lengths, become indices before the loop:
  /// comparisons of these are expressions.
  void hoistData() {
    SmallVector<arith::ExtSIOp> numbers;
    loop.walk([&](arith::ExtSIOp extend) {
      bool isCompared = llvm::any_of(extend->getUsers(), llvm::IsaPred<arith::CmpIOp>);
      if (isCompared && extend.getIn().getDefiningOp<ReadOp>() && isOfBlock(extend.getIn()))
        numbers.push_back(extend);
    });
    for (arith::ExtSIOp extend : numbers) {
      OpBuilder builder(loop);
      IRMapping map;
      if (!copy(extend.getIn(), builder, map))
        continue;
      Value index = arith::IndexCastOp::create(builder, extend.getLoc(), builder.getIndexType(),
                                               map.lookupOrDefault(extend.getIn()));
      Value number = arith::IndexCastOp::create(builder, extend.getLoc(), extend.getType(), index);
      extend.replaceAllUsesWith(number);
      extend.erase();
    }
  }

  /// The expression by values that stand before the loop; nothing where it varies inside of a
  /// block.
  std::optional<ValueExpr> beforeLoop(const ValueExpr &expr) {
    OpBuilder builder(loop);
    IRMapping map;
    for (Value value : expr.operands())
      if (!isOfBlock(value) || !copy(value, builder, map))
        return std::nullopt;
    return expr.substitute(
        [&](Value value) { return std::optional(ValueExpr(map.lookupOrDefault(value))); });
  }

  bool copy(Value value, OpBuilder &builder, IRMapping &map) {
    Operation *op = value.getDefiningOp();
    if (map.contains(value) || !op || !loop->isProperAncestor(op))
      return true;
    if (op->getNumRegions())
      return false;
    for (Value operand : op->getOperands())
      if (!copy(operand, builder, map))
        return false;
    builder.clone(*op, map);
    return true;
  }
};

/// The statement that merges what blocks have of the loop.
class Merge {
public:
  /// In parts of a length, of a range of the loop.
  Merge(const FewRowsPlan &plan, ArrayRef<LoopState> states, int64_t origin, int64_t extent,
        int64_t length)
      : op(plan.op), loop(plan.tiles), states(states), origin(origin), extent(extent),
        length(length), parts(llvm::divideCeil(extent, length)),
        axes(cast<AxesOp>(op.getOperation())), b(op->getParentOfType<LaunchOp>()),
        loc(op->getLoc()) {}

  /// Makes it behind the launch, and leaves the statement to write parts.
  void run() {
    auto launch = op->getParentOfType<LaunchOp>();
    for (const LoopState &state : states) {
      areTemps.push_back(isa<TglTensorType>(state.carried.getType()));
      temps.push_back(makeTemp(state));
    }
    makeMerge(launch);
    leaveParts();
  }

private:
  ParallelOp op;
  TilesOp loop;
  ArrayRef<LoopState> states;
  int64_t origin, extent, length, parts;
  AxesOp axes;
  OpBuilder b;
  Location loc;
  SmallVector<Value> temps;  ///< of states: parts by the points of the statement
  IRMapping map;             ///< to the merging statement
  SmallVector<Value> merged; ///< of states that are values

  SmallVector<bool> areTemps; ///< by state: not a value that the loop yields

  bool isTemp(const LoopState &state) { return areTemps[&state - states.begin()]; }

  Value makeTemp(const LoopState &state) {
    SmallVector<IndexExprAttr> dims{IndexExprAttr::get(b.getContext(), parts)};
    for (const AxisRange &range : getAxisRanges(axes)) // of sizes: some are no numbers
      dims.push_back(IndexExprAttr::get(b.getContext(), (range.hi - range.lo).expr()));
    if (isTemp(state))
      dims.push_back(cast<TglTensorType>(state.carried.getType()).getDims()[0]);
    return TempOp::create(b, loc, TglTensorType::get(b.getContext(), dims, b.getF32Type()),
                          "partial")
        .getTensor();
  }

  SmallVector<ValueExpr> placeOf(Value part, ValueRange points) {
    SmallVector<ValueExpr> place{ValueExpr(part)};
    for (Value point : points)
      place.push_back(ValueExpr(point));
    return place;
  }

  SmallVector<Value> mergedAxes() {
    return llvm::map_to_vector(axes.getAxes(), [&](Value axis) { return map.lookup(axis); });
  }

  Value reduce(ReduceKind kind, llvm::function_ref<Value(Value)> body) {
    auto made = tgl::ReduceOp::create(b, loc, b.getF32Type(), kind,
                                      {AxisSpec{"part", int64_t(0), ValueExpr(parts)}});
    OpBuilder::InsertionGuard guard(b);
    Block &block = made.getBody().front();
    block.clear();
    b.setInsertionPointToEnd(&block);
    YieldOp::create(b, loc, ValueRange(body(made.getAxes()[0])));
    return made;
  }

  /// All parts of a state, at a point of the merging statement; `column`: of a temporary.
  Value mergeState(unsigned number, Value column = {}) {
    const LoopState &state = states[number];
    auto partOf = [&](unsigned of, Value part, Value at) -> Value {
      SmallVector<ValueExpr> place = placeOf(part, mergedAxes());
      if (at)
        place.push_back(ValueExpr(at));
      return ReadOp::create(b, loc, temps[of], place);
    };
    ReduceKind kind = state.kind == LoopState::Max   ? ReduceKind::Max
                      : state.kind == LoopState::Min ? ReduceKind::Min
                                                     : ReduceKind::Sum;
    return reduce(kind, [&](Value part) {
      Value own = partOf(number, part, column);
      if (!state.scale)
        return own;
      IRMapping inside;
      inside.map(states[state.scaledBy].carried, partOf(state.scaledBy, part, {}));
      inside.map(loop.getYield().getValues()[state.scaledBy], merged[state.scaledBy]);
      Operation *shift = state.scale->getOperand(0).getDefiningOp();
      b.clone(*shift, inside);
      Value scale = b.clone(*state.scale, inside)->getResult(0);
      return arith::MulFOp::create(b, loc, own, scale).getResult();
    });
  }

  void makeMerge(LaunchOp launch) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(launch);
    auto last = LaunchOp::create(b, loc, "merge");
    b.setInsertionPointToStart(&last.getBody().front());
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    ParallelOp statement = copyAxes(b, loc, all, map);
    b.setInsertionPointToEnd(&statement.getBody().front());
    // Scalars from before the loop.
    for (Operation &each : op.getBody().front()) {
      if (&each == loop)
        break;
      if (!each.getNumRegions() && !isa<TempOp, WriteOp>(each))
        b.clone(each, map);
    }
    merged.resize(states.size());
    for (bool extremes : {true, false})
      for (auto [number, state] : llvm::enumerate(states))
        if (!isTemp(state) && (state.kind != LoopState::Sum) == extremes) {
          merged[number] = mergeState(number);
          map.map(loop.getResult(state.result), merged[number]);
        }
    for (Operation *each = loop->getNextNode(); each; each = each->getNextNode()) {
      auto nest = dyn_cast<ParallelOp>(each);
      if (nest)
        cloneNest(nest);
      else
        b.clone(*each, map);
    }
    statement.walk([](IndexedOp indexed) { foldIndices(indexed); });
    eraseUnusedOps(statement.getBody().front());
  }

  void cloneNest(ParallelOp nest) {
    BlockArgument axis = nest.getAxes()[0];
    ParallelOp copied = copyAxes(b, loc, {axis}, map);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&copied.getBody().front());
    for (Operation &inner : nest.getBody().front()) {
      auto read = dyn_cast<ReadOp>(inner);
      const LoopState *state = llvm::find_if(
          states, [&](const LoopState &one) { return read && one.carried == read.getTensor(); });
      if (state == states.end())
        b.clone(inner, map);
      else
        map.map(read.getResult(), mergeState(state - states.begin(), map.lookup(axis)));
    }
  }

  /// An axis of parts, their stretches of the loop, and writes of what they have in the end.
  void leaveParts() {
    while (&op.getBody().front().back() != loop)
      op.getBody().front().back().erase();
    Value part = insertAxis(axes, 0, AxisSpec{"part", int64_t(0), ValueExpr(parts)});
    b.setInsertionPoint(loop);
    SmallVector<Value> inits(loop.getInits());
    for (const LoopState &state : states)
      if (!isTemp(state) && state.kind == LoopState::Sum && !isZero(inits[state.result]))
        inits[state.result] = onlyInFirst(part, inits[state.result]);
    ValueExpr first = ValueExpr(part) * ValueExpr(length),
              last = ValueExpr::min(first + ValueExpr(length), ValueExpr(extent));
    if (extent % length == 0)
      last = first + ValueExpr(length);
    auto inRange = [&](const ValueExpr &bound, int64_t own) { return bound.asConstant() != own; };
    ValueExpr start = ValueExpr(origin) + first, end = ValueExpr(origin) + last;
    ValueExpr low = loop.getLowExpr(), high = loop.getHighExpr();
    loop = replaceBounds(loop, inRange(low, origin) ? ValueExpr::max(low, start) : start,
                         inRange(high, origin + extent) ? ValueExpr::min(high, end) : end, inits);
    b.setInsertionPointAfter(loop);
    SmallVector<Value> points(op.getAxes().drop_front());
    for (auto [number, state] : llvm::enumerate(states)) {
      SmallVector<ValueExpr> place = placeOf(part, points);
      if (!isTemp(state)) {
        WriteOp::create(b, loc, loop.getResult(state.result), temps[number], place);
        continue;
      }
      auto type = cast<TglTensorType>(state.carried.getType());
      auto nest = ParallelOp::create(
          b, loc, {AxisSpec{"d", int64_t(0), ValueExpr(type.getDims()[0].getExpr())}});
      OpBuilder inside = OpBuilder::atBlockEnd(&nest.getBody().front());
      ValueExpr column(Value(nest.getAxes()[0]));
      place.push_back(column);
      Value held = ReadOp::create(inside, loc, state.carried, {column});
      WriteOp::create(inside, loc, held, temps[number], place);
    }
  }

  /// What a sum begins with counts once.
  Value onlyInFirst(Value part, Value init) {
    Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), part);
    Value none = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0));
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, none);
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    return arith::SelectOp::create(b, loc, isFirst, init, zero);
  }
};

struct SplitTileLoopsPass : Counted<tegula::impl::SplitTileLoopsPassBase<SplitTileLoopsPass>> {
  using Base = Counted<tegula::impl::SplitTileLoopsPassBase<SplitTileLoopsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    for (ParallelOp statement : outermostStatements(getOperation()))
      if (statement->getParentOfType<LaunchOp>() && isForTiles(statement, machine->multiprocessors))
        split(statement, machine->multiprocessors);
  }

  /// Whether the strategy `few-rows` will take it: what `tile-loop` does not, and long loops that
  /// it leaves to a few blocks.
  static bool isForTiles(ParallelOp statement, int64_t multiprocessors) {
    constexpr int64_t longLoop = 1024;
    Matched<FewRowsPlan> plan = planFewRows(statement);
    if (!plan || !chooseFewRowsShape(*plan))
      return false;
    Matched<TileLoopPlan> other = planTileLoop(statement);
    if (!other)
      return true;
    SmallVector<TileLoopShape> ranked = rankTileLoopShapes(*other);
    if (ranked.empty())
      return true;
    auto axes = cast<AxesOp>(statement.getOperation());
    int64_t rows = *knownPoints(axes, {other->row}), batch = *plannedPoints(axes, other->batch);
    int64_t blocks = batch * llvm::divideCeil(rows, ranked.front().rows());
    return other->extent >= longLoop && 2 * blocks <= multiprocessors;
  }

  /// Parts of the loop where the number of blocks is an invariant size's: a function of the loop
  /// alone. Of few blocks each part is to be a block's, and of many, which need no parts, their
  /// partial results (8 heads of 128: 8 KB written and read) are to be few beside what a part reads
  /// (256 keys and values of 128 numbers of 16 bits: 128 KB).
  static int64_t numInvariantParts(int64_t extent, int64_t rows) {
    constexpr int64_t ofRow = 32, fewRows = 8;
    return std::max<int64_t>(extent / (ofRow * std::max(rows, fewRows)), 1);
  }

  /// Parts of the loop, for blocks that fill the machine several times: those whose stretch masks
  /// or data leave empty end at once. A part pays for its partial results, and the merge for its
  /// launch, if parts are long; few blocks are divided further until each multiprocessor has one.
  static int64_t numParts(int64_t blocks, int64_t extent, int64_t multiprocessors) {
    constexpr int64_t blocksTogether = 4, waves = 8, shortest = 64;
    const int64_t usual = blocks >= 2 * multiprocessors ? 512 : 256;
    int64_t parts = std::min<int64_t>(
        llvm::divideCeil(waves * blocksTogether * multiprocessors, blocks), extent / usual);
    if (parts * blocks < multiprocessors)
      parts = std::min<int64_t>(llvm::divideCeil(multiprocessors, blocks), extent / shortest);
    return std::max<int64_t>(parts, 1);
  }

  /// Whether what stands before the loop may be done by each part.
  static bool canRepeatStart(const FewRowsPlan &plan) {
    for (Operation *op = TilesOp(plan.tiles)->getPrevNode(); op; op = op->getPrevNode()) {
      WalkResult writes = op->walk([&](WriteOp write) {
        auto temp = write.getTensor().getDefiningOp<TempOp>();
        bool isOwn = temp && ParallelOp(plan.op)->isProperAncestor(temp);
        return isOwn && isZero(write.getValue()) ? WalkResult::advance() : WalkResult::interrupt();
      });
      if (writes.wasInterrupted())
        return false;
    }
    return true;
  }

  /// Whether nests behind the loop read what it leaves at their own point.
  static bool canMergeEnd(const FewRowsPlan &plan, ArrayRef<LoopState> states) {
    for (Operation *op = TilesOp(plan.tiles)->getNextNode(); op; op = op->getNextNode())
      for (const LoopState &state : states) {
        auto nest = dyn_cast<ParallelOp>(op);
        if (accessesOf(op).writes.contains(state.carried) ||
            (!nest && accessesOf(op).reads.contains(state.carried)))
          return false;
      }
    return true;
  }

  void split(ParallelOp statement, int64_t multiprocessors) {
    FewRowsPlan plan = *planFewRows(statement);
    std::optional<int64_t> origin = plan.tiles.getLowExpr().asConstant(),
                           end = plan.tiles.getHighExpr().asConstant();
    if (MaskBounds bounds(plan); bounds.find()) {
      SmallVector<Value> inits(plan.tiles.getInits());
      plan.tiles = replaceBounds(plan.tiles, bounds.low, bounds.high, inits);
      count("loops bounded");
      // What masks leave of the range, where that is known.
      if (std::optional<int64_t> low = bounds.low.asConstant())
        origin = low;
      if (std::optional<int64_t> high = bounds.high.asConstant())
        end = high;
    }
    eraseUnusedOps(statement.getBody().front());
    Matched<SmallVector<LoopState>> states = statesOf(plan.tiles);
    if (!origin || !end || *end <= *origin || !states || !canRepeatStart(plan) ||
        !canMergeEnd(plan, *states))
      return;
    int64_t extent = *end - *origin;
    int64_t parts = plan.hasInvariantBlocks ? numInvariantParts(extent, plan.numRows)
                                            : numParts(*plan.blocks, extent, multiprocessors);
    if (parts < 2)
      return;
    constexpr int64_t tile = 64; // or half of it, of FewRowsShape
    int64_t length = llvm::alignTo(llvm::divideCeil(extent, parts), tile);
    Merge(plan, *states, *origin, extent, length).run();
    count("loops split");
  }
};
} // namespace
