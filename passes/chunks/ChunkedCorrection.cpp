//===- ChunkedCorrection.cpp - Corrected values in chunks -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedCorrection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

void ChunkedCorrection::writeCorrectedStates() {
  const ValueCorrection &correction = *found.correction;
  LinearReadout &readout = found.readouts[correction.readout];
  Type f32 = builder.getF32Type();
  keys = operandOf(found.key, found.axes, found.axes, "keys");
  SmallVector<Value> own(readout.statement.getAxes()), columns, factors, weights;
  SmallVector<Value> summed(readout.reduce.getAxes());
  for (unsigned dim : found.dimsOfKind(Dim::Column))
    columns.push_back(readout.axes[dim]);
  // Factors that have no columns go to the inverse: those that have some are often a tensor as it
  // is.
  for (Value factor : correction.base)
    (axesAmong(columns, {factor}).empty() ? weights : factors).push_back(factor);
  auto weightOf = [&](ArrayRef<Value> of, StringRef name) {
    return of.empty() ? Operand() : operandOf(of, own, readout.axes, name, f32);
  };
  Operand scale = weightOf(correction.scale, "scale"), weight = weightOf(weights, "weight"),
          base = operandOf(factors, own, readout.axes, "base");
  Scores one = writeScores(readout, f32, [&](Place &place, const ValueExpr &step, Value score) {
    return signedProduct(place, scale, step, correction.scaleIsNegative, score);
  });
  ChunkTensor inverse = writeInverse(one.scores);
  auto ofBase = [&](Place &place, Value from, Value value) {
    return signedProduct(place, weight, from, correction.baseIsNegative, value);
  };
  auto ofQuery = [&](Place &place, Value from, Value value) {
    if (Value decay = isChannelwise() ? Value() : decayBetween(place, 0, seenBy(readout, from)))
      value = arith::MulFOp::create(place.builder, loc, value, decay);
    return signedProduct(place, scale, from, correction.scaleIsNegative != readout.isNegative,
                         value);
  };
  Operand query = one.query;
  if (isChannelwise())
    query.kept =
        keep(readout.query, axesOfReadout(readout), readout.axes, true, "seen", {}, &readout);
  ChunkTensor fixed = solve(readout, weighted(inverse, ofBase), base, columns, "fixed", f32),
              turned = solve(readout, weighted(inverse, ofQuery), query, summed, "turned", element);
  walkChunks(readout, fixed, turned);
}

Value ChunkedCorrection::signedProduct(Place &place, const Operand &weight, const ValueExpr &step,
                                       bool isNegative, Value value) {
  if (weight.kept || !weight.factors.empty())
    value = arith::MulFOp::create(place.builder, loc, value, valueOf(place, weight, step));
  return isNegative ? Value(arith::NegFOp::create(place.builder, loc, value)) : value;
}

ChunkTensor ChunkedCorrection::weighted(const ChunkTensor &inverse,
                                        llvm::function_ref<Value(Place &, Value, Value)> weigh) {
  ChunkTensor made = inverse;
  made.tensor = makeTemp(inverse.leading, true, {length, length}, {}, element, "weighted");
  Value steps[2];
  Place place = open(inverse.leading, true, {stepAxis(), stepAxis("from")}, steps);
  alignAxes(place, found.readouts[found.correction->readout]);
  OpBuilder &b = place.builder;
  Value isBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, steps[1], steps[0]);
  SmallVector<ValueExpr> where = subscripts(place, inverse.leading, place.chunk,
                                            {ValueExpr(steps[0]), ValueExpr(steps[1])}, {});
  Value value = ReadOp::create(b, loc, inverse.tensor, where);
  value = arith::SelectOp::create(b, loc, isBelow, weigh(place, steps[1], value), number(b, 0));
  WriteOp::create(b, loc, value, made.tensor, where);
  eraseUnusedOps(*b.getBlock());
  return made;
}

ChunkTensor ChunkedCorrection::solve(const LinearReadout &readout, const ChunkTensor &matrix,
                                     const Operand &right, ArrayRef<Value> columns, StringRef name,
                                     Type type) {
  ChunkTensor made;
  for (unsigned dim : found.dimsOfKind(Dim::Batch))
    made.leading.push_back(readout.axes[dim]);
  made.trailing.append(columns.begin(), columns.end());
  made.tensor = makeTemp(made.leading, true, {length}, columns, type, name);
  SmallVector<AxisSpec> specs{stepAxis()};
  llvm::append_range(specs, specsOf(columns));
  SmallVector<Value> own(specs.size());
  Place place = open(made.leading, true, specs, own.data());
  place.map.map(columns, ArrayRef(own).drop_front());
  place.step = own[0];
  Value sum = sumOver(place, {stepAxis("from")}, [&](Place &at, ReduceOp reduce) -> Value {
    Value from = reduce.getAxes()[0];
    Value factor = readAt(at, matrix, {place.step, ValueExpr(from)});
    return arith::MulFOp::create(at.builder, loc, factor, valueOf(at, right, from));
  });
  writeAt(place, made, sum);
  return made;
}

void ChunkedCorrection::alignBack(Place &place, const LinearReadout &readout) {
  for (auto [of, own] : llvm::zip_equal(found.axes, readout.axes))
    if (Value known = place.map.lookupOrNull(of))
      place.map.map(own, known);
}

void ChunkedCorrection::walkChunks(const LinearReadout &readout, const ChunkTensor &fixed,
                                   const ChunkTensor &turned) {
  SmallVector<Value> batch = axesOfKind(Dim::Batch), summed = axesOfKind(Dim::Summed),
                     columns = axesOfKind(Dim::Column), inner(summed), all(batch);
  llvm::append_range(inner, columns);
  llvm::append_range(all, inner);
  auto make = [&](StringRef name) {
    return ChunkTensor{makeTemp(batch, true, {length}, columns, element, name), batch, columns};
  };
  values.kept = make("values");
  bool areDecayed = logs && !isChannelwise();
  ChunkTensor decayed = areDecayed ? make("decayed") : *values.kept;
  Operand decayedKeys = keys;
  if (isChannelwise())
    decayedKeys.kept = keep(found.key, found.axes, found.axes, true, "decayed");
  states = {makeTemp(batch, true, {}, inner, element, "states", /*hasEnd=*/true), batch, inner};
  auto pointOf = [&](Place &place) {
    return llvm::map_to_vector(found.axes,
                               [&](Value axis) { return ValueExpr(place.map.lookup(axis)); });
  };
  auto keepState = [&](Place &place, Value state, const ValueExpr &chunk) {
    SmallVector<ValueExpr> where = subscripts(place, batch, {}, {chunk}, inner);
    WriteOp::create(place.builder, loc, state, states.tensor, where);
  };
  Place first = open(all, false, {}, nullptr);
  keepState(first, ReadOp::create(first.builder, loc, found.state, pointOf(first)), 0);
  inLoop("chunk", ValueExpr(chunks), [&](Value chunk) {
    SmallVector<AxisSpec> specs{stepAxis()};
    llvm::append_range(specs, specsOf(columns));
    SmallVector<Value> own(specs.size());
    Place place = open(batch, false, specs, own.data());
    place.map.map(columns, ArrayRef(own).drop_front());
    place.chunk = chunk, place.step = own[0];
    alignBack(place, readout);
    ValueExpr step = place.step;
    Value value = sumOver(place, specsOf(summed), [&](Place &at, ReduceOp reduce) -> Value {
      for (auto [axis, one] : llvm::zip_equal(summed, reduce.getAxes()))
        at.map.map(axis, Value(one));
      alignBack(at, readout);
      Value factor = readAt(at, turned, {step}), state = readAt(at, states, {});
      return arith::MulFOp::create(at.builder, loc, factor, state);
    });
    OpBuilder &b = place.builder;
    value = arith::AddFOp::create(b, loc, readAt(place, fixed, {step}), value);
    writeAt(place, *values.kept, value);
    if (areDecayed) {
      Value decay = decayBetween(place, step + ValueExpr(1), endOf(chunk));
      writeAt(place, decayed, arith::MulFOp::create(b, loc, decay, value));
    }
    // The state behind the chunk.
    SmallVector<Value> elements(inner.size());
    Place next = open(batch, false, specsOf(inner), elements.data());
    next.map.map(inner, elements);
    next.chunk = chunk;
    Value more = sumOver(next, {stepAxis()}, [&](Place &at, ReduceOp reduce) -> Value {
      Value from = reduce.getAxes()[0];
      Value key = valueOf(at, decayedKeys, from), added = readAt(at, decayed, {ValueExpr(from)});
      return arith::MulFOp::create(at.builder, loc, key, added);
    });
    if (found.isNegative)
      more = arith::NegFOp::create(next.builder, loc, more);
    Value state = ReadOp::create(next.builder, loc, found.state, pointOf(next));
    if (Value decay = decayBetween(next, 0, endOf(chunk)))
      state = arith::MulFOp::create(next.builder, loc, decay, state);
    state = arith::AddFOp::create(next.builder, loc, state, more);
    WriteOp::create(next.builder, loc, state, found.state, pointOf(next));
    keepState(next, state, ValueExpr(chunk) + ValueExpr(1));
  });
}
