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
#include "passes/fuse/SoftmaxProduct.h"
#include "strategies/tile_loop/plan/TileLoop.h"

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
  explicit Builder(const SoftmaxProduct &found)
      : match(found), b(match.product), loc(match.product.getLoc()) {}

  ParallelOp run() {
    auto axes = cast<AxesOp>(match.product.getOperation());
    SmallVector<Value> outer;
    for (BlockArgument axis : axes.getAxes())
      if (axis != match.column)
        outer.push_back(axis);
    ParallelOp rows = copyAxes(b, loc, outer, map);
    b.setInsertionPointToEnd(&rows.getBody().front());
    columns = getAxisRange(axes, match.column.getArgNumber()).hi;
    Value acc = temp("acc", *columns.asConstant());
    overColumns([&](Value column) { write(number(0), acc, Value(column)); });
    Value sum = emitTiles(acc);
    overColumns([&](Value column) {
      Value total = ReadOp::create(b, loc, acc, {ValueExpr(column)});
      map.map(match.sum.getResult(),
              arith::DivFOp::create(b, loc, total, sum, contract).getResult());
      for (Operation &op : match.product.getBody().front())
        if (&op != match.sum)
          b.clone(op, map);
    });
    rows.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(rows.getBody().front());
    return rows;
  }

private:
  SoftmaxProduct match;
  OpBuilder b;
  Location loc;
  IRMapping map; ///< from the product's axes
  ValueExpr columns;
  TilesOp tiles;
  static constexpr arith::FastMathFlags contract = arith::FastMathFlags::contract;

  Value number(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }

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
    map.map(match.column, nest.getBody().front().getArgument(0));
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

  /// The sum of powers; the sums of products are left in `acc`.
  Value emitTiles(Value acc) {
    // The largest begins with a number: distances from it are none of infinities.
    Value lowest = number(std::numeric_limits<float>::lowest());
    AxisRange range = getAxisRange(cast<AxesOp>(match.sum.getOperation()), 0);
    tiles = TilesOp::create(b, loc, {"j", "l", "m"}, range.lo, range.hi,
                            ValueRange{number(0), lowest}, tileSize);
    Block &block = tiles.getBody().front();
    OpBuilder::InsertionGuard guard(b);
    if (!block.empty())
      block.back().erase();
    b.setInsertionPointToEnd(&block);
    Value sum = tiles.getIterArgs()[0], largest = tiles.getIterArgs()[1];
    Value scores = temp("s", tileSize), powers = temp("p", tileSize);
    overTile([&](Value column) { write(score(column), scores, inTile(column)); });
    Value found = reduceTile(ReduceKind::Max, [&](Value column) -> Value {
      return ReadOp::create(b, loc, scores, {inTile(column)});
    });
    Value next = arith::MaximumFOp::create(b, loc, largest, found, contract);
    overTile([&](Value column) {
      Value own = ReadOp::create(b, loc, scores, {inTile(column)});
      Value distance = arith::SubFOp::create(b, loc, own, next, contract);
      write(math::ExpOp::create(b, loc, distance, contract), powers, inTile(column));
    });
    Value distance = arith::SubFOp::create(b, loc, largest, next, contract);
    Value factor = math::ExpOp::create(b, loc, distance, contract);
    Value own = reduceTile(ReduceKind::Sum, [&](Value column) -> Value {
      return ReadOp::create(b, loc, powers, {inTile(column)});
    });
    Value scaled = arith::MulFOp::create(b, loc, sum, factor, contract);
    Value total = arith::AddFOp::create(b, loc, scaled, own, contract);
    overColumns([&](Value column) {
      Value before = ReadOp::create(b, loc, acc, {ValueExpr(column)});
      Value kept = arith::MulFOp::create(b, loc, before, factor, contract);
      Value added = product(powers);
      write(arith::AddFOp::create(b, loc, kept, added, contract), acc, Value(column));
    });
    YieldOp::create(b, loc, ValueRange{total, next});
    return tiles.getResult(0);
  }

  /// The score of a column of the tile.
  Value score(Value column) {
    TempDefinition scores = *match.scores;
    IRMapping inside;
    for (auto &[axis, expr] : match.place)
      inside.map(
          axis, materialize(b, loc, expr.substitute([&](Value value) -> std::optional<ValueExpr> {
            return ValueExpr(value == match.sum.getAxes()[0] ? column : map.lookupOrDefault(value));
          })));
    for (Operation &op : scores.statement.getBody().front())
      if (&op != scores.write)
        b.clone(op, inside);
    Value result = withoutZeros(inside.lookupOrDefault(scores.write.getValue()));
    Type element = scores.write.getTensorType().getElementType();
    return element.isF32() ? result : ConvertOp::create(b, loc, result, element).getResult();
  }

  Value product(Value powers) {
    Value result = reduceTile(ReduceKind::Sum, [&](Value column) -> Value {
      map.map(match.sum.getAxes()[0], column);
      Value left = ReadOp::create(b, loc, powers, {inTile(column)});
      if (match.rounded)
        left = ConvertOp::create(b, loc, left, match.rounded);
      map.map(match.left, left);
      for (Operation &op : match.sum.getBody().front().without_terminator())
        if (op.getNumResults() != 1 || op.getResult(0) != match.left)
          b.clone(op, map);
      return map.lookupOrDefault(match.sum.getReduced());
    });
    if (Attribute precision = match.sum->getAttr(precisionAttrName))
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
  static std::optional<Mismatch> whyNotWorthIt(const TileLoopPlan &plan) {
    Mismatch why;
    SmallVector<TileLoopShape> ranked = rankTileLoopShapes(plan, &why);
    if (ranked.empty())
      return why;
    int64_t blocks = ranked.front().clusterBlocks;
    if (blocks <= (splitPrecisionTensors(plan).empty() ? 2 : 1))
      return std::nullopt;
    return Mismatch{"the sums of a row take the registers of " + std::to_string(blocks) +
                        " blocks, which would wait for each other at each tile",
                    "", plan.op};
  }

  void tile(ParallelOp product) {
    Matched<SoftmaxProduct> match = matchSoftmaxProduct(product);
    if (!match)
      return remarkMismatch(product, "tile-loop", match.mismatch());
    ParallelOp rows = Builder(*match).run();
    Matched<TileLoopPlan> plan = planTileLoop(rows);
    std::optional<Mismatch> reason = plan ? whyNotWorthIt(*plan) : plan.mismatch();
    if (reason) {
      Mismatch why = *reason;
      why.where = product; // what the reason names is gone with the attempt
      why.isOther = false;
      remarkMismatch(product, "tile-loop", why);
      rows.erase();
      return;
    }
    product.erase();
    // Each only reads those before it.
    auto statementOf = [](Operation *temp) {
      return TempDefinition::of(temp->getResult(0))->statement;
    };
    SmallVector<Operation *> temps(match->temps.begin(), match->temps.end());
    llvm::sort(temps, [&](Operation *a, Operation *b) {
      return statementOf(b)->isBeforeInBlock(statementOf(a));
    });
    for (Operation *temp : temps)
      statementOf(temp).erase();
    for (Operation *temp : temps)
      temp->erase();
    count("softmaxes tiled");
  }
};
} // namespace
