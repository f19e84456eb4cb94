//===- ExpandReductions.cpp - Derived reductions as sums and maxima -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"
#include "strategies/product_reduction/plan/ProductReduction.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_EXPANDREDUCTIONSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// The sequence of values that a reduction or a scan runs over: its axes and the region that gives
/// the value at a point. Builds reductions over it.
class Sequence {
public:
  explicit Sequence(Operation *op)
      : axesOp(cast<AxesOp>(op)), builder(op), loc(op->getLoc()),
        filtered(isa<ReduceOp>(op) && cast<ReduceOp>(op).getFiltered()) {}

  using Edit = llvm::function_ref<Value(OpBuilder &, Value)>;

  /// Reduces `edit(value)` over the points that pass the filter.
  Value reduce(ReduceKind kind, Type type, Edit edit) {
    auto reduction = ReduceOp::create(builder, loc, type, kind, axesOp.getLows(), axesOp.getHighs(),
                                      axesOp.getIndices(), axesOp.getNames().value_or(ArrayAttr()),
                                      /*unbiased=*/false, filtered, /*mapping=*/StringAttr());
    if (Attribute precision = axesOp->getAttr(precisionAttrName))
      reduction->setAttr(precisionAttrName, precision);
    cloneBody(reduction, [&](OpBuilder &inner, YieldOp yield, IRMapping &map) {
      Value value = edit(inner, map.lookupOrDefault(yield.getValues()[0]));
      SmallVector<Value> values{value};
      if (filtered)
        values.push_back(map.lookupOrDefault(yield.getValues()[1]));
      YieldOp::create(inner, loc, values);
    });
    eraseUnusedOps(reduction.getBody().front());
    return reduction.getResult();
  }
  Value reduce(ReduceKind kind, Type type) {
    return reduce(kind, type, [](OpBuilder &, Value value) { return value; });
  }

  /// The number of points that pass the filter, as a float.
  Value count(Type type) {
    Value points;
    if (std::optional<ValueExpr> product = filtered ? std::nullopt : boxVolume(axesOp)) {
      Value index = materialize(builder, loc, *product);
      points = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), index);
    } else {
      auto counter = ReduceOp::create(builder, loc, builder.getI64Type(), ReduceKind::Count,
                                      axesOp.getLows(), axesOp.getHighs(), axesOp.getIndices(),
                                      axesOp.getNames().value_or(ArrayAttr()), /*unbiased=*/false,
                                      /*filtered=*/false, /*mapping=*/StringAttr());
      cloneBody(counter, [&](OpBuilder &inner, YieldOp yield, IRMapping &map) {
        Value passes = filtered ? map.lookupOrDefault(yield.getValues()[1])
                                : arith::ConstantIntOp::create(inner, loc, 1, 1).getResult();
        YieldOp::create(inner, loc, passes);
      });
      eraseUnusedOps(counter.getBody().front());
      points = counter.getResult();
    }
    return arith::SIToFPOp::create(builder, loc, type, points);
  }

  /// The value at one point, computed where the op stands.
  Value at(ArrayRef<ValueExpr> point) {
    IRMapping map;
    for (auto [axis, position] : llvm::zip_equal(axesOp.getAxes(), point))
      map.map(axis, materialize(builder, loc, position));
    for (Operation &op : axesOp.getAxesBlock()->without_terminator())
      builder.clone(op, map);
    return map.lookupOrDefault(axesOp.getAxesBlock()->getTerminator()->getOperand(0));
  }

  OpBuilder &at() { return builder; }

private:
  /// Clones the ops of the sequence into the empty region of `op`; `finish` makes the terminator.
  void cloneBody(AxesOp op, llvm::function_ref<void(OpBuilder &, YieldOp, IRMapping &)> finish) {
    Region &region = op->getRegion(0);
    Block *body = region.empty() ? &region.emplaceBlock() : &region.front();
    body->clear();
    IRMapping map;
    for (Value axis : axesOp.getAxes())
      map.map(axis, body->getNumArguments() < axesOp.getLows().size()
                        ? body->addArgument(axis.getType(), axis.getLoc())
                        : body->getArgument(cast<BlockArgument>(axis).getArgNumber()));
    OpBuilder inner = OpBuilder::atBlockEnd(body);
    for (Operation &nested : axesOp.getAxesBlock()->without_terminator())
      inner.clone(nested, map);
    finish(inner, cast<YieldOp>(axesOp.getAxesBlock()->getTerminator()), map);
    foldIndices(op); // the positions of a scan are no business of its reductions
  }

  AxesOp axesOp;
  OpBuilder builder;
  Location loc;
  bool filtered;
};
} // namespace

static Value constant(OpBuilder &builder, Location loc, Type type, double value) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
}

static Value expandMean(ReduceOp op) {
  Sequence values(op);
  Value sum = values.reduce(ReduceKind::Sum, op.getType());
  Value count = values.count(op.getType());
  return arith::DivFOp::create(values.at(), op.getLoc(), sum, count);
}

/// The mean first: differences from it are small, their squares lose nothing. `corrects`: the sum
/// of the differences, which would be 0, says what the mean is off by (T. F. Chan, G. H. Golub, R.
/// J. LeVeque, "Algorithms for computing the sample variance", 1983, the corrected two-pass
/// algorithm).
static Value expandVar(ReduceOp op, bool corrects) {
  Sequence values(op);
  OpBuilder &builder = values.at();
  Location loc = op.getLoc();
  Value sum = values.reduce(ReduceKind::Sum, op.getType());
  Value count = values.count(op.getType());
  Value mean = arith::DivFOp::create(builder, loc, sum, count);
  Value squares = values.reduce(ReduceKind::Sum, op.getType(), [&](OpBuilder &inner, Value value) {
    Value difference = arith::SubFOp::create(inner, loc, value, mean);
    return arith::MulFOp::create(inner, loc, difference, difference).getResult();
  });
  Value zero = constant(builder, loc, op.getType(), 0);
  if (corrects) {
    Value off = values.reduce(ReduceKind::Sum, op.getType(), [&](OpBuilder &inner, Value value) {
      return arith::SubFOp::create(inner, loc, value, mean).getResult();
    });
    Value excess =
        arith::DivFOp::create(builder, loc, arith::MulFOp::create(builder, loc, off, off), count);
    squares = arith::MaximumFOp::create(builder, loc,
                                        arith::SubFOp::create(builder, loc, squares, excess), zero);
  }
  if (op.getUnbiased()) {
    // With one point 0/0 is nan; with none it is 0/-1, hence the maximum.
    Value one = constant(builder, loc, op.getType(), 1);
    count = arith::MaximumFOp::create(builder, loc, arith::SubFOp::create(builder, loc, count, one),
                                      zero);
  }
  return arith::DivFOp::create(builder, loc, squares, count);
}

/// exp(value - shift), summed.
static Value sumOfExponentials(Sequence &values, Location loc, Value shift) {
  return values.reduce(ReduceKind::Sum, shift.getType(), [&](OpBuilder &inner, Value value) {
    Value difference = arith::SubFOp::create(inner, loc, value, shift);
    return math::ExpOp::create(inner, loc, difference).getResult();
  });
}

static Value expandLogSumExp(ReduceOp op) {
  Sequence values(op);
  OpBuilder &builder = values.at();
  Location loc = op.getLoc();
  Value maximum = values.reduce(ReduceKind::Max, op.getType());
  // An infinite maximum would make inf - inf; without the shift exp gives the right infinities.
  Value infinity = constant(builder, loc, op.getType(), std::numeric_limits<double>::infinity());
  Value magnitude = math::AbsFOp::create(builder, loc, maximum);
  Value infinite =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, magnitude, infinity);
  Value zero = constant(builder, loc, op.getType(), 0);
  Value shift = arith::SelectOp::create(builder, loc, infinite, zero, maximum);
  Value sum = sumOfExponentials(values, loc, shift);
  Value log = math::LogOp::create(builder, loc, sum);
  return arith::AddFOp::create(builder, loc, log, shift);
}

/// Moves the exponentials that `sum` adds up into a statement of their own; the one at `positions`
/// as a read. Null where they cannot stand there.
static Value storeExponentials(ReduceOp sum, ArrayRef<ValueExpr> positions, OpBuilder &builder,
                               Prover &prover) {
  // Rows that lie together in memory: others are faster computed again, lane by lane of a
  // neighbouring axis.
  Value last = cast<AxesOp>(sum.getOperation()).getAxes().back();
  WalkResult inRows = sum.walk([&](ReadOp read) {
    SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
    for (const ValueExpr &subscript : ArrayRef(subscripts).drop_back(subscripts.empty() ? 0 : 1))
      if (subscript.uses(last))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (inRows.wasInterrupted())
    return Value();
  Operation *exponential = sum.getYield().getValues()[0].getDefiningOp();
  std::optional<Outline> where =
      outline(exponential, valuesUsedBy(exponential).getArrayRef(), OutlineMode::Always);
  if (!where)
    return Value();
  std::optional<AxesTemp> kept = storeOutlined(exponential, *where, "exp", prover, /*tileSize=*/64);
  if (!kept)
    return Value();
  eraseUnusedOps(sum.getBody().front());
  SmallVector<ValueExpr> subscripts(kept->subscripts);
  for (ValueExpr &subscript : subscripts)
    for (auto [axis, position] :
         llvm::zip_equal(cast<AxesOp>(sum.getOperation()).getAxes(), positions))
      subscript = subscript.substitute(axis, position);
  return ReadOp::create(builder, sum.getLoc(), kept->tensor, subscripts);
}

/// With a prover the exponentials are computed once and kept.
static Value expandSoftmax(ScanOp op, Prover *keep) {
  Sequence values(op);
  OpBuilder &builder = values.at();
  Location loc = op.getLoc();
  Value maximum = values.reduce(ReduceKind::Max, op.getType());
  Value sum = sumOfExponentials(values, loc, maximum);
  if (op.getKind() == ScanKind::Softmax && keep)
    if (Value kept =
            storeExponentials(sum.getDefiningOp<ReduceOp>(), op.getPositionExprs(), builder, *keep))
      return arith::DivFOp::create(builder, loc, kept, sum);
  Value difference = arith::SubFOp::create(builder, loc, values.at(op.getPositionExprs()), maximum);
  if (op.getKind() == ScanKind::LogSoftmax) {
    Value log = math::LogOp::create(builder, loc, sum);
    return arith::SubFOp::create(builder, loc, difference, log);
  }
  Value exponential = math::ExpOp::create(builder, loc, difference);
  return arith::DivFOp::create(builder, loc, exponential, sum);
}

static bool isExpanded(Operation *op) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return llvm::is_contained({ReduceKind::Mean, ReduceKind::Var, ReduceKind::LogSumExp},
                              reduce.getKind());
  auto scan = dyn_cast<ScanOp>(op);
  return scan && llvm::is_contained({ScanKind::Softmax, ScanKind::LogSoftmax}, scan.getKind());
}

/// Moves what `op` runs over into statements of their own where it is long, and so holds reductions
/// that are expanded already: each level of nesting would make two or three copies of it. A filter
/// first: reads of the value may wait for it.
static void storeLongBody(Operation *op, Prover &prover) {
  constexpr unsigned longBody = 100; // operations: three levels of softmax
  Block &body = *cast<AxesOp>(op).getAxesBlock();
  unsigned length = 0;
  op->walk([&](Operation *) { ++length; });
  if (length <= longBody)
    return;
  auto yield = cast<YieldOp>(body.getTerminator());
  for (unsigned number = yield.getNumOperands(); number-- > 0;) {
    Operation *value = yield.getOperand(number).getDefiningOp();
    // Beside a filter it is the filter that is long, where the value is an element.
    if (!value || value->getBlock() != &body || (yield.getNumOperands() > 1 && isa<ReadOp>(value)))
      continue;
    std::optional<Outline> where =
        outline(value, valuesUsedBy(value).getArrayRef(), OutlineMode::Always);
    if (where && storeOutlined(value, *where, number ? "filter" : "inner", prover, /*tileSize=*/64))
      eraseUnusedOps(body);
  }
}

/// The same value from simpler reductions, built before `op`; null where `op` is simple.
static Value expand(Operation *op, Prover *keep, bool correctsVariances) {
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    switch (reduce.getKind()) {
    case ReduceKind::Mean:
      return expandMean(reduce);
    case ReduceKind::Var:
      return expandVar(reduce, correctsVariances);
    case ReduceKind::LogSumExp:
      return expandLogSumExp(reduce);
    default:
      return Value();
    }
  }
  auto scan = dyn_cast<ScanOp>(op);
  if (scan && (scan.getKind() == ScanKind::Softmax || scan.getKind() == ScanKind::LogSoftmax))
    return expandSoftmax(scan, keep);
  return Value();
}

namespace {
struct ExpandReductionsPass
    : Counted<tegula::impl::ExpandReductionsPassBase<ExpandReductionsPass>> {
  using Base = Counted<tegula::impl::ExpandReductionsPassBase<ExpandReductionsPass>>;
  using Base::Base;

  /// Whether a strategy reduces the product's columns that the logsumexp runs over.
  bool isKept(Operation *op, const TargetInfo &machine) {
    auto reduce = dyn_cast<ReduceOp>(op);
    auto statement = dyn_cast<ParallelOp>(op->getParentOp());
    if (!keepLogSumExps || !reduce || reduce.getKind() != ReduceKind::LogSumExp || !statement)
      return false;
    Matched<ProductReductionPlan> plan = planProductReduction(statement);
    return plan && beatsStoredProduct(*plan, machine, tensorTile);
  }

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    Prover prover(sizeFacts(getOperation()));
    // Innermost first: an outer expansion clones what it holds, which is then simple already.
    SmallVector<Operation *> ops;
    getOperation().walk<WalkOrder::PostOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (!isExpanded(op) || isKept(op, *machine))
        continue;
      storeLongBody(op, prover);
      if (Value value = expand(op, keepExponentials ? &prover : nullptr, correctVariances)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
        count("reductions expanded");
      }
    }
  }
};
} // namespace
