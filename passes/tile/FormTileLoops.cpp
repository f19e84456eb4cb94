//===- FormTileLoops.cpp - What a block computes of a tile loop -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statement is walked in order. What it has for each row becomes a tile of one dim, what it has
// for each row and point of a nest one of two, when it is written to a temporary, reduced, or
// multiplied; scalars between are computed again in the regions that use them.
//
//===----------------------------------------------------------------------===//
#include "passes/tile/FormTileLoops.h"

#include "ir/tgl/TglUtils.h"
#include "ir/tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace {
/// The points of a nest's axis, as columns of tiles.
struct Space {
  BlockArgument axis;
  Value span;
  StringRef name;

  int64_t columns() const { return cast<tile::SpanType>(span.getType()).getSize(); }
};

/// What a value is computed from.
struct Slice {
  llvm::SetVector<Operation *> ops; ///< definitions first
  llvm::SetVector<Value> leaves;    ///< values that are tiles
};

class LoopBuilder {
public:
  LoopBuilder(const FewRowsPlan &plan, const FewRowsShape &shape)
      : plan(plan), op(plan.op), shape(shape), builder(op), loc(op->getLoc()) {}

  void run() {
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    SmallVector<tgl::AxisSpec> grid;
    SmallVector<Value> numbered;
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
      if (plan.isRow(axis))
        continue;
      grid.push_back(getAxisSpec(axes, axis));
      numbered.push_back(op.getAxes()[axis]);
    }
    grid.push_back({"block", 0, int64_t(llvm::divideCeil(plan.numRows, shape.rows))});
    auto launch = op->getParentOfType<tgl::LaunchOp>();
    kernel = tile::KernelOp::create(builder, loc, launch.getName(), grid);
    for (auto [axis, number] : llvm::zip(numbered, kernel.getBody().getArguments()))
      outside.map(axis, number);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    Value block = kernel.getBody().getArguments().back();
    rows = tile::SpanOp::create(builder, loc, shape.rows, ValueExpr(block) * shape.rows,
                                ValueExpr(plan.numRows));
    for (Operation &each : op.getBody().front())
      emit(&each);
    op->moveBefore(&kernel.getOtherwise().front(), kernel.getOtherwise().front().end());
  }

private:
  const FewRowsPlan &plan;
  tgl::ParallelOp op;
  const FewRowsShape &shape;
  OpBuilder builder;
  Location loc;
  tile::KernelOp kernel;
  tile::ForOp loop;                 ///< while it is formed
  IRMapping outside;                ///< values that are the same for all points of a block
  Value rows;                       ///< the span
  std::optional<Space> tile;        ///< of the loop's turn
  Operation *lastOperand = nullptr; ///< that the loop copies in each turn
  llvm::DenseMap<int64_t, Value> fixedSpans;
  llvm::DenseMap<Value, Value> tiles;                       ///< of values of the statement
  llvm::DenseMap<Value, Value> contents;                    ///< tiles that temporaries hold
  llvm::DenseMap<Operation *, const FewRowsProduct *> sums; ///< additions of products, by addition

  //===--- Types and spans ---===//

  tile::TileType tileType(ArrayRef<int64_t> extents, Type element) {
    return tile::TileType::get(builder.getContext(), extents, element, {});
  }
  tile::TileType tileType(const Space &space) {
    return tileType({shape.rows, space.columns()}, builder.getF32Type());
  }

  /// The axis of a nest or a reduction.
  Space spaceOf(Operation *nest) {
    auto axes = cast<tgl::AxesOp>(nest);
    BlockArgument axis = axes.getAxes()[0];
    StringRef name = getAxisName(axes, 0);
    std::optional<int64_t> extent = getAxisRange(axes, 0).hi.asConstant();
    if (!extent)
      return {axis, tile->span, name};
    Value &span = fixedSpans[*extent];
    if (!span) {
      OpBuilder atTop(kernel.getContext());
      atTop.setInsertionPointAfterValue(rows);
      span = tile::SpanOp::create(atTop, loc, tileColumnsFor(*extent), ValueExpr(int64_t(0)),
                                  ValueExpr(*extent));
    }
    return {axis, span, name};
  }

  //===--- Values ---===//

  bool isInside(Value value) { return op.getBody().isAncestor(value.getParentRegion()); }

  void collect(Value value, Slice &slice) {
    if (tiles.contains(value)) {
      slice.leaves.insert(value);
      return;
    }
    Operation *definition = value.getDefiningOp();
    if (!definition || !isInside(value) || outside.contains(value) ||
        slice.ops.contains(definition))
      return;
    for (Value operand : definition->getOperands())
      collect(operand, slice);
    slice.ops.insert(definition);
  }

  Slice sliceOf(ValueRange values) {
    Slice slice;
    for (Value value : values)
      collect(value, slice);
    return slice;
  }

  /// Rows are counted through their axes, the last one fastest.
  void mapRows(Value row, IRMapping &inside) {
    ValueExpr rest(row);
    for (unsigned axis : llvm::reverse(plan.rows)) {
      int64_t extent = *tgl::knownPoints(cast<tgl::AxesOp>(op.getOperation()), {axis});
      bool isSlowest = axis == plan.rows.front();
      ValueExpr own = isSlowest ? rest : ValueExpr::mod(rest, ValueExpr(extent));
      inside.map(op.getAxes()[axis], tgl::materialize(builder, loc, own));
      if (!isSlowest)
        rest = ValueExpr::floorDiv(rest, ValueExpr(extent));
    }
  }

  void cloneSlice(const Slice &slice, IRMapping &inside) {
    for (Operation *each : slice.ops)
      builder.clone(*each, inside);
  }

  /// Names of a region's arguments.
  void setNames(tile::PointsOp points, ArrayRef<StringRef> names) {
    SmallVector<StringRef> all(names);
    all.resize(points.getPoint()->getNumArguments());
    points->setAttr("names", builder.getStrArrayAttr(all));
  }

  static void finishPoint(Block &block) {
    for (Operation &each : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (auto indexed = dyn_cast<tgl::IndexedOp>(each))
        foldIndices(indexed);
      bool reads = isa<tgl::ReadOp>(each) && each.use_empty();
      if (reads || isOpTriviallyDead(&each))
        each.erase();
    }
  }

  SmallVector<Value> tilesOf(ArrayRef<Value> leaves) {
    return llvm::map_to_vector(leaves, [&](Value leaf) { return tiles.lookup(leaf); });
  }

  /// The value at all points of a tile: of rows, and of the space where there is one; with `then`,
  /// what that makes of it.
  template <typename Points>
  Value points(Value value, tile::TileType type, const Space *space,
               llvm::function_ref<Value(Value)> then = nullptr) {
    Slice slice = sliceOf(value);
    SmallVector<Value> spans{rows};
    SmallVector<StringRef> names{"row"};
    if (space) {
      spans.push_back(space->span);
      names.push_back(space->name);
    }
    auto made = Points::create(builder, loc, type, spans, tilesOf(slice.leaves.getArrayRef()));
    setNames(made, names);
    OpBuilder::InsertionGuard guard(builder);
    Block &block = made.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside = outside;
    mapRows(block.getArgument(0), inside);
    if (space)
      inside.map(space->axis, block.getArgument(1));
    for (auto [leaf, argument] :
         llvm::zip_equal(slice.leaves, block.getArguments().drop_front(spans.size())))
      inside.map(leaf, argument);
    cloneSlice(slice, inside);
    Value result = inside.lookupOrDefault(value);
    tile::YieldOp::create(builder, loc, then ? then(result) : result);
    finishPoint(block);
    return made;
  }

  Value ofRows(Value value) {
    if (Value known = tiles.lookup(value))
      return known;
    return points<tile::MapOp>(value, tileType({shape.rows}, value.getType()), nullptr);
  }

  Value ofPoints(Value value, const Space &space) {
    Value known = tiles.lookup(value);
    if (known && known.getType() == tileType(space))
      return known;
    return points<tile::MapOp>(value, tileType(space), &space);
  }

  /// The same for all points of a block.
  Value ofBlock(Value value) {
    if (!isInside(value))
      return value;
    Slice slice = sliceOf(value);
    cloneSlice(slice, outside);
    return outside.lookup(value);
  }
  ValueExpr ofBlock(const ValueExpr &expr) {
    return expr.substitute([&](Value value) { return std::optional(ValueExpr(ofBlock(value))); });
  }

  //===--- Products ---===//

  /// An operand in shared memory, of numbers of `element`: lines of it, and points along the sum.
  Value operand(Value factor, Type element, ArrayRef<Space> spaces, bool hasRows) {
    SmallVector<Value> spans;
    SmallVector<int64_t> extents;
    SmallVector<StringRef> names;
    if (hasRows) {
      spans.push_back(rows);
      extents.push_back(shape.rows);
      names.push_back("row");
    }
    for (const Space &space : spaces) {
      spans.push_back(space.span);
      extents.push_back(space.columns());
      names.push_back(space.name);
    }
    auto made = tile::OperandOp::create(builder, loc, tileType(extents, element), spans);
    setNames(made, names);
    OpBuilder::InsertionGuard guard(builder);
    Block &block = made.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside = outside;
    if (hasRows)
      mapRows(block.getArgument(0), inside);
    for (auto [space, argument] :
         llvm::zip_equal(spaces, block.getArguments().take_back(spaces.size())))
      inside.map(space.axis, argument);
    cloneSlice(sliceOf(factor), inside);
    tile::YieldOp::create(builder, loc, inside.lookup(factor));
    finishPoint(block);
    return made;
  }

  /// An operand that changes with the loop. All are copied first, before products.
  Value operandOfTurn(const FewRowsProduct &one, ArrayRef<Space> spaces) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(lastOperand);
    Value made = operand(one.bValue, one.element, spaces, false);
    lastOperand = made.getDefiningOp();
    return made;
  }

  /// What bf16 holds of a value, the first time, of what that leaves, the next.
  Value bf16Term(Value value, unsigned which) {
    Type type = builder.getF32Type();
    Value infinity = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type, std::numeric_limits<double>::infinity()));
    Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, 0.0));
    for (unsigned term = 0;; ++term) {
      Value rounded = tgl::ConvertOp::create(builder, loc, value, builder.getBF16Type());
      if (term == which)
        return rounded;
      Value size = math::AbsFOp::create(builder, loc, rounded);
      Value ends = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, size, infinity);
      Value rest = arith::SubFOp::create(builder, loc, value, rounded);
      value = arith::SelectOp::create(builder, loc, ends, zero, rest);
    }
  }

  /// `start` and the product.
  Value product(const FewRowsProduct &one, const Space &columns, Value start) {
    tgl::ReduceOp reduce = one.reduce;
    if (one.reducesTile) {
      noteReads(reduce.getBody().front());
      Space terms{cast<tgl::AxesOp>(reduce.getOperation()).getAxes()[0], tile->span, tile->name};
      Value b = operandOfTurn(one, {columns, terms});
      // f32 is the sum of three numbers of bf16.
      for (unsigned term = 0, number = one.isWide ? 3 : 1; term < number; ++term) {
        auto termOf = [&](Value value) { return one.isWide ? bf16Term(value, term) : value; };
        Value a = points<tile::OperandOp>(
            one.aValue, tileType({shape.rows, terms.columns()}, one.element), &terms, termOf);
        start = tile::DotOp::create(builder, loc, a, b, start);
      }
      return start;
    }
    // Lines of shared memory hold so many terms.
    constexpr int64_t depth = 64;
    BlockArgument axis = cast<tgl::AxesOp>(reduce.getOperation()).getAxes()[0];
    for (int64_t first = 0; first < one.fixed; first += depth) {
      Value a;
      Space terms{axis, {}, getAxisName(cast<tgl::AxesOp>(reduce.getOperation()), 0)};
      {
        // The loop does not change it.
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(loop);
        terms.span =
            tile::SpanOp::create(builder, loc, depth, ValueExpr(first), ValueExpr(one.fixed));
        a = operand(one.aValue, one.element, terms, true);
      }
      Value b = operandOfTurn(one, {columns, terms});
      start = tile::DotOp::create(builder, loc, a, b, start);
    }
    return start;
  }

  Value zero(const Space &space) { return tile::ZeroOp::create(builder, loc, tileType(space)); }

  //===--- Statements ---===//

  /// Reads of temporaries are what these hold now.
  void noteReads(Block &block) {
    for (tgl::ReadOp read : block.getOps<tgl::ReadOp>())
      if (Value held = contents.lookup(read.getTensor()))
        tiles[read.getResult()] = held;
  }

  void emit(Operation *each) {
    if (auto nest = dyn_cast<tgl::ParallelOp>(each)) {
      Space space = spaceOf(nest);
      for (Operation &inner : nest.getBody().front())
        emitInNest(&inner, space);
    } else if (auto reduce = dyn_cast<tgl::ReduceOp>(each)) {
      emitReduce(reduce);
    } else if (auto loopOp = dyn_cast<tgl::TilesOp>(each)) {
      emitLoop(loopOp);
    } else if (auto write = dyn_cast<tgl::WriteOp>(each)) {
      store(write, ofRows(write.getValue()), nullptr);
    } else if (each->getNumResults() == 1 && each->getResult(0).getType().isF32()) {
      // What varies from row to row is computed once.
      Slice slice = sliceOf(each->getResult(0));
      if (!slice.leaves.empty())
        tiles[each->getResult(0)] = ofRows(each->getResult(0));
    }
  }

  void emitInNest(Operation *inner, const Space &space) {
    if (auto read = dyn_cast<tgl::ReadOp>(inner)) {
      if (Value held = contents.lookup(read.getTensor()))
        tiles[read.getResult()] = held;
    } else if (auto reduce = dyn_cast<tgl::ReduceOp>(inner)) {
      const FewRowsProduct *one = plan.productOf(reduce);
      // What a product is added to is where its sums begin.
      auto add =
          reduce->hasOneUse() ? dyn_cast<arith::AddFOp>(*reduce->user_begin()) : arith::AddFOp();
      if (add && add->getBlock() == reduce->getBlock())
        sums[add] = one;
      else
        tiles[reduce.getResult()] = product(*one, space, zero(space));
    } else if (const FewRowsProduct *one = sums.lookup(inner)) {
      auto add = cast<arith::AddFOp>(inner);
      Value other =
          add.getLhs() == tgl::ReduceOp(one->reduce).getResult() ? add.getRhs() : add.getLhs();
      tiles[add.getResult()] = product(*one, space, ofPoints(other, space));
    } else if (auto write = dyn_cast<tgl::WriteOp>(inner)) {
      Value value = ofPoints(write.getValue(), space);
      auto temp = write.getTensor().getDefiningOp<tgl::TempOp>();
      if (temp && op->isProperAncestor(temp))
        contents[write.getTensor()] = value;
      else
        store(write, value, &space);
    }
  }

  void emitReduce(tgl::ReduceOp reduce) {
    noteReads(reduce.getBody().front());
    Space space = spaceOf(reduce);
    auto type = tile::StateType::get(builder.getContext(), reduce.getKind(), shape.rows,
                                     builder.getF32Type(), {});
    Value values = ofPoints(reduce.getReduced(), space);
    Value state = tile::InitOp::create(builder, loc, type);
    state = tile::ReduceOp::create(builder, loc, type, values, space.span, state);
    tiles[reduce.getResult()] = tile::FinishOp::create(builder, loc, state);
  }

  /// The loop carries what the statement's does, and temporaries from before it that it writes.
  void emitLoop(tgl::TilesOp from) {
    SmallVector<Value> inits, temps;
    for (Value init : from.getInits())
      inits.push_back(ofRows(init));
    for (Value tensor : tgl::accessesOf(from).writes) {
      Value held = contents.lookup(tensor);
      if (!held)
        continue;
      temps.push_back(tensor);
      inits.push_back(held);
    }
    ValueExpr high = ofBlock(from.getHighExpr());
    loop =
        tile::ForOp::create(builder, loc, ofBlock(from.getLowExpr()), high, shape.columns, inits);
    size_t numArgs = from.getInits().size();
    auto hold = [&](ValueRange values) {
      for (auto [tensor, value] : llvm::zip_equal(temps, values.drop_front(numArgs)))
        contents[tensor] = value;
    };
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(&loop.getBody().front());
      StringRef name = "j";
      if (std::optional<ArrayAttr> names = from.getNames(); names && !names->empty())
        name = cast<StringAttr>((*names)[0]).getValue();
      Value span =
          tile::SpanOp::create(builder, loc, shape.columns, ValueExpr(loop.getLoopVar()), high);
      tile = Space{BlockArgument(), span, name};
      lastOperand = span.getDefiningOp();
      outside.map(from.getTileLow(), loop.getLoopVar());
      for (auto [argument, carried] : llvm::zip(from.getIterArgs(), loop.getIterArgs()))
        tiles[argument] = carried;
      hold(loop.getIterArgs());
      Block &body = from.getBody().front();
      for (Operation &each : body.without_terminator())
        emit(&each);
      SmallVector<Value> after;
      for (Value value : from.getYield().getValues())
        after.push_back(ofRows(value));
      for (Value tensor : temps)
        after.push_back(contents.lookup(tensor));
      tile::YieldOp::create(builder, loc, after);
    }
    for (auto [result, value] : llvm::zip(from.getResults(), loop.getResults()))
      tiles[result] = value;
    hold(loop.getResults());
    loop = {};
    tile = std::nullopt;
  }

  /// The write, at the points that exist.
  void store(tgl::WriteOp write, Value value, const Space *space) {
    SmallVector<Value> others;
    for (Value operand : write->getOperands())
      if (operand != write.getValue() && operand != write.getTensor())
        others.push_back(operand);
    Slice slice = sliceOf(others);
    SmallVector<Value> spans{rows}, inputs{value};
    SmallVector<StringRef> names{"row"};
    if (space) {
      spans.push_back(space->span);
      names.push_back(space->name);
    }
    llvm::append_range(inputs, tilesOf(slice.leaves.getArrayRef()));
    auto made = tile::StoreOp::create(builder, loc, spans, inputs);
    setNames(made, names);
    OpBuilder::InsertionGuard guard(builder);
    Block &block = made.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside = outside;
    mapRows(block.getArgument(0), inside);
    if (space)
      inside.map(space->axis, block.getArgument(1));
    auto elements = block.getArguments().drop_front(spans.size());
    for (auto [leaf, argument] : llvm::zip_equal(slice.leaves, elements.drop_front()))
      inside.map(leaf, argument);
    cloneSlice(slice, inside);
    inside.map(write.getValue(), elements.front());
    builder.clone(*write, inside);
    tile::YieldOp::create(builder, loc);
    finishPoint(block);
  }
};
} // namespace

void tegula::formTileLoop(const FewRowsPlan &plan, const FewRowsShape &shape) {
  LoopBuilder(plan, shape).run();
}
