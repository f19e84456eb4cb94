//===- DeviceTemporaries.cpp - Allocates the temporaries of a statement ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned sharedSpace = 3;
/// Constant-size temporaries up to this live in a thread's local memory or a team's shared memory.
static constexpr int64_t localBytes = 1024;

bool DeviceEmitter::isLarge(tgl::TempOp temp) {
  std::optional<int64_t> bytes = bytesOf(temp.getTensor().getType(), 16).asConstant();
  return !bytes || *bytes > localBytes;
}

GlobalVariable *DeviceEmitter::shared(Type *type, const Twine &name) {
  auto *space = new GlobalVariable(module, type, false, GlobalValue::InternalLinkage,
                                   UndefValue::get(type), function->getName() + "." + name, nullptr,
                                   GlobalValue::NotThreadLocal, sharedSpace);
  space->setAlignment(Align(16));
  return space;
}

/// The bytes that a launch gives: one object for all functions of the module.
Value *DeviceEmitter::dynamicShared() {
  constexpr StringLiteral name = "tegula_shared_memory";
  if (GlobalVariable *known = module.getNamedGlobal(name))
    return known;
  auto *space = new GlobalVariable(module, ArrayType::get(b.getInt8Ty(), 0), false,
                                   GlobalValue::ExternalLinkage, nullptr, name, nullptr,
                                   GlobalValue::NotThreadLocal, sharedSpace);
  space->setAlignment(Align(128));
  return space;
}

/// Places every private temporary of the statement: in the stack frame or shared memory where it is
/// small, else in the team's part of the workspace.
void DeviceEmitter::allocateTemporaries() {
  int64_t teams = shape.unitsPerBlock();
  Value *inBlock = b.CreateURem(unit, i64(teams));
  statement.getBody().walk([&](tgl::TempOp temp) {
    bool ownedByThread = shape.byThread();
    for (auto around = temp->getParentOfType<tgl::ParallelOp>(); around != statement;
         around = around->getParentOfType<tgl::ParallelOp>())
      ownedByThread |= !runsSerially(around);
    IndexExpr bytes = bytesOf(temp.getTensor().getType(), 16);
    std::optional<int64_t> constant = bytes.asConstant();
    Value *&place = temporaryAddresses[temp];
    if (constant && *constant <= localBytes && ownedByThread) {
      AllocaInst *space = b.CreateAlloca(b.getInt8Ty(), i64(*constant), temp.getName());
      space->setAlignment(Align(16));
      place = space;
      return;
    }
    if (constant && *constant <= localBytes) {
      int64_t each = std::max<int64_t>(*constant, 16);
      GlobalVariable *space = shared(ArrayType::get(b.getInt8Ty(), each * teams), temp.getName());
      place = b.CreateInBoundsGEP(b.getInt8Ty(), space, b.CreateMul(inBlock, i64(each)));
      return;
    }
    place =
        emitSize(workspaceBytes); // the offset; the address follows when the size of all is known
    // A thread function's units are threads: each has a part of its own already.
    bool isShared = ownedByThread && !shape.byThread();
    if (isShared)
      place = b.CreateAdd(place, b.CreateMul(thread, emitSize(bytes)));
    inWorkspace.push_back(temp);
    workspaceBytes = workspaceBytes + (isShared ? bytes * IndexExpr(shape.team) : bytes);
  });
  if (inWorkspace.empty())
    return;
  Value *base =
      b.CreateInBoundsGEP(b.getInt8Ty(), workspace, b.CreateMul(unit, emitSize(workspaceBytes)));
  for (tgl::TempOp temp : inWorkspace)
    temporaryAddresses[temp] = b.CreateInBoundsGEP(b.getInt8Ty(), base, temporaryAddresses[temp]);
  workspaceBytes = workspaceBytes * IndexExpr(teams);
}

void DeviceEmitter::emitTemp(tgl::TempOp op) {
  if (tgl::isPrivate(op))
    buffers[op.getTensor()] = Buffer{temporaryAddresses.lookup(op), op.getTensor().getType()};
}
