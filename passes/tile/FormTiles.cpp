//===- FormTiles.cpp - What a block computes, from a scheduled statement --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/tile/FormSkinnyProducts.h"
#include "passes/tile/FormTileLoops.h"
#include "passes/tile/TilePasses.h"
#include "strategies/FewRowsStrategy.h"
#include "strategies/ProductReductionStrategy.h"
#include "strategies/SkinnyProductStrategy.h"
#include "strategies/StatementMatches.h"

using namespace mlir;
using namespace tegula;
using tgl::ValueExpr;

namespace tegula {
#define GEN_PASS_DEF_FORMTILESPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
/// Makes the kernel of one statement.
class KernelBuilder {
public:
  KernelBuilder(const ProductReductionPlan &plan, const ProductReductionShape &shape)
      : plan(plan), op(plan.op), shape(shape), builder(op), loc(op->getLoc()) {}

  void run() {
    auto launch = op->getParentOfType<tgl::LaunchOp>();
    auto axes = cast<tgl::AxesOp>(op.getOperation());
    SmallVector<tgl::AxisSpec> grid; // in the order of the statement
    tgl::AxisRange rowRange = getAxisRange(axes, plan.rows);
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis)
      grid.push_back(getAxisSpec(axes, axis));
    ValueExpr numRows = rowRange.hi - rowRange.lo;
    grid[plan.rows] = {"t", 0, ValueExpr::floorDiv(numRows + (shape.rows - 1), shape.rows)};
    auto kernel = tile::KernelOp::create(builder, loc, launch.getName(), grid);
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis)
      if (axis != plan.rows)
        outside.map(op.getAxes()[axis], kernel.getBody().getArgument(axis));
    Value number = kernel.getBody().getArgument(plan.rows);

    builder.setInsertionPointToStart(&kernel.getBody().front());
    rows = tile::SpanOp::create(builder, loc, shape.rows,
                                rowRange.lo + ValueExpr(number) * shape.rows, rowRange.hi);
    SmallVector<Value> results;
    for (const ReducedProduct &one : plan.reductions)
      results.push_back(reduce(one));
    store(results);
    op->moveBefore(&kernel.getOtherwise().front(), kernel.getOtherwise().front().end());
  }

private:
  const ProductReductionPlan &plan;
  tgl::ParallelOp op;
  const ProductReductionShape &shape;
  OpBuilder builder;
  Location loc;
  IRMapping outside; // axes of the statement that number blocks
  Value rows;        // the span

  Value rowAxis() { return op.getAxes()[plan.rows]; }

  ValueExpr inKernel(const ValueExpr &expr) {
    return expr.substitute([&](Value value) -> std::optional<ValueExpr> {
      Value mapped = outside.lookupOrNull(value);
      return mapped ? std::optional(ValueExpr(mapped)) : std::nullopt;
    });
  }

  tgl::AxisRange rangeOf(tgl::ReduceOp reduce) {
    tgl::AxisRange range = getAxisRange(cast<tgl::AxesOp>(reduce.getOperation()), 0);
    return {inKernel(range.lo), inKernel(range.hi)};
  }

  /// Sets the names of a region's arguments.
  void setNames(Operation *points, ArrayRef<StringRef> names) {
    points->setAttr("names", builder.getStrArrayAttr(names));
  }

  /// The name of its axis, of columns or of the sum: that of the first reduction over as many, so
  /// that equal loops are equal in all.
  StringRef nameOf(const ReducedProduct &one, tgl::ReduceOp ReducedProduct::*axis) {
    tgl::AxisRange range = rangeOf(one.*axis);
    for (const ReducedProduct &first : plan.reductions) {
      tgl::AxisRange its = rangeOf(first.*axis);
      if (its.lo == range.lo && its.hi == range.hi)
        return getAxisName(cast<tgl::AxesOp>(tgl::ReduceOp(first.*axis).getOperation()), 0);
    }
    llvm_unreachable("it is one of them");
  }
  StringRef rowName() { return getAxisName(cast<tgl::AxesOp>(op.getOperation()), plan.rows); }

  /// The loops of a reduction, and its result for each row.
  Value reduce(const ReducedProduct &one) {
    tgl::ReduceOp reduction = one.reduce;
    auto state = tile::StateType::get(builder.getContext(), reduction.getKind(), shape.rows,
                                      builder.getF32Type(), {});
    Value start = tile::InitOp::create(builder, loc, state);
    tgl::AxisRange range = rangeOf(reduction);
    auto loop = tile::ForOp::create(builder, loc, range.lo, range.hi, shape.columns, start);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&loop.getBody().front());
    Value columns =
        tile::SpanOp::create(builder, loc, shape.columns, ValueExpr(loop.getLoopVar()), range.hi);
    Value values = map(one, columns, product(one, columns));
    Value after =
        tile::ReduceOp::create(builder, loc, state, values, columns, loop.getIterArgs().front());
    tile::YieldOp::create(builder, loc, after);
    builder.setInsertionPointAfter(loop);
    return tile::FinishOp::create(builder, loc, loop.getResult(0));
  }

  /// The step along the sum, of the shape's bytes.
  int64_t depthOf(tgl::ReadOp read) {
    return shape.depth * 16 / read.getTensorType().getElementType().getIntOrFloatBitWidth();
  }

  Value product(const ReducedProduct &one, Value columns) {
    auto type = tile::TileType::get(builder.getContext(), {shape.rows, shape.columns},
                                    builder.getF32Type(), {});
    Value zero = tile::ZeroOp::create(builder, loc, type);
    tgl::AxisRange range = rangeOf(one.product);
    int64_t step = depthOf(one.a);
    auto loop = tile::ForOp::create(builder, loc, range.lo, range.hi, step, zero);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&loop.getBody().front());
    Value depth = tile::SpanOp::create(builder, loc, step, ValueExpr(loop.getLoopVar()), range.hi);
    Value a = operand(one, one.a, rows, shape.rows, rowAxis(), rowName(), depth);
    Value b = operand(one, one.b, columns, shape.columns, tgl::ReduceOp(one.reduce).getAxes()[0],
                      nameOf(one, &ReducedProduct::reduce), depth);
    Value sum = tile::DotOp::create(builder, loc, a, b, loop.getIterArgs().front());
    tile::YieldOp::create(builder, loc, sum);
    return loop.getResult(0);
  }

  Value operand(const ReducedProduct &one, tgl::ReadOp read, Value lines, int64_t extent,
                Value line, StringRef name, Value depth) {
    auto type = tile::TileType::get(builder.getContext(), {extent, depthOf(read)},
                                    read.getTensorType().getElementType(), {});
    auto points = tile::OperandOp::create(builder, loc, type, ValueRange{lines, depth});
    setNames(points, {name, nameOf(one, &ReducedProduct::product)});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&points.getBody().front());
    IRMapping inside = outside;
    inside.map(line, points.getBody().getArgument(0));
    inside.map(tgl::ReduceOp(one.product).getAxes()[0], points.getBody().getArgument(1));
    Operation *element = builder.clone(*read, inside);
    tile::YieldOp::create(builder, loc, element->getResults());
    return points;
  }

  /// The values that are reduced, computed from the product.
  Value map(const ReducedProduct &one, Value columns, Value product) {
    tgl::ReduceOp reduction = one.reduce;
    auto points = tile::MapOp::create(builder, loc, cast<tile::TileType>(product.getType()),
                                      ValueRange{rows, columns}, product);
    setNames(points, {rowName(), nameOf(one, &ReducedProduct::reduce), "p"});
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&points.getBody().front());
    IRMapping inside = outside;
    inside.map(rowAxis(), points.getBody().getArgument(0));
    inside.map(reduction.getAxes()[0], points.getBody().getArgument(1));
    inside.map(tgl::ReduceOp(one.product).getResult(), points.getBody().getArgument(2));
    // What stands before the reduction is computed again at each point.
    cloneStatements(op.getBody().front(), reduction, inside);
    cloneStatements(reduction.getBody().front(), nullptr, inside);
    tile::YieldOp::create(builder, loc, inside.lookupOrDefault(reduction.getReduced()));
    eraseUnused(points.getBody().front());
    return points;
  }

  /// All that the statement does with the results, for each row.
  void store(ArrayRef<Value> results) {
    auto points = tile::StoreOp::create(builder, loc, rows, results);
    SmallVector<StringRef> names{rowName()};
    names.resize(1 + results.size());
    setNames(points, names);
    builder.setInsertionPointToStart(&points.getBody().front());
    IRMapping inside = outside;
    inside.map(rowAxis(), points.getBody().getArgument(0));
    for (auto [one, argument] :
         llvm::zip_equal(plan.reductions, points.getBody().getArguments().drop_front()))
      inside.map(tgl::ReduceOp(one.reduce).getResult(), argument);
    for (Operation &each : op.getBody().front())
      if (!isa<tgl::ReduceOp>(each))
        builder.clone(each, inside);
    tile::YieldOp::create(builder, loc);
    eraseUnused(points.getBody().front());
  }

  /// Clones what computes values, up to `end`: neither reductions nor writes.
  void cloneStatements(Block &block, Operation *end, IRMapping &inside) {
    auto isKnown = [&](Value value) {
      return inside.contains(value) || !op.getBody().isAncestor(value.getParentRegion());
    };
    for (Operation &each : block) {
      if (&each == end)
        return;
      if (each.getNumRegions() == 0 && !isa<tgl::WriteOp, tgl::YieldOp>(each) &&
          llvm::all_of(each.getOperands(), isKnown))
        builder.clone(each, inside);
    }
  }

  static void eraseUnused(Block &block) {
    for (Operation &each : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&each))
        each.erase();
  }
};

struct FormTilesPass : Counted<tegula::impl::FormTilesPassBase<FormTilesPass>>, MatchingPass {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<tgl::ParallelOp> statements;
    getOperation().walk([&](tgl::LaunchOp launch) {
      llvm::append_range(statements, launch.getBody().getOps<tgl::ParallelOp>());
    });
    unsigned formed = 0;
    for (tgl::ParallelOp op : statements) {
      Matched<const StatementMatch *> match = matches->of(op);
      if (!match) {
        op.emitError() << "has a tile, but " << match.mismatch().reason;
        return signalPassFailure();
      }
      if (const auto *reduction = llvm::dyn_cast_or_null<ProductReductionMatch>(*match))
        KernelBuilder(reduction->plan, reduction->shape).run();
      else if (const auto *few = llvm::dyn_cast_or_null<FewRowsMatch>(*match))
        formTileLoop(few->plan, few->shape);
      else if (const auto *skinny = llvm::dyn_cast_or_null<SkinnyProductMatch>(*match))
        formSkinnyProduct(skinny->plan, skinny->shape);
      else
        continue;
      ++formed;
    }
    count("kernels formed", formed);
  }
};
} // namespace
