//===- OnlineSoftmax.cpp - Online softmax: softmax and product in one tile loop ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Passes.h"
#include "passes/fuse/RowRanges.h"
#include "passes/fuse/SeparateProducts.h"
#include "strategies/few_rows/plan/FewRows.h"
#include "strategies/tile_loop/plan/TileLoop.h"
#include "target/DeviceFacts.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ONLINESOFTMAXPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Of a tile where nobody chooses another; row tiles have their own.
static constexpr int64_t tileSize = 32;

/// The score without sums with 0, which tell -0 from 0: neither the largest nor powers of distances
/// do.
static Value withoutZeros(Value score) {
  if (auto add = score.getDefiningOp<arith::AddFOp>()) {
    if (isZero(add.getRhs()))
      return withoutZeros(add.getLhs());
    if (isZero(add.getLhs()))
      return withoutZeros(add.getRhs());
  }
  if (auto select = score.getDefiningOp<arith::SelectOp>();
      select && (select->use_empty() || select->hasOneUse())) {
    select.getTrueValueMutable().assign(withoutZeros(select.getTrueValue()));
    select.getFalseValueMutable().assign(withoutZeros(select.getFalseValue()));
  }
  return score;
}

namespace {
/// parallel (rows) { tiles (j) { scores; largest; powers; sums }; parallel (d) { quotients } }
class Builder {
public:
  /// `masked`: the loop takes all points that elements have, and those outside of a row's range do
  /// not count.
  explicit Builder(const RowChain &found, bool masked = false)
      : chain(found), masked(masked), b(chain.product), loc(chain.product.getLoc()) {}

  ParallelOp run() {
    auto axes = cast<AxesOp>(chain.product.getOperation());
    SmallVector<Value> outer;
    for (BlockArgument axis : axes.getAxes())
      if (axis != chain.column)
        outer.push_back(axis);
    ParallelOp rows = copyAxes(b, loc, outer, atRow);
    b.setInsertionPointToEnd(&rows.getBody().front());
    if (chain.column) {
      columns = getAxisRange(axes, chain.column.getArgNumber()).hi;
      acc = temp("acc", *columns.asConstant());
      overColumns([&](Value column) { write(number(0), acc, Value(column)); });
    }
    findStates();
    emitTiles();
    SmallVector<std::pair<Value, bool>> scales;
    if (chain.column)
      scales = scalesOf(chain.term);
    for (Value tensor : chain.kept)
      keep(chain.inlined[tensor]);
    chain.column ? emitProducts(scales) : emitRowValues();
    rows.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(rows.getBody().front());
    return rows;
  }

private:
  /// The largest score so far, from which powers are distances, and the powers of a tile.
  struct Reference {
    Value score;
    bool isBase2;
    bool isShift; ///< whether it is what all powers' distances are from
    unsigned state;
    Value scores, powers;          // temporaries of a tile
    Value found = {}, factor = {}; ///< the largest of the tile, and what sums so far shrink by
  };
  /// What the loop carries: a sum, an extreme, or a reference.
  struct State {
    Operation *reduce; ///< null: a reference
    Value init;
    Value before = {}, next = {};
  };

  RowChain chain;
  bool masked;
  OpBuilder b;
  Location loc;
  IRMapping atRow; ///< from the axes of the product and values of rows
  ValueExpr columns;
  Value acc;
  TilesOp tiles;
  Value low = {}, high = {}; ///< of the row's range, where elements are masked
  SmallVector<State> states;
  SmallVector<Reference> references;
  SmallVector<std::pair<Value, Value>> elements; ///< and temporaries of a tile
  static constexpr arith::FastMathFlags contract = arith::FastMathFlags::contract;

  /// What the statement has of each column, after the loop.
  void emitProducts(ArrayRef<std::pair<Value, bool>> scales) {
    for (Operation &op : chain.product.getBody().front())
      if (auto read = dyn_cast<ReadOp>(op); read && chain.definitionOf(read))
        copy(read, atRow);
    overColumns([&](Value column) {
      IRMapping at = atRow;
      at.map(chain.column, column);
      Value total = ReadOp::create(b, loc, acc, {ValueExpr(column)});
      at.map(chain.sum.getResult(), scaled(total, scales));
      for (Operation &op : chain.product.getBody().front())
        if (&op != chain.sum && !(op.getNumResults() && at.contains(op.getResult(0))))
          b.clone(op, at);
    });
  }

  /// What the statement has of the row, after the loop.
  void emitRowValues() {
    for (Operation &op : chain.product.getBody().front())
      if (isa<WriteOp>(op)) {
        for (Value used : valuesUsedBy(&op))
          copy(used, atRow);
        b.clone(op, atRow);
      }
  }

  Value number(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }
  Value power(Value exponent, bool isBase2) {
    if (isBase2)
      return math::Exp2Op::create(b, loc, exponent, contract);
    return math::ExpOp::create(b, loc, exponent, contract);
  }

  Value temp(StringRef name, int64_t size) {
    IndexExprAttr dim = IndexExprAttr::get(b.getContext(), IndexExpr(size));
    return TempOp::create(b, loc, TglTensorType::get(b.getContext(), {dim}, b.getF32Type()), name)
        .getTensor();
  }

  void write(Value value, Value tensor, const ValueExpr &place) {
    WriteOp::create(b, loc, value, tensor, {place});
  }

  void overColumns(function_ref<void(Value)> body) {
    auto nest = ParallelOp::create(b, loc, {AxisSpec{"d", int64_t(0), columns}});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&nest.getBody().front());
    body(nest.getBody().front().getArgument(0));
  }

  AxisSpec tile() { return {"j", Value(tiles.getTileLow()), Value(tiles.getTileHigh())}; }
  ValueExpr inTile(Value position) {
    return ValueExpr(position) - ValueExpr(Value(tiles.getTileLow()));
  }

  void overTile(function_ref<void(Value)> body) {
    auto nest = ParallelOp::create(b, loc, {tile()});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&nest.getBody().front());
    body(nest.getBody().front().getArgument(0));
  }

  Value reduceTile(ReduceKind kind, function_ref<Value(Value)> body) {
    auto reduce = ReduceOp::create(b, loc, b.getF32Type(), kind, {tile()});
    OpBuilder::InsertionGuard guard(b);
    Block &block = reduce.getBody().front();
    block.clear();
    b.setInsertionPointToEnd(&block);
    YieldOp::create(b, loc, ValueRange(body(reduce.getAxes()[0])));
    return reduce;
  }

  //===--------------------------------------------------------------------===//
  // Values of the chain's statements
  //===--------------------------------------------------------------------===//

  /// The values of a column of the tile, which are computed from its place.
  IRMapping atColumn(Value column) {
    IRMapping at = atRow;
    at.map(chain.sumAxis(), column);
    return at;
  }

  /// The value computed here.
  Value copy(Value value, IRMapping &at) {
    if (at.contains(value))
      return at.lookup(value);
    if (isa<BlockArgument>(value)) {
      ValueExpr expr = chain.placed(ValueExpr(value)).substitute([&](Value used) {
        return std::optional(ValueExpr(at.lookupOrDefault(used)));
      });
      Value here = materialize(b, loc, expr);
      at.map(value, here);
      return here;
    }
    Operation *op = value.getDefiningOp();
    if (isa<KernelOp>(op->getParentOp()))
      return value;
    Value here;
    if (const TempDefinition *definition = chain.definitionOf(value)) {
      here = copyStored(*definition, at);
    } else if (chain.reductions.contains(op)) {
      here = resultOf(cast<ReduceOp>(op));
    } else {
      for (Value used : valuesUsedBy(op))
        copy(used, at);
      check(b.clone(*op, at), op);
      return at.lookup(value);
    }
    at.map(value, here);
    return here;
  }

  /// Reads of elements are within their tensors at all points that elements have: beyond these they
  /// are checked.
  void check(Operation *copied, Operation *op) {
    if (!chain.checked || masked)
      return;
    auto ofElement = [&](ReadOp read) {
      return llvm::any_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
        return llvm::any_of(subscript.operands(),
                            [&](Value used) { return chain.isElement(used); });
      });
    };
    SmallVector<ReadOp> reads, copies;
    op->walk([&](ReadOp read) { reads.push_back(read); });
    copied->walk([&](ReadOp read) { copies.push_back(read); });
    for (auto [read, here] : llvm::zip_equal(reads, copies))
      if (!read.getFill() && !read.getChecked() && ofElement(read)) {
        here.setCheckedAttr(chain.checked);
        here->setLoc(*chain.checkedAt);
      }
  }

  /// What the statement stores, its operations in their order.
  Value copyStored(TempDefinition definition, IRMapping &at) {
    Value stored = definition.write.getValue();
    if (!chain.isAfterLoop(stored))
      for (Operation &op : definition.statement.getBody().front())
        for (Value result : op.getResults())
          if (!chain.isAfterLoop(result))
            copy(result, at);
    Value here = copy(stored, at);
    Type element = definition.elementType();
    return element.isF32() ? here : ConvertOp::create(b, loc, here, element).getResult();
  }

  /// Stores a value of the row for other statements.
  void keep(TempDefinition definition) {
    copy(definition.write.getValue(), atRow);
    for (Value axis : cast<AxesOp>(definition.statement.getOperation()).getAxes())
      copy(axis, atRow);
    b.clone(*definition.write, atRow);
  }

  /// The result of a reduction over all columns, after the loop.
  Value resultOf(ReduceOp reduce) {
    for (State &state : states)
      if (state.reduce == reduce) {
        Value result = tiles.getResult(&state - states.data());
        auto sum = chain.sums.find(reduce);
        return sum == chain.sums.end() ? result : scaled(result, scalesOf(sum->second));
      }
    // The largest score begins with the lowest number.
    llvm_unreachable("a reduction that is needed after the loop has a state");
  }

  /// What a sum of terms is multiplied with, or divided by, last first.
  SmallVector<std::pair<Value, bool>> scalesOf(const ChainTerm &term) {
    SmallVector<std::pair<Value, bool>> scales;
    if (term.score && !chain.isImplied(term)) {
      Value largest = tiles.getResult(referenceOf(term).state);
      Value distance = arith::SubFOp::create(b, loc, largest, copy(term.shift, atRow), contract);
      scales.push_back({power(distance, term.isBase2), false});
    }
    for (const ChainTerm::Scale &scale : llvm::reverse(term.scales))
      scales.push_back({copy(scale.value, atRow), scale.divides});
    return scales;
  }

  /// A sum of nothing is 0, whatever its terms would be multiplied with.
  Value scaled(Value sum, ArrayRef<std::pair<Value, bool>> scales) {
    Value scaled = sum;
    for (auto [scale, divides] : scales)
      scaled = divides ? arith::DivFOp::create(b, loc, scaled, scale, contract).getResult()
                       : arith::MulFOp::create(b, loc, scaled, scale, contract).getResult();
    if (scales.empty() ||
        (chain.hasKnownRange() && *chain.range.lo.asConstant() < *chain.range.hi.asConstant()))
      return scaled;
    AxisRange range = rangeOfRow();
    Value isAny =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, materialize(b, loc, range.lo),
                              materialize(b, loc, range.hi));
    return arith::SelectOp::create(b, loc, isAny, scaled, sum);
  }

  AxisRange rangeOfRow() {
    auto here = [&](const ValueExpr &end) {
      return chain.placed(end).substitute(
          [&](Value used) { return std::optional(ValueExpr(copy(used, atRow))); });
    };
    return {here(chain.range.lo), here(chain.range.hi)};
  }

  //===--------------------------------------------------------------------===//
  // The loop
  //===--------------------------------------------------------------------===//

  Reference &referenceOf(const ChainTerm &term) {
    auto found = llvm::find_if(references, [&](const Reference &one) {
      return one.isBase2 == term.isBase2 && chain.areSame(one.score, term.score);
    });
    if (found != references.end())
      return *found;
    references.push_back({term.score, term.isBase2, true, 0, {}, {}, {}, {}});
    return references.back();
  }

  /// Sums first, then largest scores. The largest begins with a number: distances from it are none
  /// of infinities.
  void findStates() {
    auto measure = [&](const ChainTerm &term) {
      if (term.score)
        referenceOf(term).isShift &= chain.isImplied(term);
    };
    if (chain.column)
      measure(chain.term);
    for (Operation *op : chain.needed) {
      auto reduce = cast<ReduceOp>(op);
      float infinity = std::numeric_limits<float>::infinity();
      states.push_back({op, number(reduce.getKind() == ReduceKind::Sum   ? 0
                                   : reduce.getKind() == ReduceKind::Max ? -infinity
                                                                         : infinity)});
      if (auto sum = chain.sums.find(op); sum != chain.sums.end())
        measure(sum->second);
    }
    for (Reference &reference : references) {
      reference.state = states.size();
      states.push_back({nullptr, number(std::numeric_limits<float>::lowest())});
    }
  }

  static const char *nameOf(const State &state) {
    auto reduce = llvm::cast_or_null<ReduceOp>(state.reduce);
    return reduce && reduce.getKind() == ReduceKind::Sum ? "l" : "m";
  }

  void emitTiles() {
    SmallVector<StringRef> names{"j"};
    SmallVector<Value> inits;
    for (State &state : states) {
      names.push_back(nameOf(state));
      inits.push_back(state.init);
    }
    AxisRange range = rangeOfRow();
    if (masked) {
      low = wide(range.lo);
      high = wide(range.hi);
      range = {ValueExpr(int64_t(0)), ValueExpr(*pointsOfElements(chain))};
    }
    tiles = TilesOp::create(b, loc, names, range.lo, range.hi, inits, tileSize);
    Block &block = tiles.getBody().front();
    OpBuilder::InsertionGuard guard(b);
    if (!block.empty())
      block.back().erase();
    b.setInsertionPointToEnd(&block);
    for (auto [state, argument] : llvm::zip_equal(states, tiles.getIterArgs()))
      state.before = argument;
    emitElements();
    for (Reference &reference : references)
      emitPowers(reference);
    for (State &state : states)
      if (state.reduce)
        state.next = nextOf(state, cast<ReduceOp>(state.reduce));
    if (chain.column)
      emitSums();
    SmallVector<Value> results;
    for (State &state : states)
      results.push_back(state.next);
    YieldOp::create(b, loc, results);
  }

  void emitSums() {
    Value factor = chain.term.score ? referenceOf(chain.term).factor : Value();
    overColumns([&](Value column) {
      Value before = ReadOp::create(b, loc, acc, {ValueExpr(column)});
      if (factor)
        before = arith::MulFOp::create(b, loc, before, factor, contract);
      write(arith::AddFOp::create(b, loc, before, product(column), contract), acc, Value(column));
    });
  }

  /// Scores, and what other reductions than of powers are of, of the tile.
  void emitElements() {
    for (Reference &reference : references) {
      reference.scores = temp("s", tileSize);
      reference.powers = temp("p", tileSize);
      elements.push_back({reference.score, reference.scores});
    }
    auto add = [&](Value value) {
      if (!elementOf(value))
        elements.push_back({value, temp("e", tileSize)});
    };
    auto addTerm = [&](const ChainTerm &term) {
      if (!term.score)
        add(term.inner);
    };
    if (chain.column)
      addTerm(chain.term);
    for (Operation *op : chain.needed) {
      auto sum = chain.sums.find(op);
      sum != chain.sums.end() ? addTerm(sum->second) : add(cast<ReduceOp>(op).getReduced());
    }
    overTile([&](Value column) {
      IRMapping at = atColumn(column);
      for (auto [value, tensor] : elements) {
        Value element = withoutZeros(copy(value, at));
        if (masked)
          element = arith::SelectOp::create(b, loc, isInRange(column), element,
                                            number(-std::numeric_limits<float>::infinity()));
        write(element, tensor, inTile(column));
      }
    });
  }

  Value wide(const ValueExpr &expr) {
    Value whole = expr.asValue();
    if (auto cast = whole ? whole.getDefiningOp<arith::IndexCastOp>() : arith::IndexCastOp();
        cast && cast.getIn().getType().isInteger(64))
      return cast.getIn();
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), materialize(b, loc, expr));
  }
  Value isInRange(Value column) {
    Value place = arith::IndexCastOp::create(b, loc, b.getI64Type(), column);
    Value fromLow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, low, place);
    Value toHigh = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, high);
    return arith::AndIOp::create(b, loc, fromLow, toHigh);
  }

  Value elementOf(Value value) {
    for (auto [element, tensor] : elements)
      if (chain.areSame(element, value))
        return tensor;
    return Value();
  }

  void emitPowers(Reference &reference) {
    State &state = states[reference.state];
    Value found = reduceTile(ReduceKind::Max, [&](Value column) -> Value {
      return ReadOp::create(b, loc, reference.scores, {inTile(column)});
    });
    reference.found = found;
    // Distances of other values from it are none of infinities either.
    if (!reference.isShift)
      found = arith::MinimumFOp::create(b, loc, found, number(std::numeric_limits<float>::max()),
                                        contract);
    Value next = arith::MaximumFOp::create(b, loc, state.before, found, contract);
    overTile([&](Value column) {
      Value own = ReadOp::create(b, loc, reference.scores, {inTile(column)});
      Value distance = arith::SubFOp::create(b, loc, own, next, contract);
      write(power(distance, reference.isBase2), reference.powers, inTile(column));
    });
    Value distance = arith::SubFOp::create(b, loc, state.before, next, contract);
    reference.factor = power(distance, reference.isBase2);
    state.next = next;
  }

  Value nextOf(State &state, ReduceOp reduce) {
    auto sum = chain.sums.find(reduce);
    if (reduce.getKind() == ReduceKind::Max)
      for (const Reference &reference : references)
        if (chain.areSame(reduce.getReduced(), reference.score))
          return arith::MaximumFOp::create(b, loc, state.before, reference.found, contract);
    Value own = reduceTile(reduce.getKind(), [&](Value column) -> Value {
      if (sum != chain.sums.end())
        return termAt(sum->second, column);
      return ReadOp::create(b, loc, elementOf(reduce.getReduced()), {inTile(column)});
    });
    switch (reduce.getKind()) {
    case ReduceKind::Max:
      return arith::MaximumFOp::create(b, loc, state.before, own, contract);
    case ReduceKind::Min:
      return arith::MinimumFOp::create(b, loc, state.before, own, contract);
    default:
      break;
    }
    Value before = state.before;
    if (sum != chain.sums.end() && sum->second.score)
      before = arith::MulFOp::create(b, loc, before, referenceOf(sum->second).factor, contract);
    return arith::AddFOp::create(b, loc, before, own, contract);
  }

  /// The term of a column without what comes out of the sum.
  Value termAt(const ChainTerm &term, Value column) {
    Value tensor = term.score ? referenceOf(term).powers : elementOf(term.inner);
    Value here = ReadOp::create(b, loc, tensor, {inTile(column)});
    IRMapping at = atColumn(column);
    for (const ChainTerm::Step &step : llvm::reverse(term.steps)) {
      auto convert = llvm::dyn_cast_or_null<ConvertOp>(step.op);
      Type rounded = convert ? convert.getTarget() : step.rounded;
      if (rounded) { // a temporary of values that are rounded rounds them no more
        auto last = here.getDefiningOp<ConvertOp>();
        if (!last || last.getTarget() != rounded)
          here = ConvertOp::create(b, loc, here, rounded);
        continue;
      }
      IRMapping inner = at;
      for (unsigned operand = 0; operand < step.op->getNumOperands(); ++operand)
        if (operand != step.operand)
          inner.map(step.op->getOperand(operand), copy(step.op->getOperand(operand), at));
      inner.map(step.op->getOperand(step.operand), here);
      here = b.clone(*step.op, inner)->getResult(0);
    }
    return here;
  }

  Value product(Value column) {
    Value result = reduceTile(ReduceKind::Sum, [&](Value place) -> Value {
      IRMapping at = atColumn(place);
      at.map(chain.column, column);
      at.map(chain.left, termAt(chain.term, place));
      for (Operation &op : chain.sum.getBody().front().without_terminator())
        if (op.getNumResults() != 1 || op.getResult(0) != chain.left)
          if (auto read = dyn_cast<ReadOp>(b.clone(op, at)); read && masked)
            read.removeCheckedAttr();
      return at.lookupOrDefault(chain.sum.getReduced());
    });
    eraseUnusedOps(result.getDefiningOp<ReduceOp>().getBody().front());
    if (Attribute precision = chain.sum->getAttr(precisionAttrName))
      result.getDefiningOp()->setAttr(precisionAttrName, precision);
    return result;
  }
};

struct OnlineSoftmaxPass : Counted<tegula::impl::OnlineSoftmaxPassBase<OnlineSoftmaxPass>> {
  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      if (statement->getParentOp() == getOperation())
        tile(statement);
  }

  /// Blocks that share columns wait for each other's parts of sums in each tile: of more than two
  /// that takes longer than matrices in memory do, and so it does where each factor is two planes.
  static std::optional<Mismatch> whyNotWorthIt(const TileLoopPlan &plan, const RowChain &chain) {
    Mismatch why;
    SmallVector<TileLoopShape> ranked = rankTileLoopShapes(plan, &why);
    if (ranked.empty())
      return why;
    int64_t blocks = ranked.front().clusterBlocks;
    // Without a softmax between them two products are worth a loop where its rows fill the device:
    // as matrix products each fills it by itself.
    bool fills = ranked.front().warpgroups == 2;
    if (!chain.hasPowers() && (plan.maxColumns > 256 || !fills))
      return Mismatch{"rows of two products in one loop are too few, or take too many columns", "",
                      plan.op};
    if (blocks <= (splitPrecisionTensors(plan).empty() ? 2 : 1))
      return std::nullopt;
    return Mismatch{"the sums of a row take the registers of " + std::to_string(blocks) +
                        " blocks, which would wait for each other at each tile",
                    "", plan.op};
  }

  /// Whether rows of a block, which share its tiles, have ranges of their own.
  static bool haveOwnRanges(const RowChain &chain, const TileLoopPlan &plan) {
    SmallVector<BlockArgument> outer;
    for (BlockArgument axis : ParallelOp(chain.product).getAxes())
      if (axis != chain.column)
        outer.push_back(axis);
    return rangeVariesAlong(chain, outer[plan.row]);
  }

  /// A block walks all columns, however few blocks there are; as a product of matrices scores fill
  /// the device, and are written once and read twice.
  static std::optional<Mismatch> whyNotWithoutProduct(const TileLoopPlan &plan) {
    constexpr double launches = 5, bytesOfMicrosecond = 3.5e6, ofMultiprocessor = 3e6;
    if (llvm::any_of(plan.products, [](const TileLoopProduct &one) { return one.addsTiles(); }))
      return Mismatch{"factors of f32 without a product of the values: the values are kept", "",
                      plan.op};
    TileLoopShape tile = rankTileLoopShapes(plan).front();
    auto axes = cast<AxesOp>(ParallelOp(plan.op).getOperation());
    int64_t rows = *knownPoints(axes, {plan.row}), batch = *knownPoints(axes, plan.batch);
    int64_t blocks = llvm::divideCeil(rows, tile.rows()) * batch;
    double points = double(rows) * batch * plan.extent;
    double inLoop = llvm::divideCeil(blocks, device::multiprocessors) * 2.0 * tile.rows() *
                    plan.extent * plan.maxColumns / ofMultiprocessor;
    double kept = launches + points * 3 * sizeof(float) / bytesOfMicrosecond +
                  2 * points * plan.maxColumns / (device::multiprocessors * ofMultiprocessor);
    if (inLoop <= kept)
      return std::nullopt;
    return Mismatch{"rows of values without a product are too few for a loop", "", plan.op};
  }

  /// Rows in a loop of their own range, which `few-rows` takes.
  static std::optional<Mismatch> whyNotTiled(const RowChain &chain, ParallelOp rows) {
    Matched<TileLoopPlan> plan = planTileLoop(rows);
    std::optional<Mismatch> reason = plan ? whyNotWorthIt(*plan, chain) : plan.mismatch();
    if (!reason && !chain.column)
      reason = whyNotWithoutProduct(*plan);
    if (reason && chain.hasPowers() && chain.column)
      if (Matched<FewRowsPlan> few = planFewRows(rows); few && chooseFewRowsShape(*few))
        reason = std::nullopt;
    return reason;
  }

  /// Rows that share a loop over all points, each with its range as a mask.
  static ParallelOp maskRanges(const RowChain &chain, std::optional<Mismatch> &reason) {
    reason = whyNotMasked(chain);
    if (reason)
      return {};
    RowChain own = chain;
    StoredEnds ends(own, *pointsOfElements(chain), /*keep=*/true);
    ParallelOp rows = Builder(own, /*masked=*/true).run();
    Matched<TileLoopPlan> plan = planTileLoop(rows);
    reason = plan ? whyNotWorthIt(*plan, chain) : plan.mismatch();
    if (!reason && !haveOwnRanges(chain, *plan))
      reason = Mismatch{"the range is the same for rows that share tiles, and what lies behind its "
                        "end in a tile must not count",
                        "with a `where` in place of the range it does not count for finite factors",
                        plan->op};
    if (!reason)
      return rows;
    rows.erase();
    ends.undo();
    return {};
  }

  void tile(ParallelOp product) {
    std::optional<SeparateProducts> others;
    if (ReduceOp kept = SeparateProducts::ofLoop(product))
      others.emplace(product, kept);
    Matched<RowChain> match = matchRowChain(product);
    if (others && (!match || !others->areWorthIt(*match))) {
      others->undo();
      if (match)
        return;
    }
    if (!match)
      if (Matched<RowChain> values = matchRowValues(product))
        match = std::move(values);
    if (!match)
      return remarkMismatch(product, "tile-loop", match.mismatch());
    std::optional<Mismatch> reason;
    ParallelOp rows = match->hasKnownRange() ? ParallelOp() : maskRanges(*match, reason);
    if (!rows) {
      rows = Builder(*match).run();
      std::optional<Mismatch> own = whyNotTiled(*match, rows);
      if (!own && !match->hasKnownRange())
        own = reportEnds(*match);
      // Of a range that data gives a mask has the better reason.
      if (!own || !reason)
        reason = own;
    }
    if (reason) {
      Mismatch why = *reason;
      why.where = product; // what the reason names is gone with the attempt
      why.isOther = !match->hasPowers();
      remarkMismatch(product, "tile-loop", why);
      rows.erase();
      if (others)
        others->undo();
      return;
    }
    for (Operation *reader : llvm::reverse(match->readers))
      reader->moveAfter(rows);
    product.erase();
    SmallVector<TempDefinition> definitions;
    for (auto &[tensor, definition] : match->inlined)
      definitions.push_back(definition);
    // Each only reads those before it.
    llvm::sort(definitions, [](TempDefinition a, TempDefinition b) {
      return b.statement->isBeforeInBlock(a.statement);
    });
    for (TempDefinition definition : definitions) {
      definition.statement.erase();
      if (!match->kept.contains(definition.temp.getTensor()))
        definition.temp.erase();
    }
    count("softmaxes tiled");
  }
};
} // namespace
