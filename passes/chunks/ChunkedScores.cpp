//===- ChunkedScores.cpp - Scores of a chunk's steps with each other ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedScores.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

ChunkedScores::Scores ChunkedScores::writeScores(LinearReadout &readout, Type type, Finish finish) {
  SmallVector<Value> axes = axesOfReadout(readout);
  Scores made{&readout, operandOf(readout.query, axes, readout.axes, "queries"), {}, {}, {}};
  for (Value axis : readout.statement.getAxes()) {
    const auto *dim = llvm::find(readout.axes, axis);
    bool isOwn = !axesAmong({axis}, readout.query).empty();
    if (dim != readout.axes.end())
      isOwn = found.dims[dim - readout.axes.begin()] == Dim::Batch;
    if (isOwn)
      made.scores.leading.push_back(axis);
  }
  made.scores.tensor = makeTemp(made.scores.leading, true, {length, length}, {}, type, "scores");
  if (!isChannelwise()) {
    writeAllScores(made, finish);
    return made;
  }
  int64_t size = stepsOfBlock(length, stepsOfScalarScores);
  writeBlocks(made, size, finish);
  for (; size < length; size *= 2)
    writeBesideBlocks(made, size, finish);
  writeNoScores(made);
  return made;
}

Value ChunkedScores::sumOverChannels(Place &place, LinearReadout &readout,
                                     llvm::function_ref<Value(Place &)> term) {
  SmallVector<Value> summed(readout.reduce.getAxes());
  alignAxes(place, readout);
  Value sum = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
    for (auto [axis, own] : llvm::zip_equal(summed, reduce.getAxes()))
      at.map.map(axis, Value(own));
    alignAxes(at, readout);
    return term(at);
  });
  if (readout.isNegative != found.isNegative)
    sum = arith::NegFOp::create(place.builder, loc, sum);
  return sum;
}

void ChunkedScores::writeScore(Place &place, Scores &made, const ValueExpr &step,
                               const ValueExpr &from, Value score) {
  WriteOp::create(place.builder, loc, score, made.scores.tensor,
                  subscripts(place, made.scores.leading, place.chunk, {step, from}, {}));
  Operation *statement = place.builder.getBlock()->getParentOp();
  statement->walk([](IndexedOp indexed) { foldIndices(indexed); });
  eraseUnusedOps(*place.builder.getBlock());
}

void ChunkedScores::writeAllScores(Scores &made, Finish finish) {
  LinearReadout &readout = *made.readout;
  Value steps[2];
  Place place = open(made.scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
  Value sum = sumOverChannels(place, readout, [&](Place &at) -> Value {
    Value query = valueOf(at, made.query, steps[0]), key = valueOf(at, keys, steps[1]);
    return arith::MulFOp::create(at.builder, loc, query, key);
  });
  OpBuilder &b = place.builder;
  if (finish)
    sum = finish(place, steps[0], sum);
  if (Value decay =
          decayBetween(place, ValueExpr(steps[1]) + ValueExpr(1), seenBy(readout, steps[0])))
    sum = arith::MulFOp::create(b, loc, decay, sum);
  Value isSeen = arith::CmpIOp::create(
      b, loc, readout.seesStep ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, steps[1],
      steps[0]);
  sum = arith::SelectOp::create(b, loc, isSeen, sum, number(b, 0));
  writeScore(place, made, steps[0], steps[1], sum);
}

void ChunkedScores::writeNoScores(const Scores &made) {
  Value steps[2];
  Place place = open(made.scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
  auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
  setAxisRange(statement, statement.getAxes().size() - 1, seenBy(*made.readout, steps[0]), length);
  WriteOp::create(place.builder, loc, number(place.builder, 0), made.scores.tensor,
                  subscripts(place, made.scores.leading, place.chunk,
                             {ValueExpr(steps[0]), ValueExpr(steps[1])}, {}));
}

void ChunkedScores::writeBlocks(Scores &made, int64_t size, Finish finish) {
  LinearReadout &readout = *made.readout;
  Value own[3];
  Place place = open(
      made.scores.leading, true,
      {AxisSpec{"block", 0, length / size}, AxisSpec{"step", 0, size}, AxisSpec{"from", 0, size}},
      own);
  auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
  setAxisRange(statement, statement.getAxes().size() - 1, 0, seenBy(readout, own[1]));
  ValueExpr first = ValueExpr(own[0]) * ValueExpr(size), step = first + ValueExpr(own[1]),
            from = first + ValueExpr(own[2]);
  Value sum = sumOverChannels(place, readout, [&](Place &at) -> Value {
    Value query = valueOf(at, made.query, step), key = valueOf(at, keys, from);
    Value decay = decayBetween(at, from + ValueExpr(1), seenBy(readout, step));
    return arith::MulFOp::create(at.builder, loc,
                                 arith::MulFOp::create(at.builder, loc, query, key), decay);
  });
  writeScore(place, made, step, from, finish ? finish(place, step, sum) : sum);
}

void ChunkedScores::writeBesideBlocks(Scores &made, int64_t size, Finish finish) {
  LinearReadout &readout = *made.readout;
  ChunkTensor queries =
                  keepToBorder(made.query, axesOfReadout(readout), readout.axes, size, &readout),
              lastKeys = keepToBorder(keys, found.axes, found.axes, size, nullptr);
  Value own[3];
  Place place = open(made.scores.leading, true,
                     {AxisSpec{"pair", 0, length / (2 * size)}, AxisSpec{"step", 0, size},
                      AxisSpec{"from", 0, size}},
                     own);
  ValueExpr pair = own[0];
  Value sum = sumOverChannels(place, readout, [&](Place &at) -> Value {
    Value query = readAt(at, queries, {pair, ValueExpr(own[1])}),
          key = readAt(at, lastKeys, {pair, ValueExpr(own[2])});
    return arith::MulFOp::create(at.builder, loc, query, key);
  });
  ValueExpr first = pair * ValueExpr(2 * size), step = first + ValueExpr(size) + ValueExpr(own[1]);
  writeScore(place, made, step, first + ValueExpr(own[2]), finish ? finish(place, step, sum) : sum);
}

ChunkTensor ChunkedScores::keepToBorder(const Operand &operand, ArrayRef<Value> axes,
                                        ArrayRef<Value> axesByDim, int64_t size,
                                        const LinearReadout *readout) {
  ChunkTensor made = axesFor(operand.factors, axes, axesByDim, true);
  int64_t pairs = length / (2 * size);
  made.tensor = makeTemp(made.leading, true, {pairs, size}, made.trailing, element,
                         readout ? "queries_behind" : "keys_before");
  SmallVector<AxisSpec> specs{AxisSpec{"pair", 0, pairs}, AxisSpec{"step", 0, size}};
  llvm::append_range(specs, specsOf(made.trailing));
  SmallVector<Value> own(specs.size());
  Place place = open(made.leading, true, specs, own.data());
  place.map.map(made.trailing, ArrayRef(own).drop_front(2));
  ValueExpr border = (ValueExpr(own[0]) * ValueExpr(2) + ValueExpr(1)) * ValueExpr(size),
            step = border + ValueExpr(own[1]);
  if (readout)
    alignAxes(place, *readout);
  else
    step = step - ValueExpr(size);
  Value decay = readout ? decayBetween(place, border, seenBy(*readout, step))
                        : decayBetween(place, step + ValueExpr(1), border);
  Value value = arith::MulFOp::create(place.builder, loc, valueOf(place, operand, step), decay);
  WriteOp::create(place.builder, loc, value, made.tensor,
                  subscripts(place, made.leading, place.chunk,
                             {ValueExpr(own[0]), ValueExpr(own[1])}, made.trailing));
  place.builder.getBlock()->getParentOp()->walk([](IndexedOp indexed) { foldIndices(indexed); });
  eraseUnusedOps(*place.builder.getBlock());
  return made;
}
