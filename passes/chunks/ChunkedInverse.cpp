//===- ChunkedInverse.cpp - Inverses of triangular matrices of chunks -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedInverse.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

ChunkTensor ChunkedInverse::writeInverse(const ChunkTensor &matrix) {
  ChunkTensor inverse = matrix;
  inverse.tensor =
      makeTemp(matrix.leading, true, {length, length}, {}, builder.getF32Type(), "inverse");
  int64_t size = stepsOfBlock(length, stepsOfSubstitution);
  if (size < length)
    clearAbove(inverse, size);
  invertBlocks(matrix, inverse, size);
  for (; size < length; size *= 2)
    joinBlocks(matrix, inverse, size);
  return inverse;
}

void ChunkedInverse::invertBlocks(const ChunkTensor &matrix, const ChunkTensor &inverse,
                                  int64_t size) {
  Value own[2];
  Place place = open(matrix.leading, true,
                     {AxisSpec{"block", 0, length / size}, AxisSpec{"column", 0, size}}, own);
  OpBuilder &b = place.builder;
  ValueExpr first = ValueExpr(own[0]) * ValueExpr(size);
  // All steps in one straight line, so that what is solved for stays in registers.
  SmallVector<Value> solved;
  for (int64_t step = 0; step < size; ++step) {
    Value isOne = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, own[1],
                                        materialize(b, loc, ValueExpr(step)));
    Value value = arith::SelectOp::create(b, loc, isOne, number(b, 1), number(b, 0));
    for (int64_t from = 0; from < step; ++from) {
      Value factor = readAt(place, matrix, {first + ValueExpr(step), first + ValueExpr(from)});
      value =
          arith::AddFOp::create(b, loc, value, arith::MulFOp::create(b, loc, factor, solved[from]));
    }
    solved.push_back(value);
    WriteOp::create(b, loc, value, inverse.tensor,
                    subscripts(place, inverse.leading, place.chunk,
                               {first + ValueExpr(step), first + ValueExpr(own[1])}, {}));
  }
}

void ChunkedInverse::clearAbove(const ChunkTensor &inverse, int64_t size) {
  Value own[3];
  Place place = open(inverse.leading, true,
                     {AxisSpec{"block", 0, length / size}, AxisSpec{"row", 0, size},
                      AxisSpec{"column", 0, length}},
                     own);
  ValueExpr first = ValueExpr(own[0]) * ValueExpr(size);
  auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
  setAxisRange(statement, statement.getAxes().size() - 1, first + ValueExpr(size), length);
  WriteOp::create(place.builder, loc, number(place.builder, 0), inverse.tensor,
                  subscripts(place, inverse.leading, place.chunk,
                             {first + ValueExpr(own[1]), ValueExpr(own[2])}, {}));
}

void ChunkedInverse::joinBlocks(const ChunkTensor &matrix, const ChunkTensor &inverse,
                                int64_t size) {
  int64_t pairs = length / (2 * size);
  ChunkTensor beside = matrix;
  beside.tensor =
      makeTemp(matrix.leading, true, {pairs, size, size}, {}, builder.getF32Type(), "beside");
  // A product for each pair of blocks, whose steps begin at `upper` and `lower`.
  using Steps = SmallVector<ValueExpr>;
  auto multiply = [&](const ChunkTensor &left, const ChunkTensor &right, const ChunkTensor &result,
                      auto leftAt, auto rightAt, auto resultAt) {
    Value own[3];
    Place place = open(
        matrix.leading, true,
        {AxisSpec{"pair", 0, pairs}, AxisSpec{"row", 0, size}, AxisSpec{"column", 0, size}}, own);
    ValueExpr pair = own[0], row = own[1], column = own[2];
    Value sum = sumOver(place, {AxisSpec{"from", 0, size}}, [&](Place &at, ReduceOp reduce) {
      ValueExpr from = Value(reduce.getAxes()[0]);
      Value factor = readAt(at, left, leftAt(pair, row, from));
      Value other = readAt(at, right, rightAt(pair, from, column));
      return Value(arith::MulFOp::create(at.builder, loc, factor, other));
    });
    WriteOp::create(
        place.builder, loc, sum, result.tensor,
        subscripts(place, result.leading, place.chunk, resultAt(pair, row, column), {}));
  };
  auto upper = [&](const ValueExpr &pair) { return pair * ValueExpr(2 * size); };
  auto lower = [&](const ValueExpr &pair) { return upper(pair) + ValueExpr(size); };
  auto onUpper = [&](const ValueExpr &pair, const ValueExpr &row, const ValueExpr &column) {
    return Steps{upper(pair) + row, upper(pair) + column};
  };
  auto onLower = [&](const ValueExpr &pair, const ValueExpr &row, const ValueExpr &column) {
    return Steps{lower(pair) + row, lower(pair) + column};
  };
  auto crossing = [&](const ValueExpr &pair, const ValueExpr &row, const ValueExpr &column) {
    return Steps{lower(pair) + row, upper(pair) + column};
  };
  auto alone = [](const ValueExpr &pair, const ValueExpr &row, const ValueExpr &column) {
    return Steps{pair, row, column};
  };
  multiply(matrix, inverse, beside, crossing, onUpper, alone);
  multiply(inverse, beside, inverse, onLower, alone, crossing);
}
