//===- ContractionPlan.cpp - Matches statements that are matrix products --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "strategies/contraction/plan/ContractionPlan.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"

using namespace llvm;
using tegula::tgl::ValueExpr;

namespace tegula {

namespace {

/// Elements that neighbours along a column may be apart: what vectors are still loaded whole for.
constexpr int64_t longestStep = 4;

/// Points of an axis that vectors along it are worth.
constexpr int64_t shortest = 8;

/// Makes the plan; every method gives false, with a reason, where the statement is no matrix
/// product.
class Planner : MatcherBase {
public:
  Planner(tgl::ParallelOp op, bool byVectors)
      : op(op), axes(cast<tgl::AxesOp>(op.getOperation())), byVectors(byVectors) {
    plan.op = op;
  }

  Matched<ContractionPlan> run() {
    if (findSums() && findLaneAxis() && splitFactors() && slice())
      return std::move(plan);
    if (!why.isOther && !hasSharedFactors())
      why = {"the statement has no sum of products in which several results share a factor", "", op,
             /*isOther=*/true};
    return std::move(why);
  }

private:
  ContractionPlan plan;
  tgl::ParallelOp op;
  tgl::AxesOp axes;
  bool byVectors;
  mlir::BlockArgument laneAxis;
  SmallVector<tgl::Contraction> contractions;

  /// Whether the statement has a sum of products of which an index varies one factor and not the
  /// other.
  bool hasSharedFactors() {
    auto isShared = [](tgl::ReduceOp reduce) {
      std::optional<tgl::Contraction> contraction = tgl::matchContraction(reduce);
      if (!contraction)
        return false;
      return llvm::any_of(contraction->factors, [&](const tgl::Contraction::Factor &one) {
        return llvm::any_of(one.axes, [&](mlir::BlockArgument axis) {
          return llvm::any_of(contraction->factors, [&](const tgl::Contraction::Factor &other) {
            return !other.axes.contains(axis);
          });
        });
      });
    };
    return op
        .walk([&](tgl::ReduceOp reduce) {
          return isShared(reduce) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
        })
        .wasInterrupted();
  }

  bool usesOwnAxes(const ValueExpr &expr) {
    return llvm::any_of(axes.getAxes(), [&](mlir::Value axis) { return expr.uses(axis); });
  }

  /// The statement is straight-line but for its sums, over a box.
  bool findSums() {
    for (auto [number, range] : enumerate(tgl::getAxisRanges(axes)))
      if (usesOwnAxes(range.lo) || usesOwnAxes(range.hi))
        return fail(op,
                    "the range of " + namesOf(op.getBody().getArgument(number)) +
                        " depends on another index",
                    "let the index take its whole range and put the condition into a factor: "
                    "where(c, x, 0)");
    for (mlir::Operation &inner : op.getBody().front()) {
      if (inner.getNumRegions() == 0) {
        if (isa<tgl::TempOp>(inner))
          return fail(op, "each point of " + describe(op) + " keeps a tensor of its own, " +
                              describeTensor(inner.getResult(0)));
        continue;
      }
      auto reduce = dyn_cast<tgl::ReduceOp>(inner);
      if (reduce && !byVectors && isRest(reduce))
        continue;
      if (!reduce)
        return fail(&inner,
                    describe(&inner) + " is computed anew at each point of " + describe(op));
      if (reduce.getFilter())
        return fail(reduce, describe(reduce) + " has a condition that is no range",
                    "put the condition into a factor: sum(where(c, a, 0) * b for k)");
      for (mlir::Operation &summed : reduce.getBody().front())
        if (summed.getNumRegions())
          return fail(&summed,
                      describe(&summed) + " stands inside " + describe(reduce) +
                          " and is computed for each of its terms",
                      "compute it before, as a tensor of its own");
      auto summedAxes = cast<tgl::AxesOp>(inner);
      for (tgl::AxisRange &range : tgl::getAxisRanges(summedAxes))
        if (!isKnownBefore(range.lo) || !isKnownBefore(range.hi))
          return fail(reduce, "the range of " + describe(reduce) +
                                  (usesOwnAxes(range.lo) || usesOwnAxes(range.hi)
                                       ? " varies with another index: it is written so, or "
                                         "blocks add up a part each"
                                       : " depends on data"));
      auto contraction = tgl::matchContraction(reduce);
      if (!contraction)
        return failAsOther(reduce,
                           describe(reduce) +
                               " adds up no products of two factors that vary with its index");
      if (!canSum(*contraction))
        return fail(reduce,
                    describe(reduce) +
                        " adds up products of a type that tensor cores do not multiply",
                    "tensor cores multiply floats, and i8 or u8 by i8 or u8 where the products are "
                    "added up as i32");
      contractions.push_back(*contraction);
    }
    if (contractions.empty())
      return failAsOther(op, "the statement has no sum of products");
    if (contractions.size() > 4)
      return fail(op, describe(op) + " has more than four sums of products",
                  "write them as several equations");
    mlir::Type type = contractions.front().reduce.getType();
    if (llvm::any_of(contractions, [&](tgl::Contraction &c) { return c.reduce.getType() != type; }))
      return fail(op, "the sums of " + describe(op) + " are of several types");
    plan.element = type;
    return true;
  }

  /// Whether products of the type can be added up here. Integers: on devices alone, products of two
  /// factors of a byte each.
  bool canSum(tgl::Contraction &contraction) {
    mlir::Type type = contraction.reduce.getType();
    if (type.isF32() || type.isF64())
      return true;
    auto isByte = [](const tgl::Contraction::Factor &factor) {
      auto read = factor.value.getDefiningOp<tgl::ReadOp>();
      auto element = read ? dyn_cast<mlir::IntegerType>(read.getTensorType().getElementType())
                          : mlir::IntegerType();
      return element && element.getWidth() == 8;
    };
    return !byVectors && type.isInteger(32) && contraction.factors.size() == 2 &&
           all_of(contraction.factors, isByte);
  }

  /// How often it is added up depends on what the statement computes: no product, part of the rest.
  bool isRest(tgl::ReduceOp reduce) {
    return llvm::any_of(
        tgl::getAxisRanges(cast<tgl::AxesOp>(reduce.getOperation())),
        [&](const tgl::AxisRange &range) { return dependsOnSum(range.hi.operands(), op); });
  }

  /// A bound that is known before the statement.
  bool isKnownBefore(const ValueExpr &bound) {
    return llvm::none_of(bound.operands(), [&](mlir::Value operand) {
      return op.getBody().isAncestor(operand.getParentRegion());
    });
  }

  /// The axis along which results are neighbours in memory, or nearly so where the neighbours
  /// belong to an axis too short for a vector: it must be a column.
  bool findLaneAxis() {
    bool hasParts = false;
    int64_t nearest = byVectors ? longestStep + 1 : std::numeric_limits<int64_t>::max();
    for (mlir::Operation &inner : op.getBody().front()) {
      auto write = dyn_cast<tgl::WriteOp>(inner);
      hasParts |= write && write->hasAttr(partialAttrName);
      if (!write || write.getCombine())
        continue;
      ValueExpr offset = tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs());
      for (auto [number, axis] : enumerate(axes.getAxes())) {
        tgl::AxisRange range = tgl::getAxisRange(axes, number);
        std::optional<int64_t> extent = (range.hi - range.lo).asConstant();
        std::optional<int64_t> step = tgl::stepAlong(offset, axis);
        if (!step || *step < 1 ||
            (extent && *extent < shortest && *step == 1 && hasStep(offset, *extent)))
          continue;
        if (*step < nearest) {
          nearest = *step;
          laneAxis = axis;
        }
      }
    }
    if (!laneAxis && hasParts && !byVectors)
      laneAxis = op.getAxes()[laneAxisOfPartials(op)];
    return laneAxis || fail(op, "no index of " + describe(op) + " walks through memory of a result",
                            "let the last dim of the result have an index of its own");
  }

  /// Whether an axis of the statement moves the offset by that much.
  bool hasStep(const ValueExpr &offset, int64_t wanted) {
    return llvm::any_of(axes.getAxes(),
                        [&](mlir::Value axis) { return tgl::stepAlong(offset, axis) == wanted; });
  }

  /// Takes the factors that are constant over blocks of the sum out of the contraction, if what
  /// they leave is a product of two 8-bit floats, which tensor cores multiply as they are.
  BlockScales takeBlockScales(tgl::Contraction &contraction) {
    BlockScales scales;
    auto summed = cast<tgl::AxesOp>(contraction.reduce.getOperation());
    unsigned last = summed.getAxes().size() - 1;
    std::optional<int64_t> points = tgl::knownPoints(summed, {last});
    if (byVectors || last == 0 || !points || *points % stepOfBytes)
      return scales;
    using Factor = tgl::Contraction::Factor;
    auto isScale = [&](const Factor &factor) {
      return !factor.axes.contains(cast<mlir::BlockArgument>(summed.getAxes()[last]));
    };
    SmallVector<Factor, 2> operands, others;
    for (const Factor &factor : contraction.factors)
      (isScale(factor) ? others : operands).push_back(factor);
    if (others.empty() || operands.size() != 2 ||
        !llvm::all_of(operands, [](const Factor &factor) { return readsF8(factor.value); }))
      return scales;
    const Factor &column = operands[operands[1].axes.contains(laneAxis)],
                 &row = operands[!operands[1].axes.contains(laneAxis)];
    for (const Factor &factor : others) {
      auto hasAxisOf = [&](const Factor &side, const Factor &other) {
        return llvm::any_of(factor.axes, [&](mlir::BlockArgument axis) {
          return axis.getOwner() == axes.getAxesBlock() && side.axes.contains(axis) &&
                 !other.axes.contains(axis);
        });
      };
      bool variesByRow = hasAxisOf(row, column), variesByColumn = hasAxisOf(column, row);
      bool isForeign = llvm::any_of(factor.axes, [&](mlir::BlockArgument axis) {
        return !row.axes.contains(axis) && !column.axes.contains(axis);
      });
      if (isForeign || (variesByRow && variesByColumn))
        return BlockScales();
      (variesByColumn ? scales.b : scales.a).factors.push_back(factor.value);
    }
    scales.points = *points;
    contraction.factors = operands;
    return scales;
  }

  bool splitFactors() {
    tgl::AxisSet rowAxes, columnAxes;
    for (tgl::Contraction &contraction : contractions) {
      ContractionProduct product;
      product.reduce = contraction.reduce;
      product.scales = takeBlockScales(contraction);
      for (const tgl::Contraction::Factor &factor : contraction.factors) {
        bool isColumn = factor.axes.contains(laneAxis);
        (isColumn ? product.b : product.a).factors.push_back(factor.value);
        for (mlir::BlockArgument axis : factor.axes)
          if (axis.getOwner() == axes.getAxesBlock())
            (isColumn ? columnAxes : rowAxes).insert(axis);
      }
      if (product.a.factors.empty() || product.b.factors.empty())
        return fail(contraction.reduce,
                    "all factors of " + describe(contraction.reduce) +
                        (product.a.factors.empty() ? " vary with " : " are the same for all ") +
                        namesOf(laneAxis) + ": no operand is shared by rows or by columns");
      plan.products.push_back(std::move(product));
    }
    for (auto [k, axis] : enumerate(axes.getAxes())) {
      bool inRow = rowAxes.contains(axis), inColumn = columnAxes.contains(axis);
      if (!inRow && !inColumn) // nothing here computes it once
        return fail(op,
                    "the sums of " + describe(op) + " are the same for all " +
                        namesOf(cast<mlir::BlockArgument>(mlir::Value(axis))),
                    "compute the sums as a tensor without that index");
      if (inRow && inColumn)
        plan.batch.push_back(k);
      else if (inRow)
        plan.rows.push_back(k);
      else if (axis != laneAxis)
        plan.columns.push_back(k);
    }
    if (rowAxes.contains(laneAxis))
      return fail(op, namesOf(laneAxis) + " varies both factors: no rows share columns");
    if (plan.rows.empty())
      return fail(op,
                  "of the two factors, the one that is the same for all " + namesOf(laneAxis) +
                      " has no index of its own: there is one row, and none that share columns");
    plan.columns.push_back(laneAxis.getArgNumber());
    return true;
  }

  bool isProduct(mlir::Operation *inner) {
    return llvm::any_of(contractions, [&](tgl::Contraction &c) { return c.reduce == inner; });
  }

  /// Operations of the statement that `roots` need, in order; products are not looked into.
  SmallVector<mlir::Operation *> sliceOf(ArrayRef<mlir::Value> roots, mlir::Block *summed) {
    DenseSet<mlir::Operation *> needed;
    SmallVector<mlir::Value> pending(roots.begin(), roots.end());
    while (!pending.empty()) {
      mlir::Operation *def = pending.pop_back_val().getDefiningOp();
      if (!def || !op->isProperAncestor(def) || isProduct(def) || !needed.insert(def).second)
        continue;
      llvm::append_range(pending, valuesUsedBy(def));
    }
    SmallVector<mlir::Operation *> ordered;
    for (mlir::Operation &inner : op.getBody().front())
      if (needed.contains(&inner))
        ordered.push_back(&inner);
    if (summed)
      for (mlir::Operation &inner : *summed)
        if (needed.contains(&inner))
          ordered.push_back(&inner);
    return ordered;
  }

  static bool dependsOnSum(ArrayRef<mlir::Value> roots, tgl::ParallelOp op) {
    SmallVector<mlir::Value> pending(roots.begin(), roots.end());
    DenseSet<mlir::Operation *> seen;
    while (!pending.empty()) {
      mlir::Operation *def = pending.pop_back_val().getDefiningOp();
      if (!def || !op->isProperAncestor(def) || !seen.insert(def).second)
        continue;
      if (isa<tgl::ReduceOp>(def))
        return true;
      pending.append(def->operand_begin(), def->operand_end());
    }
    return false;
  }

  /// True where ops use the group of axes only through accesses whose place does not change when
  /// the axes before the last are 0 and the last counts through all of them.
  bool collapses(ArrayRef<mlir::Operation *> ops, tgl::AxesOp owner, ArrayRef<unsigned> group) {
    if (group.size() == 1)
      return true;
    DenseMap<mlir::Value, ValueExpr> replacement;
    ValueExpr number(int64_t(0));
    for (unsigned axis : group) {
      tgl::AxisRange range = tgl::getAxisRange(owner, axis);
      if (range.lo.asConstant() != 0)
        return false;
      number = number * range.hi + ValueExpr(mlir::Value(owner.getAxes()[axis]));
      replacement[owner.getAxes()[axis]] = ValueExpr(int64_t(0));
    }
    replacement[owner.getAxes()[group.back()]] = number;
    auto isInGroup = [&](mlir::Value value) { return replacement.contains(value); };
    for (mlir::Operation *inner : ops) {
      if (llvm::none_of(valuesUsedBy(inner), isInGroup))
        continue;
      ValueExpr offset;
      auto place = [&](auto access) {
        offset = tgl::elementOffset(access.getTensorType(), access.getSubscriptExprs());
        return !access.getChecked() && !access.getTensorType().getElementType().isInteger(4);
      };
      if (auto read = dyn_cast<tgl::ReadOp>(inner)) {
        if (!place(read) || read.getFill() || !read.getExactExprs().empty())
          return false;
      } else if (auto write = dyn_cast<tgl::WriteOp>(inner)) {
        if (!place(write))
          return false;
      } else {
        return false;
      }
      ValueExpr collapsed = offset.substitute([&](mlir::Value value) -> std::optional<ValueExpr> {
        auto found = replacement.find(value);
        return found == replacement.end() ? std::nullopt : std::optional(found->second);
      });
      if (!(collapsed == offset))
        return false;
    }
    return true;
  }

  /// Reads whose elements are neighbours along the axis, minus those that are scattered along it.
  static int neighbours(ArrayRef<mlir::Operation *> ops, mlir::Value axis) {
    int score = 0;
    for (mlir::Operation *inner : ops)
      if (auto read = dyn_cast<tgl::ReadOp>(inner)) {
        ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
        std::optional<int64_t> step = tgl::stepAlong(offset, axis);
        bool isChosen =
            llvm::any_of(offset.operands(), [&](mlir::Value value) { // by data, anywhere
              return value != axis && !isa<mlir::BlockArgument>(value) &&
                     tgl::axesOf(value).contains(cast<mlir::BlockArgument>(axis));
            });
        if (isChosen || (step != 0 && step != 1))
          --score;
        else if (step == 1)
          ++score;
      }
    return score;
  }

  bool slice() {
    for (ContractionProduct &product : plan.products) {
      auto summed = cast<tgl::AxesOp>(product.reduce.getOperation());
      SmallVector<unsigned> sumGroup = to_vector(seq<unsigned>(0, summed.getAxes().size()));
      auto fill = [&](ContractionSide &side, ArrayRef<unsigned> group) {
        if (dependsOnSum(side.factors, op))
          return fail(product.reduce,
                      "a factor of " + describe(product.reduce) +
                          " depends on another sum of the statement",
                      "compute that sum before, as a tensor of its own");
        side.slice = sliceOf(side.factors, summed.getAxesBlock());
        side.collapsesSum = collapses(side.slice, summed, sumGroup);
        side.collapsesAxes = collapses(side.slice, axes, group);
        side.lanesAlongK = neighbours(side.slice, summed.getAxes().back()) >
                           neighbours(side.slice, axes.getAxes()[group.back()]);
        return true;
      };
      if (!fill(product.a, plan.rows) || !fill(product.b, plan.columns))
        return false;
      if (product.scales &&
          (!fill(product.scales.a, plan.rows) || !fill(product.scales.b, plan.columns)))
        return false;
    }
    SmallVector<mlir::Value> roots;
    SmallVector<mlir::Operation *> writes;
    for (mlir::Operation &inner : op.getBody().front())
      if (auto write = dyn_cast<tgl::WriteOp>(inner)) {
        roots.append(write->operand_begin(), write->operand_end());
        writes.push_back(write);
      }
    plan.epilogue = sliceOf(roots, nullptr);
    plan.epilogue.append(writes);
    llvm::sort(plan.epilogue,
               [](mlir::Operation *a, mlir::Operation *b) { return a->isBeforeInBlock(b); });
    plan.epilogueCollapsesRows = collapses(plan.epilogue, axes, plan.rows);
    plan.epilogueCollapsesColumns = collapses(plan.epilogue, axes, plan.columns);
    return true;
  }
};

} // namespace

bool isF8(mlir::Type element) { return isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element); }

bool readsF8(mlir::Value value) {
  auto read = value.getDefiningOp<tgl::ReadOp>();
  return read && !read.getFill() && !read.getGuard() && isF8(read.getTensorType().getElementType());
}

bool isConstantAlong(mlir::Operation *op, mlir::Value axis, int64_t points) {
  auto read = dyn_cast<tgl::ReadOp>(op);
  if (!read || read.getFill() || read.getGuard() == axis || !read.getExactExprs().empty())
    return false;
  ValueExpr rounded = ValueExpr::floorDiv(ValueExpr(axis), points) * points;
  return llvm::all_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
    return subscript.substitute(axis, rounded) == subscript;
  });
}

unsigned laneAxisOfPartials(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  unsigned last = axes.getAxes().size() - 1;
  for (unsigned axis = last + 1; axis-- > 0;)
    if (std::optional<int64_t> extent = tgl::knownPoints(axes, {axis});
        extent && *extent >= shortest)
      return axis;
  return last;
}

Matched<ContractionPlan> planContraction(tgl::ParallelOp op, bool byVectors) {
  return Planner(op, byVectors).run();
}

} // namespace tegula
