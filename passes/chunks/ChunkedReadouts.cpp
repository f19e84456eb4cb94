//===- ChunkedReadouts.cpp - Readouts of a state in chunks ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedReadouts.h"

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
        return one.result ? readAt(place, *one.result, {place.step}) : resultOf(place, one);
    return {};
  });
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
  Value before = readAt(aligned, one.before, {place.step});
  Value decay =
      isChannelwise() ? Value() : decayBetween(aligned, 0, seenBy(*one.readout, place.step));
  if (decay)
    before = arith::MulFOp::create(b, loc, decay, before);
  Value own = sumOver(aligned, {stepAxis("from")}, [&](Place &at, ReduceOp reduce) -> Value {
    Value from = reduce.getAxes()[0];
    Value score = readAt(at, one.scores, {place.step, ValueExpr(from)});
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
