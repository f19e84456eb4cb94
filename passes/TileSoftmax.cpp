//===- TileSoftmax.cpp - Softmaxes that feed products as tile loops -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Nest.h"
#include "passes/Passes.h"
#include "passes/RowTiles.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_TILESOFTMAXPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Of a tile where nobody chooses another; row tiles have their own.
static constexpr int64_t tileSize = 32;

namespace {
/// The one statement that defines a temporary: it writes an element for each of its points, and nothing else.
struct Definition {
  TempOp temp;
  ParallelOp statement;
  WriteOp write;

  static std::optional<Definition> of(Value tensor);
};

/// A value of a statement, and what the statement's axes are in terms of the axes at another place.
struct Term {
  Value value;
  DenseMap<Value, ValueExpr> place;

  Term with(Value other) const { return {other, place}; }
  ValueExpr exprOf(const ValueExpr &expr) const {
    return expr.substitute([&](Value axis) -> std::optional<ValueExpr> {
      auto found = place.find(axis);
      return found == place.end() ? std::nullopt : std::optional(found->second);
    });
  }
};

/// sum_j p[j] * v[j, d], where p is the softmax over j of scores.
struct Match {
  ParallelOp product;
  ReduceOp sum;
  WriteOp result;
  Value left;                          ///< factor
  Type rounded;                        ///< to which p is, or null
  std::optional<Definition> scores;
  DenseMap<Value, ValueExpr> place;    ///< of the scores' axes, in terms of the product's and the sum's
  BlockArgument column;                ///< d
  llvm::SetVector<Operation *> temps;  ///< that only these statements read
};

class Matcher {
public:
  explicit Matcher(ParallelOp product) { match.product = product; }

  /// False where the statement is no such product.
  bool run() { return findProduct() && findSoftmax() && findColumn() && areAlone() && staysTheSame(); }

  Match match;

private:
  bool findProduct() {
    for (Operation &op : match.product.getBody().front()) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        if (match.sum)
          return false;
        match.sum = reduce;
      } else if (auto write = dyn_cast<WriteOp>(op)) {
        if (match.result || write.getAdd() || write.getChecked())
          return false;
        match.result = write;
      } else if (op.getNumRegions() || isa<TempOp, SortOp>(op)) {
        return false;
      }
    }
    if (!match.sum || !match.result || match.sum.getFilter() || match.sum.getAxes().size() != 1)
      return false;
    for (Value used : valuesUsedBy(match.sum))
      if (Operation *op = used.getDefiningOp(); op && match.product->isProperAncestor(op))
        return false;
    std::optional<Contraction> contraction = matchContraction(match.sum);
    return contraction && contraction->factors.size() == 2 && match.sum.getType().isF32();
  }

  /// What a read of a temporary gives, where a statement defines it; else the term itself. What a temporary of few
  /// bits rounds to is noted where `rounds` asks for it, and not looked behind elsewhere.
  std::optional<Definition> definitionOf(const Term &term) {
    auto read = term.value.getDefiningOp<ReadOp>();
    if (!read || read.getGuard() || read.getFill() || read.getChecked() || !read.getExactExprs().empty())
      return std::nullopt;
    return Definition::of(read.getTensor());
  }

  DenseMap<Value, ValueExpr> placeIn(Definition definition, const Term &term) {
    DenseMap<Value, ValueExpr> place;
    auto read = term.value.getDefiningOp<ReadOp>();
    for (auto [subscript, axis] : llvm::zip_equal(read.getSubscriptExprs(), definition.write.getSubscriptExprs()))
      place[axis.asValue()] = term.exprOf(subscript);
    return place;
  }

  Term behind(Term term, bool rounds = false) {
    while (true) {
      if (auto convert = term.value.getDefiningOp<ConvertOp>(); convert && rounds && round(convert.getTarget())) {
        term.value = convert.getValue();
        continue;
      }
      std::optional<Definition> definition = definitionOf(term);
      if (!definition)
        return term;
      Type element = cast<TglTensorType>(definition->temp.getTensor().getType()).getElementType();
      if (!element.isF32() && !(rounds && round(element)))
        return term;
      DenseMap<Value, ValueExpr> place = placeIn(*definition, term);
      match.temps.insert(definition->temp);
      term = {definition->write.getValue(), place};
    }
  }

  bool round(Type type) {
    if (match.rounded && match.rounded != type)
      return false;
    match.rounded = type;
    return isa<FloatType>(type);
  }

  /// Over all of the softmax's points: what is reduced, with the sum's axis in place of the reduction's.
  std::optional<Term> reducedBy(const Term &term, ReduceKind kind) {
    auto reduce = term.value.getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getKind() != kind || reduce.getFilter() || reduce.getAxes().size() != 1)
      return std::nullopt;
    AxisRange own = getAxisRange(cast<AxesOp>(reduce.getOperation()), 0),
              all = getAxisRange(cast<AxesOp>(match.sum.getOperation()), 0);
    if (!own.lo.asConstant() || !own.hi.asConstant() || !(own.lo == all.lo) || !(own.hi == all.hi))
      return std::nullopt;
    Term inside = term.with(reduce.getReduced());
    inside.place[reduce.getAxes()[0]] = Value(match.sum.getAxes()[0]);
    return inside;
  }

  /// The score at (row, j): always the same element.
  bool isScore(const Term &term) {
    std::optional<Definition> definition = definitionOf(term);
    if (!definition || !term.value.getType().isF32())
      return false;
    DenseMap<Value, ValueExpr> place = placeIn(*definition, term);
    if (!match.scores) {
      match.scores = definition;
      match.place = place;
      match.temps.insert(definition->temp);
      return true;
    }
    return match.scores->temp == definition->temp &&
           llvm::all_of(place, [&](const auto &entry) { return match.place[entry.first] == entry.second; });
  }

  /// exp(score - largest score).
  bool isPower(const Term &term) {
    auto exp = term.value.getDefiningOp<math::ExpOp>();
    auto shift = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
    if (!shift || !isScore(term.with(shift.getLhs())))
      return false;
    std::optional<Term> largest = reducedBy(behind(term.with(shift.getRhs())), ReduceKind::Max);
    return largest && isScore(*largest);
  }

  bool findSoftmax() {
    for (const Contraction::Factor &factor : matchContraction(match.sum)->factors) {
      match.rounded = nullptr;
      match.temps.clear();
      Term quotient = behind(Term{factor.value, DenseMap<Value, ValueExpr>()}, /*rounds=*/true);
      auto division = quotient.value.getDefiningOp<arith::DivFOp>();
      if (!division || !division.getType().isF32())
        continue;
      match.left = factor.value;
      std::optional<Term> summed = reducedBy(behind(quotient.with(division.getRhs())), ReduceKind::Sum);
      return isPower(behind(quotient.with(division.getLhs()))) && summed && isPower(behind(*summed));
    }
    return false;
  }

  /// The one axis of the product that the scores do not have.
  bool findColumn() {
    auto axes = cast<AxesOp>(match.product.getOperation());
    for (BlockArgument axis : axes.getAxes()) {
      if (llvm::any_of(match.place, [&](const auto &entry) { return entry.second.uses(axis); }))
        continue;
      AxisRange range = getAxisRange(axes, axis.getArgNumber());
      if (match.column || range.lo.asConstant() != 0 || !range.hi.asConstant())
        return false;
      match.column = axis;
    }
    return bool(match.column);
  }

  /// Nobody else reads what will not be there.
  bool areAlone() {
    llvm::DenseSet<Operation *> statements{match.product};
    for (Operation *temp : match.temps)
      statements.insert(Definition::of(temp->getResult(0))->statement);
    return llvm::all_of(match.temps, [&](Operation *temp) {
      return llvm::all_of(temp->getUsers(), [&](Operation *user) {
        return llvm::any_of(statements, [&](Operation *statement) { return statement->isAncestor(user); });
      });
    });
  }

  /// What the scores are made of is the same where the product stands.
  bool staysTheSame() {
    ParallelOp from = match.scores->statement;
    if (from->getBlock() != match.product->getBlock())
      return false;
    Accesses used = accessesOf(from);
    for (Operation *op = from->getNextNode(); op && op != match.product; op = op->getNextNode())
      for (Value written : accessesOf(op).writes)
        if (used.reads.contains(written))
          return false;
    return from->isBeforeInBlock(match.product);
  }
};
} // namespace

std::optional<Definition> Definition::of(Value tensor) {
  auto temp = tensor.getDefiningOp<TempOp>();
  if (!temp || !isa<KernelOp>(temp->getParentOp()))
    return std::nullopt;
  Definition definition{temp, {}, {}};
  for (Operation *user : tensor.getUsers()) {
    if (isa<ReadOp>(user))
      continue;
    auto write = dyn_cast<WriteOp>(user);
    if (!write || definition.write || write.getGuard() || write.getAdd() || write.getChecked())
      return std::nullopt;
    definition.write = write;
  }
  if (!definition.write)
    return std::nullopt;
  definition.statement = dyn_cast<ParallelOp>(definition.write->getParentOp());
  if (!definition.statement || definition.statement->getParentOp() != temp->getParentOp() ||
      accessesOf(definition.statement).writes.size() != 1)
    return std::nullopt;
  auto axes = cast<AxesOp>(definition.statement.getOperation());
  AxisSet bare;
  for (const ValueExpr &subscript : definition.write.getSubscriptExprs()) {
    auto axis = dyn_cast_or_null<BlockArgument>(subscript.asValue());
    if (!axis || axis.getOwner() != axes.getAxesBlock() || !bare.insert(axis))
      return std::nullopt;
  }
  return bare.size() == axes.getAxes().size() ? std::optional(definition) : std::nullopt;
}

/// The score without sums with 0, which tell -0 from 0: neither the largest nor powers of distances do.
static Value withoutZeros(Value score) {
  if (auto add = score.getDefiningOp<arith::AddFOp>()) {
    if (isZero(add.getRhs()))
      return withoutZeros(add.getLhs());
    if (isZero(add.getLhs()))
      return withoutZeros(add.getRhs());
  }
  if (auto select = score.getDefiningOp<arith::SelectOp>(); select && (select->use_empty() || select->hasOneUse())) {
    select.getTrueValueMutable().assign(withoutZeros(select.getTrueValue()));
    select.getFalseValueMutable().assign(withoutZeros(select.getFalseValue()));
  }
  return score;
}

namespace {
/// parallel (rows) { tiles (j) { scores; largest; powers; sums }; parallel (d) { quotients } }
class Builder {
public:
  explicit Builder(const Match &found)
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
      map.map(match.sum.getResult(), arith::DivFOp::create(b, loc, total, sum, contract).getResult());
      for (Operation &op : match.product.getBody().front())
        if (&op != match.sum)
          b.clone(op, map);
    });
    rows.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(rows.getBody().front());
    return rows;
  }

private:
  Match match;
  OpBuilder b;
  Location loc;
  IRMapping map; ///< from the product's axes
  ValueExpr columns;
  TilesOp tiles;
  static constexpr arith::FastMathFlags contract = arith::FastMathFlags::contract;

  Value number(float value) { return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value)); }

  Value temp(StringRef name, int64_t size) {
    IndexExprAttr dim = IndexExprAttr::get(b.getContext(), IndexExpr(size));
    return TempOp::create(b, loc, TglTensorType::get(b.getContext(), {dim}, b.getF32Type()), name).getTensor();
  }

  void write(Value value, Value tensor, const ValueExpr &place) { WriteOp::create(b, loc, value, tensor, {place}); }

  void overColumns(function_ref<void(Value)> body) {
    auto nest = ParallelOp::create(b, loc, {AxisSpec{"d", int64_t(0), columns}});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&nest.getBody().front());
    map.map(match.column, nest.getBody().front().getArgument(0));
    body(nest.getBody().front().getArgument(0));
  }

  AxisSpec tile() { return {"j", Value(tiles.getTileLow()), Value(tiles.getTileHigh())}; }
  ValueExpr inTile(Value position) { return ValueExpr(position) - ValueExpr(Value(tiles.getTileLow())); }

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
    tiles = TilesOp::create(b, loc, {"j", "l", "m"}, range.lo, range.hi, ValueRange{number(0), lowest}, tileSize);
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
    Definition scores = *match.scores;
    IRMapping inside;
    for (auto &[axis, expr] : match.place)
      inside.map(axis, materialize(b, loc, expr.substitute([&](Value value) -> std::optional<ValueExpr> {
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

struct TileSoftmaxPass : Counted<tegula::impl::TileSoftmaxPassBase<TileSoftmaxPass>> {
  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      if (statement->getParentOp() == getOperation())
        tile(statement);
  }

  void tile(ParallelOp product) {
    Matcher matcher(product);
    if (!matcher.run())
      return;
    ParallelOp rows = Builder(matcher.match).run();
    std::optional<RowTilePlan> plan = planRowTiles(rows);
    if (!plan || rankRowTiles(*plan).empty()) {
      rows.erase();
      return;
    }
    product.erase();
    // Each only reads those before it.
    auto statementOf = [](Operation *temp) { return Definition::of(temp->getResult(0))->statement; };
    SmallVector<Operation *> temps(matcher.match.temps.begin(), matcher.match.temps.end());
    llvm::sort(temps, [&](Operation *a, Operation *b) { return statementOf(b)->isBeforeInBlock(statementOf(a)); });
    for (Operation *temp : temps)
      statementOf(temp).erase();
    for (Operation *temp : temps)
      temp->erase();
    count("softmaxes tiled");
  }
};
} // namespace
