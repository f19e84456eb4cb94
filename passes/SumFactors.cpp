//===- SumFactors.cpp - Sums of products as products with sums ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Passes.h"
#include "passes/SoftmaxProduct.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SUMFACTORSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static AxesOp asAxes(Operation *op) { return cast<AxesOp>(op); }

namespace {
/// `sum_w t[place]` of a temporary `t[d] = (sum_c still * moving + ..) * ..`, where only the moving factors, and what is
/// added, vary along axes d whose place depends on w.
struct SumOfSums {
  ParallelOp statement;
  ReduceOp window;
  TempDefinition definition;
  ReduceOp sum;
  SmallVector<Value> still, moving;
  SmallVector<std::pair<Operation *, Value>> around; ///< what is done to the sum, from the inside, and with what value
  DenseMap<Value, ValueExpr> place;                  ///< of the definition's axes
  AxisSet windowed;                                  ///< of them those whose place depends on w

  bool isWindowed(Value value) const {
    return llvm::any_of(axesOf(value), [&](BlockArgument axis) { return windowed.contains(axis); });
  }
};

/// Every method gives false where the reduction is no such sum.
class Matcher {
public:
  Matcher(ParallelOp statement, ReduceOp window) {
    match.statement = statement;
    match.window = window;
  }

  bool run() { return findDefinition() && findSum() && findFactors() && staysTheSame(); }

  SumOfSums match;

private:
  static bool isPlainSum(ReduceOp reduce) {
    return reduce.getKind() == ReduceKind::Sum && !reduce.getFilter() && reduce.getType().isF32();
  }

  static bool isBare(ReadOp read) {
    return !read.getGuard() && !read.getFill() && !read.getChecked() && read.getExactExprs().empty();
  }

  bool findDefinition() {
    ReduceOp window = match.window;
    auto read = window.getReduced().getDefiningOp<ReadOp>();
    if (!isPlainSum(window) || !read || read->getParentOp() != window || !isBare(read) ||
        !llvm::hasNItems(read.getTensor().getUsers(), 2) || !read.getTensorType().getElementType().isF32())
      return false;
    for (Operation *user : read.getTensor().getUsers()) // groups of which there is one hide that subscripts are axes
      if (auto writer = dyn_cast<ParallelOp>(user->getParentOp()); writer && isa<WriteOp>(user))
        dropSinglePoints(writer);
    std::optional<TempDefinition> found = TempDefinition::of(read.getTensor());
    if (!found || found->statement == match.statement)
      return false;
    match.definition = *found;
    for (auto [subscript, own] : llvm::zip_equal(read.getSubscriptExprs(), found->write.getSubscriptExprs())) {
      match.place[own.asValue()] = subscript;
      if (llvm::any_of(subscript.operands(), [&](Value value) { return llvm::is_contained(window.getAxes(), value); }))
        match.windowed.insert(cast<BlockArgument>(own.asValue()));
    }
    return true;
  }

  /// From the value that is written inwards to the sum.
  bool findSum() {
    Value value = match.definition.write.getValue();
    while (!(match.sum = value.getDefiningOp<ReduceOp>())) {
      Operation *op = value.getDefiningOp();
      if (!op || !op->hasOneUse() || !isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp>(op))
        return false;
      bool isFirst = holdsSum(op->getOperand(0));
      Value inner = op->getOperand(!isFirst), other = op->getOperand(isFirst);
      bool adds = isa<arith::AddFOp, arith::SubFOp>(op);
      if (holdsSum(other) || (!adds && match.isWindowed(other)) || (!isFirst && isa<arith::SubFOp, arith::DivFOp>(op)))
        return false;
      match.around.insert(match.around.begin(), {op, other});
      value = inner;
    }
    return match.sum->hasOneUse() && isPlainSum(match.sum) && match.sum->getParentOp() == match.definition.statement;
  }

  bool holdsSum(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !match.definition.statement->isProperAncestor(op))
      return false;
    return isa<ReduceOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) { return holdsSum(operand); });
  }

  bool findFactors() {
    std::optional<Contraction> contraction = matchContraction(match.sum);
    if (!contraction)
      return false;
    for (const Contraction::Factor &factor : contraction->factors) {
      bool moves = match.isWindowed(factor.value);
      (moves ? match.moving : match.still).push_back(factor.value);
      if (moves && isRounded(factor.value))
        return false;
    }
    auto hasOwnRange = [](Value axis) { return lowOf(axis).asConstant() && highOf(axis).asConstant(); };
    return !match.still.empty() && !match.moving.empty() && llvm::all_of(match.sum.getAxes(), hasOwnRange) &&
           llvm::all_of(match.window.getAxes(), hasOwnRange) && llvm::all_of(match.statement.getAxes(), hasOwnRange);
  }

  /// Its products are exact or take one pass of the tensor cores; a sum of it is no such number.
  static bool isRounded(Value factor) {
    auto read = factor.getDefiningOp<ReadOp>();
    return factor.getDefiningOp<ConvertOp>() || (read && !read.getTensorType().getElementType().isF32());
  }

  /// What the sum is made of is there, and the same, where it is to be made.
  bool staysTheSame() {
    ParallelOp from = match.definition.statement;
    if (from->getBlock() != match.statement->getBlock() || !from->isBeforeInBlock(match.statement))
      return false;
    Accesses used = accessesOf(from);
    for (Operation *op = from->getNextNode(); op; op = op->getNextNode()) {
      for (Value written : accessesOf(op).writes)
        if (used.reads.contains(written))
          return false;
      if (op == match.statement)
        return true;
    }
    return false;
  }
};

class Rewriter {
public:
  explicit Rewriter(SumOfSums &found) : match(found), b(found.statement), loc(found.window.getLoc()) {}

  /// Whether it takes less: elements are read and written at memory's rate, in which time tensor cores multiply.
  bool isWorthIt() {
    constexpr double productsForElement = 125; // 4 bytes at 4 TB/s, 250 TFLOP/s
    ParallelOp from = match.definition.statement;
    std::optional<int64_t> before = knownPoints(asAxes(from)), after = knownPoints(asAxes(match.statement)),
                           terms = knownPoints(asAxes(match.sum)), points = knownPoints(asAxes(match.window));
    if (!before || !after || !terms || !points)
      return false;
    double sums = 1;
    for (Value axis : axesOfSums())
      sums *= *highOf(axis).asConstant() - *lowOf(axis).asConstant();
    // Results of whole axes are summed in the product's tiles (ReduceInTiles.cpp), those of windows are in memory.
    bool areWhole = llvm::all_of(match.windowed, [&](BlockArgument axis) { return bool(match.place[axis].asValue()); });
    double now = double(*before) * *terms / productsForElement + (areWhole ? 0.0 : 2.0 * *before);
    double then = double(*after) * *terms / productsForElement + sums * (*points + 2.0);
    constexpr double margin = 1.25;
    return then * margin < now;
  }

  void run() {
    Value sums = sumMoving();
    b.setInsertionPoint(match.window);
    Value result = multiply(sums);
    for (auto [op, other] : match.around) {
      bool adds = isa<arith::AddFOp, arith::SubFOp>(op);
      Value own = adds ? sumOf(other) : placed(other);
      Operation *copy = b.clone(*op);
      copy->setOperands({result, own});
      result = copy->getResult(0);
    }
    match.window.getResult().replaceAllUsesWith(result);
    match.window.erase();
    Operation *temp = match.definition.temp;
    match.definition.statement.erase();
    temp->erase();
    match.statement.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(match.statement.getBody().front());
  }

private:
  SumOfSums match;
  OpBuilder b;
  Location loc;
  SmallVector<Value> axes; ///< of the sums of the moving factors

  /// Axes of the statement that the moving factors' places depend on, and those of the sum; last the ones along which
  /// neighbours are neighbours in memory.
  ArrayRef<Value> axesOfSums() {
    if (!axes.empty())
      return axes;
    SetVector<Value> rest, places;
    for (Value factor : match.moving)
      for (BlockArgument axis : axesOf(factor)) {
        auto found = match.place.find(axis);
        if (found == match.place.end())
          continue;
        for (Value value : found->second.operands())
          if (llvm::is_contained(match.statement.getAxes(), value))
            (match.windowed.contains(axis) ? places : rest).insert(value);
      }
    auto append = [&](Value axis) {
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
    };
    llvm::for_each(rest, append);
    bool isAlongSum = neighboursAreTerms();
    if (isAlongSum)
      llvm::for_each(places, append);
    llvm::for_each(match.sum.getAxes(), append);
    llvm::for_each(places, append);
    return axes;
  }

  bool neighboursAreTerms() {
    bool are = false;
    match.sum.walk([&](ReadOp read) {
      if (match.isWindowed(read.getResult()))
        are |= strideAlong(read.getTensorType(), read.getSubscriptExprs(), match.sum.getAxes().back()) == 1;
    });
    return are;
  }

  /// What computes the definition's values at the place that `map` has for its axes, but the sum and what is done to it.
  void cloneScalars(Block &block, IRMapping &map) {
    auto isAround = [&](Operation &op) {
      return llvm::any_of(match.around, [&](const auto &one) { return one.first == &op; });
    };
    for (Operation &op : block)
      if (!isa<ReduceOp, WriteOp, YieldOp>(op) && !isAround(op))
        b.clone(op, map);
  }

  /// Maps the definition's axes to their places; the window's axes as `map` has them, or to their first points.
  void placeAxes(IRMapping &map) {
    for (auto &[axis, expr] : match.place)
      map.map(axis, materialize(b, loc, expr.substitute([&](Value value) -> std::optional<ValueExpr> {
        if (Value own = map.lookupOrNull(value))
          return ValueExpr(own);
        if (llvm::is_contained(match.window.getAxes(), value))
          return lowOf(value);
        return std::nullopt;
      })));
  }

  /// A sum over copies of the reduction's axes.
  Value reduceOver(ReduceOp model, IRMapping &map, function_ref<Value()> body) {
    SmallVector<AxisSpec> specs;
    for (unsigned axis = 0; axis < model.getAxes().size(); ++axis)
      specs.push_back(getAxisSpec(asAxes(model), axis));
    auto reduce = ReduceOp::create(b, loc, b.getF32Type(), ReduceKind::Sum, specs);
    OpBuilder::InsertionGuard guard(b);
    Block &block = reduce.getBody().front();
    block.clear();
    b.setInsertionPointToEnd(&block);
    for (auto [own, copy] : llvm::zip_equal(model.getAxes(), reduce.getAxes()))
      map.map(own, copy);
    YieldOp::create(b, loc, ValueRange(body()));
    if (Attribute precision = model->getAttr(precisionAttrName))
      reduce->setAttr(precisionAttrName, precision);
    return reduce;
  }

  Value productOf(ArrayRef<Value> factors, IRMapping &map, Value product = {}) {
    for (Value factor : factors) {
      Value own = map.lookupOrDefault(factor);
      product = product ? arith::MulFOp::create(b, loc, product, own, arith::FastMathFlags::contract).getResult() : own;
    }
    return product;
  }

  /// A temporary of the sums of the moving factors over the window.
  Value sumMoving() {
    SmallVector<IndexExprAttr> dims;
    for (Value axis : axesOfSums())
      dims.push_back(IndexExprAttr::get(b.getContext(), (highOf(axis) - lowOf(axis)).expr()));
    Value temp = TempOp::create(b, loc, TglTensorType::get(b.getContext(), dims, b.getF32Type()), "sums").getTensor();
    IRMapping map;
    ParallelOp statement = copyAxes(b, loc, axes, map);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&statement.getBody().front());
    Value sum = reduceOver(match.window, map, [&] {
      placeAxes(map);
      cloneScalars(match.definition.statement.getBody().front(), map);
      cloneScalars(match.sum.getBody().front(), map);
      return productOf(match.moving, map);
    });
    SmallVector<ValueExpr> subscripts;
    for (Value axis : axes)
      subscripts.push_back(ValueExpr(map.lookup(axis)) - lowOf(axis));
    WriteOp::create(b, loc, sum, temp, subscripts);
    statement.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(statement.getBody().front());
    return temp;
  }

  Value multiply(Value sums) {
    IRMapping map;
    placeAxes(map);
    cloneScalars(match.definition.statement.getBody().front(), map);
    return reduceOver(match.sum, map, [&] {
      cloneScalars(match.sum.getBody().front(), map);
      SmallVector<ValueExpr> subscripts;
      for (Value axis : axes)
        subscripts.push_back(ValueExpr(map.lookupOrDefault(axis)) - lowOf(axis));
      return productOf(match.still, map, ReadOp::create(b, loc, sums, subscripts));
    });
  }

  /// At the first point of the window.
  Value placed(Value value) {
    IRMapping map;
    placeAxes(map);
    cloneScalars(match.definition.statement.getBody().front(), map);
    return map.lookupOrDefault(value);
  }

  /// Of what is added to each sum.
  Value sumOf(Value value) {
    if (!match.isWindowed(value)) {
      double points = *knownPoints(asAxes(match.window));
      Value count = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(points));
      return arith::MulFOp::create(b, loc, placed(value), count);
    }
    IRMapping map;
    return reduceOver(match.window, map, [&] {
      placeAxes(map);
      cloneScalars(match.definition.statement.getBody().front(), map);
      return map.lookupOrDefault(value);
    });
  }
};

struct SumFactorsPass : Counted<tegula::impl::SumFactorsPassBase<SumFactorsPass>> {
  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      for (ReduceOp window : llvm::to_vector(statement.getBody().getOps<ReduceOp>())) {
        Matcher matcher(statement, window);
        if (!matcher.run())
          continue;
        Rewriter rewriter(matcher.match);
        if (!rewriter.isWorthIt())
          continue;
        rewriter.run();
        count("factors summed first");
      }
  }
};
} // namespace
