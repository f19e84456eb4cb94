//===- EmitLoops.cpp - Axes, loops and reductions as LLVM IR ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/Emitter.h"

#include "ir/TglUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include <utility>

using namespace llvm;
using namespace tegula;
using tgl::ReduceKind;
using tgl::ValueExpr;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

SmallVector<Value *>
Emitter::emitLoop(Value *low, Value *high, Value *step, ArrayRef<Value *> inits,
                  function_ref<SmallVector<Value *>(Value *, ArrayRef<Value *>)> body,
                  const Twine &name) {
  Function *function = b.GetInsertBlock()->getParent();
  LLVMContext &context = module.getContext();
  bool stays = std::exchange(nextLoopStays, false);
  if (!stays && isa<Constant>(low) && isa<Constant>(high))
    function->addFnAttr(hasConstantLoop);
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *loop = BasicBlock::Create(context, name + ".loop", function);
  BasicBlock *after = BasicBlock::Create(context, name + ".end", function);
  b.CreateCondBr(b.CreateICmpSLT(low, high), loop, after);

  b.SetInsertPoint(loop);
  PHINode *iv = b.CreatePHI(b.getInt64Ty(), 2, name);
  iv->addIncoming(low, before);
  SmallVector<PHINode *> carried;
  SmallVector<Value *> current;
  for (Value *init : inits) {
    PHINode *phi = b.CreatePHI(init->getType(), 2);
    phi->addIncoming(init, before);
    carried.push_back(phi);
    current.push_back(phi);
  }
  SmallVector<Value *> next = body(iv, current);
  Value *nextIv = b.CreateNSWAdd(iv, step);
  BasicBlock *latch = b.GetInsertBlock();
  iv->addIncoming(nextIv, latch);
  for (auto [phi, value] : zip_equal(carried, next))
    phi->addIncoming(value, latch);
  Instruction *back = b.CreateCondBr(b.CreateICmpSLT(nextIv, high), loop, after);
  if (stays) {
    MDNode *disable = MDNode::get(context, MDString::get(context, "llvm.loop.unroll.disable"));
    MDNode *properties = MDNode::getDistinct(context, {nullptr, disable});
    properties->replaceOperandWith(0, properties);
    back->setMetadata(LLVMContext::MD_loop, properties);
  }

  b.SetInsertPoint(after);
  SmallVector<Value *> results;
  for (auto [init, value] : zip_equal(inits, next)) {
    PHINode *phi = b.CreatePHI(init->getType(), 2);
    phi->addIncoming(init, before);
    phi->addIncoming(value, latch);
    results.push_back(phi);
  }
  return results;
}

void Emitter::emitIf(Value *condition, function_ref<void()> then) {
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *yes = BasicBlock::Create(module.getContext(), "then", function);
  BasicBlock *after = BasicBlock::Create(module.getContext(), "endif", function);
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

Value *Emitter::emitIfElse(Value *condition, function_ref<Value *()> then, Value *otherwise) {
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *end = nullptr;
  Value *value = nullptr;
  emitIf(condition, [&] {
    value = then();
    end = b.GetInsertBlock();
  });
  PHINode *phi = b.CreatePHI(value->getType(), 2);
  phi->addIncoming(otherwise, before);
  phi->addIncoming(value, end);
  return phi;
}

void Emitter::emitBlock(mlir::Block &block) {
  for (mlir::Operation &op : block) {
    if (isa<tgl::YieldOp>(op))
      continue;
    emitOp(&op);
    if (failed())
      return;
  }
}

bool Emitter::isEmpty(mlir::Operation *op) {
  auto none = [](const ValueExpr &low, const ValueExpr &high) {
    std::optional<int64_t> extent = (high - low).asConstant();
    return extent && *extent <= 0;
  };
  if (auto loop = dyn_cast<tgl::ForOp>(op))
    return none(loop.getLowExpr(), loop.getHighExpr());
  if (auto tiles = dyn_cast<tgl::TilesOp>(op))
    return none(tiles.getLowExpr(), tiles.getHighExpr());
  if (auto axes = dyn_cast<tgl::AxesOp>(op))
    return any_of(getAxisRanges(axes), [&](const tgl::AxisRange &range) { return none(range.lo, range.hi); });
  return false;
}

/// What never runs is not emitted: a size of 0 that is known takes axes out of subscripts.
bool Emitter::skipEmpty(mlir::Operation *op) {
  if (!isEmpty(op))
    return false;
  if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
    values[reduce.getResult()] = resultOf(reduce, initialAccumulator(reduce));
  else if (auto loop = dyn_cast<tgl::ForOp>(op))
    for (auto [result, init] : zip_equal(loop.getResults(), loop.getInits()))
      values[result] = valueOf(init);
  else if (auto tiles = dyn_cast<tgl::TilesOp>(op))
    for (auto [result, init] : zip_equal(tiles.getResults(), tiles.getInits()))
      values[result] = valueOf(init);
  return true;
}

void Emitter::emitOp(mlir::Operation *op) {
  if (skipEmpty(op))
    return;
  TypeSwitch<mlir::Operation *>(op)
      .Case<tgl::ReadOp>([&](tgl::ReadOp read) { emitRead(read); })
      .Case<tgl::WriteOp>([&](tgl::WriteOp write) { emitWrite(write); })
      .Case<tgl::ParallelOp>([&](tgl::ParallelOp parallel) { emitParallel(parallel); })
      .Case<tgl::ReduceOp>([&](tgl::ReduceOp reduce) { emitReduce(reduce); })
      .Case<tgl::ForOp>([&](tgl::ForOp loop) { emitFor(loop); })
      .Case<tgl::TilesOp>([&](tgl::TilesOp tiles) { emitTiles(tiles); })
      .Case<tgl::SortOp>([&](tgl::SortOp sort) { emitSort(sort); })
      .Case<tgl::TempOp>([&](tgl::TempOp temp) { emitTemp(temp); })
      .Default([&](mlir::Operation *other) { emitArith(other); });
}

void Emitter::emitFor(tgl::ForOp op) {
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  SmallVector<Value *> inits;
  for (mlir::Value init : op.getInits())
    inits.push_back(splat(valueOf(init)));
  SmallVector<Value *> results = emitLoop(
      low, high, i64(1), inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        // Downwards: high - 1 - (iv - low).
        Value *position =
            op.getReverse() ? b.CreateSub(b.CreateSub(b.CreateAdd(high, low), i64(1)), iv) : iv;
        values[op.getLoopVar()] = position;
        for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
          values[argument] = value;
        emitBlock(op.getBody().front());
        SmallVector<Value *> next;
        for (mlir::Value value : op.getYield().getValues())
          next.push_back(splat(valueOf(value)));
        return next;
      },
      "t");
  for (auto [result, value] : zip_equal(op.getResults(), results))
    values[result] = value;
}

void Emitter::emitTiles(tgl::TilesOp op) {
  if (!op.getSize())
    return fail(op, "a tile loop without a size");
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  Value *step = i64(*op.getSize());
  SmallVector<Value *> inits;
  for (mlir::Value init : op.getInits())
    inits.push_back(splat(valueOf(init)));
  SmallVector<Value *> results = emitLoop(
      low, high, step, inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        values[op.getTileLow()] = iv;
        values[op.getTileHigh()] =
            b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(iv, step), high);
        for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
          values[argument] = value;
        emitBlock(op.getBody().front());
        SmallVector<Value *> next;
        for (mlir::Value value : op.getYield().getValues())
          next.push_back(splat(valueOf(value)));
        return next;
      },
      "tile");
  for (auto [result, value] : zip_equal(op.getResults(), results))
    values[result] = value;
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

ValueExpr Emitter::lowOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).lo; }
ValueExpr Emitter::highOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).hi; }

Value *Emitter::emitLow(tgl::AxesOp op, unsigned axis) {
  return axisPart && axisPart->axis == op.getAxes()[axis] ? axisPart->low
                                                          : emitIndex(lowOf(op, axis));
}

Value *Emitter::emitHigh(tgl::AxesOp op, unsigned axis) {
  return axisPart && axisPart->axis == op.getAxes()[axis] ? axisPart->high
                                                          : emitIndex(highOf(op, axis));
}

void Emitter::emitNest(tgl::AxesOp op, ArrayRef<unsigned> axes, function_ref<void()> body) {
  if (axes.empty())
    return body();
  unsigned axis = axes.front();
  emitLoop(emitIndex(lowOf(op, axis)), emitIndex(highOf(op, axis)), i64(1), {},
           [&](Value *iv, ArrayRef<Value *>) {
             values[op.getAxes()[axis]] = iv;
             emitNest(op, axes.drop_front(), body);
             return SmallVector<Value *>();
           });
}

void Emitter::emitParallel(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, op.getAxes().size()));
  beginPoints();
  if (std::optional<LaneChoice> choice = chooseLanes(axes)) {
    llvm::erase(order, choice->axis);
    emitNest(axes, order, [&] { emitLaneParallel(op, *choice); });
  } else {
    emitNest(axes, order, [&] {
      beginPoint();
      emitBlock(op.getBody().front());
    });
  }
  endPoints();
  afterParallel();
}

void Emitter::emitLaneParallel(tgl::ParallelOp op, const LaneChoice &choice) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  emitLaneRange(op, choice, emitIndex(lowOf(axes, choice.axis)), emitIndex(highOf(axes, choice.axis)));
}

void Emitter::emitLaneRange(tgl::ParallelOp op, const LaneChoice &choice, Value *low, Value *high) {
  mlir::Value axis = op.getAxes()[choice.axis];
  // Vectors side by side, then single ones, the last of which may have lanes that do not exist.
  unsigned width = choice.width * choice.vectors;
  Value *full = emitFullEnd(low, high, width);
  emitLoop(low, full, i64(width), {}, [&](Value *iv, ArrayRef<Value *>) {
    withLanes(axis, width, iv, nullptr, [&] { emitBlock(op.getBody().front()); });
    return SmallVector<Value *>();
  });
  emitLoop(full, high, i64(choice.width), {}, [&](Value *iv, ArrayRef<Value *>) {
    withLanes(axis, choice.width, iv, high, [&] { emitBlock(op.getBody().front()); });
    return SmallVector<Value *>();
  });
}

/// low plus the largest multiple of `step` in high - low (low where the range is empty).
Value *Emitter::emitFullEnd(Value *low, Value *high, unsigned step) {
  assert(isPowerOf2_32(step) && "vector widths and unroll factors are powers of two");
  Value *extent = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), i64(0));
  return b.CreateAdd(low, b.CreateAnd(extent, i64(-int64_t(step))));
}

void Emitter::withLanes(mlir::Value axis, unsigned width, Value *base, Value *high,
                        function_ref<void()> body) {
  assert(!lanes && "one axis is vectorised at a time");
  Value *last = b.CreateAdd(base, i64(width - 1));
  if (high)
    last = b.CreateBinaryIntrinsic(Intrinsic::smin, last, b.CreateSub(high, i64(1)));
  lanes = Lanes{axis, width, base, last, nullptr};
  SmallVector<Constant *> numbers, narrow;
  for (unsigned lane = 0; lane < width; ++lane) {
    numbers.push_back(b.getInt64(lane));
    narrow.push_back(b.getInt32(lane));
  }
  Value *position =
      b.CreateAdd(b.CreateVectorSplat(width, base), ConstantVector::get(numbers));
  values[axis] = position;
  if (high) { // lane numbers are half as wide as positions
    Value *left = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateSub(high, base), i64(width));
    left = b.CreateTrunc(left, b.getInt32Ty());
    lanes->mask = b.CreateICmpSLT(ConstantVector::get(narrow), b.CreateVectorSplat(width, left));
  }
  body();
  lanes.reset();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static bool isArg(ReduceKind kind) { return kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin; }

/// Type that is accumulated: of what the region yields.
static mlir::Type reducedType(tgl::ReduceOp op) {
  return op.getKind() == ReduceKind::Count ? op.getType() : op.getReduced().getType();
}

Emitter::Accumulator Emitter::initialAccumulator(tgl::ReduceOp op) {
  Type *type = typeOf(reducedType(op));
  auto number = [&](double real, int64_t integer) -> Constant * {
    return type->isFloatingPointTy() ? ConstantFP::get(type, real)
                                     : cast<Constant>(ConstantInt::getSigned(type, integer));
  };
  auto extreme = [&](bool lowest) -> Constant * {
    if (type->isFloatingPointTy())
      return ConstantFP::getInfinity(type, lowest);
    unsigned width = type->getIntegerBitWidth();
    return ConstantInt::get(type, lowest ? APInt::getSignedMinValue(width)
                                         : APInt::getSignedMaxValue(width));
  };
  switch (op.getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    // -0.0 is the identity of addition, but over nothing a sum is +0.
    return {number(0, 0)};
  case ReduceKind::Prod:
    return {number(1, 1)};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.getFalse()};
  case ReduceKind::All:
    return {b.getTrue()};
  case ReduceKind::ArgMax:
    return {extreme(true), i64(-1)};
  case ReduceKind::ArgMin:
    return {extreme(false), i64(-1)};
  case ReduceKind::Var:
    return {number(0, 0), number(0, 0), number(0, 0), number(0, 0)};
  default:
    fail(op, "this reduction is expanded before code generation");
    return {number(0, 0)};
  }
}

Emitter::Accumulator Emitter::combine(tgl::ReduceOp op, const Accumulator &lhs,
                                      const Accumulator &rhs) {
  bool isFloat = lhs[0]->getType()->isFPOrFPVectorTy();
  auto extreme = [&](bool largest) {
    if (isFloat)
      return emitExtreme(largest ? Intrinsic::maximum : Intrinsic::minimum, lhs[0], rhs[0]);
    return b.CreateBinaryIntrinsic(largest ? Intrinsic::smax : Intrinsic::smin, lhs[0], rhs[0]);
  };
  switch (op.getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    return {isFloat ? b.CreateFAdd(lhs[0], rhs[0]) : b.CreateAdd(lhs[0], rhs[0])};
  case ReduceKind::Prod:
    return {isFloat ? b.CreateFMul(lhs[0], rhs[0]) : b.CreateMul(lhs[0], rhs[0])};
  case ReduceKind::Max:
    return {extreme(true)};
  case ReduceKind::Min:
    return {extreme(false)};
  case ReduceKind::Any:
    return {b.CreateOr(lhs[0], rhs[0])};
  case ReduceKind::All:
    return {b.CreateAnd(lhs[0], rhs[0])};
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: {
    // rhs wins if it is there and lhs is not, if it is better (nan is best), or as good and earlier.
    bool largest = op.getKind() == ReduceKind::ArgMax;
    Value *better, *equal;
    if (isFloat) {
      Value *lhsNan = b.CreateFCmpUNO(lhs[0], lhs[0]), *rhsNan = b.CreateFCmpUNO(rhs[0], rhs[0]);
      Value *beats = largest ? b.CreateFCmpOGT(rhs[0], lhs[0]) : b.CreateFCmpOLT(rhs[0], lhs[0]);
      better = b.CreateOr(beats, b.CreateAnd(rhsNan, b.CreateNot(lhsNan)));
      equal = b.CreateOr(b.CreateFCmpOEQ(lhs[0], rhs[0]), b.CreateAnd(lhsNan, rhsNan));
    } else {
      better = largest ? b.CreateICmpSGT(rhs[0], lhs[0]) : b.CreateICmpSLT(rhs[0], lhs[0]);
      equal = b.CreateICmpEQ(lhs[0], rhs[0]);
    }
    Value *none = Constant::getAllOnesValue(lhs[1]->getType());
    Value *present = b.CreateICmpNE(rhs[1], none);
    Value *first = b.CreateICmpEQ(lhs[1], none);
    Value *earlier = b.CreateAnd(equal, b.CreateICmpSLT(rhs[1], lhs[1]));
    Value *take = b.CreateAnd(present, b.CreateOr(first, b.CreateOr(better, earlier)));
    return {b.CreateSelect(take, rhs[0], lhs[0]), b.CreateSelect(take, rhs[1], lhs[1])};
  }
  case ReduceKind::Var:
    return combineVariances(lhs, rhs);
  default:
    return lhs;
  }
}

Emitter::Accumulator Emitter::emitReducePoint(tgl::ReduceOp op, Accumulator accumulator) {
  emitBlock(op.getBody().front());
  if (failed())
    return accumulator;
  Value *value = valueOf(op.getReduced());
  if (op.getKind() == ReduceKind::Count) {
    Type *type = typeOf(op.getType());
    value = b.CreateZExt(value, isVector(value) ? VectorType::get(type, lanes->width, false) : type);
  }
  Accumulator point = {value};
  if (isArg(op.getKind()))
    point.push_back(valueOf(op.getAxes()[0]));
  if (op.getKind() == ReduceKind::Var) // one term, which is its own mean
    point = {ConstantFP::get(typeOf(op.getType()), 1), value, Constant::getNullValue(value->getType()),
             Constant::getNullValue(value->getType())};
  // Points that the filter leaves out, and lanes of this reduction's own axis that do not exist, do
  // not count. (Lanes of an axis outside compute something that nobody stores.)
  Value *counts = op.getFilter() ? valueOf(op.getFilter()) : nullptr;
  if (lanes && lanes->mask && is_contained(op.getAxes(), lanes->axis))
    counts = emitAnd(counts, lanes->mask);
  if (counts) {
    Accumulator identity = initialAccumulator(op);
    for (auto [element, neutral] : zip_equal(point, identity)) {
      Value *operands[] = {counts, element, neutral};
      align(operands);
      element = b.CreateSelect(operands[0], operands[1], operands[2]);
    }
  }
  for (auto [element, sum] : zip_equal(point, accumulator)) {
    Value *operands[] = {element, sum};
    align(operands);
    element = operands[0];
    sum = operands[1];
  }
  return combine(op, accumulator, point);
}

Emitter::Accumulator Emitter::emitSerialReduce(tgl::ReduceOp op, ArrayRef<unsigned> order,
                                               Accumulator accumulator,
                                               function_ref<Accumulator(Accumulator)> innermost) {
  if (order.empty())
    return innermost(accumulator);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Value *low = emitLow(axes, order.front()), *high = emitHigh(axes, order.front());
  // Sums that are known to be long are added up in parts, so that their error does not grow with their length:
  // what is inside of an axis, and stretches of the innermost one.
  constexpr int64_t longSum = 32, stretch = 256;
  bool isSum = (op.getKind() == ReduceKind::Sum && accumulator[0]->getType()->isFPOrFPVectorTy()) ||
               op.getKind() == ReduceKind::Var;
  ArrayRef<unsigned> rest = order.drop_front();
  auto isLong = [&](ArrayRef<unsigned> part, int64_t length) {
    std::optional<int64_t> points = isSum && !part.empty() ? tgl::knownPoints(axes, part) : std::nullopt;
    return points && *points >= length;
  };
  auto zeros = [&] {
    Accumulator result;
    for (Value *element : accumulator)
      result.push_back(Constant::getNullValue(element->getType()));
    return result;
  };
  bool apart = isLong(rest, longSum);
  auto loop = [&](Value *from, Value *to, ArrayRef<Value *> start) {
    SmallVector<Value *> results = emitLoop(from, to, i64(1), start, [&](Value *iv, ArrayRef<Value *> carried) {
      values[op.getAxes()[order.front()]] = iv;
      Accumulator before(carried.begin(), carried.end());
      if (!apart)
        return SmallVector<Value *>(emitSerialReduce(op, rest, std::move(before), innermost));
      return SmallVector<Value *>(combine(op, before, emitSerialReduce(op, rest, zeros(), innermost)));
    });
    return Accumulator(results.begin(), results.end());
  };
  if (!rest.empty() || !isLong(order, 2 * stretch))
    return loop(low, high, accumulator);
  SmallVector<Value *> results =
      emitLoop(low, high, i64(stretch), accumulator, [&](Value *begin, ArrayRef<Value *> carried) {
        Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(begin, i64(stretch)), high);
        return SmallVector<Value *>(
            combine(op, Accumulator(carried.begin(), carried.end()), loop(begin, end, zeros())));
      });
  return Accumulator(results.begin(), results.end());
}

void Emitter::emitReduce(tgl::ReduceOp op) {
  SmallVector<mlir::Operation *> free;
  Value *interior = insideReads.empty() ? emitInterior(op, free) : nullptr;
  if (!interior) {
    values[op.getResult()] = resultOf(op, emitReduceNest(op));
    return;
  }
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *inside = BasicBlock::Create(module.getContext(), "inside", function);
  BasicBlock *border = BasicBlock::Create(module.getContext(), "border", function);
  BasicBlock *after = BasicBlock::Create(module.getContext(), "endwindow", function);
  b.CreateCondBr(interior, inside, border);
  b.SetInsertPoint(inside);
  insideReads.insert_range(free);
  Value *unchecked = resultOf(op, emitReduceNest(op));
  insideReads.clear();
  BasicBlock *insideEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(border);
  Value *checked = resultOf(op, emitReduceNest(op));
  BasicBlock *borderEnd = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after);
  PHINode *result = b.CreatePHI(checked->getType(), 2);
  result->addIncoming(unchecked, insideEnd);
  result->addIncoming(checked, borderEnd);
  values[op.getResult()] = result;
}

Emitter::Accumulator Emitter::emitReduceNest(tgl::ReduceOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  Accumulator accumulator = initialAccumulator(op);
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, op.getAxes().size()));
  std::optional<LaneChoice> choice;
  if (!lanes)
    choice = chooseLanes(axes);
  if (choice) {
    llvm::erase(order, choice->axis);
    accumulator = splatAccumulator(op, std::move(accumulator), choice->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitLaneReduce(op, *choice, std::move(inner));
    });
    accumulator = combineLanes(op, accumulator, choice->width);
  } else {
    // Inside lanes of an outer axis the accumulator is a vector if the body's value is.
    if (lanes)
      accumulator = splatAccumulator(op, std::move(accumulator), lanes->width);
    accumulator = emitSerialReduce(op, order, accumulator, [&](Accumulator inner) {
      return emitReducePoint(op, std::move(inner));
    });
  }
  return accumulator;
}

/// Vectors are halved until one lane is left: a fixed, pairwise order.
Emitter::Accumulator Emitter::combineLanes(tgl::ReduceOp op, Accumulator accumulator, unsigned width) {
  for (unsigned half = width / 2; half; half /= 2) {
    SmallVector<int> lower, upper;
    for (unsigned lane = 0; lane < half; ++lane) {
      lower.push_back(lane);
      upper.push_back(lane + half);
    }
    Accumulator left, right;
    for (Value *element : accumulator) {
      left.push_back(isVector(element) ? b.CreateShuffleVector(element, lower) : element);
      right.push_back(isVector(element) ? b.CreateShuffleVector(element, upper) : element);
    }
    accumulator = combine(op, left, right);
  }
  for (Value *&element : accumulator)
    if (isVector(element))
      element = b.CreateExtractElement(element, uint64_t(0));
  return accumulator;
}

/// One axis in vectors: `unroll` independent accumulators, in blocks whose sums are added up on their own,
/// so that the error of a long sum grows with its square root of a square root and not with its length.
Emitter::Accumulator Emitter::emitLaneReduce(tgl::ReduceOp op, const LaneChoice &choice,
                                             Accumulator outer) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[choice.axis];
  unsigned width = choice.width, unroll = choice.unroll, step = width * unroll;
  constexpr int64_t blockSteps = 64;
  Value *low = emitLow(axes, choice.axis), *high = emitHigh(axes, choice.axis);
  Value *full = emitFullEnd(low, high, step);

  Accumulator identity = splatAccumulator(op, initialAccumulator(op), width);
  unsigned parts = identity.size();

  Value *block = i64(int64_t(step) * blockSteps);
  SmallVector<Value *> blocks = emitLoop(low, full, block, outer, [&](Value *begin, ArrayRef<Value *> sum) {
    Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(begin, block), full);
    SmallVector<Value *> inits;
    for (unsigned i = 0; i < unroll; ++i)
      inits.append(identity.begin(), identity.end());
    SmallVector<Value *> partial =
        emitLoop(begin, end, i64(step), inits, [&](Value *iv, ArrayRef<Value *> carried) {
          SmallVector<Value *> next;
          for (unsigned i = 0; i < unroll; ++i) {
            withLanes(axis, width, b.CreateAdd(iv, i64(i * width)), nullptr, [&] {
              Accumulator one(carried.begin() + i * parts, carried.begin() + (i + 1) * parts);
              next.append(emitReducePoint(op, std::move(one)));
            });
          }
          return next;
        });
    SmallVector<Accumulator> list;
    for (unsigned i = 0; i < unroll; ++i)
      list.emplace_back(partial.begin() + i * parts, partial.begin() + (i + 1) * parts);
    for (unsigned half = unroll / 2; half; half /= 2)
      for (unsigned i = 0; i < half; ++i)
        list[i] = combine(op, list[i], list[i + half]);
    Accumulator total(sum.begin(), sum.end());
    return SmallVector<Value *>(combine(op, total, list[0]));
  });
  // What is left, in single vectors of which the last may have missing lanes.
  SmallVector<Value *> rest =
      emitLoop(full, high, i64(width), blocks, [&](Value *iv, ArrayRef<Value *> carried) {
        SmallVector<Value *> next;
        withLanes(axis, width, iv, high, [&] {
          next = SmallVector<Value *>(
              emitReducePoint(op, Accumulator(carried.begin(), carried.end())));
        });
        return next;
      });
  return Accumulator(rest.begin(), rest.end());
}
