//===- PackedGemm.cpp - Matrix products on the CPU ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/PackedGemm.h"
#include "codegen/cpu/HostAbi.h"
#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using tegula::tgl::ValueExpr;

namespace tegula {

/// Summed points of a block: a panel of columns (48 wide in f32) then about fills the first-level
/// cache.
static constexpr int64_t blockLength = 256;
/// Panels of a unit at most: its packed sides and accumulators then fit the second-level cache.
static constexpr int64_t maxRowPanels = 48, maxColumnPanels = 11;

PackedGemmEmitter::PackedGemmEmitter(Emitter &emitter, const ContractionPlan &plan)
    : e(emitter), b(emitter.b), plan(plan), axes(tgl::axesOfOp(tgl::ParallelOp(plan.op))),
      element(emitter.typeOf(plan.element)), elementBytes(element->isDoubleTy() ? 8 : 4),
      lanes(std::max(2u, emitter.options.vectorBytes / elementBytes)) {
  // 24 accumulators where there are 32 registers, 12 of 16 otherwise; the rest hold a row of
  // columns and a broadcast element.
  tileRows = emitter.options.vectorBytes >= 64 ? 8 : 4;
  tileVectors = 3;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value *PackedGemmEmitter::extentOf(tgl::AxesOp op, unsigned axis) {
  Value *difference = b.CreateSub(e.emitIndex(e.highOf(op, axis)), e.emitIndex(e.lowOf(op, axis)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
}

Value *PackedGemmEmitter::product(ArrayRef<Value *> factors) {
  Value *result = i64(1);
  for (Value *factor : factors)
    result = b.CreateMul(result, factor);
  return result;
}

Value *PackedGemmEmitter::ceilDiv(Value *x, Value *y) {
  Value *divisor = b.CreateBinaryIntrinsic(Intrinsic::umax, y, i64(1));
  return b.CreateUDiv(b.CreateAdd(x, b.CreateSub(divisor, i64(1))), divisor);
}

Value *PackedGemmEmitter::minimum(Value *x, Value *y) {
  return b.CreateBinaryIntrinsic(Intrinsic::smin, x, y);
}

Value *PackedGemmEmitter::at(Value *base, Value *elements) {
  return b.CreateInBoundsGEP(element, base, elements);
}

PackedGemmEmitter::Sum PackedGemmEmitter::sumOf(const ContractionProduct &product) {
  tgl::AxesOp summed = tgl::axesOfOp(tgl::ReduceOp(product.reduce));
  Sum sum;
  sum.collapsed = product.a.collapsesSum && product.b.collapsesSum;
  for (unsigned k = 0; k < summed.getAxes().size(); ++k) {
    sum.lows.push_back(e.emitIndex(e.lowOf(summed, k)));
    sum.extents.push_back(extentOf(summed, k));
  }
  if (sum.collapsed && sum.extents.size() > 1) {
    sum.low = i64(0);
    sum.high = this->product(sum.extents);
    sum.inner = i64(1);
  } else {
    sum.low = sum.lows.front();
    sum.high = b.CreateAdd(sum.low, sum.extents.front());
    sum.inner = this->product(ArrayRef(sum.extents).drop_front());
  }
  Value *fitting =
      b.CreateUDiv(i64(blockLength), b.CreateBinaryIntrinsic(Intrinsic::umax, sum.inner, i64(1)));
  fitting = b.CreateBinaryIntrinsic(Intrinsic::umax, fitting, i64(1));
  // Blocks of about the same length.
  Value *extent = b.CreateSub(sum.high, sum.low);
  Value *blocks = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(extent, fitting), i64(1));
  sum.step = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(extent, blocks), i64(1));
  return sum;
}

PackedGemmShape PackedGemmEmitter::emitShape(Value *threads, Value *unitsEach) {
  PackedGemmShape shape;
  auto total = [&](ArrayRef<unsigned> group) {
    Value *result = i64(1);
    for (unsigned axis : group)
      result = b.CreateMul(result, extentOf(axes, axis));
    return result;
  };
  shape.rows = total(plan.rows);
  shape.columns = total(plan.columns);
  shape.batch = total(plan.batch);

  Value *longest = i64(0), *all = i64(0), *oneBlock = b.getTrue();
  for (const ContractionProduct &product : plan.products) {
    // Bounds that use batch axes are largest nowhere in particular: each unit has its own, so
    // memory is asked for where the unit knows it.
    Sum sum = sumOf(product);
    Value *extent = b.CreateSub(sum.high, sum.low);
    longest = b.CreateBinaryIntrinsic(Intrinsic::smax, longest,
                                      b.CreateMul(minimum(sum.step, extent), sum.inner));
    all = b.CreateAdd(all, b.CreateMul(extent, sum.inner));
    oneBlock = b.CreateAnd(oneBlock, b.CreateICmpSLE(extent, sum.step));
  }
  shape.longestSum = longest;
  shape.totalSum = all;

  // Units: as large as the cache allows, but several for each thread.
  Value *rowPanels = ceilDiv(shape.rows, i64(tileRows));
  Value *columnPanels = ceilDiv(shape.columns, i64(tileColumns()));
  Value *wanted = b.CreateMul(threads, unitsEach);
  auto divide = [&](Value *panels, Value *others, int64_t least, int64_t most, Value *&blocks) {
    Value *pieces = ceilDiv(wanted, others);
    Value *each = ceilDiv(panels, pieces);
    each = b.CreateBinaryIntrinsic(Intrinsic::smax, each, i64(least));
    each = minimum(each, i64(most));
    blocks = b.CreateBinaryIntrinsic(Intrinsic::umax, ceilDiv(panels, each), i64(1));
    return ceilDiv(panels, blocks);
  };
  Value *minColumnBlocks = ceilDiv(columnPanels, i64(maxColumnPanels));
  shape.rowPanels = divide(rowPanels, b.CreateMul(shape.batch, minColumnBlocks), 8, maxRowPanels,
                           shape.rowBlocks);
  shape.columnPanels = divide(columnPanels, b.CreateMul(shape.batch, shape.rowBlocks), 2,
                              maxColumnPanels, shape.columnBlocks);
  shape.units = b.CreateMul(shape.batch, b.CreateMul(shape.rowBlocks, shape.columnBlocks));
  Value *tiles = b.CreateMul(shape.rowPanels, shape.columnPanels);
  shape.tilesKept = plan.products.size() > 1 ? tiles : b.CreateSelect(oneBlock, i64(1), tiles);
  return shape;
}

Value *PackedGemmEmitter::emitWorthwhile(const PackedGemmShape &shape) {
  // Sums of packed operands have another order: points are those that choices go by.
  tgl::Invariance invariance = tgl::Invariance::of(tgl::ParallelOp(plan.op));
  auto planned = [&](ArrayRef<unsigned> group, Value *points) {
    if (invariance.isFree())
      return points;
    SmallVector<Value *> extents;
    for (unsigned axis : group)
      extents.push_back(b.CreateBinaryIntrinsic(
          Intrinsic::smax,
          e.emitIndex(invariance.planned(e.highOf(axes, axis) - e.lowOf(axes, axis))), i64(0)));
    return product(extents);
  };
  Value *rows = planned(plan.rows, shape.rows), *columns = planned(plan.columns, shape.columns);
  Value *enough = b.CreateICmpSGE(rows, i64(4));
  enough = b.CreateAnd(enough, b.CreateICmpSGE(columns, i64(lanes)));
  enough = b.CreateAnd(enough, b.CreateICmpSGE(shape.totalSum, i64(8)));
  Value *points = b.CreateMul(minimum(rows, i64(1 << 20)), minimum(columns, i64(1 << 20)));
  points = b.CreateMul(minimum(points, i64(1 << 20)), minimum(shape.totalSum, i64(1 << 20)));
  return b.CreateAnd(enough, b.CreateICmpSGE(points, i64(1 << 14)));
}

Value *PackedGemmEmitter::emitCost(const PackedGemmShape &shape) {
  Value *tiles = b.CreateMul(shape.rowPanels, shape.columnPanels);
  return b.CreateMul(b.CreateMul(tiles, i64(tileRows * tileVectors)), shape.totalSum);
}

Value *PackedGemmEmitter::emitScratchBytes(const PackedGemmShape &shape) {
  Value *length = b.CreateAdd(shape.longestSum, i64(lanes));
  Value *packed = b.CreateMul(b.CreateAdd(b.CreateMul(shape.rowPanels, i64(tileRows)),
                                          b.CreateMul(shape.columnPanels, i64(tileColumns()))),
                              length);
  Value *kept =
      b.CreateMul(shape.tilesKept, i64(int64_t(tileRows) * tileColumns() * plan.products.size()));
  Value *bytes = b.CreateMul(b.CreateAdd(packed, kept), i64(elementBytes));
  Value *tables = i64(0);
  if (plan.rows.size() > 1)
    tables = b.CreateAdd(
        tables, b.CreateMul(shape.rowPanels, i64(int64_t(tileRows) * plan.rows.size() * 8)));
  if (plan.columns.size() > 1)
    tables = b.CreateAdd(tables, b.CreateMul(shape.columnPanels, i64(int64_t(tileColumns()) *
                                                                     plan.columns.size() * 8)));
  return b.CreateAdd(b.CreateAdd(bytes, tables), i64(8 * cacheLine));
}

/// The rest of the statement at the points of one tile.
void PackedGemmEmitter::emitEpilogue(Side &row, Side &column, Value *rowPanel, Value *columnPanel,
                                     ArrayRef<Value *> tiles) {
  Value *firstRow = b.CreateMul(rowPanel, i64(tileRows));
  Value *numRows = minimum(i64(tileRows), b.CreateSub(row.count, firstRow));
  Value *firstColumn = b.CreateMul(columnPanel, i64(tileColumns()));
  Value *numVectors =
      minimum(i64(tileVectors), ceilDiv(b.CreateSub(column.count, firstColumn), i64(lanes)));
  auto *vector = FixedVectorType::get(element, lanes);
  e.emitLoop(
      i64(0), numRows, i64(1), {},
      [&](Value *r, ArrayRef<Value *>) {
        setElement(row, b.CreateAdd(firstRow, r));
        e.emitLoop(i64(0), numVectors, i64(1), {}, [&](Value *v, ArrayRef<Value *>) {
          Value *place = b.CreateAdd(b.CreateMul(r, i64(tileVectors)), v);
          SmallVector<Value *> sums;
          for (Value *tile : tiles)
            sums.push_back(b.CreateAlignedLoad(vector, b.CreateInBoundsGEP(vector, tile, place),
                                               Align(cacheLine)));
          withVector(column, b.CreateAdd(firstColumn, b.CreateMul(v, i64(lanes))), lanes, [&] {
            for (auto [product, sum] : zip_equal(plan.products, sums))
              e.values[tgl::ReduceOp(product.reduce).getResult()] = sum;
            for (mlir::Operation *op : plan.epilogue)
              e.emitOp(op);
          });
          return SmallVector<Value *>();
        });
        return SmallVector<Value *>();
      },
      "row");
}

//===----------------------------------------------------------------------===//
// A unit
//===----------------------------------------------------------------------===//

void PackedGemmEmitter::emitUnit(const PackedGemmShape &shape, Value *unit, Value *scratch) {
  // Where: rows change fastest, so that what follows on this thread finds its columns in the cache.
  Value *rowBlock = b.CreateURem(unit, shape.rowBlocks);
  Value *rest = b.CreateUDiv(unit, shape.rowBlocks);
  Value *columnBlock = b.CreateURem(rest, shape.columnBlocks);
  rest = b.CreateUDiv(rest, shape.columnBlocks);
  for (unsigned axis : reverse(plan.batch)) {
    Value *extent = b.CreateBinaryIntrinsic(Intrinsic::umax, extentOf(axes, axis), i64(1));
    e.values[axes.getAxes()[axis]] =
        b.CreateAdd(e.emitIndex(e.lowOf(axes, axis)), b.CreateURem(rest, extent));
    rest = b.CreateUDiv(rest, extent);
  }

  // Memory, in pieces that start on cache lines.
  auto take = [&](Value *bytes) {
    Value *piece = scratch;
    Value *rounded = b.CreateAnd(b.CreateAdd(bytes, i64(cacheLine - 1)), i64(-cacheLine));
    scratch = b.CreateInBoundsGEP(b.getInt8Ty(), scratch, rounded);
    return piece;
  };
  auto makeSide = [&](ArrayRef<unsigned> group, bool collapsed, unsigned panel, Value *total,
                      Value *panels, Value *block) {
    Side side;
    side.group = group;
    side.isSingle = group.size() == 1 || collapsed;
    side.panel = panel;
    side.width = std::min(panel, lanes);
    for (unsigned axis : group) {
      side.lows.push_back(e.emitIndex(e.lowOf(axes, axis)));
      side.extents.push_back(extentOf(axes, axis));
    }
    side.total = total;
    Value *most = b.CreateMul(panels, i64(panel));
    side.first = b.CreateMul(block, most);
    side.count = minimum(most, b.CreateSub(total, side.first));
    if (!side.isSingle) {
      side.tableLength = most;
      side.tables = take(b.CreateMul(most, i64(8 * group.size())));
    }
    return side;
  };
  bool rowsCollapse = plan.epilogueCollapsesRows, columnsCollapse = plan.epilogueCollapsesColumns;
  for (const ContractionProduct &product : plan.products) {
    rowsCollapse &= product.a.collapsesAxes;
    columnsCollapse &= product.b.collapsesAxes;
  }
  Side row = makeSide(plan.rows, rowsCollapse, tileRows, shape.rows, shape.rowPanels, rowBlock);
  Side column = makeSide(plan.columns, columnsCollapse, tileColumns(), shape.columns,
                         shape.columnPanels, columnBlock);
  fillTable(row);
  fillTable(column);

  Value *panelLength = b.CreateAdd(shape.longestSum, i64(lanes));
  Value *packedRows = take(b.CreateMul(b.CreateMul(shape.rowPanels, panelLength),
                                       i64(int64_t(tileRows) * elementBytes)));
  Value *packedColumns = take(b.CreateMul(b.CreateMul(shape.columnPanels, panelLength),
                                          i64(int64_t(tileColumns()) * elementBytes)));
  int64_t tileElements = int64_t(tileRows) * tileColumns();
  SmallVector<Value *> kept;
  for (size_t k = 0; k < plan.products.size(); ++k)
    kept.push_back(take(b.CreateMul(shape.tilesKept, i64(tileElements * elementBytes))));
  Value *tileStride =
      b.CreateSelect(b.CreateICmpEQ(shape.tilesKept, i64(1)), i64(0), i64(tileElements));

  Value *rowPanels = ceilDiv(row.count, i64(tileRows)),
        *columnPanels = ceilDiv(column.count, i64(tileColumns()));
  Function *micro = microKernel();
  for (auto [number, product] : enumerate(plan.products)) {
    bool isLast = number + 1 == plan.products.size();
    Sum sum = sumOf(product);
    // At least one block, so that sums over nothing are set as well.
    Value *extent = b.CreateSub(sum.high, sum.low);
    Value *limit = b.CreateAdd(sum.low, b.CreateBinaryIntrinsic(Intrinsic::smax, extent, i64(1)));
    Value *tiles = kept[number];
    e.emitLoop(
        sum.low, limit, sum.step, {},
        [&](Value *begin, ArrayRef<Value *>) {
          Value *end = minimum(b.CreateAdd(begin, sum.step), sum.high);
          Value *length = b.CreateMul(b.CreateSub(end, begin), sum.inner);
          pack(column, product, product.b, sum, begin, end, packedColumns, panelLength);
          pack(row, product, product.a, sum, begin, end, packedRows, panelLength);
          Value *accumulate = b.CreateICmpNE(begin, sum.low);
          e.emitLoop(
              i64(0), columnPanels, i64(1), {},
              [&](Value *c, ArrayRef<Value *>) {
                e.emitLoop(
                    i64(0), rowPanels, i64(1), {},
                    [&](Value *r, ArrayRef<Value *>) {
                      Value *index = b.CreateAdd(b.CreateMul(c, shape.rowPanels), r);
                      auto tileOf = [&](Value *memory) {
                        return at(memory, b.CreateMul(index, tileStride));
                      };
                      b.CreateCall(
                          micro,
                          {at(packedRows, b.CreateMul(r, b.CreateMul(panelLength, i64(tileRows)))),
                           at(packedColumns,
                              b.CreateMul(c, b.CreateMul(panelLength, i64(tileColumns())))),
                           tileOf(tiles), length, accumulate});
                      if (isLast)
                        e.emitIf(b.CreateICmpSGE(end, sum.high), [&] {
                          SmallVector<Value *> all;
                          for (Value *memory : kept)
                            all.push_back(tileOf(memory));
                          emitEpilogue(row, column, r, c, all);
                        });
                      return SmallVector<Value *>();
                    },
                    "rows");
                return SmallVector<Value *>();
              },
              "columns");
          return SmallVector<Value *>();
        },
        "block");
  }
}

} // namespace tegula
