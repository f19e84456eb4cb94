//===- FormSkinnyProducts.cpp - What a block computes of a product of few rows ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The product is formed transposed: columns of the weight are the tile's rows, of which mma.sync
// takes 16, and the statement's few rows are its columns, of which it takes 8.
//
//===----------------------------------------------------------------------===//
#include "passes/tile/FormSkinnyProducts.h"

#include "ir/tgl/TglUtils.h"
#include "ir/tile/Tile.h"
#include "passes/tile/PointRegions.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace {
class SkinnyBuilder {
public:
  SkinnyBuilder(const SkinnyProductPlan &plan, const SkinnyProductShape &shape)
      : plan(plan), op(plan.op), axes(cast<tgl::AxesOp>(op.getOperation())), shape(shape),
        builder(op), loc(op->getLoc()) {}

  void run() {
    SmallVector<tgl::AxisSpec> grid;
    SmallVector<Value> numbered;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis) {
      if (plan.isRow(axis) || axis == plan.column)
        continue;
      grid.push_back(getAxisSpec(axes, axis));
      numbered.push_back(axes.getAxes()[axis]);
    }
    grid.push_back({"t", 0, int64_t(llvm::divideCeil(plan.numColumns, shape.columns))});
    auto kernel =
        tile::KernelOp::create(builder, loc, op->getParentOfType<tgl::LaunchOp>().getName(), grid);
    for (auto [axis, number] : llvm::zip(numbered, kernel.getBody().getArguments()))
      outside.map(axis, number);
    builder.setInsertionPointToStart(&kernel.getBody().front());
    Value block = kernel.getBody().getArguments().back();
    columns = tile::SpanOp::create(builder, loc, shape.columns, ValueExpr(block) * shape.columns,
                                   ValueExpr(plan.numColumns));
    rows = tile::SpanOp::create(builder, loc, shape.rows, ValueExpr(int64_t(0)),
                                ValueExpr(plan.numRows));
    SmallVector<Value> results;
    for (const SkinnyFactors &one : plan.products)
      results.push_back(product(one));
    store(results);
    op->moveBefore(&kernel.getOtherwise().front(), kernel.getOtherwise().front().end());
  }

private:
  const SkinnyProductPlan &plan;
  tgl::ParallelOp op;
  tgl::AxesOp axes;
  const SkinnyProductShape &shape;
  OpBuilder builder;
  Location loc;
  IRMapping outside;   ///< axes that number blocks
  Value columns, rows; ///< spans

  StringRef columnName() { return getAxisName(axes, plan.column); }

  Value product(const SkinnyFactors &one) {
    auto type = tile::TileType::get(builder.getContext(), {shape.columns, shape.rows},
                                    builder.getF32Type(), {});
    Value zero = tile::ZeroOp::create(builder, loc, type);
    auto loop = tile::ForOp::create(builder, loc, ValueExpr(int64_t(0)), ValueExpr(one.depth),
                                    shape.depth(), zero);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&loop.getBody().front());
    Value depth = tile::SpanOp::create(builder, loc, shape.depth(), ValueExpr(loop.getLoopVar()),
                                       ValueExpr(one.depth));
    Value weight = operand(one, one.weight, depth, true),
          activation = operand(one, one.activation, depth, false);
    Value sum = tile::DotOp::create(builder, loc, weight, activation, loop.getIterArgs().front());
    tile::YieldOp::create(builder, loc, sum);
    return loop.getResult(0);
  }

  Value operand(const SkinnyFactors &one, Value factor, Value depth, bool isWeight) {
    auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(one.reduce).getOperation());
    auto type = tile::TileType::get(builder.getContext(),
                                    {isWeight ? shape.columns : shape.rows, shape.depth()},
                                    one.element, {});
    auto points =
        tile::OperandOp::create(builder, loc, type, ValueRange{isWeight ? columns : rows, depth});
    tile::setPointNames(cast<tile::PointsOp>(points.getOperation()),
                        {isWeight ? columnName() : "row", getAxisName(summed, 0)});
    OpBuilder::InsertionGuard guard(builder);
    Block &block = points.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside = outside;
    if (isWeight)
      inside.map(axes.getAxes()[plan.column], block.getArgument(0));
    else
      tile::mapPackedAxes(builder, axes, plan.rows, block.getArgument(0), inside);
    inside.map(summed.getAxes()[0], block.getArgument(1));
    Value element = tile::cloneValue(builder, factor, op, inside);
    tile::YieldOp::create(builder, loc, element);
    tile::finishPoint(block);
    return points;
  }

  /// All that the statement does with the sums.
  void store(ArrayRef<Value> results) {
    auto points = tile::StoreOp::create(builder, loc, ValueRange{columns, rows}, results);
    tile::setPointNames(cast<tile::PointsOp>(points.getOperation()), {columnName(), "row"});
    OpBuilder::InsertionGuard guard(builder);
    Block &block = points.getBody().front();
    builder.setInsertionPointToStart(&block);
    IRMapping inside = outside;
    inside.map(axes.getAxes()[plan.column], block.getArgument(0));
    tile::mapPackedAxes(builder, axes, plan.rows, block.getArgument(1), inside);
    for (auto [one, argument] : llvm::zip_equal(plan.products, block.getArguments().drop_front(2)))
      inside.map(tgl::ReduceOp(one.reduce).getResult(), argument);
    for (Operation &each : op.getBody().front())
      if (!isa<tgl::ReduceOp>(each))
        builder.clone(each, inside);
    tile::YieldOp::create(builder, loc);
    tile::finishPoint(block);
  }
};
} // namespace

void tegula::formSkinnyProduct(const SkinnyProductPlan &plan, const SkinnyProductShape &shape) {
  SkinnyBuilder(plan, shape).run();
}
