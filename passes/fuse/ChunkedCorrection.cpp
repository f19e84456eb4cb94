//===- ChunkedCorrection.cpp - Corrected values in chunks -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/ChunkedCorrection.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

void ChunkedCorrection::writeCorrectedStates() {
  const ValueCorrection &correction = *found.correction;
  LinearReadout &readout = found.readouts[correction.readout];
  Type f32 = builder.getF32Type();
  keys = operandOf(found.key, found.axes, found.axes, "keys");
  Scores one = writeScores(readout, f32);
  SmallVector<Value> own(readout.statement.getAxes()), columns;
  SmallVector<Value> summed(readout.reduce.getAxes());
  for (unsigned dim : found.dimsOfKind(Dim::Column))
    columns.push_back(readout.axes[dim]);
  Operand base = operandOf(correction.base, own, readout.axes, "base", f32),
          scale = operandOf(correction.scale, own, readout.axes, "scale", f32);
  ChunkTensor fixed = solve(one, scale, columns, "fixed", [&](Place &place) {
    return signedProduct(place, base, correction.baseIsNegative);
  });
  ChunkTensor turned = solve(one, scale, summed, "turned", [&](Place &place) {
    Value query = valueOf(place, one.query, place.step);
    if (Value decay = decayBetween(place, 0, seenBy(readout, place.step)))
      query = arith::MulFOp::create(place.builder, loc, decay, query);
    return signedProduct(place, scale, correction.scaleIsNegative != readout.isNegative, query);
  });
  walkChunks(readout, fixed, rounded(turned));
}

ChunkTensor ChunkedCorrection::solve(Scores &one, const Operand &scale, ArrayRef<Value> columns,
                                     StringRef name, llvm::function_ref<Value(Place &)> first) {
  LinearReadout &readout = *one.readout;
  ChunkTensor made;
  for (unsigned dim : found.dimsOfKind(Dim::Batch))
    made.leading.push_back(readout.axes[dim]);
  made.trailing.append(columns.begin(), columns.end());
  made.tensor = makeTemp(made.leading, true, {length}, columns, builder.getF32Type(), name);
  inLoop("step", length, [&](Value step) {
    SmallVector<Value> own(columns.size());
    Place place = open(made.leading, true, specsOf(columns), own.data());
    place.map.map(columns, own);
    setStep(place, step);
    alignAxes(place, readout);
    Value sum = sumOver(place, {AxisSpec{"from", 0, ValueExpr(step)}},
                        [&](Place &at, ReduceOp reduce) -> Value {
                          ValueExpr from = Value(reduce.getAxes()[0]);
                          Value score = readAt(at, one.scores, {ValueExpr(step), from});
                          Value solved = readAt(at, made, {from});
                          return arith::MulFOp::create(at.builder, loc, score, solved);
                        });
    sum = signedProduct(place, scale, found.correction->scaleIsNegative, sum);
    writeAt(place, made, arith::AddFOp::create(place.builder, loc, first(place), sum));
  });
  return made;
}

Value ChunkedCorrection::signedProduct(Place &place, const Operand &operand, bool isNegative,
                                       Value other) {
  Value value = valueOf(place, operand, place.step);
  if (other)
    value = arith::MulFOp::create(place.builder, loc, value, other);
  return isNegative ? Value(arith::NegFOp::create(place.builder, loc, value)) : value;
}

ChunkTensor ChunkedCorrection::rounded(const ChunkTensor &from) {
  if (element.isF32())
    return from;
  ChunkTensor made = from;
  made.tensor = makeTemp(from.leading, true, {length}, from.trailing, element, "rounded");
  SmallVector<AxisSpec> specs{stepAxis()};
  llvm::append_range(specs, specsOf(from.trailing));
  SmallVector<Value> own(specs.size());
  Place place = open(from.leading, true, specs, own.data());
  place.map.map(from.trailing, ArrayRef(own).drop_front());
  place.step = own[0];
  writeAt(place, made, readAt(place, from, {ValueExpr(place.step)}));
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
