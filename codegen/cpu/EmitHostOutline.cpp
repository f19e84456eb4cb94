//===- EmitHostOutline.cpp - Outlined functions of statements, and their memory ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/SetVector.h"
#include <cstddef>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

HostEmitter::Captured HostEmitter::capturesOf(mlir::Operation *op) {
  SetVector<mlir::Value> tensors, scalars;
  mlir::Region &body = op->getRegion(0);
  auto visit = [&](mlir::Value value) {
    mlir::Region *home = value.getParentRegion();
    if (body.isAncestor(home))
      return;
    (isa<tgl::TglTensorType>(value.getType()) ? tensors : scalars).insert(value);
  };
  for (mlir::Value operand : op->getOperands())
    visit(operand);
  body.walk([&](mlir::Operation *inner) {
    for (mlir::Value operand : inner->getOperands())
      visit(operand);
  });
  return {SmallVector<mlir::Value>(tensors.begin(), tensors.end()),
          SmallVector<mlir::Value>(scalars.begin(), scalars.end())};
}

void HostEmitter::outline(mlir::Operation *op, Value *count, Value *cost, ArrayRef<Value *> extra,
                          OutlinedBody inside) {
  Captured captured = capturesOf(op);
  SmallVector<Value *> slots;
  for (mlir::Value tensor : captured.tensors)
    slots.push_back(buffers[tensor].pointer);
  for (mlir::Value tensor : captured.tensors)
    if (Value *shadow = buffers[tensor].shadow)
      slots.push_back(shadow);
  for (mlir::Value scalar : captured.scalars)
    slots.push_back(valueOf(scalar));
  SmallVector<StringRef> symbols;
  for (auto &size : sizes)
    symbols.push_back(size.first());
  llvm::sort(symbols);
  for (StringRef symbol : symbols)
    slots.push_back(sizes[symbol]);
  slots.append(extra.begin(), extra.end());
  SmallVector<Type *> types;
  for (Value *slot : slots)
    types.push_back(slot->getType());
  StructType *frameType = StructType::get(module.getContext(), types);
  Value *frame;
  {
    IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry, entry->getFirstInsertionPt());
    frame = b.CreateAlloca(frameType);
  }
  for (auto [index, slot] : enumerate(slots))
    b.CreateStore(slot, b.CreateStructGEP(frameType, frame, index));

  Type *pointer = b.getPtrTy();
  auto *bodyType =
      FunctionType::get(b.getVoidTy(), {b.getInt64Ty(), b.getInt64Ty(), pointer, pointer}, false);
  Function *body = Function::Create(bodyType, Function::InternalLinkage,
                                    function->getName() + "." + Twine(numOutlined++), module);
  emitBody(body, captured, symbols, extra.size(), frameType, inside);
  if (shadow.clock) { // in order, on this thread
    b.CreateCall(body, {i64(0), count, frame, hostRun});
    return;
  }

  Value *callee =
      b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun,
                                                         offsetof(HostRun, parallelFor)));
  auto *calleeType = FunctionType::get(
      b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty(), b.getInt64Ty()}, false);
  b.CreateCall(calleeType, callee, {hostRun, body, frame, count, cost});
}

void HostEmitter::emitBody(Function *body, const Captured &captured, ArrayRef<StringRef> symbols,
                           size_t numExtra, StructType *frameType, OutlinedBody inside) {
  IRBuilder<>::InsertPointGuard guard(b);
  auto savedValues = values;
  auto savedBuffers = buffers;
  StringMap<Value *> savedSizes = sizes;
  Function *savedFunction = std::exchange(function, body);
  BasicBlock *savedEntry = entry;
  Value *savedRun = hostRun, *savedErrors = checks.record, *savedClock = shadow.clock;
  SmallVector<CheckedShadow::Level> savedLevels = std::exchange(shadow.levels, {});
  nested = true;

  begin(body);
  hostRun = body->getArg(3);
  checks.record = hostRun;
  if (shadow.clock)
    shadow.clock = clockOf(hostRun);
  unsigned slot = 0;
  auto load = [&](const Twine &name) {
    Value *address = b.CreateStructGEP(frameType, body->getArg(2), slot);
    return b.CreateLoad(frameType->getElementType(slot++), address, name);
  };
  SmallVector<Buffer *> scoped;
  for (mlir::Value tensor : captured.tensors)
    buffers[tensor].pointer = load("");
  for (mlir::Value tensor : captured.tensors)
    if (buffers[tensor].shadow)
      buffers[tensor].shadow = load("");
  for (mlir::Value scalar : captured.scalars)
    values[scalar] = load("");
  for (StringRef symbol : symbols)
    sizes[symbol] = load(symbol);
  SmallVector<Value *> passed;
  for (size_t k = 0; k < numExtra; ++k)
    passed.push_back(load(""));
  for (mlir::Value tensor : captured.tensors)
    scoped.push_back(&buffers[tensor]);
  addAliasScopes(scoped);
  inside(body->getArg(0), body->getArg(1), passed);
  b.CreateRetVoid();

  values = std::move(savedValues);
  buffers = std::move(savedBuffers);
  sizes = std::move(savedSizes);
  function = savedFunction;
  entry = savedEntry;
  hostRun = savedRun;
  checks.record = savedErrors;
  shadow.clock = savedClock;
  shadow.levels = std::move(savedLevels);
  nested = false;
}

void HostEmitter::allocateScratch(tgl::ParallelOp op) {
  Value *total = nullptr;
  struct Share {
    Value *&address, *offset;
  };
  SmallVector<Share> shares;
  auto add = [&](tgl::TglTensorType type, Value *&address) {
    Value *bytes = emitBytes(type);
    auto *constant = dyn_cast<ConstantInt>(bytes);
    if (constant && constant->getSExtValue() <= stackBytes)
      return;
    shares.push_back({address, total ? total : i64(0)});
    total = total ? b.CreateAdd(total, bytes) : bytes;
  };
  op.walk([&](tgl::TempOp temp) { // references stay: the maps have all keys before
    scratchAddress[temp] = scratchShadow[temp] = nullptr;
  });
  op.walk([&](tgl::TempOp temp) {
    add(temp.getTensor().getType(), scratchAddress[temp]);
    if (shadow.clock)
      add(shadowOf(temp.getTensor().getType()), scratchShadow[temp]);
  });
  if (!total)
    return;
  Value *space = emitMemory(offsetof(HostRun, scratch), total);
  for (const Share &share : shares)
    share.address = b.CreateInBoundsGEP(b.getInt8Ty(), space, share.offset);
}

Value *HostEmitter::emitMemory(unsigned member, Value *bytes) {
  Type *pointer = b.getPtrTy();
  Value *callee =
      b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun, member));
  Value *space = b.CreateCall(FunctionType::get(pointer, {pointer, b.getInt64Ty()}, false), callee,
                              {hostRun, bytes});
  BasicBlock *giveUp = BasicBlock::Create(module.getContext(), "nomemory", function);
  BasicBlock *goOn = BasicBlock::Create(module.getContext(), "memory", function);
  b.CreateCondBr(b.CreateIsNull(space), giveUp, goOn);
  b.SetInsertPoint(giveUp);
  b.CreateRetVoid();
  b.SetInsertPoint(goOn);
  return space;
}
