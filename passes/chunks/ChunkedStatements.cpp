//===- ChunkedStatements.cpp - Statements over chunks of a loop's steps ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/chunks/ChunkedStatements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

int64_t tegula::stepsOfBlock(int64_t length, int64_t most) {
  while (length > most && length % 2 == 0)
    length /= 2;
  return length;
}

ChunkedStatements::ChunkedStatements(LinearRecurrence &found, int64_t length)
    : found(found), loop(found.loop), length(length), builder(found.loop), loc(found.loop.getLoc()),
      context(builder.getContext()), count((loop.getHighExpr() - loop.getLowExpr()).expr()),
      chunks(ValueExpr::floorDiv(ValueExpr(count) + ValueExpr(length - 1), length).expr()) {
  std::optional<int64_t> steps = count.asConstant();
  isWhole = steps && *steps % length == 0;
}

//===----------------------------------------------------------------------===//
// Axes and temporaries
//===----------------------------------------------------------------------===//

AxisSpec ChunkedStatements::specOf(Value axis) {
  auto argument = cast<BlockArgument>(axis);
  return getAxisSpec(axesOpOf(axis), argument.getArgNumber());
}

SmallVector<AxisSpec> ChunkedStatements::specsOf(ArrayRef<Value> axes) {
  return llvm::map_to_vector(axes, specOf);
}

SmallVector<Value> ChunkedStatements::axesOfKind(Dim kind) {
  return llvm::map_to_vector(found.dimsOfKind(kind), [&](unsigned dim) { return found.axes[dim]; });
}

SmallVector<Value> ChunkedStatements::axesAmong(ArrayRef<Value> axes, ArrayRef<Value> factors) {
  SmallVector<Value> own;
  for (Value axis : axes)
    if (llvm::any_of(factors, [&](Value factor) {
          return axesOf(factor).contains(cast<BlockArgument>(axis));
        }))
      own.push_back(axis);
  return own;
}

bool ChunkedStatements::isColumnOrSummed(Value axis, ArrayRef<Value> axesByDim) {
  const auto *at = llvm::find(axesByDim, axis);
  return at != axesByDim.end() && found.dims[at - axesByDim.begin()] != Dim::Batch;
}

void ChunkedStatements::alignAxes(Place &place, const LinearReadout &readout) {
  for (auto [of, own] : llvm::zip_equal(found.axes, readout.axes))
    if (Value known = place.map.lookupOrNull(own))
      place.map.map(of, known);
}

SmallVector<Value> ChunkedStatements::axesOfReadout(const LinearReadout &readout) {
  SmallVector<Value> axes;
  for (Value axis : LinearReadout(readout).statement.getAxes())
    axes.push_back(axis);
  for (Value axis : LinearReadout(readout).reduce.getAxes())
    axes.push_back(axis);
  return axes;
}

ValueExpr ChunkedStatements::stepsOf(Value chunk) {
  if (isWhole)
    return length;
  return ValueExpr::min(length, ValueExpr(count) - ValueExpr(chunk) * ValueExpr(length));
}

ValueExpr ChunkedStatements::stepNumber(const Place &place) {
  return ValueExpr(place.chunk) * ValueExpr(length) + place.step;
}

Value ChunkedStatements::makeTemp(ArrayRef<Value> leading, bool hasChunk, ArrayRef<int64_t> steps,
                                  ArrayRef<Value> trailing, Type type, StringRef name,
                                  bool hasEnd) {
  SmallVector<IndexExprAttr> dims;
  auto add = [&](const IndexExpr &extent) { dims.push_back(IndexExprAttr::get(context, extent)); };
  for (Value axis : leading)
    add(highOf(axis).expr());
  if (hasChunk)
    add(hasEnd ? (ValueExpr(chunks) + ValueExpr(1)).expr() : chunks);
  for (int64_t extent : steps)
    add(IndexExpr(extent));
  for (Value axis : trailing)
    add(highOf(axis).expr());
  return TempOp::create(builder, loc, TglTensorType::get(context, dims, type), name);
}

SmallVector<ValueExpr> ChunkedStatements::subscripts(const Place &place, ArrayRef<Value> leading,
                                                     Value chunk, ArrayRef<ValueExpr> steps,
                                                     ArrayRef<Value> trailing) {
  SmallVector<ValueExpr> all;
  auto add = [&](Value axis) { all.push_back(ValueExpr(place.map.lookup(axis))); };
  llvm::for_each(leading, add);
  if (chunk)
    all.push_back(ValueExpr(chunk));
  llvm::append_range(all, steps);
  llvm::for_each(trailing, add);
  return all;
}

Value ChunkedStatements::readAt(Place &place, const ChunkTensor &from, ArrayRef<ValueExpr> steps) {
  return ReadOp::create(place.builder, loc, from.tensor,
                        subscripts(place, from.leading, place.chunk, steps, from.trailing));
}

void ChunkedStatements::writeAt(Place &place, const ChunkTensor &made, Value value) {
  WriteOp::create(place.builder, loc, value, made.tensor,
                  subscripts(place, made.leading, place.chunk, {place.step}, made.trailing));
  eraseUnusedOps(*place.builder.getBlock());
}

void ChunkedStatements::keepTemps() {
  for (TempOp temp : loop.getBody().front().getOps<TempOp>()) {
    SmallVector<IndexExprAttr> dims{
        IndexExprAttr::get(context, (ValueExpr(chunks) * ValueExpr(length)).expr())};
    llvm::append_range(dims, temp.getType().getDims());
    auto type = TglTensorType::get(context, dims, temp.getType().getElementType());
    temps[temp] = TempOp::create(builder, loc, type, temp.getName());
  }
}

//===----------------------------------------------------------------------===//
// Statements and copies of values
//===----------------------------------------------------------------------===//

Place ChunkedStatements::open(ArrayRef<Value> axes, bool hasChunk, ArrayRef<AxisSpec> more,
                              Value *moreAxes) {
  SmallVector<AxisSpec> specs = specsOf(axes);
  if (hasChunk)
    specs.push_back(chunkAxis());
  llvm::append_range(specs, more);
  if (specs.empty())
    specs.push_back({"all", 0, 1});
  auto statement = ParallelOp::create(builder, loc, specs);
  Place place(statement.getBody().front());
  unsigned next = 0;
  for (Value axis : axes)
    place.map.map(axis, Value(statement.getAxes()[next++]));
  if (hasChunk)
    place.chunk = statement.getAxes()[next++];
  for (size_t number = 0; number < more.size(); ++number)
    moreAxes[number] = statement.getAxes()[next++];
  return place;
}

void ChunkedStatements::setStep(Place &place, const ValueExpr &step) {
  place.step = step;
  ValueExpr number = stepNumber(place);
  ValueExpr variable =
      loop.getReverse() ? loop.getHighExpr() - ValueExpr(1) - number : loop.getLowExpr() + number;
  place.map.map(Value(loop.getLoopVar()), materialize(place.builder, loc, variable));
}

Value ChunkedStatements::copy(Place &place, Value value) {
  if (Value known = place.map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op) || isa<TempOp>(op))
    return value;
  copyOp(place, op);
  return place.map.lookup(value);
}

void ChunkedStatements::copyOp(Place &place, Operation *op) {
  for (Value used : valuesUsedBy(op))
    copy(place, used);
  Operation *clone = place.builder.clone(*op, place.map);
  SmallVector<Operation *> accesses;
  clone->walk([&](IndexedOp indexed) {
    foldIndices(indexed);
    accesses.push_back(indexed);
  });
  for (Operation *access : accesses)
    if (Value same = accessAllSteps(place, access); same && access == clone)
      place.map.map(op->getResult(0), same);
}

Value ChunkedStatements::accessAllSteps(const Place &place, Operation *op) {
  OpBuilder before(op);
  auto subscriptsOf = [&](auto access) {
    SmallVector<ValueExpr> all{stepNumber(place)};
    llvm::append_range(all, access.getSubscriptExprs());
    return all;
  };
  if (auto read = dyn_cast<ReadOp>(op); read && temps.contains(read.getTensor())) {
    Value same =
        ReadOp::create(before, loc, temps[read.getTensor()], subscriptsOf(read), read.getFill(),
                       read.getGuard(), read.getExactExprs(), read.getChecked().value_or(""));
    read.replaceAllUsesWith(same);
    read.erase();
    return same;
  }
  if (auto write = dyn_cast<WriteOp>(op); write && temps.contains(write.getTensor())) {
    WriteOp::create(before, loc, write.getValue(), temps[write.getTensor()], subscriptsOf(write),
                    write.getGuard(), write.getCombine(), write.getChecked().value_or(""));
    write.erase();
  }
  return {};
}

Value ChunkedStatements::product(Place &place, ArrayRef<Value> factors, Value more) {
  Value result = more;
  for (Value factor : factors) {
    Value own = copy(place, factor);
    result = result ? arith::MulFOp::create(place.builder, loc, result, own) : own;
  }
  return result ? result : number(place.builder, 1);
}

Value ChunkedStatements::number(OpBuilder &at, double value) {
  return arith::ConstantOp::create(at, loc, at.getF32FloatAttr(float(value)));
}

Value ChunkedStatements::integer(OpBuilder &at, int64_t value) {
  return arith::ConstantOp::create(at, loc, at.getI32IntegerAttr(int32_t(value)));
}

void ChunkedStatements::yield(Operation *op, ValueRange values) {
  Block &body = op->getRegion(0).front();
  if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
    body.back().erase();
  OpBuilder end = OpBuilder::atBlockEnd(&body);
  YieldOp::create(end, op->getLoc(), values);
}

Value ChunkedStatements::sumOver(Place &place, ArrayRef<AxisSpec> specs,
                                 llvm::function_ref<Value(Place &, ReduceOp)> term) {
  auto sum =
      ReduceOp::create(place.builder, loc, place.builder.getF32Type(), ReduceKind::Sum, specs);
  Block &body = sum.getBody().front();
  body.clear();
  Place inside = place.inside(body);
  Value value = term(inside, sum);
  sum.getResult().setType(value.getType());
  yield(sum, value);
  return sum;
}

void ChunkedStatements::inLoop(StringRef name, const ValueExpr &high,
                               llvm::function_ref<void(Value)> write) {
  auto walk = ForOp::create(builder, loc, ArrayRef<StringRef>{name}, 0, high, ValueRange());
  walk.getBody().front().clear();
  OpBuilder outside = builder;
  builder = OpBuilder::atBlockEnd(&walk.getBody().front());
  write(walk.getLoopVar());
  builder = outside;
  yield(walk, {});
}

void ChunkedStatements::writeAllSteps(ParallelOp statement,
                                      llvm::function_ref<Value(Place &, Operation *)> valueOf) {
  auto axes = cast<AxesOp>(statement.getOperation());
  auto made = ParallelOp::create(builder, loc, {chunkAxis(), stepAxis()});
  auto madeAxes = cast<AxesOp>(made.getOperation());
  Place place(made.getBody().front());
  place.chunk = made.getAxes()[0];
  if (!isWhole)
    setAxisRange(madeAxes, 1, 0, stepsOf(place.chunk));
  for (auto [number, axis] : llvm::enumerate(statement.getAxes())) {
    AxisSpec spec = getAxisSpec(axes, number);
    auto inMap = [&](Value value) -> std::optional<ValueExpr> {
      Value known = place.map.lookupOrNull(value);
      return known ? std::optional(ValueExpr(known)) : std::nullopt;
    };
    spec.lo = spec.lo.substitute(inMap);
    spec.hi = spec.hi.substitute(inMap);
    place.map.map(Value(axis), Value(insertAxis(madeAxes, 2 + number, spec)));
  }
  setStep(place, made.getAxes()[1]);
  for (Operation &op : statement.getBody().front()) {
    if (Value value = valueOf ? valueOf(place, &op) : Value())
      place.map.map(op.getResult(0), value);
    else if (op.getNumResults() == 0 || !place.map.contains(op.getResult(0)))
      copyOp(place, &op);
  }
  eraseUnusedOps(made.getBody().front());
}

bool ChunkedStatements::variesByStep(Value value) {
  if (axesOf(value).contains(loop.getLoopVar()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return false;
  return llvm::any_of(accessesOf(op).reads, [&](Value tensor) { return temps.contains(tensor); }) ||
         llvm::any_of(valuesUsedBy(op), [&](Value used) {
           return !isa<TglTensorType>(used.getType()) && variesByStep(used);
         });
}
