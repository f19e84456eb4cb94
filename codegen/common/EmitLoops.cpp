//===- EmitLoops.cpp - Axes and loops as LLVM IR -----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Emitter.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include <utility>

using namespace llvm;
using namespace tegula;
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
  bool stays = std::exchange(keepNextLoopRolled, false);
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

SmallVector<Value *> Emitter::emitIfElse(Value *condition,
                                         function_ref<SmallVector<Value *>()> then,
                                         ArrayRef<Value *> otherwise) {
  BasicBlock *before = b.GetInsertBlock();
  BasicBlock *end = nullptr;
  SmallVector<Value *> values;
  emitIf(condition, [&] {
    values = then();
    end = b.GetInsertBlock();
  });
  for (auto [number, value] : enumerate(values)) {
    PHINode *phi = b.CreatePHI(value->getType(), 2);
    phi->addIncoming(
        otherwise.empty() ? Constant::getNullValue(value->getType()) : otherwise[number], before);
    phi->addIncoming(value, end);
    value = phi;
  }
  return values;
}

Value *Emitter::emitIfElse(Value *condition, function_ref<Value *()> then, Value *otherwise) {
  return emitIfElse(condition, [&] { return SmallVector<Value *>{then()}; }, otherwise).front();
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
    return any_of(getAxisRanges(axes),
                  [&](const tgl::AxisRange &range) { return none(range.lo, range.hi); });
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

/// The loop with what it carries; `place` says what its variables are where LLVM's has this value.
template <typename Loop>
void Emitter::emitCarried(Loop op, Value *low, Value *high, Value *step, const char *name,
                          function_ref<void(Value *iv)> place) {
  SmallVector<Value *> inits;
  for (mlir::Value init : op.getInits())
    inits.push_back(splat(valueOf(init)));
  SmallVector<Value *> results = emitLoop(
      low, high, step, inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        place(iv);
        for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
          values[argument] = value;
        emitBlock(op.getBody().front());
        SmallVector<Value *> next;
        for (mlir::Value value : op.getYield().getValues())
          next.push_back(splat(valueOf(value)));
        return next;
      },
      name);
  for (auto [result, value] : zip_equal(op.getResults(), results))
    values[result] = value;
}

void Emitter::emitFor(tgl::ForOp op) {
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  emitCarried(op, low, high, i64(1), "t", [&](Value *iv) {
    // Downwards: high - 1 - (iv - low).
    values[op.getLoopVar()] =
        op.getReverse() ? b.CreateSub(b.CreateSub(b.CreateAdd(high, low), i64(1)), iv) : iv;
  });
}

void Emitter::emitTiles(tgl::TilesOp op) {
  if (!op.getSize())
    return fail(op, "a tile loop without a size");
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  Value *step = i64(*op.getSize());
  emitCarried(op, low, high, step, "tile", [&](Value *iv) {
    values[op.getTileLow()] = iv;
    values[op.getTileHigh()] =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(iv, step), high);
  });
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

ValueExpr Emitter::lowOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).lo; }
ValueExpr Emitter::highOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).hi; }

Value *Emitter::emitLow(tgl::AxesOp op, unsigned axis) {
  return axisSlice && axisSlice->axis == op.getAxes()[axis] ? axisSlice->low
                                                            : emitIndex(lowOf(op, axis));
}

Value *Emitter::emitHigh(tgl::AxesOp op, unsigned axis) {
  return axisSlice && axisSlice->axis == op.getAxes()[axis] ? axisSlice->high
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
  emitLaneRange(op, choice, emitIndex(lowOf(axes, choice.axis)),
                emitIndex(highOf(axes, choice.axis)));
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
  Value *position = b.CreateAdd(b.CreateVectorSplat(width, base), ConstantVector::get(numbers));
  values[axis] = position;
  if (high) { // lane numbers are half as wide as positions
    Value *left = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateSub(high, base), i64(width));
    left = b.CreateTrunc(left, b.getInt32Ty());
    lanes->mask = b.CreateICmpSLT(ConstantVector::get(narrow), b.CreateVectorSplat(width, left));
  }
  body();
  lanes.reset();
}
