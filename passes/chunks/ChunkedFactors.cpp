//===- ChunkedFactors.cpp - Decays, keys, values and queries of chunks ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/chunks/ChunkedLoop.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// What a decay of 0 counts in the code of decays; one below 0 counts 1.
static constexpr int64_t zeroDecay = 1 << 16;

ChunkedFactors::ChunkedFactors(LinearRecurrence &found, int64_t length)
    : ChunkedStatements(found, length),
      element(roundsToBF16(found) ? Type(builder.getBF16Type()) : Type(builder.getF32Type())) {}

//===----------------------------------------------------------------------===//
// Decays
//===----------------------------------------------------------------------===//

void ChunkedFactors::writeDecays() {
  if (found.decay.empty())
    return;
  decayAxes = axesAmong(found.axes, found.decay);
  decayHasSteps = llvm::any_of(found.decay, [&](Value factor) { return variesByStep(factor); });
  decayMayBeNegative =
      llvm::any_of(found.decay, [](Value factor) { return !factor.getDefiningOp<math::ExpOp>(); });
  for (Value axis : decayAxes)
    (isColumnOrSummed(axis, found.axes) ? decayTrailing : decayLeading).push_back(axis);
  auto make = [&](Type type, StringRef name) {
    return makeTemp(decayLeading, decayHasSteps, {length + 1}, decayTrailing, type, name);
  };
  logs = make(builder.getF32Type(), "decay_log");
  codes = make(builder.getI32Type(), "decay_code");
  if (decayHasSteps && !isChannelwise())
    sumDecays();
  else
    walkDecays();
}

void ChunkedFactors::sumDecays() {
  ChunkTensor ownLogs, ownCodes;
  ownLogs.leading = ownCodes.leading = decayLeading;
  ownLogs.tensor = makeTemp(decayLeading, true, {length}, {}, builder.getF32Type(), "step_log");
  ownCodes.tensor = makeTemp(decayLeading, true, {length}, {}, builder.getI32Type(), "step_code");
  Value step;
  Place each = open(decayLeading, true, {stepAxis()}, &step);
  auto statement = cast<AxesOp>(each.builder.getBlock()->getParentOp());
  setAxisRange(statement, statement.getAxes().size() - 1, 0, stepsOf(each.chunk));
  setStep(each, step);
  Value log = number(each.builder, 0), code = integer(each.builder, 0);
  for (Value factor : found.decay)
    addDecay(each, factor, log, code);
  for (auto [value, kept] : {std::pair(log, ownLogs.tensor), std::pair(code, ownCodes.tensor)})
    WriteOp::create(each.builder, loc, value, kept,
                    subscripts(each, decayLeading, each.chunk, {each.step}, {}));
  // Steps that the last chunk lacks change nothing.
  Place place = open(decayLeading, true, {AxisSpec{"step", 0, length + 1}}, &step);
  ValueExpr behind = ValueExpr::min(step, stepsOf(place.chunk));
  for (auto [own, sums] : {std::pair(ownLogs, logs), std::pair(ownCodes, codes)}) {
    Value sum = sumOver(place, {AxisSpec{"from", 0, behind}},
                        [&, from = own](Place &at, ReduceOp reduce) -> Value {
                          return readAt(at, from, {Value(reduce.getAxes()[0])});
                        });
    WriteOp::create(place.builder, loc, sum, sums,
                    subscripts(place, decayLeading, place.chunk, {ValueExpr(step)}, {}));
  }
}

void ChunkedFactors::walkDecays() {
  SmallVector<Value> channels(decayTrailing.size());
  Place place = open(decayLeading, decayHasSteps, specsOf(decayTrailing), channels.data());
  place.map.map(decayTrailing, channels);
  Value log = number(place.builder, 0), code = integer(place.builder, 0);
  auto keep = [&](Place &at, const ValueExpr &step) {
    SmallVector<ValueExpr> where = subscripts(at, decayLeading, at.chunk, {step}, decayTrailing);
    WriteOp::create(at.builder, loc, log, logs, where);
    WriteOp::create(at.builder, loc, code, codes, where);
  };
  keep(place, 0);
  ValueExpr own = decayHasSteps ? stepsOf(place.chunk) : ValueExpr(length);
  auto walk =
      ForOp::create(place.builder, loc, ArrayRef<StringRef>{"step"}, 0, own, ValueRange{log, code});
  walk.getBody().front().clear();
  Place inside = place.inside(walk.getBody().front());
  if (decayHasSteps)
    setStep(inside, walk.getLoopVar());
  log = walk.getIterArgs()[0], code = walk.getIterArgs()[1];
  for (Value factor : found.decay)
    addDecay(inside, factor, log, code);
  keep(inside, ValueExpr(Value(walk.getLoopVar())) + ValueExpr(1));
  yield(walk, {log, code});
  if (!decayHasSteps || isWhole)
    return;
  // Steps that the last chunk lacks change nothing.
  log = walk.getResult(0), code = walk.getResult(1);
  auto rest =
      ForOp::create(place.builder, loc, ArrayRef<StringRef>{"step"}, own, ValueExpr(length));
  rest.getBody().front().clear();
  Place behind = place.inside(rest.getBody().front());
  keep(behind, ValueExpr(Value(rest.getLoopVar())) + ValueExpr(1));
  yield(rest, {});
}

void ChunkedFactors::addDecay(Place &place, Value factor, Value &log, Value &code) {
  OpBuilder &b = place.builder;
  Value value = copy(place, factor), zero = number(b, 0), exponent;
  Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, value, zero);
  if (auto power = factor.getDefiningOp<math::ExpOp>())
    exponent = copy(place, power.getOperand());
  else
    exponent = math::LogOp::create(b, loc, Value(math::AbsFOp::create(b, loc, value)));
  exponent = arith::SelectOp::create(b, loc, isZero, zero, exponent);
  log = arith::AddFOp::create(b, loc, log, exponent);
  Value more = integer(b, 0);
  if (decayMayBeNegative) {
    Value isBelow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, value, zero);
    more = arith::SelectOp::create(b, loc, isBelow, integer(b, 1), more);
  }
  more = arith::SelectOp::create(b, loc, isZero, integer(b, zeroDecay), more);
  code = arith::AddIOp::create(b, loc, code, more);
}

Value ChunkedFactors::decayBetween(Place &place, const ValueExpr &from, const ValueExpr &to) {
  if (!logs)
    return {};
  OpBuilder &b = place.builder;
  auto read = [&](Value tensor, const ValueExpr &step) -> Value {
    Value chunk = decayHasSteps ? place.chunk : Value();
    return ReadOp::create(b, loc, tensor,
                          subscripts(place, decayLeading, chunk, {step}, decayTrailing));
  };
  Value log = read(logs, to), code = read(codes, to);
  if (from.asConstant() != 0) {
    log = arith::SubFOp::create(b, loc, log, read(logs, from));
    code = arith::SubIOp::create(b, loc, code, read(codes, from));
  }
  Value power = math::ExpOp::create(b, loc, log);
  if (decayMayBeNegative) {
    Value odd = arith::AndIOp::create(b, loc, code, integer(b, 1));
    Value isOdd = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, odd, integer(b, 0));
    Value negative = arith::NegFOp::create(b, loc, power);
    power = arith::SelectOp::create(b, loc, isOdd, negative, power);
  }
  Value hasZero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, code, integer(b, zeroDecay));
  return arith::SelectOp::create(b, loc, hasZero, number(b, 0), power);
}

//===----------------------------------------------------------------------===//
// Keys, values and queries
//===----------------------------------------------------------------------===//

bool ChunkedFactors::isDecayAxis(Value axis, ArrayRef<Value> axesByDim) {
  const auto *at = llvm::find(axesByDim, axis);
  return at != axesByDim.end() && llvm::is_contained(decayAxes, found.axes[at - axesByDim.begin()]);
}

ChunkTensor ChunkedFactors::axesFor(ArrayRef<Value> factors, ArrayRef<Value> axes,
                                    ArrayRef<Value> axesByDim, bool isDecayed) {
  ChunkTensor made;
  for (Value axis : axes)
    if (!axesAmong({axis}, factors).empty() || (isDecayed && isDecayAxis(axis, axesByDim)))
      (isColumnOrSummed(axis, axesByDim) ? made.trailing : made.leading).push_back(axis);
  return made;
}

ChunkTensor ChunkedFactors::keep(ArrayRef<Value> factors, ArrayRef<Value> axes,
                                 ArrayRef<Value> axesByDim, bool isDecayed, StringRef name,
                                 Type type, const LinearReadout *readout) {
  ChunkTensor made = axesFor(factors, axes, axesByDim, isDecayed);
  made.tensor = makeTemp(made.leading, true, {length}, made.trailing, type ? type : element, name);
  for (bool isRest : {false, true}) {
    if (isRest && isWhole)
      break;
    SmallVector<AxisSpec> specs{stepAxis()};
    llvm::append_range(specs, specsOf(made.trailing));
    SmallVector<Value> more(specs.size());
    Place place = open(made.leading, true, specs, more.data());
    auto statement = cast<AxesOp>(place.builder.getBlock()->getParentOp());
    if (!isWhole)
      setAxisRange(statement, made.leading.size() + 1, isRest ? stepsOf(place.chunk) : ValueExpr(0),
                   isRest ? ValueExpr(length) : stepsOf(place.chunk));
    place.map.map(made.trailing, ArrayRef(more).drop_front());
    setStep(place, more[0]);
    Value value = number(place.builder, 0);
    if (!isRest) {
      Value decay;
      if (readout)
        alignAxes(place, *readout);
      if (isDecayed)
        decay = readout ? decayBetween(place, 0, seenBy(*readout, place.step))
                        : decayBetween(place, place.step + ValueExpr(1), endOf(place.chunk));
      value = product(place, factors, decay);
    }
    WriteOp::create(place.builder, loc, value, made.tensor,
                    subscripts(place, made.leading, place.chunk, {place.step}, made.trailing));
    eraseUnusedOps(*place.builder.getBlock());
  }
  return made;
}

ChunkedFactors::Operand ChunkedFactors::operandOf(ArrayRef<Value> factors, ArrayRef<Value> axes,
                                                  ArrayRef<Value> axesByDim, StringRef name,
                                                  Type type) {
  Operand operand{factors, std::nullopt};
  auto read = factors.size() == 1 ? factors[0].getDefiningOp<ReadOp>() : ReadOp();
  if (!isWhole || !read || read.getGuard() || read.getFill() || read.getChecked())
    operand.kept = keep(factors, axes, axesByDim, false, name, type);
  return operand;
}

Value ChunkedFactors::valueOf(Place &place, const Operand &operand, const ValueExpr &step) {
  Place at = place.inside(*place.builder.getBlock());
  setStep(at, step);
  if (operand.kept)
    return readAt(at, *operand.kept, {step});
  return product(at, operand.factors);
}
