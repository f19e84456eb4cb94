//===- ChunkedReadouts.cpp - Readouts of a state in chunks ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/ChunkedReadouts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

void ChunkedReadouts::writeReadouts(ParallelOp statement) {
  std::vector<Scores> all;
  for (LinearReadout &readout : found.readouts)
    if (readout.statement == statement) {
      all.push_back(writeScores(readout, element));
      all.back().before = writeBefore(all.back());
      if (!isWhole)
        all.back().result = writeResult(all.back());
    }
  writeAllSteps(statement, [&](Place &place, Operation *op) -> Value {
    for (Scores &one : all)
      if (one.readout->reduce == op)
        return one.result ? readAt(place, *one.result, {ValueExpr(place.step)})
                          : resultOf(place, one);
    return {};
  });
}

ChunkedReadouts::Scores
ChunkedReadouts::writeScores(LinearReadout &readout, Type type,
                             llvm::function_ref<Value(Place &, Value, Value)> finish) {
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
  Value steps[2];
  Place place = open(made.scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
  alignAxes(place, readout);
  SmallVector<Value> summed(readout.reduce.getAxes());
  Value sum = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
    for (auto [axis, own] : llvm::zip_equal(summed, reduce.getAxes()))
      at.map.map(axis, Value(own));
    alignAxes(at, readout);
    Value query = valueOf(at, made.query, steps[0]), key = valueOf(at, keys, steps[1]);
    Value term = arith::MulFOp::create(at.builder, loc, query, key);
    if (isChannelwise())
      term = arith::MulFOp::create(
          at.builder, loc, term,
          decayBetween(at, ValueExpr(steps[1]) + ValueExpr(1), seenBy(readout, steps[0])));
    return term;
  });
  OpBuilder &b = place.builder;
  if (readout.isNegative != found.isNegative)
    sum = arith::NegFOp::create(b, loc, sum);
  if (finish)
    sum = finish(place, steps[0], sum);
  if (isChannelwise()) {
    auto statement = cast<AxesOp>(b.getBlock()->getParentOp());
    setAxisRange(statement, statement.getAxes().size() - 1, 0, seenBy(readout, steps[0]));
    writeNoScores(made.scores, readout);
  } else {
    if (Value decay =
            decayBetween(place, ValueExpr(steps[1]) + ValueExpr(1), seenBy(readout, steps[0])))
      sum = arith::MulFOp::create(b, loc, decay, sum);
    Value isSeen = arith::CmpIOp::create(
        b, loc, readout.seesStep ? arith::CmpIPredicate::sle : arith::CmpIPredicate::slt, steps[1],
        steps[0]);
    sum = arith::SelectOp::create(b, loc, isSeen, sum, number(b, 0));
  }
  WriteOp::create(b, loc, sum, made.scores.tensor,
                  subscripts(place, made.scores.leading, place.chunk,
                             {ValueExpr(steps[0]), ValueExpr(steps[1])}, {}));
  eraseUnusedOps(*b.getBlock());
  return made;
}

void ChunkedReadouts::writeNoScores(const ChunkTensor &scores, const LinearReadout &readout) {
  Value steps[2];
  Place place = open(scores.leading, true, {stepAxis(), stepAxis("from")}, steps);
  auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
  setAxisRange(statement, statement.getAxes().size() - 1, seenBy(readout, steps[0]), length);
  WriteOp::create(place.builder, loc, number(place.builder, 0), scores.tensor,
                  subscripts(place, scores.leading, place.chunk,
                             {ValueExpr(steps[0]), ValueExpr(steps[1])}, {}));
}

ChunkTensor ChunkedReadouts::makeResult(const LinearReadout &readout, StringRef name) {
  ChunkTensor made;
  for (Value axis : LinearReadout(readout).statement.getAxes())
    (isColumnOrSummed(axis, readout.axes) ? made.trailing : made.leading).push_back(axis);
  made.tensor = makeTemp(made.leading, true, {length}, made.trailing, builder.getF32Type(), name);
  return made;
}

Place ChunkedReadouts::openResult(const ChunkTensor &made, const LinearReadout &readout) {
  SmallVector<AxisSpec> specs{stepAxis()};
  llvm::append_range(specs, specsOf(made.trailing));
  SmallVector<Value> own(specs.size());
  Place place = open(made.leading, true, specs, own.data());
  place.map.map(made.trailing, ArrayRef(own).drop_front());
  setStep(place, own[0]);
  alignAxes(place, readout);
  return place;
}

ChunkTensor ChunkedReadouts::writeBefore(Scores &one) {
  LinearReadout &readout = *one.readout;
  Operand query = one.query;
  if (isChannelwise())
    query.kept =
        keep(readout.query, axesOfReadout(readout), readout.axes, true, "seen", {}, &readout);
  ChunkTensor made = makeResult(readout, "before");
  Place place = openResult(made, readout);
  SmallVector<Value> summed(readout.reduce.getAxes());
  Value sum = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
    for (auto [axis, own] : llvm::zip_equal(summed, reduce.getAxes()))
      at.map.map(axis, Value(own));
    alignAxes(at, readout);
    Value factor = valueOf(at, query, place.step), state = readAt(at, states, {});
    return arith::MulFOp::create(at.builder, loc, factor, state);
  });
  if (readout.isNegative)
    sum = arith::NegFOp::create(place.builder, loc, sum);
  writeAt(place, made, sum);
  return made;
}

Value ChunkedReadouts::resultOf(Place &place, Scores &one) {
  Place aligned = place;
  alignAxes(aligned, *one.readout);
  OpBuilder &b = aligned.builder;
  Value before = readAt(aligned, one.before, {ValueExpr(place.step)});
  Value decay =
      isChannelwise() ? Value() : decayBetween(aligned, 0, seenBy(*one.readout, place.step));
  if (decay)
    before = arith::MulFOp::create(b, loc, decay, before);
  Value own = sumOver(aligned, {stepAxis("from")}, [&](Place &at, ReduceOp reduce) -> Value {
    Value from = reduce.getAxes()[0];
    Value score = readAt(at, one.scores, {ValueExpr(place.step), ValueExpr(from)});
    Value value = valueOf(at, values, from);
    return arith::MulFOp::create(at.builder, loc, score, value);
  });
  return arith::AddFOp::create(b, loc, before, own);
}

ChunkTensor ChunkedReadouts::writeResult(Scores &one) {
  ChunkTensor made = makeResult(*one.readout, "readout");
  Place place = openResult(made, *one.readout);
  Value result = resultOf(place, one);
  writeAt(place, made, result);
  return made;
}
