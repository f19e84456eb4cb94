//===- EmitControl.cpp - Loops, conditions and lanes as LLVM IR -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/ScalarEmitter.h"

#include <utility>

using namespace llvm;
using namespace tegula;

SmallVector<Value *>
ScalarEmitter::emitLoop(Value *low, Value *high, Value *step, ArrayRef<Value *> inits,
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
  ++conditions;
  SmallVector<Value *> next = body(iv, current);
  --conditions;
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

void ScalarEmitter::emitIf(Value *condition, function_ref<void()> then) {
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *yes = BasicBlock::Create(module.getContext(), "then", function);
  BasicBlock *after = BasicBlock::Create(module.getContext(), "endif", function);
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  ++conditions;
  then();
  --conditions;
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

SmallVector<Value *> ScalarEmitter::emitIfElse(Value *condition,
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

Value *ScalarEmitter::emitIfElse(Value *condition, function_ref<Value *()> then, Value *otherwise) {
  return emitIfElse(condition, [&] { return SmallVector<Value *>{then()}; }, otherwise).front();
}

void ScalarEmitter::forEachLane(Value *mask, ArrayRef<Value *> operands,
                                function_ref<void(ArrayRef<Value *>)> body) {
  bool varies = (mask && isVector(mask)) || any_of(operands, [&](Value *v) { return isVector(v); });
  if (!varies) {
    if (mask)
      emitIf(mask, [&] { body(operands); });
    else
      body(operands);
    return;
  }
  auto each = [&](Value *lane) {
    SmallVector<Value *> scalars;
    for (Value *operand : operands)
      scalars.push_back(isVector(operand) ? b.CreateExtractElement(operand, lane) : operand);
    if (mask) {
      Value *one = isVector(mask) ? b.CreateExtractElement(mask, lane) : mask;
      emitIf(one, [&] { body(scalars); });
    } else {
      body(scalars);
    }
  };
  if (options.wholeVectors) { // a device's registers have no addresses
    for (unsigned lane = 0; lane < lanes->width; ++lane)
      each(i64(lane));
    return;
  }
  emitLoop(i64(0), i64(lanes->width), i64(1), {}, [&](Value *lane, ArrayRef<Value *>) {
    each(lane);
    return SmallVector<Value *>();
  });
}

void ScalarEmitter::withLanes(mlir::Value axis, unsigned width, Value *base, Value *high,
                              function_ref<void()> body, unsigned apart) {
  assert(!lanes && "one axis is vectorised at a time");
  Value *last = b.CreateAdd(base, i64((width - 1) * apart));
  if (high)
    last = b.CreateBinaryIntrinsic(Intrinsic::smin, last, b.CreateSub(high, i64(1)));
  lanes = Lanes{axis, width, base, last, nullptr};
  lanes->apart = apart;
  SmallVector<Constant *> numbers, narrow;
  for (unsigned lane = 0; lane < width; ++lane) {
    numbers.push_back(b.getInt64(lane * apart));
    narrow.push_back(b.getInt32(lane * apart));
  }
  Value *position = b.CreateAdd(b.CreateVectorSplat(width, base), ConstantVector::get(numbers));
  values[axis] = position;
  if (high) { // lane numbers are half as wide as positions
    Value *left =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateSub(high, base), i64(width * apart));
    left = b.CreateTrunc(left, b.getInt32Ty());
    lanes->mask = b.CreateICmpSLT(ConstantVector::get(narrow), b.CreateVectorSplat(width, left));
  }
  body();
  lanes.reset();
}
