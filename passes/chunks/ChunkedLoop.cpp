//===- ChunkedLoop.cpp - Writes a linear recurrence in chunks of steps ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedLoop.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/chunks/ChunkedCorrection.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Whether a value of the update and one of a statement with these axes are computed alike.
static bool areSame(const LinearRecurrence &found, Value own, Value other,
                    ArrayRef<Value> axesByDim) {
  auto toUpdate = [&](Value value) -> std::optional<ValueExpr> {
    for (auto [axis, named] : llvm::zip_equal(found.axes, axesByDim))
      if (named == value)
        return ValueExpr(axis);
    return std::nullopt;
  };
  if (own == other)
    return true;
  Operation *a = own.getDefiningOp(), *b = other.getDefiningOp();
  if (!a || !b)
    return !a && !b && ValueExpr(own) == ValueExpr(other).substitute(toUpdate);
  if (a->getName() != b->getName() || a->getNumRegions())
    return false;
  if (auto read = dyn_cast<ReadOp>(a)) {
    auto second = cast<ReadOp>(b);
    auto isPlain = [](ReadOp one) {
      return !one.getGuard() && !one.getFill() && !one.getChecked() &&
             one.getExactNumerators().empty();
    };
    return isPlain(read) && isPlain(second) && read.getTensor() == second.getTensor() &&
           llvm::all_of_zip(read.getSubscriptExprs(), second.getSubscriptExprs(),
                            [&](const ValueExpr &one, const ValueExpr &two) {
                              return one == two.substitute(toUpdate);
                            });
  }
  return !isa<IndexedOp>(a) && a->getAttrDictionary() == b->getAttrDictionary() &&
         a->getNumOperands() == b->getNumOperands() &&
         llvm::all_of_zip(a->getOperands(), b->getOperands(), [&](Value one, Value two) {
           return areSame(found, one, two, axesByDim);
         });
}

/// Whether the factors that vary along dims of this kind, at least one, are reads of bf16, but for
/// decays.
static bool readsBF16(const LinearRecurrence &found, LinearRecurrence::Dim kind,
                      ArrayRef<Value> factors, ArrayRef<Value> axesByDim) {
  bool hasOne = false;
  for (Value factor : factors) {
    if (llvm::none_of(found.dimsOf({factor}, axesByDim),
                      [&](unsigned dim) { return found.dims[dim] == kind; }))
      continue;
    if (llvm::any_of(found.decay,
                     [&](Value decay) { return areSame(found, decay, factor, axesByDim); }))
      continue;
    auto read = factor.getDefiningOp<ReadOp>();
    if (!read || !read.getTensorType().getElementType().isBF16())
      return false;
    hasOne = true;
  }
  return hasOne;
}

bool tegula::roundsToBF16(const LinearRecurrence &found) {
  using Dim = LinearRecurrence::Dim;
  const auto &correction = found.correction;
  return readsBF16(found, Dim::Summed, found.key, found.axes) &&
         readsBF16(found, Dim::Column, correction ? correction->base : found.value,
                   correction ? found.readouts[correction->readout].axes : found.axes) &&
         llvm::all_of(found.readouts, [&](const LinearReadout &readout) {
           return readsBF16(found, Dim::Summed, readout.query, readout.axes);
         });
}

namespace {
class ChunkWriter : ChunkedCorrection {
public:
  ChunkWriter(LinearRecurrence &found, int64_t length) : ChunkedCorrection(found, length) {}

  void run() {
    keepTemps();
    SmallVector<ParallelOp> statements(loop.getBody().front().getOps<ParallelOp>());
    for (ParallelOp statement : statements)
      if (statement != found.update && !found.readers.contains(statement))
        writeAllSteps(statement, {});
    writeDecays();
    if (found.correction)
      writeCorrectedStates();
    else
      writeStates();
    for (ParallelOp statement : statements)
      if (found.readers.contains(statement) &&
          !(found.correction && found.correction->statement == statement))
        writeReadouts(statement);
    loop.erase();
  }

private:
  /// What each chunk adds to the state, a product; then the state before each chunk, in order.
  void writeStates() {
    SmallVector<Value> batch = axesOfKind(Dim::Batch), inner = axesOfKind(Dim::Summed);
    llvm::append_range(inner, axesOfKind(Dim::Column));
    // The decay goes where it makes nothing larger.
    auto hasDecayAxes = [&](ArrayRef<Value> factors) {
      return axesAmong(decayAxes, factors).size() == decayAxes.size();
    };
    bool isOfKeys = isChannelwise() || (hasDecayAxes(found.key) && !hasDecayAxes(found.value));
    values = operandOf(found.value, found.axes, found.axes, "values");
    keys = operandOf(found.key, found.axes, found.axes, "keys");
    Operand decayed = isOfKeys ? keys : values;
    if (logs)
      decayed.kept = keep(decayed.factors, found.axes, found.axes, true, "decayed");
    Value added = makeTemp(batch, true, {}, inner, builder.getF32Type(), "added");
    SmallVector<Value> own(inner.size());
    Place place = open(batch, true, specsOf(inner), own.data());
    place.map.map(inner, own);
    Value sum = sumOver(place, {stepAxis()}, [&](Place &at, ReduceOp reduce) -> Value {
      Value step = reduce.getAxes()[0];
      Value key = valueOf(at, isOfKeys ? decayed : keys, step),
            value = valueOf(at, isOfKeys ? values : decayed, step);
      return arith::MulFOp::create(at.builder, loc, key, value);
    });
    if (found.isNegative)
      sum = arith::NegFOp::create(place.builder, loc, sum);
    WriteOp::create(place.builder, loc, sum, added,
                    subscripts(place, batch, place.chunk, {}, inner));
    passStates(added, batch, inner);
  }

  /// Whether something reads the state behind the loop, or it is a parameter.
  bool isUsedLater() {
    return !found.state.getDefiningOp() ||
           llvm::any_of(found.state.getUsers(), [&](Operation *user) {
             while (user->getBlock() != loop->getBlock())
               user = user->getParentOp();
             return user != loop && loop->isBeforeInBlock(user);
           });
  }

  void passStates(Value added, ArrayRef<Value> batch, ArrayRef<Value> inner) {
    states = {makeTemp(batch, true, {}, inner, element, "states"), SmallVector<Value>(batch),
              SmallVector<Value>(inner)};
    SmallVector<Value> all(batch);
    llvm::append_range(all, inner);
    Place place = open(all, false, {}, nullptr);
    SmallVector<ValueExpr> own;
    for (Value axis : found.axes)
      own.push_back(ValueExpr(place.map.lookup(axis)));
    Value first = ReadOp::create(place.builder, loc, found.state, own);
    auto walk = ForOp::create(place.builder, loc, ArrayRef<StringRef>{"chunk"}, 0,
                              ValueExpr(chunks), ValueRange(first));
    walk.getBody().front().clear();
    Place at = place.inside(walk.getBody().front());
    at.chunk = walk.getLoopVar();
    Value state = walk.getIterArgs()[0];
    SmallVector<ValueExpr> here = subscripts(at, batch, at.chunk, {}, inner);
    WriteOp::create(at.builder, loc, state, states.tensor, here);
    if (Value decay = decayBetween(at, 0, endOf(at.chunk)))
      state = arith::MulFOp::create(at.builder, loc, decay, state);
    Value more = ReadOp::create(at.builder, loc, added, here);
    yield(walk, ValueRange(Value(arith::AddFOp::create(at.builder, loc, state, more))));
    if (isUsedLater())
      WriteOp::create(place.builder, loc, walk.getResult(0), found.state, own);
  }
};
} // namespace

void tegula::writeInChunks(LinearRecurrence &found, int64_t length) {
  ChunkWriter(found, length).run();
}
