//===- EmitHost.cpp - Host code of a scheduled kernel ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/EmitHost.h"

#include "codegen/common/EmitSort.h"
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostEmitter.h"
#include "ir/DTypes.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/WriteAttributes.h"
#include "passes/analysis/SortedRows.h"
#include <cstddef>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

HostCode HostEmitter::run(tgl::KernelOp kernel) {
  HostCode code;
  code.function = ("tegula_" + kernel.getSymName()).str();
  Type *pointer = b.getPtrTy();
  auto *type = FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, pointer}, false);
  function = Function::Create(type, Function::ExternalLinkage, code.function, module);
  begin(function);
  hostRun = function->getArg(3);
  checks.record = hostRun; // the record is its first member

  SmallVector<Buffer *> all;
  unsigned numBuffers = 0, numScalars = 0;
  auto nextPointer = [&](const Twine &name) {
    Value *slot = b.CreateConstInBoundsGEP1_64(pointer, function->getArg(0), numBuffers++);
    return b.CreateLoad(pointer, slot, name);
  };
  auto addBuffer = [&](mlir::Value tensor, const Twine &name) {
    Buffer buffer;
    buffer.pointer = nextPointer(name);
    buffer.type = cast<tgl::TglTensorType>(tensor.getType());
    buffers[tensor] = buffer;
  };
  for (auto [index, attribute] : enumerate(kernel.getSizeAttrs())) {
    StringRef name = cast<tgl::SizeAttr>(attribute).getName();
    Value *slot = b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), function->getArg(1), index);
    sizes[name] = b.CreateLoad(b.getInt64Ty(), slot, name);
  }
  for (auto [index, argument] : enumerate(kernel.getBody().getArguments())) {
    if (isa<tgl::TglTensorType>(argument.getType())) {
      addBuffer(argument, kernel.getArgName(index));
      buffers[argument].isConstant = kernel.getArgRole(index) == "in";
      continue;
    }
    Value *slot = b.CreateConstInBoundsGEP1_64(pointer, function->getArg(2), numScalars++);
    Type *type = typeOf(argument.getType());
    Type *stored = type->isIntegerTy(1) ? b.getInt8Ty() : type;
    Value *value = b.CreateLoad(stored, b.CreateLoad(pointer, slot), kernel.getArgName(index));
    values[argument] = type == stored ? value : b.CreateICmpNE(value, b.getInt8(0));
  }
  kernel.walk([&](tgl::TempOp temp) {
    if (isOutlined(temp))
      return;
    addBuffer(temp.getTensor(), temp.getName());
    code.temporaries.push_back({temp.getName().str(), temp.getTensor().getType()});
  });
  if (options.checked) {
    shadow.clock = clockOf(hostRun);
    auto addShadow = [&](mlir::Value tensor, StringRef name, bool isDefined) {
      Buffer &buffer = buffers[tensor];
      tgl::TglTensorType type = shadowOf(buffer.type);
      code.temporaries.push_back({(name + ".stamps").str(), type});
      buffer.shadow = nextPointer(name + ".stamps");
      clearShadow(buffer, isDefined);
    };
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments()))
      if (isa<tgl::TglTensorType>(argument.getType()) && kernel.getArgRole(index) != "in")
        addShadow(argument, kernel.getArgName(index), kernel.getArgRole(index) == "inout");
    kernel.walk([&](tgl::TempOp temp) {
      if (!isOutlined(temp))
        addShadow(temp.getTensor(), temp.getName(), /*isDefined=*/false);
    });
  }
  for (auto &entry : buffers)
    all.push_back(&entry.second);
  // The map's order is that of addresses; scopes are anonymous, so it shows nowhere.
  addAliasScopes(all);

  emitBlock(kernel.getBody().front());
  for (auto [index, argument] : enumerate(kernel.getBody().getArguments()))
    if (options.checked && kernel.getArgRole(index) == "out")
      shadow.checkComplete(kernel, argument);
  b.CreateRetVoid();
  return code;
}

bool HostEmitter::isOutlined(tgl::TempOp temp) {
  for (auto nest = temp->getParentOfType<tgl::ParallelOp>(); nest;
       nest = nest->getParentOfType<tgl::ParallelOp>())
    if (!nest.getAxes().empty())
      return true;
  return false;
}

void HostEmitter::emitOp(mlir::Operation *op) {
  if (auto launch = dyn_cast<tgl::LaunchOp>(op))
    return emitBlock(launch.getBody().front());
  Emitter::emitOp(op);
}

void HostEmitter::emitParallel(tgl::ParallelOp op) {
  if (!nested && !op.getAxes().empty())
    return emitOutlined(op);
  if (nested && !lanes && emitInnerProduct(op))
    return;
  Emitter::emitParallel(op);
}

void HostEmitter::emitReduce(tgl::ReduceOp op) {
  if (nested || lanes || !emitParallelReduction(op))
    Emitter::emitReduce(op);
}

void HostEmitter::emitSort(tgl::SortOp op) {
  const Buffer sorted = buffers.lookup(op.getValues()), places = buffers.lookup(op.getPositions());
  mlir::Type element = sorted.type.getElementType();
  if (lanes || element.isInteger(4) || !options.vectorBytes || options.checked)
    return Emitter::emitSort(op);
  SmallVector<ValueExpr> first = op.getSubscriptExprs();
  first.push_back(ValueExpr(int64_t(0)));
  Value *row = emitIndex(elementOffset(sorted.type, first));
  Value *length = emitSize(sorted.type.getDims().back().getExpr());
  Value *take = length;
  if (std::optional<IndexExpr> looked = elementsRead(op))
    take = b.CreateBinaryIntrinsic(Intrinsic::smin, take, emitSize(*looked));
  Type *pointer = b.getPtrTy(), *wide = b.getInt64Ty(), *narrow = b.getInt32Ty();
  Value *callee = b.CreateLoad(
      pointer, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), hostRun, offsetof(HostRun, sort)));
  auto *type = FunctionType::get(b.getVoidTy(),
                                 {pointer, pointer, pointer, wide, wide, narrow, narrow}, false);
  b.CreateCall(type, callee,
               {hostRun, b.CreateInBoundsGEP(storageType(element), sorted.pointer, row),
                b.CreateInBoundsGEP(wide, places.pointer, row), length, take,
                b.getInt32(static_cast<int32_t>(*dtypeOf(element))),
                b.getInt32(op.getDescending())});
}

void HostEmitter::emitTemp(tgl::TempOp op) {
  if (!isOutlined(op)) { // an argument of the kernel function
    if (shadow.clock)
      clearShadow(buffers[op.getTensor()], /*isDefined=*/false);
    return;
  }
  Buffer buffer;
  buffer.type = op.getTensor().getType();
  buffer.pointer = ownMemory(op, buffer.type, scratchAddress);
  if (shadow.clock) {
    buffer.shadow = ownMemory(op, shadowOf(buffer.type), scratchShadow);
    clearShadow(buffer, /*isDefined=*/false);
  }
  buffers[op.getTensor()] = buffer;
}

void HostEmitter::begin(Function *target) {
  target->addFnAttr(Attribute::NoUnwind);
  entry = BasicBlock::Create(module.getContext(), "entry", target);
  b.SetInsertPoint(entry);
}

Value *HostEmitter::ownMemory(tgl::TempOp op, tgl::TglTensorType type,
                              const DenseMap<mlir::Operation *, Value *> &shares) {
  auto *constant = dyn_cast<ConstantInt>(emitBytes(type));
  if (constant && constant->getSExtValue() <= stackBytes) {
    IRBuilder<>::InsertPointGuard guard(b);
    b.SetInsertPoint(entry, entry->getFirstInsertionPt());
    AllocaInst *space = b.CreateAlloca(b.getInt8Ty(), constant, op.getName());
    space->setAlignment(Align(64));
    return space;
  }
  Value *share = shares.lookup(op);
  if (!share)
    fail(op, "a private temporary outside of an outlined statement");
  return share ? share : PoisonValue::get(b.getPtrTy());
}

Value *HostEmitter::clockOf(Value *run) {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), run, offsetof(HostRun, clock));
}

tgl::TglTensorType HostEmitter::shadowOf(tgl::TglTensorType type) {
  mlir::MLIRContext *context = type.getContext();
  return tgl::TglTensorType::get(context, type.getDims(), mlir::IntegerType::get(context, 64));
}

void HostEmitter::clearShadow(const Buffer &buffer, bool isDefined) {
  Value *bytes = emitBytes(shadowOf(buffer.type));
  if (!isDefined) {
    b.CreateMemSet(buffer.shadow, b.getInt8(0), bytes, MaybeAlign(8));
    return;
  }
  Value *count = b.CreateLShr(bytes, 3);
  emitLoop(i64(0), count, i64(1), {}, [&](Value *n, ArrayRef<Value *>) {
    b.CreateStore(i64(1 << tgl::stampKindBits), b.CreateGEP(b.getInt64Ty(), buffer.shadow, n));
    return SmallVector<Value *>();
  });
}

Expected<HostCode> tegula::emitHost(tgl::KernelOp kernel, Module &module,
                                    const EmitterOptions &options) {
  std::vector<ErrorSite> sites;
  HostEmitter emitter(module, options, sites);
  HostCode code = emitter.run(kernel);
  if (!emitter.error().empty())
    return createStringError(inconvertibleErrorCode(), emitter.error());
  code.sites = std::move(sites);
  return code;
}
