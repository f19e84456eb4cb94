//===- DeviceTemporaries.cpp - Allocates the temporaries of a statement ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `temp S; for t { s = reduce (i) ...S[i]...; parallel (i) { S[i] = ...S[i]... } }` deals its nests
// out to a team's threads alike, so a thread reads only the elements of S that it has written: they
// stay in its registers, and nobody waits at a barrier. Rounds of such nests are written out, and
// the element of a round is at a constant place of the thread's own array, which LLVM makes
// registers of.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"
#include "codegen/simt/DeviceEmitter.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

//===----------------------------------------------------------------------===//
// States in registers
//===----------------------------------------------------------------------===//

SmallVector<tgl::AxesOp> DeviceEmitter::nestsThatOwn(tgl::TempOp temp) {
  SmallVector<tgl::AxesOp> nests;
  for (mlir::Operation *user : temp->getUsers()) {
    SmallVector<ValueExpr> place;
    auto read = dyn_cast<tgl::ReadOp>(user);
    auto write = dyn_cast<tgl::WriteOp>(user);
    if (read && !read.getFill() && !read.getChecked() && read.getExactExprs().empty())
      place = read.getSubscriptExprs();
    else if (write && !write.getCombine() && !write.getChecked())
      place = write.getSubscriptExprs();
    else
      return {};
    // A nest of one axis that the team deals out, in steps of loops at most.
    auto nest = dyn_cast<tgl::AxesOp>(user->getParentOp());
    auto parallel = dyn_cast<tgl::ParallelOp>(user->getParentOp());
    if (!nest || nest.getAxes().size() != 1 || (parallel && runsSerially(parallel)))
      return {};
    mlir::Operation *around = nest->getParentOp();
    while (isa<tgl::ForOp>(around))
      around = around->getParentOp();
    tgl::AxisRange range = getAxisRange(nest, 0);
    bool isWhole = around == temp->getParentOfType<tgl::ParallelOp>() &&
                   !around->getParentOfType<tgl::ParallelOp>() && range.lo.asConstant() == 0 &&
                   range.hi.asConstant() &&
                   (nests.empty() || range.hi == getAxisRange(nests.front(), 0).hi);
    if (!isWhole || elementOffset(temp.getTensor().getType(), place).asValue() != nest.getAxes()[0])
      return {};
    nests.push_back(nest);
  }
  return temp.getTensor().getType().getElementType().isInteger(4) ? SmallVector<tgl::AxesOp>()
                                                                  : nests;
}

/// Which temporaries the team's threads keep, now that it is known how they share nests.
void DeviceEmitter::planStates() {
  ownStates.clear();
  if (!options.stateRegisters || options.checked || shape.byThread() || shape.cluster > 1)
    return;
  statement.getBody().walk([&](tgl::TempOp temp) {
    SmallVector<tgl::AxesOp> nests = nestsThatOwn(temp);
    if (nests.empty())
      return;
    std::optional<LaneChoice> lane = chooseLanes(nests.front());
    int64_t width = lane ? lane->width : 1;
    bool fits = *tgl::knownPoints(nests.front()) <= maxRounds * shape.team * width;
    for (tgl::AxesOp nest : nests)
      fits &= isSameRow(nests.front(), nest) && !row.nests.contains(nest);
    if (fits) {
      ownStates[temp.getTensor()] = width;
      exchanged.erase(temp.getTensor());
    }
  });
}

/// The thread's own array for a temporary that planStates has taken; null for others.
Value *DeviceEmitter::allocateState(tgl::TempOp temp) {
  if (!ownStates.contains(temp.getTensor()))
    return nullptr;
  Type *element = storageType(temp.getTensor().getType().getElementType());
  int64_t width = ownStates.lookup(temp.getTensor());
  int64_t points = std::max<int64_t>(1, *tgl::knownPoints(nestsThatOwn(temp).front()));
  int64_t rounds = divideCeil(points, shape.team * width);
  AllocaInst *space =
      b.CreateAlloca(ArrayType::get(element, rounds * width), nullptr, temp.getName());
  space->setAlignment(Align(16));
  return space;
}

/// An access to the thread's own element, which is at the place of the round.
bool DeviceEmitter::emitOwnState(mlir::Operation *op) {
  auto read = dyn_cast<tgl::ReadOp>(op);
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (!read && !write)
    return false;
  auto own = ownStates.find(read ? read.getTensor() : write.getTensor());
  if (own == ownStates.end())
    return false;
  assert(round >= 0 && "rounds of nests with own states are written out");
  mlir::Value axis = cast<tgl::AxesOp>(op->getParentOp()).getAxes()[0];
  Value *place = i64(round * own->second), *saved = values.lookup(axis);
  std::optional<Lanes> savedLanes = std::exchange(lanes, std::nullopt);
  if (savedLanes) {
    withLanes(axis, savedLanes->width, place, nullptr, [&] {
      lanes->isAligned = true;
      Emitter::emitOp(op);
    });
  } else {
    values[axis] = place;
    Emitter::emitOp(op);
  }
  lanes = savedLanes;
  values[axis] = saved;
  return true;
}

//===----------------------------------------------------------------------===//
// Places of all temporaries
//===----------------------------------------------------------------------===//

static constexpr unsigned sharedSpace = 3;
/// Constant-size temporaries up to this live in a thread's local memory or a team's shared memory.
static constexpr int64_t localBytes = 1024;

bool DeviceEmitter::isLarge(tgl::TempOp temp) {
  std::optional<int64_t> bytes = tensorBytes(temp.getTensor().getType(), 16).asConstant();
  return !bytes || *bytes > localBytes;
}

/// What the function's own objects and the hardware need of a block's shared memory.
static constexpr int64_t otherSharedBytes = 8192;

/// Whether steps of a loop access it again and again.
static bool isUsedInSteps(tgl::TempOp temp) {
  return any_of(temp->getUsers(), [&](mlir::Operation *user) {
    auto loop = user->getParentOfType<tgl::ForOp>();
    return loop && temp->getParentOp()->isAncestor(loop);
  });
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
/// small, or where steps of a loop use it and it fits, else in the team's part of the workspace.
void DeviceEmitter::allocateTemporaries() {
  int64_t teams = shape.unitsPerBlock();
  Value *inBlock = b.CreateURem(unit, i64(teams));
  statement.getBody().walk([&](tgl::TempOp temp) {
    if (Value *state = allocateState(temp)) {
      temporaryAddresses[temp] = state;
      return;
    }
    bool ownedByThread = shape.byThread();
    for (auto around = temp->getParentOfType<tgl::ParallelOp>(); around != statement;
         around = around->getParentOfType<tgl::ParallelOp>())
      ownedByThread |= !runsSerially(around);
    IndexExpr bytes = tensorBytes(temp.getTensor().getType(), 16);
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
    int64_t most = options.target.sharedBytes - otherSharedBytes - int64_t(shape.sharedBytes);
    if (constant && !ownedByThread && isUsedInSteps(temp) && *constant <= most / teams) {
      int64_t each = alignTo(*constant, 16);
      place =
          b.CreateInBoundsGEP(b.getInt8Ty(), dynamicShared(),
                              b.CreateAdd(i64(shape.sharedBytes), b.CreateMul(inBlock, i64(each))));
      shape.sharedBytes += each * teams;
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
