//===- EpilogueReductions.cpp - Reductions of which a tile has a part
//--------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a tile leaves of reductions over its rows and columns
// (strategies/contraction/plan/TileReductions.h), from its sums in shared memory. The rows of a
// part are a class:
//
//   columns are reduced: a warp has a class. Its lanes take columns 32 apart in all of the rows,
//   and are added up by
//                        shuffles; where a tile has columns of two results each lane has a number
//                        for both.
//   only rows are:       a thread has a class and a column.
//
// Either way the order is the same in every run, and each element is read once.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/EmitArith.h"
#include "strategies/contraction/lower/Epilogue.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <numeric>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned warp = 32;

/// The rows of class `number` (i64) of the tile: parts of a result after each other, then what is
/// kept after them.
Epilogue::ReducedRows Epilogue::rowsOfClass(const ReducedLines &rows, Value *number) {
  Value *last = b.CreateURem(number, i64(rows.after)),
        *partial = b.CreateUDiv(number, i64(rows.after));
  // Results lie one behind the other, and so do the parts of each.
  Value *first = b.CreateAdd(b.CreateMul(partial, i64(rows.length * rows.after)), last);
  return {first, b.CreateAdd(here.rows.first, first), unsigned(rows.after), unsigned(rows.length)};
}

/// The term at row `index` (i64) of its class and a column (i32) of the tile; neutral where there
/// is no such row. The statement's columns are set.
Value *Epilogue::partialValue(const PartialWrite &partial, const ReducedRows &its, Value *index,
                              Value *column) {
  Value *below = b.CreateMul(index, i64(its.step)), *number = b.CreateAdd(its.number, below),
        *exists = nullptr;
  if (!here.rows.fits) {
    exists = b.CreateICmpSLT(number, here.rows.total);
    number = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateSub(here.rows.total, i64(1)));
  }
  setRow(number);
  Value *row = b.CreateTrunc(b.CreateAdd(its.first, below), b.getInt32Ty());
  for (unsigned which = 0; which < plan.products.size(); ++which) {
    mlir::Value sum = parts.recomputed ? parts.recomputed
                                       : tgl::ReduceOp(plan.products[which].reduce).getResult();
    e.values[sum] = b.CreateAlignedLoad(
        here.accumulatorType(), here.accumulatorAddress(row, column, here.accumulatorsBase(which)),
        Align(4));
  }
  for (mlir::Operation *op : partial.made)
    e.emitOp(op);
  Value *value = e.valueOf(tgl::WriteOp(partial.write).getValue());
  return exists ? b.CreateSelect(exists, value, neutralPartial(partial)) : value;
}

Constant *Epilogue::neutralPartial(const PartialWrite &partial) {
  tgl::ReduceKind kind = *tgl::WriteOp(partial.write).getCombine();
  if (kind == tgl::ReduceKind::Sum)
    return ConstantFP::get(b.getFloatTy(), 0);
  return ConstantFP::getInfinity(b.getFloatTy(), /*Negative=*/kind == tgl::ReduceKind::Max);
}

Value *Epilogue::combinePartials(const PartialWrite &partial, Value *x, Value *y) {
  tgl::ReduceKind kind = *tgl::WriteOp(partial.write).getCombine();
  if (kind == tgl::ReduceKind::Sum)
    return b.CreateFAdd(x, y);
  return emitExtreme(e.b, kind == tgl::ReduceKind::Max ? Intrinsic::maximum : Intrinsic::minimum, x,
                     y);
}

/// Of a class with any rows, and the columns of a result of which `columnNumber` (i64) is one.
void Epilogue::storePartial(const PartialWrite &partial, const ReducedRows &its,
                            Value *columnNumber, Value *value) {
  tgl::WriteOp write = partial.write;
  const ReducedLines &ofRows = partial.lines.rows, &ofColumns = partial.lines.columns;
  auto store = [&] {
    setRow(its.number);
    setColumn(columnNumber);
    // Columns that are there for padding have the number of the tile's part too, which axes do not
    // tell.
    SmallVector<ValueExpr> place = write.getSubscriptExprs();
    auto setSplit = [&](const ReducedLines &lines, Value *number) {
      if (lines.number.asConstant())
        return;
      mlir::Value axis = axes.getAxes()[lines.reducedAxes.front()];
      e.values[axis] = number;
      for (ValueExpr &subscript : place)
        if (subscript == lines.number)
          subscript = ValueExpr(axis);
    };
    if (ofRows.isReduced()) {
      Value *reduced =
          b.CreateURem(b.CreateUDiv(its.number, i64(ofRows.after)), i64(ofRows.reduced));
      setSplit(ofRows, b.CreateUDiv(reduced, i64(ofRows.length)));
    }
    if (ofColumns.isReduced()) {
      Value *whole = b.CreateUDiv(columnNumber, i64(ofColumns.reduced));
      Value *before = b.CreateUDiv(b.CreateMul(whole, i64(ofColumns.reduced)), i64(tile.columns));
      setSplit(ofColumns, b.CreateSub(b.CreateUDiv(columnNumber, i64(tile.columns)), before));
    }
    e.storeRaw(e.buffers.find(write.getTensor())->second, place, value, nullptr);
  };
  if (here.rows.fits)
    store();
  else
    e.emitIf(b.CreateICmpSLT(its.number, here.rows.total), store);
}

/// A thread for a column and a class.
void Epilogue::emitColumnPartials(const PartialWrite &partial) {
  const ReducedLines &lines = partial.lines.rows;
  unsigned columnsAtOnce = std::gcd(unsigned(tile.columns), threads()),
           chunks = tile.columns / columnsAtOnce;
  unsigned classes = rowClasses(lines), classesAtOnce = threads() / columnsAtOnce;
  Value *own = b.CreateUDiv(here.thread, i32(columnsAtOnce)),
        *ownColumn = b.CreateURem(here.thread, i32(columnsAtOnce));
  for (unsigned chunk = 0; chunk < chunks; ++chunk) {
    Value *column = b.CreateAdd(ownColumn, i32(chunk * columnsAtOnce));
    Value *columnNumber = b.CreateAdd(here.columns.first, wide(column));
    auto emitColumn = [&] {
      e.keepNextLoopRolled = true;
      e.emitLoop(
          wide(own), i64(classes), i64(classesAtOnce), {},
          [&](Value *number, ArrayRef<Value *>) {
            ReducedRows its = rowsOfClass(lines, number);
            setColumn(columnNumber);
            constexpr unsigned ahead = 8; // rows whose sums are on their way together
            unsigned step = std::min(ahead, its.count);
            Value *whole =
                e.emitLoop(
                     i64(0), i64(its.count), i64(step), {neutralPartial(partial)},
                     [&](Value *index, ArrayRef<Value *> carried) -> SmallVector<Value *> {
                       Value *value = carried.front();
                       for (unsigned n = 0; n < step; ++n)
                         value = combinePartials(
                             partial, value,
                             partialValue(partial, its, b.CreateAdd(index, i64(n)), column));
                       return {value};
                     },
                     "part")
                    .front();
            storePartial(partial, its, columnNumber, whole);
            return SmallVector<Value *>();
          },
          "class");
    };
    if (here.columns.fits)
      emitColumn();
    else
      e.emitIf(columnExists(columnNumber), emitColumn);
  }
}

/// A warp for a class, its lanes for columns.
void Epilogue::emitRowPartials(const PartialWrite &partial) {
  const ReducedLines &lines = partial.lines.rows, &across = partial.lines.columns;
  unsigned classes = rowClasses(lines), warps = threads() / warp;
  // The results' first columns, but of the first one.
  SmallVector<Value *> starts;
  Value *whole = b.CreateUDiv(here.columns.first, i64(across.reduced));
  for (int64_t segment = 1; segment < across.segments; ++segment)
    starts.push_back(b.CreateMul(b.CreateAdd(whole, i64(segment)), i64(across.reduced)));
  auto inLane = [&](unsigned chunk) { return b.CreateAdd(here.lane, i32(chunk * warp)); };
  e.keepNextLoopRolled = true;
  e.emitLoop(
      wide(b.CreateUDiv(here.thread, i32(warp))), i64(classes), i64(warps), {},
      [&](Value *number, ArrayRef<Value *>) {
        ReducedRows its = rowsOfClass(lines, number);
        auto addRow = [&](Value *index, ArrayRef<Value *> carried) {
          SmallVector<Value *> results(carried);
          for (unsigned chunk = 0; chunk < tile.columns / warp; ++chunk) {
            Value *column = inLane(chunk),
                  *columnNumber = b.CreateAdd(here.columns.first, wide(column));
            Value *exists = nullptr, *safe = columnNumber;
            if (!here.columns.fits) {
              exists = columnExists(columnNumber);
              safe = b.CreateBinaryIntrinsic(Intrinsic::smin, columnNumber,
                                             b.CreateSub(here.columns.total, i64(1)));
            }
            setColumn(safe);
            Value *value = partialValue(partial, its, index, column);
            for (auto [segment, result] : enumerate(results)) {
              Value *counts = exists;
              if (segment)
                counts = e.emitAnd(counts, b.CreateICmpSGE(columnNumber, starts[segment - 1]));
              if (segment < starts.size())
                counts = e.emitAnd(counts, b.CreateICmpSLT(columnNumber, starts[segment]));
              Value *term = counts ? b.CreateSelect(counts, value, neutralPartial(partial)) : value;
              result = combinePartials(partial, result, term);
            }
          }
          return results;
        };
        SmallVector<Value *> results(across.segments, neutralPartial(partial));
        constexpr unsigned maxUnrolled = 16; // elements that are written out
        unsigned rowsTogether =
            std::clamp<unsigned>(maxUnrolled * warp / tile.columns, 1, its.count);
        results = e.emitLoop(
            i64(0), i64(its.count), i64(rowsTogether), results,
            [&](Value *index, ArrayRef<Value *> carried) {
              SmallVector<Value *> accumulators(carried);
              for (unsigned n = 0; n < rowsTogether; ++n)
                accumulators = addRow(b.CreateAdd(index, i64(n)), accumulators);
              return accumulators;
            },
            "part");
        for (Value *&result : results)
          for (unsigned distance = 1; distance < warp; distance *= 2) {
            Value *word = b.CreateIntrinsic(
                b.getInt32Ty(), Intrinsic::nvvm_shfl_sync_bfly_i32,
                {i32(-1), b.CreateBitCast(result, b.getInt32Ty()), i32(distance), i32(warp - 1)});
            result = combinePartials(partial, result, b.CreateBitCast(word, result->getType()));
          }
        e.emitIf(b.CreateICmpEQ(here.lane, i32(0)), [&] {
          storePartial(partial, its, here.columns.first, results.front());
          Value *end = b.CreateAdd(here.columns.first, i64(tile.columns));
          end = b.CreateBinaryIntrinsic(Intrinsic::smin, end, here.columns.total);
          for (auto [segment, start] : enumerate(starts))
            e.emitIf(b.CreateICmpSLT(start, end),
                     [&] { storePartial(partial, its, start, results[segment + 1]); });
        });
        return SmallVector<Value *>();
      },
      "class");
}

void Epilogue::emitPartials() {
  for (const PartialWrite &partial : parts.partials)
    partial.lines.columns.isReduced() ? emitRowPartials(partial) : emitColumnPartials(partial);
}
