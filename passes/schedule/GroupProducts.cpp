//===- GroupProducts.cpp - Grouped GEMM: sorts rows by the matrix that data chooses ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/SameValue.h"
#include "strategies/contraction/plan/GroupedProduct.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_GROUPPRODUCTSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Rows that are counted together: as many places are looked through for a row's rank.
static constexpr int64_t chunkRows = 128;
/// Points among which rows without a group are dealt out.
static constexpr int64_t strayPoints = 128;

/// The launch that the statement is in, or itself.
static Operation *launchOf(ParallelOp statement) {
  auto launch = statement->getParentOfType<LaunchOp>();
  return launch ? launch.getOperation() : statement.getOperation();
}

namespace {
/// Where rows are in the order of their groups.
struct RowOrder {
  Value row, group, used, total, first;
};

/// Makes the statements that take the place of one with grouped products.
class Grouping {
public:
  Grouping(ParallelOp statement, const GroupedProduct &product)
      : statement(statement), axes(cast<AxesOp>(statement.getOperation())), product(product),
        loc(statement.getLoc()), builder(statement), rows(product.rows.begin(), product.rows.end()),
        numRows(product.numRows), groups(product.groups) {
    llvm::sort(
        rows, [](BlockArgument a, BlockArgument b) { return a.getArgNumber() < b.getArgNumber(); });
    // Most groups fit into one tile, so that their matrix is read once, or are many.
    int64_t average = numRows / groups;
    tileRows = std::clamp<int64_t>(llvm::bit_ceil(uint64_t(average + average / 4)), 16, 128);
    numTiles = (numRows + groups * (tileRows - 1)) / tileRows;
    chunks = llvm::divideCeil(numRows, chunkRows);
    findKeys();
  }

  /// False, with nothing changed, where tensor cores cannot multiply what comes out. `earlier`: of
  /// a statement before, with rows in the order that is wanted here; null: there is none.
  bool run(const Grouping *earlier) {
    if (earlier)
      order = earlier->order;
    else
      makeTemps();
    ParallelOp multiplied = multiply();
    if (!chooseTile(multiplied)) {
      multiplied.erase();
      if (!earlier)
        for (Value temp :
             {order.row, order.group, order.used, order.total, order.first, count, before})
          temp.getDefiningOp()->erase();
      return false;
    }
    builder.setInsertionPoint(multiplied);
    if (!earlier) {
      countRows();
      addCounts();
      placeGroups();
      makeTiles();
      placeRows();
    }
    if (hasStray)
      computeStrays();
    return true;
  }

  /// Whether statements before this one can compute keys: by straight code, from memory that it
  /// leaves as it is.
  bool canComputeKeys() const {
    llvm::SetVector<Value> written = accessesOf(statement).writes;
    return llvm::none_of(opsOfKey(), [](Operation *op) { return op->getNumRegions() != 0; }) &&
           llvm::none_of(tensorsOfKey(), [&](Value tensor) { return written.contains(tensor); });
  }

  /// What has been replaced.
  void eraseStatement() { statement.erase(); }

  /// Whether rows are in the same order for a later statement.
  bool servesAlso(const Grouping &later) const {
    auto points = [](BlockArgument own) { return highOf(own).asConstant(); };
    if (groups != later.groups || hasStray != later.hasStray ||
        !llvm::equal(llvm::map_range(rows, points), llvm::map_range(later.rows, points)))
      return false;
    SameValue same(statement, later.statement);
    for (auto [own, its] : llvm::zip_equal(rows, later.rows))
      same.assume(own, its);
    if (!same.equal(product.key, later.product.key))
      return false;
    Operation *from = launchOf(statement), *to = launchOf(later.statement);
    if (from->getBlock() != to->getBlock() || !(from == to || from->isBeforeInBlock(to)))
      return false;
    llvm::SetVector<Value> tensors = tensorsOfKey();
    for (Operation *op = from;; op = op->getNextNode()) {
      if (llvm::any_of(accessesOf(op).writes,
                       [&](Value tensor) { return tensors.contains(tensor); }))
        return false;
      if (op == to)
        return true;
    }
  }

private:
  //===--- What the statement is made of ---===//

  /// Operations of the statement that compute the key.
  llvm::SetVector<Operation *> opsOfKey() const {
    llvm::SetVector<Operation *> ops;
    SmallVector<Value> pending{product.key};
    while (!pending.empty())
      if (Operation *definition = pending.pop_back_val().getDefiningOp();
          definition && statement->isProperAncestor(definition) && ops.insert(definition))
        llvm::append_range(pending, definition->getOperands());
    return ops;
  }

  /// That the key is read from.
  llvm::SetVector<Value> tensorsOfKey() const {
    llvm::SetVector<Value> tensors;
    for (Operation *op : opsOfKey())
      if (auto read = dyn_cast<ReadOp>(op))
        tensors.insert(read.getTensor());
    return tensors;
  }

  /// Values that are the key, and reads that it keeps inside of their tensors.
  void findKeys() {
    statement.walk([&](Operation *op) {
      for (Value value : op->getOperands())
        if (value.getType().isIndex() && computedAlike(value, product.key))
          keys.insert(value);
    });
    auto isKey = [&](Value value) { return keys.contains(value); };
    statement.walk([&](ReadOp read) {
      if (!read.getChecked() || llvm::none_of(read.getIndices(), isKey))
        return;
      hasStray = true;
      bool isAlone = true; // no other data may be out of bounds
      for (auto [subscript, dim] :
           llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
        bool isData = llvm::any_of(subscript.operands(),
                                   [](Value value) { return !isa<BlockArgument>(value); });
        std::optional<int64_t> extent = dim.getExpr().asConstant();
        isAlone &= !isData || (subscript.asValue() && isKey(subscript.asValue()) && extent &&
                               *extent >= groups);
      }
      if (isAlone)
        proved.insert(read);
    });
  }

  Value makeTemp(StringRef name, ArrayRef<int64_t> extents) {
    MLIRContext *context = statement.getContext();
    SmallVector<IndexExprAttr> dims;
    for (int64_t extent : extents)
      dims.push_back(IndexExprAttr::get(context, extent));
    OpBuilder front(launchOf(statement));
    return TempOp::create(front, loc, TglTensorType::get(context, dims, front.getI32Type()), name)
        .getTensor();
  }

  void makeTemps() {
    int64_t stray = hasStray ? llvm::divideCeil(numRows, tileRows) : 0, counted = groups + hasStray;
    order.row = makeTemp("row", {(numTiles + stray) * tileRows});
    order.group = makeTemp("group", {numTiles});
    order.used = makeTemp("used", {numTiles});
    count = makeTemp("count", {chunks, counted});
    before = makeTemp("before", {chunks, counted});
    order.total = makeTemp("total", {counted});
    order.first = makeTemp("first", {counted});
  }

  //===--- Pieces of statements ---===//

  static AxisSpec axis(StringRef name, const ValueExpr &high) {
    return {name.str(), ValueExpr(int64_t(0)), high};
  }

  static Value constant(OpBuilder &b, Location loc, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  }

  /// An element of one of the temporaries as an index.
  Value readIndex(OpBuilder &b, Value tensor, ArrayRef<ValueExpr> place) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), readWord(b, tensor, place));
  }
  Value readWord(OpBuilder &b, Value tensor, ArrayRef<ValueExpr> place) {
    return ReadOp::create(b, loc, tensor, place).getResult();
  }
  void writeIndex(OpBuilder &b, const ValueExpr &value, Value tensor, ArrayRef<ValueExpr> place) {
    Value word = arith::IndexCastOp::create(b, loc, b.getI32Type(), materialize(b, loc, value));
    WriteOp::create(b, loc, word, tensor, place);
  }

  OpBuilder open(ArrayRef<AxisSpec> specs, SmallVectorImpl<Value> &points) {
    auto made = ParallelOp::create(builder, loc, specs);
    llvm::append_range(points, made.getAxes());
    return OpBuilder::atBlockEnd(&made.getBody().front());
  }
  /// After the last operation of a statement.
  void close(OpBuilder &b) {
    Operation *made = b.getInsertionBlock()->getParentOp();
    made->walk([](IndexedOp op) {
      if (!isa<IndexOp>(op.getOperation()))
        foldIndices(op);
    });
    eraseUnusedOps(*b.getInsertionBlock());
  }

  Value sum(OpBuilder &b, const AxisSpec &range,
            llvm::function_ref<Value(OpBuilder &, Value)> term) {
    auto reduce = ReduceOp::create(b, loc, b.getI32Type(), ReduceKind::Sum, {range});
    endWith(reduce.getBody().front(),
            [&](OpBuilder &inside) { return term(inside, reduce.getAxes()[0]); });
    return reduce.getResult();
  }
  void endWith(Block &block, llvm::function_ref<Value(OpBuilder &)> value) {
    if (!block.empty() && isa<YieldOp>(block.back()))
      block.back().erase();
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    Value result = value(inside);
    YieldOp::create(inside, loc, SmallVector<Value>{result});
  }

  Value select(OpBuilder &b, Value condition, Value yes, Value no) {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  }
  Value compare(OpBuilder &b, arith::CmpIPredicate how, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, how, x, y);
  }
  Value oneIf(OpBuilder &b, Value condition) {
    return select(b, condition, constant(b, loc, 1), constant(b, loc, 0));
  }

  /// Sets the axes of rows to row `number`, the last fastest.
  void setRow(OpBuilder &b, IRMapping &map, ValueExpr number) {
    for (Value own : llvm::reverse(rows)) {
      ValueExpr extent(*highOf(own).asConstant()), digit = number;
      if (own != rows.front()) {
        digit = ValueExpr::mod(number, extent);
        number = ValueExpr::floorDiv(number, extent);
      }
      map.map(own, materialize(b, loc, digit));
    }
  }

  /// What the statement computes as `value`, at other points.
  Value computeAgain(OpBuilder &b, IRMapping &map, Value value) {
    Operation *definition = value.getDefiningOp();
    if (map.contains(value) || !definition || !statement->isProperAncestor(definition))
      return map.lookupOrDefault(value);
    for (Value operand : definition->getOperands())
      computeAgain(b, map, operand);
    b.clone(*definition, map);
    return map.lookup(value);
  }

  /// The group of row `number`, i32; those that have none are one more.
  Value groupOf(OpBuilder &b, const ValueExpr &number) {
    IRMapping map;
    setRow(b, map, number);
    Value key = computeAgain(b, map, product.key);
    Value word = arith::IndexCastOp::create(b, loc, b.getI32Type(), key);
    if (!hasStray)
      return word;
    Value zero = materialize(b, loc, ValueExpr(int64_t(0))),
          end = materialize(b, loc, ValueExpr(groups));
    Value inside = arith::AndIOp::create(b, loc, compare(b, arith::CmpIPredicate::sge, key, zero),
                                         compare(b, arith::CmpIPredicate::slt, key, end));
    return select(b, inside, word, constant(b, loc, groups));
  }

  ValueExpr tilesOf(const ValueExpr &itsRows) {
    return ValueExpr::floorDiv(itsRows + ValueExpr(tileRows - 1), ValueExpr(tileRows));
  }

  //===--- The statements ---===//

  /// count[c, g]: rows of chunk c that are of group g
  void countRows() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("chunk", chunks), axis("g", groups + hasStray)}, at);
    ValueExpr low = ValueExpr(at[0]) * ValueExpr(chunkRows), high = low + ValueExpr(chunkRows);
    if (numRows % chunkRows)
      high = ValueExpr::min(high, ValueExpr(numRows));
    Value own = arith::IndexCastOp::create(b, loc, b.getI32Type(), at[1]);
    Value its = sum(b, {"n", low, high}, [&](OpBuilder &inside, Value number) {
      return oneIf(inside, compare(inside, arith::CmpIPredicate::eq,
                                   groupOf(inside, ValueExpr(number)), own));
    });
    WriteOp::create(b, loc, its, count, {ValueExpr(at[0]), ValueExpr(at[1])});
    close(b);
  }

  /// before[c, g]: rows of group g in chunks before c; total[g]: in all
  void addCounts() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("g", groups + hasStray)}, at);
    auto scan = ForOp::create(b, loc, ArrayRef<StringRef>{"chunk"}, ValueExpr(int64_t(0)),
                              ValueExpr(chunks), ValueRange(constant(b, loc, 0)));
    endWith(scan.getBody().front(), [&](OpBuilder &step) -> Value {
      SmallVector<ValueExpr> place{ValueExpr(scan.getLoopVar()), ValueExpr(at[0])};
      Value its = readWord(step, count, place);
      WriteOp::create(step, loc, scan.getIterArgs()[0], before, place);
      return arith::AddIOp::create(step, loc, scan.getIterArgs()[0], its);
    });
    WriteOp::create(b, loc, scan.getResults()[0], order.total, {ValueExpr(at[0])});
    close(b);
  }

  /// first[g]: tiles of the groups before g
  void placeGroups() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("g", groups + hasStray)}, at);
    Value tiles =
        sum(b, axis("other", ValueExpr(at[0])), [&](OpBuilder &inside, Value other) -> Value {
          Value its = readIndex(inside, order.total, {ValueExpr(other)});
          return arith::IndexCastOp::create(inside, loc, inside.getI32Type(),
                                            materialize(inside, loc, tilesOf(ValueExpr(its))));
        });
    WriteOp::create(b, loc, tiles, order.first, {ValueExpr(at[0])});
    close(b);
  }

  /// group[t]: the group that tile t is of; used[t]: how many rows of it there are; row[t, :]: any
  /// row that exists
  void makeTiles() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("tile", numTiles)}, at);
    Value ended = sum(b, axis("g", ValueExpr(groups)), [&](OpBuilder &inside, Value its) {
      Value begin = readIndex(inside, order.first, {ValueExpr(its)}),
            size = readIndex(inside, order.total, {ValueExpr(its)});
      Value end = materialize(inside, loc, ValueExpr(begin) + tilesOf(ValueExpr(size)));
      return oneIf(inside, compare(inside, arith::CmpIPredicate::sle, end, at[0]));
    });
    // Tiles after the last group's have none of its rows left.
    ValueExpr own =
        ValueExpr::min(ValueExpr(arith::IndexCastOp::create(b, loc, b.getIndexType(), ended)),
                       ValueExpr(groups - 1));
    Value kept = materialize(b, loc, own);
    Value begin = readIndex(b, order.first, {ValueExpr(kept)}),
          size = readIndex(b, order.total, {ValueExpr(kept)});
    ValueExpr left = ValueExpr(size) - (ValueExpr(at[0]) - ValueExpr(begin)) * ValueExpr(tileRows);
    writeIndex(b, ValueExpr(kept), order.group, {ValueExpr(at[0])});
    writeIndex(b, ValueExpr::max(ValueExpr::min(left, ValueExpr(tileRows)), ValueExpr(int64_t(0))),
               order.used, {ValueExpr(at[0])});
    auto places =
        ParallelOp::create(b, loc, ArrayRef<AxisSpec>{axis("place", ValueExpr(tileRows))});
    OpBuilder inside = OpBuilder::atBlockEnd(&places.getBody().front());
    WriteOp::create(inside, loc, constant(inside, loc, 0), order.row,
                    {ValueExpr(at[0]) * ValueExpr(tileRows) + ValueExpr(places.getAxes()[0])});
    close(b);
  }

  /// row[place of n] = n: groups begin with a tile, their rows follow each other in order
  void placeRows() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("n", numRows)}, at);
    ValueExpr own(at[0]), chunk = ValueExpr::floorDiv(own, ValueExpr(chunkRows));
    Value its = groupOf(b, own);
    // Of known length, which tells how many threads share it; rows from this one on do not count.
    Value rank =
        sum(b, axis("other", ValueExpr(chunkRows)), [&](OpBuilder &inside, Value other) -> Value {
          ValueExpr place = ValueExpr::min(chunk * ValueExpr(chunkRows) + ValueExpr(other), own);
          Value isBefore =
              compare(inside, arith::CmpIPredicate::slt, materialize(inside, loc, place), at[0]);
          Value isAlike = compare(inside, arith::CmpIPredicate::eq, groupOf(inside, place), its);
          return oneIf(inside, arith::AndIOp::create(inside, loc, isBefore, isAlike));
        });
    Value number = arith::IndexCastOp::create(b, loc, b.getIndexType(), its);
    Value begin = readIndex(b, order.first, {ValueExpr(number)});
    Value earlier = readIndex(b, before, {chunk, ValueExpr(number)});
    Value later = arith::IndexCastOp::create(b, loc, b.getIndexType(), rank);
    writeIndex(b, own, order.row,
               {ValueExpr(begin) * ValueExpr(tileRows) + ValueExpr(earlier) + ValueExpr(later)});
    close(b);
  }

  /// Rows without a group, mostly none, as the statement has them.
  void computeStrays() {
    SmallVector<Value> at;
    OpBuilder b = open({axis("point", strayPoints)}, at);
    Value begin = readIndex(b, order.first, {ValueExpr(groups)}),
          size = readIndex(b, order.total, {ValueExpr(groups)});
    ValueExpr own = ValueExpr::floorDiv(
        ValueExpr(size) - ValueExpr(at[0]) + ValueExpr(strayPoints - 1), ValueExpr(strayPoints));
    SmallVector<AxisSpec> specs{axis("stray", own)};
    SmallVector<Value> columns = addColumns(specs);
    auto points = ParallelOp::create(b, loc, specs);
    OpBuilder inside = OpBuilder::atBlockEnd(&points.getBody().front());
    IRMapping map;
    ValueExpr place = ValueExpr(begin) * ValueExpr(tileRows) +
                      ValueExpr(points.getAxes()[0]) * ValueExpr(strayPoints) + ValueExpr(at[0]);
    setRow(inside, map, ValueExpr(readIndex(inside, order.row, {place})));
    for (auto [column, point] : llvm::zip_equal(columns, points.getAxes().drop_front()))
      map.map(column, point);
    for (Operation &op : statement.getBody().front())
      inside.clone(op, map);
    eraseUnusedOps(points.getBody().front());
    close(b);
  }

  /// Axes of the statement that are not rows.
  SmallVector<Value> addColumns(SmallVectorImpl<AxisSpec> &specs) {
    SmallVector<Value> columns;
    for (auto [number, own] : llvm::enumerate(axes.getAxes()))
      if (!llvm::is_contained(rows, own)) {
        columns.push_back(own);
        specs.push_back(getAxisSpec(axes, number));
      }
    return columns;
  }

  /// The statement at tiles of rows of one group.
  ParallelOp multiply() {
    SmallVector<AxisSpec> specs{axis("tile", numTiles), axis("place", tileRows)};
    SmallVector<Value> columns = addColumns(specs), at;
    OpBuilder b = open(specs, at);
    auto result = cast<ParallelOp>(b.getInsertionBlock()->getParentOp());
    IRMapping map;
    ValueExpr tile(at[0]), place(at[1]);
    setRow(b, map, ValueExpr(readIndex(b, order.row, {tile * ValueExpr(tileRows) + place})));
    Value own = readIndex(b, order.group, {tile});
    Value exists = compare(b, arith::CmpIPredicate::slt, at[1], readIndex(b, order.used, {tile}));
    for (auto [column, point] : llvm::zip_equal(columns, ArrayRef(at).drop_front(2)))
      map.map(column, point);
    for (Operation &op : statement.getBody().front())
      b.clone(op, map);
    for (Value key : keys)
      map.lookup(key).replaceAllUsesWith(own);
    for (ReadOp read : proved)
      cast<ReadOp>(map.lookup(read.getOperation())).removeCheckedAttr();
    result.walk([&](WriteOp write) {
      OpBuilder before(write);
      Value guard = write.getGuard();
      write.getGuardMutable().assign(
          guard ? arith::AndIOp::create(before, loc, guard, exists).getResult() : exists);
    });
    for (Operation &op : result.getBody().front())
      for (Region &region : op.getRegions())
        for (Block &block : region)
          eraseUnusedOps(block);
    close(b);
    return result;
  }

  ParallelOp statement;
  AxesOp axes;
  GroupedProduct product;
  Location loc;
  OpBuilder builder;
  SmallVector<BlockArgument> rows;
  int64_t numRows, groups, tileRows, numTiles, chunks;
  SetVector<Value> keys;
  SetVector<ReadOp> proved; ///< inside of their tensors wherever the key is a group
  bool hasStray = false;    ///< keys may be no group
  RowOrder order;
  Value count, before;
};

struct GroupProductsPass : Counted<tegula::impl::GroupProductsPassBase<GroupProductsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      count("sums split", splitGroupedSums(statement));
    std::vector<Grouping> done; // their statements are there to be compared with
    for (ParallelOp statement : outermostStatements(getOperation())) {
      std::optional<GroupedProduct> product = match(statement);
      if (!product)
        continue;
      Grouping grouping(statement, *product);
      if (!grouping.canComputeKeys())
        continue;
      auto earlier =
          llvm::find_if(done, [&](const Grouping &one) { return one.servesAlso(grouping); });
      if (grouping.run(earlier == done.end() ? nullptr : &*earlier))
        done.push_back(std::move(grouping));
    }
    for (Grouping &grouping : done)
      grouping.eraseStatement();
    count("products grouped", done.size());
  }

  /// Nothing where the statement's products are not all of the same groups, or more stands in the
  /// way.
  static std::optional<GroupedProduct> match(ParallelOp statement) {
    auto axes = cast<AxesOp>(statement.getOperation());
    for (const AxisRange &range : getAxisRanges(axes))
      if (range.lo.asConstant() != 0 || !range.hi.asConstant())
        return std::nullopt;
    std::optional<GroupedProduct> found;
    for (auto reduce : statement.getBody().getOps<ReduceOp>()) {
      std::optional<GroupedProduct> product = matchGroupedProduct(reduce);
      if (product && found &&
          (!computedAlike(product->key, found->key) || product->groups != found->groups))
        return std::nullopt;
      if (product)
        found = product;
    }
    if (!found || llvm::any_of(found->rows, [&](BlockArgument row) {
          return row.getOwner() != axes.getAxesBlock();
        }))
      return std::nullopt;
    return found;
  }
};
} // namespace
