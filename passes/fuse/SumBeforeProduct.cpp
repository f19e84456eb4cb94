//===- SumBeforeProduct.cpp - Sums before it multiplies, where a factor is invariant ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `t[p] = sum_k a[p, k]*b[k]; y = sum_p t[p]` is `y = sum_k (sum_p a[p, k])*b[k]`: a chain of
// statements, linear in what it reads of the one before, from a sum down to a contraction. The
// values of the chain's statements are made again where the sum stands, with axes replaced by the
// subscripts that it reads at.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "passes/fuse/Access.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SUMBEFOREPRODUCTPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
using Places = llvm::DenseMap<Value, ValueExpr>;

/// An op that is linear in one operand, at a level of the chain.
struct Link {
  Operation *op;
  unsigned operand;
  size_t level;
};

/// A statement that defines the temporary that the level before reads, and its axes at the element
/// that is read: over the axes of the sum and of the statement around it.
struct Level {
  ParallelOp statement;
  TempOp temp;
  Places axes;
};

/// A sum, and the contraction whose results it adds up.
struct Chain {
  ReduceOp sum;
  ParallelOp statement; // around the sum
  SmallVector<Link> links;
  SmallVector<Level> levels; // the first is that of the sum, without a temporary
  std::optional<Contraction> contraction;
  /// Its factors that vary along what is summed over, and the others.
  SmallVector<Value> moved, rest;

  bool follow(Value value);
  bool canMove();
  bool pays(double productsForElement);
  void rewrite(Prover &prover);

private:
  bool followRead(ReadOp read);
  bool isConstantInSum(Value value, size_t level);
  Value remakeAt(OpBuilder &builder, Value value, size_t level, ValueRange summed);
  Value addUp(OpBuilder &builder, Value value, size_t level);
  bool isSummed(const ValueExpr &expr) {
    return llvm::any_of(sum.getAxes(), [&](Value axis) { return expr.uses(axis); });
  }
};
} // namespace

/// The axes of a statement at an element of what it writes: each stands alone in a dim, or has one
/// value.
static std::optional<Places> axesAt(ParallelOp statement, WriteOp write,
                                    ArrayRef<ValueExpr> element) {
  auto axesOp = cast<AxesOp>(statement.getOperation());
  Places places;
  for (unsigned axis = 0; axis < statement.getAxes().size(); ++axis)
    if (knownPoints(axesOp, {axis}) == 1)
      places[statement.getAxes()[axis]] = getAxisRange(axesOp, axis).lo;
  for (auto [subscript, wanted] : llvm::zip_equal(write.getSubscriptExprs(), element)) {
    ValueExpr own = subscript.substitute([&](Value value) -> std::optional<ValueExpr> {
      auto place = places.find(value);
      return place != places.end() && isDefinedOutside(place->second, statement)
                 ? std::optional(place->second)
                 : std::nullopt;
    });
    if (isDefinedOutside(own, statement))
      continue;
    Value axis;
    for (Value operand : own.operands())
      if (axesOpOf(operand) == axesOp && isDefinedOutside(own - ValueExpr(operand), statement))
        axis = operand;
    if (!axis || !places.try_emplace(axis, wanted - (own - ValueExpr(axis))).second)
      return std::nullopt;
  }
  if (places.size() != statement.getAxes().size())
    return std::nullopt;
  return places;
}

//===----------------------------------------------------------------------===//
// Following the chain
//===----------------------------------------------------------------------===//

/// Goes on through a temporary that nothing else reads, in the type that it is computed in.
bool Chain::followRead(ReadOp read) {
  auto temp = read.getTensor().getDefiningOp<TempOp>();
  if (!temp || read.getGuard() || read.getFill() || read.getChecked() ||
      !read.getExactNumerators().empty() || temp.getType().getElementType() != read.getType())
    return false;
  WriteOp write;
  for (Operation *user : temp->getUsers()) {
    if (user == read)
      continue;
    if (write || !isa<WriteOp>(user))
      return false;
    write = cast<WriteOp>(user);
  }
  if (!write || write.getGuard() || write.getCombine() || write.getChecked())
    return false;
  auto producer = dyn_cast<ParallelOp>(write->getParentOp());
  if (!producer || producer->getBlock() != statement->getBlock() ||
      !producer->isBeforeInBlock(statement) || accessesOf(producer).writes.size() != 1 ||
      writesInputsOf(producer, producer->getNextNode(), statement))
    return false;
  const Level &here = levels.back();
  SmallVector<ValueExpr> element;
  for (const ValueExpr &subscript : read.getSubscriptExprs())
    element.push_back(subscript.substitute([&](Value value) -> std::optional<ValueExpr> {
      auto place = here.axes.find(value);
      return place == here.axes.end() ? std::nullopt : std::optional(place->second);
    }));
  std::optional<Places> places = axesAt(producer, write, element);
  if (!places)
    return false;
  levels.push_back({producer, temp, std::move(*places)});
  if (follow(write.getValue()))
    return true;
  levels.pop_back();
  return false;
}

/// Whether a value of this level is linear in the results of a contraction.
bool Chain::follow(Value value) {
  Operation *op = value.getDefiningOp(),
            *around = levels.size() > 1 ? levels.back().statement : sum.getOperation();
  if (!op || op->getParentOp() != around || !isa<FloatType>(value.getType()))
    return false;
  if (auto read = dyn_cast<ReadOp>(op))
    return followRead(read);
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    if (levels.size() > 1)
      contraction = matchContraction(reduce);
    return contraction.has_value();
  }
  SmallVector<unsigned, 2> operands;
  if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op))
    operands = {0, 1};
  else if (isa<arith::DivFOp, arith::NegFOp>(op))
    operands = {0};
  size_t count = links.size();
  for (unsigned operand : operands) {
    links.push_back({op, operand, levels.size() - 1});
    if (follow(op->getOperand(operand)))
      return true;
    links.truncate(count);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Whether it may and whether it pays
//===----------------------------------------------------------------------===//

/// Whether a value of a level is the same for all terms of the sum.
bool Chain::isConstantInSum(Value value, size_t level) {
  return llvm::none_of(axesOf(value), [&](Value axis) {
    if (level == 0)
      return llvm::is_contained(sum.getAxes(), axis);
    auto place = levels[level].axes.find(axis);
    return place != levels[level].axes.end() && isSummed(place->second);
  });
}

bool Chain::canMove() {
  for (const Link &link : links)
    if (isa<arith::MulFOp, arith::DivFOp>(link.op) &&
        !isConstantInSum(link.op->getOperand(1 - link.operand), link.level))
      return false;
  for (const Contraction::Factor &factor : contraction->factors)
    (isConstantInSum(factor.value, levels.size() - 1) ? rest : moved).push_back(factor.value);
  return !moved.empty() && !rest.empty();
}

/// A factor's reads: what it is computed from in the statement.
static SmallVector<ReadOp> readsFor(ArrayRef<Value> values, Operation *statement) {
  llvm::SetVector<Value> needed(values.begin(), values.end());
  SmallVector<ReadOp> reads;
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i].getDefiningOp();
    if (!op || !statement->isProperAncestor(op))
      continue;
    op->walk([&](ReadOp read) { reads.push_back(read); });
    for (Value used : valuesUsedBy(op))
      needed.insert(used);
  }
  return reads;
}

/// In units of an element's way from memory: the sums' terms, twice for what there is to do beside
/// reading, are no more than the products that go and, where windows are summed, which no tile of
/// products does by itself, the temporary's way to memory and back. Nor do the sums take more room
/// than what they are read from.
bool Chain::pays(double productsForElement) {
  auto axes = [](Operation *op) { return cast<AxesOp>(op); };
  const Level &last = levels.back();
  std::optional<int64_t> terms = knownPoints(axes(sum)), points = knownPoints(axes(statement)),
                         before = knownPoints(axes(last.statement)),
                         products = knownPoints(axes(contraction->reduce));
  if (!terms || !points || !before || !products)
    return false;
  // The sums' own axes, those of the contraction among them.
  llvm::SetVector<Value> own;
  for (Value factor : moved)
    for (Value axis : axesOf(factor)) {
      auto place = last.axes.find(axis);
      if (place == last.axes.end()) {
        own.insert(axis);
        continue;
      }
      for (Value operand : place->second.operands())
        if (!llvm::is_contained(sum.getAxes(), operand))
          own.insert(operand);
    }
  double sums = 1, elements = 0;
  for (Value axis : own) {
    AxesOp owner = axesOpOf(axis);
    std::optional<int64_t> extent =
        owner ? knownPoints(owner, {cast<BlockArgument>(axis).getArgNumber()}) : std::nullopt;
    if (!extent)
      return false;
    sums *= double(*extent);
  }
  for (ReadOp read : readsFor(moved, last.statement)) {
    TglTensorType type = read.getTensorType();
    auto element = dyn_cast<FloatType>(type.getElementType());
    if (element &&
        element.getWidth() < 32) // the sums are f32: products of narrower elements are faster
      return false;
    double size = 1;
    for (IndexExprAttr dim : type.getDims()) {
      std::optional<int64_t> extent = dim.getExpr().asConstant();
      if (!extent)
        return false;
      size *= double(*extent);
    }
    elements += size;
  }
  bool isStored = llvm::any_of(last.axes, [&](const auto &place) {
    return isSummed(place.second) && !place.second.asValue();
  });
  double gone = double(*before - *points) * double(*products) / productsForElement +
                (isStored ? 2 * double(*before) : 0);
  return sums <= elements && 2 * sums * double(*terms) <= gone;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Makes a value of a statement again, with what `map` says of its axes.
static Value remake(OpBuilder &builder, Value value, Operation *statement, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !statement->isProperAncestor(op))
    return value;
  for (Value used : valuesUsedBy(op))
    remake(builder, used, statement, map);
  if (auto indexed = dyn_cast<IndexedOp>(builder.clone(*op, map)))
    foldIndices(indexed);
  return map.lookup(value);
}

/// Where the axes are, with the sum's own ones replaced.
static void place(OpBuilder &builder, Location loc, const Places &axes, Chain &chain,
                  ValueRange summed, IRMapping &map) {
  for (const auto &[axis, expr] : axes)
    map.map(axis,
            materialize(builder, loc, expr.substitute([&](Value value) -> std::optional<ValueExpr> {
              for (auto [own, copy] : llvm::zip(chain.sum.getAxes(), summed))
                if (value == own)
                  return ValueExpr(copy);
              return std::nullopt;
            })));
}

static ReduceOp copyLoop(OpBuilder &builder, ReduceOp reduce) {
  SmallVector<AxisSpec> specs;
  for (unsigned axis = 0; axis < reduce.getAxes().size(); ++axis)
    specs.push_back(getAxisSpec(reduce, axis));
  return ReduceOp::create(builder, reduce.getLoc(), reduce.getType(), ReduceKind::Sum, specs);
}

/// Computes the sums in a statement of their own, if they would be made again and again: with dims
/// in the order in which what is read has them, the positions of windows behind all taps.
static void storeSums(ReduceOp sums, Prover &prover) {
  std::optional<Outline> where =
      outline(sums, valuesUsedBy(sums).getArrayRef(), OutlineMode::IfRepeated);
  if (!where)
    return;
  llvm::SetVector<Value> order, positions;
  sums.walk([&](ReadOp read) {
    for (const ValueExpr &subscript : read.getSubscriptExprs()) {
      SmallVector<Value> own;
      llvm::copy_if(subscript.operands(), std::back_inserter(own),
                    [&](Value operand) { return llvm::is_contained(where->axes, operand); });
      for (Value axis : own)
        (own.size() > 1 && isa<ParallelOp>(axesOpOf(axis).getOperation()) ? positions : order)
            .insert(axis);
    }
  });
  order.set_union(positions);
  order.insert(where->axes.begin(), where->axes.end());
  where->axes.assign(order.begin(), order.end());
  storeOutlined(sums, *where, "sum", prover, /*tileSize=*/1);
}

static Value product(OpBuilder &builder, Location loc, ArrayRef<Value> factors) {
  Value result = factors.front();
  for (Value factor : factors.drop_front())
    result = arith::MulFOp::create(builder, loc, result, factor, arith::FastMathFlags::contract);
  return result;
}

/// A value of a level, made again: with the sum's axes replaced, or where there are none without
/// what uses them.
Value Chain::remakeAt(OpBuilder &builder, Value value, size_t level, ValueRange summed) {
  IRMapping map;
  Places axes;
  for (const auto &[axis, expr] : levels[level].axes)
    if (!summed.empty() || !isSummed(expr))
      axes[axis] = expr;
  place(builder, sum.getLoc(), axes, *this, summed, map);
  if (level == 0 && !summed.empty())
    map.map(ValueRange(sum.getAxes()), summed);
  return remake(builder, value, level ? levels[level].statement.getOperation() : sum.getOperation(),
                map);
}

/// The sum of a value of a level.
Value Chain::addUp(OpBuilder &builder, Value value, size_t level) {
  Location loc = sum.getLoc();
  if (!isConstantInSum(value, level)) {
    ReduceOp whole = copyLoop(builder, sum);
    OpBuilder inside = OpBuilder::atBlockBegin(&whole.getBody().front());
    YieldOp::create(inside, loc,
                    SmallVector<Value>{remakeAt(inside, value, level, whole.getAxes())});
    return whole.getResult();
  }
  double times = double(*knownPoints(cast<AxesOp>(sum.getOperation())));
  Value count =
      arith::ConstantOp::create(builder, loc, builder.getFloatAttr(value.getType(), times));
  return arith::MulFOp::create(builder, loc, remakeAt(builder, value, level, {}), count,
                               arith::FastMathFlags::contract);
}

void Chain::rewrite(Prover &prover) {
  Location loc = sum.getLoc();
  const Level &last = levels.back();
  ReduceOp contracted = contraction->reduce;
  OpBuilder here(sum);
  ReduceOp products = copyLoop(here, contracted);
  if (Attribute precision = contracted->getAttr(precisionAttrName))
    products->setAttr(precisionAttrName, precision);
  OpBuilder inProducts = OpBuilder::atBlockBegin(&products.getBody().front());
  // (sum_p a[p, k])
  ReduceOp sums = copyLoop(inProducts, sum);
  OpBuilder inSums = OpBuilder::atBlockBegin(&sums.getBody().front());
  auto make = [&](OpBuilder &builder, ArrayRef<Value> factors, ValueRange summed) {
    IRMapping map;
    Places axes;
    for (const auto &[axis, expr] : last.axes)
      if (!summed.empty() || !isSummed(expr))
        axes[axis] = expr;
    place(builder, loc, axes, *this, summed, map);
    map.map(ValueRange(contracted.getAxes()), ValueRange(products.getAxes()));
    SmallVector<Value> made;
    for (Value factor : factors)
      made.push_back(remake(builder, factor, last.statement, map));
    return product(builder, loc, made);
  };
  YieldOp::create(inSums, loc, SmallVector<Value>{make(inSums, moved, sums.getAxes())});
  // * b[k]
  Value others = make(inProducts, rest, {});
  YieldOp::create(inProducts, loc,
                  SmallVector<Value>{product(inProducts, loc, {sums.getResult(), others})});

  // What is linear is done to the sum; what is added, added up as well.
  Value result = products.getResult();
  for (const Link &link : llvm::reverse(links)) {
    IRMapping map;
    map.map(link.op->getOperand(link.operand), result);
    if (link.op->getNumOperands() == 2) {
      Value operand = link.op->getOperand(1 - link.operand);
      map.map(operand, isa<arith::AddFOp, arith::SubFOp>(link.op)
                           ? addUp(here, operand, link.level)
                           : remakeAt(here, operand, link.level, {}));
    }
    result = here.clone(*link.op, map)->getResult(0);
  }
  sum.replaceAllUsesWith(result);
  sum.erase();
  storeSums(sums, prover);
  eraseUnusedOps(statement.getBody().front());
  for (Level &level : llvm::drop_begin(levels)) {
    level.statement.erase();
    level.temp.erase();
  }
}

namespace {
struct SumBeforeProductPass
    : Counted<tegula::impl::SumBeforeProductPassBase<SumBeforeProductPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    // The last first: statements before one may go with it.
    SmallVector<std::pair<ParallelOp, ReduceOp>> sums;
    for (Operation &op : getOperation().getBody().front())
      if (auto statement = dyn_cast<ParallelOp>(op))
        for (ReduceOp reduce : statement.getBody().front().getOps<ReduceOp>())
          sums.emplace_back(statement, reduce);
    llvm::DenseSet<Operation *> gone;
    Prover prover(sizeFacts(getOperation()));
    for (auto [statement, sum] : llvm::reverse(sums)) {
      if (gone.contains(statement) || sum.getKind() != ReduceKind::Sum || sum.getFiltered())
        continue;
      Chain chain;
      chain.sum = sum;
      chain.statement = statement;
      chain.levels.push_back(Level{statement, nullptr, Places()});
      if (!chain.follow(sum.getReduced()) || !chain.canMove() || !chain.pays(productsForElement))
        continue;
      for (const Level &level : llvm::drop_begin(chain.levels))
        gone.insert(level.statement);
      chain.rewrite(prover);
      count("sums moved into contractions");
    }
  }
};
} // namespace
