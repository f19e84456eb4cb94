//===- BlockScales.cpp - Block-scaled products: scales beside the products ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "strategies/contraction/plan/GroupedProduct.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_BLOCKSCALESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static AxesOp axesOpOf(ReduceOp reduce) { return cast<AxesOp>(reduce.getOperation()); }

static bool isPlainSum(ReduceOp reduce) {
  return reduce.getKind() == ReduceKind::Sum && !reduce.getFilter() && reduce.getType().isF32();
}

/// The factors of a value that is computed in the reduction's region.
static SmallVector<Value> factorsOf(ReduceOp reduce) {
  SmallVector<Value> factors, pending{reduce.getReduced()};
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (product && reduce->isProperAncestor(product))
      pending.append({product.getRhs(), product.getLhs()});
    else
      factors.push_back(value);
  }
  return factors;
}

namespace {
/// Writes a sum again, before itself.
class SumBuilder {
public:
  SumBuilder(ReduceOp sum, ReduceOp ofProducts) : sum(sum), ofProducts(ofProducts), b(sum) {}

  /// A sum over the axes, of the product of what `body` adds.
  ReduceOp make(ArrayRef<AxisSpec> axes, llvm::function_ref<void(ReduceOp)> body) {
    auto result = ReduceOp::create(b, sum.getLoc(), sum.getType(), ReduceKind::Sum, axes);
    if (Attribute precision = ofProducts->getAttr(precisionAttrName))
      result->setAttr(precisionAttrName, precision);
    Block &block = result.getBody().front();
    if (!block.empty())
      block.back().erase();
    b.setInsertionPointToEnd(&block);
    body(result);
    YieldOp::create(b, sum.getLoc(), ValueRange{product});
    block.walk([](IndexedOp op) { foldIndices(op); });
    eraseUnusedOps(block);
    return result;
  }

  Value index(const ValueExpr &expr) { return materialize(b, sum.getLoc(), expr); }

  /// Copies the ops of a region, but for `left`.
  void copy(ReduceOp from, IRMapping &map, Operation *left = nullptr) {
    for (Operation &op : from.getBody().front().without_terminator())
      if (&op != left)
        b.clone(op, map);
  }

  void multiply(Value factor) {
    product = product ? arith::MulFOp::create(b, sum.getLoc(), product, factor,
                                              arith::FastMathFlags::contract)
                            .getResult()
                      : factor;
  }

private:
  ReduceOp sum, ofProducts;
  OpBuilder b;
  Value product;
};
} // namespace

/// sum_g s[g] * (sum_k x[g, k]) as sum_{g, k} s[g] * x[g, k]. Null where the sum has no such form.
static ReduceOp joinSums(ReduceOp outer) {
  ReduceOp inner;
  SmallVector<Value> factors = factorsOf(outer);
  for (Value factor : factors)
    if (auto reduce = factor.getDefiningOp<ReduceOp>(); reduce && outer->isProperAncestor(reduce)) {
      if (inner || !isPlainSum(reduce) || !reduce->hasOneUse())
        return nullptr;
      inner = reduce;
    }
  if (!inner)
    return nullptr;
  SmallVector<AxisSpec> axes;
  for (ReduceOp from : {outer, inner})
    for (unsigned axis = 0; axis < from.getAxes().size(); ++axis) {
      AxisRange range = getAxisRange(axesOpOf(from), axis);
      if (!range.lo.asConstant() || !range.hi.asConstant())
        return nullptr;
      axes.push_back(getAxisSpec(axesOpOf(from), axis));
    }
  SumBuilder builder(outer, inner);
  return builder.make(axes, [&](ReduceOp sum) {
    IRMapping map;
    auto own = sum.getAxes().begin();
    for (ReduceOp from : {outer, inner})
      for (Value axis : from.getAxes())
        map.map(axis, *own++);
    builder.copy(outer, map, inner);
    builder.copy(inner, map);
    builder.multiply(map.lookupOrDefault(inner.getReduced()));
    for (Value factor : factors)
      if (factor.getDefiningOp() != inner)
        builder.multiply(map.lookupOrDefault(factor));
  });
}

/// Whether the value is the same for each `points` neighbours of the axis, from a multiple on.
static bool isConstantOver(Value value, Value axis, int64_t points) {
  Operation *op = value.getDefiningOp();
  if (!op || !axesOf(value).contains(cast<BlockArgument>(axis)))
    return value != axis;
  if (llvm::is_contained(valuesUsedBy(op), axis))
    return isConstantAlong(op, axis, points);
  return op->getNumRegions() == 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
           return isConstantOver(operand, axis, points);
         });
}

/// The length of the longest blocks of the sum over which all scales are constant; 0: there are
/// none.
static int64_t lengthOfBlocks(ArrayRef<Value> scales, Value axis, int64_t extent) {
  constexpr int64_t maxBlocks = 1 << 16;
  for (int64_t blocks = 2; blocks <= maxBlocks && extent / blocks >= stepOfBytes; ++blocks)
    if (extent % blocks == 0 && extent / blocks % stepOfBytes == 0 &&
        llvm::all_of(scales,
                     [&](Value scale) { return isConstantOver(scale, axis, extent / blocks); }))
      return extent / blocks;
  return 0;
}

/// sum_k s[k // 128] * x[k] as sum_{g, k} s[g] * x[128*g + k]. Null where the sum has no such form.
static ReduceOp splitSum(ReduceOp sum) {
  unsigned last = sum.getAxes().size() - 1;
  Value axis = sum.getAxes()[last];
  AxisRange range = getAxisRange(axesOpOf(sum), last);
  std::optional<int64_t> extent = range.hi.asConstant();
  if (range.lo.asConstant() != 0 || !extent)
    return nullptr;
  SmallVector<Value> scales, others;
  for (Value factor : factorsOf(sum))
    (readsF8(factor) ? others : scales).push_back(factor);
  if (scales.empty() || others.size() != 2)
    return nullptr;
  int64_t points = lengthOfBlocks(scales, axis, *extent);
  if (!points)
    return nullptr;
  SmallVector<AxisSpec> axes;
  for (unsigned number = 0; number < last; ++number)
    axes.push_back(getAxisSpec(axesOpOf(sum), number));
  std::string name = getAxisName(axesOpOf(sum), last).str(), ofBlock = name + "_block";
  axes.push_back({ofBlock, int64_t(0), *extent / points});
  axes.push_back({name, int64_t(0), points});
  SumBuilder builder(sum, sum);
  return builder.make(axes, [&](ReduceOp result) {
    ValueExpr first = ValueExpr(Value(result.getAxes()[last])) * points;
    for (auto &[factors, place] :
         {std::pair(others, first + ValueExpr(Value(result.getAxes()[last + 1]))),
          std::pair(scales, first)}) {
      IRMapping map;
      for (auto [own, copy] : llvm::zip(sum.getAxes().drop_back(), result.getAxes()))
        map.map(own, copy);
      map.map(axis, builder.index(place));
      builder.copy(sum, map);
      for (Value factor : factors)
        builder.multiply(map.lookupOrDefault(factor));
    }
  });
}

namespace {
struct BlockScalesPass : Counted<tegula::impl::BlockScalesPassBase<BlockScalesPass>> {
  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      for (ReduceOp sum : llvm::make_early_inc_range(statement.getBody().getOps<ReduceOp>()))
        if (isPlainSum(sum))
          rewrite(statement, sum);
  }

  void rewrite(ParallelOp statement, ReduceOp sum) {
    ReduceOp result = joinSums(sum);
    if (!result)
      result = splitSum(sum);
    if (!result)
      return;
    // What is planned is the statement without the sum as it was.
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : sum.getResult().getUses())
      uses.push_back(&use);
    sum.getResult().replaceAllUsesWith(result.getResult());
    sum->remove();
    if (hasScales(statement, result) || isGrouped(result)) {
      sum->destroy();
      count("sums with scales of blocks");
      return;
    }
    statement.getBody().front().getOperations().insert(result->getIterator(), sum);
    for (OpOperand *use : uses)
      use->set(sum.getResult());
    result.erase();
  }

  /// Whether data chooses the matrix of a row: tgl-group-products makes a contraction of it.
  static bool isGrouped(ReduceOp sum) {
    Value last = sum.getAxes().back();
    std::optional<int64_t> points =
        knownPoints(axesOpOf(sum), {unsigned(sum.getAxes().size() - 1)});
    SmallVector<Value> factors = factorsOf(sum);
    unsigned operands = llvm::count_if(factors, readsF8);
    return points && *points % stepOfBytes == 0 && operands == 2 && factors.size() > operands &&
           llvm::all_of(factors,
                        [&](Value factor) {
                          return readsF8(factor) ||
                                 !axesOf(factor).contains(cast<BlockArgument>(last));
                        }) &&
           matchGroupedProduct(sum, /*summed=*/false);
  }

  static bool hasScales(ParallelOp statement, ReduceOp sum) {
    Matched<ContractionPlan> plan = planContraction(statement, /*byVectors=*/false);
    return plan && llvm::any_of(plan->products, [&](const ContractionProduct &product) {
             return product.reduce == sum && product.scales;
           });
  }
};
} // namespace
