//===- PrivateTemporaries.cpp - Allocates the temporaries of a statement ---===//
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
#include "codegen/simt/PrivateTemporaries.h"

#include "codegen/common/AccessShape.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/RegisterTiles.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

PrivateTemporaries::PrivateTemporaries(DeviceEmitter &e) : e(e), b(e.b) {}

//===----------------------------------------------------------------------===//
// States in registers
//===----------------------------------------------------------------------===//

/// Threads that the nests of the temporary's block are dealt out to: the team, or a part of it.
static unsigned threadsOf(DeviceEmitter &e, tgl::TempOp temp) {
  auto nest = temp->getParentOfType<tgl::ParallelOp>();
  if (!dealsToParts(nest))
    return e.shape.team;
  return threadsOfPart(nest, e.shape.team, [&](tgl::AxesOp inner) { return e.chooseLanes(inner); });
}

/// Which temporaries the team's threads keep, now that it is known how they share nests.
void PrivateTemporaries::planStates() {
  ownStates.clear();
  if (!e.options.stateRegisters || e.options.checked || e.shape.byThread() || e.shape.cluster > 1)
    return;
  e.statement.getBody().walk([&](tgl::TempOp temp) {
    SmallVector<tgl::AxesOp> nests = nestsThatOwn(temp);
    if (nests.empty())
      return;
    std::optional<LaneChoice> lane = e.chooseLanes(nests.front());
    int64_t width = lane ? lane->width : 1;
    bool fits = *tgl::knownPoints(nests.front()) <= e.maxRounds * threadsOf(e, temp) * width;
    for (tgl::AxesOp nest : nests)
      fits &= isSameRow(e, nests.front(), nest) && !e.isCachedRow(nest);
    if (fits) {
      ownStates[temp.getTensor()] = width;
      e.exchanged.erase(temp.getTensor());
    }
  });
}

/// The thread's own array for a temporary that planStates has taken; null for others.
Value *PrivateTemporaries::allocateState(tgl::TempOp temp) {
  if (!ownStates.contains(temp.getTensor()))
    return nullptr;
  Type *element = e.storageType(temp.getTensor().getType().getElementType());
  int64_t width = ownStates.lookup(temp.getTensor());
  int64_t points = std::max<int64_t>(1, *tgl::knownPoints(nestsThatOwn(temp).front()));
  int64_t rounds = divideCeil(points, threadsOf(e, temp) * width);
  AllocaInst *space =
      b.CreateAlloca(ArrayType::get(element, rounds * width), nullptr, temp.getName());
  space->setAlignment(Align(16));
  return space;
}

/// An access to the thread's own element, which is at the place of the round.
bool PrivateTemporaries::emitIn(mlir::Operation *op) {
  auto read = dyn_cast<tgl::ReadOp>(op);
  auto write = dyn_cast<tgl::WriteOp>(op);
  if (!read && !write)
    return false;
  auto own = ownStates.find(read ? read.getTensor() : write.getTensor());
  if (own == ownStates.end())
    return false;
  assert(e.round >= 0 && "rounds of nests with own states are written out");
  mlir::Value axis = cast<tgl::AxesOp>(op->getParentOp()).getAxes()[0];
  Value *place = e.i64(e.round * own->second), *saved = e.values.lookup(axis);
  std::optional<Emitter::Lanes> savedLanes = std::exchange(e.lanes, std::nullopt);
  if (savedLanes) {
    e.withLanes(axis, savedLanes->width, place, nullptr, [&] {
      e.lanes->isAligned = true;
      e.Emitter::emitOp(op);
    });
  } else {
    e.values[axis] = place;
    e.Emitter::emitOp(op);
  }
  e.lanes = savedLanes;
  e.values[axis] = saved;
  return true;
}

//===----------------------------------------------------------------------===//
// Places of all temporaries
//===----------------------------------------------------------------------===//

/// What the function's own objects and the hardware need of a block's shared memory.
static constexpr int64_t otherSharedBytes = 8192;
/// Of the 48 KiB that a function may have as objects of its own (CUDA C++ Programming Guide,
/// "Technical Specifications"); more is dynamic.
static constexpr int64_t mostStaticBytes = (48 << 10) - otherSharedBytes;

/// Whether steps of a loop access it again and again.
static bool isUsedInSteps(tgl::TempOp temp) {
  return any_of(temp->getUsers(), [&](mlir::Operation *user) {
    auto loop = user->getParentOfType<tgl::ForOp>();
    return loop && temp->getParentOp()->isAncestor(loop);
  });
}

tgl::TglTensorType tegula::typeInShared(tgl::TempOp temp) {
  constexpr int64_t lineBytes = 128, bankBytes = 4;
  tgl::TglTensorType type = temp.getTensor().getType();
  if (type.getRank() < 2 || isPacked(type.getElementType()))
    return type;
  std::optional<int64_t> row = type.getDims().back().getExpr().asConstant();
  int64_t bytes = storageBytes(type.getElementType());
  bool hasWholeRows = !all_of(temp->getUsers(), llvm::IsaPred<tgl::ReadOp, tgl::WriteOp>);
  if (!row || *row < 1 || *row * bytes % lineBytes || hasWholeRows)
    return type;
  bool meets = any_of(temp->getUsers(), [&](mlir::Operation *user) {
    auto read = dyn_cast<tgl::ReadOp>(user);
    auto write = dyn_cast<tgl::WriteOp>(user);
    auto around = user->getParentOfType<tgl::ParallelOp>();
    if ((!read && !write) || !around || around->isAncestor(temp) || around.getAxes().empty())
      return false;
    ValueExpr offset =
        tgl::elementOffset(type, read ? read.getSubscriptExprs() : write.getSubscriptExprs());
    std::optional<int64_t> step = tgl::stepAlong(offset, around.getAxes().back());
    return step && *step && *step % *row == 0;
  });
  if (!meets)
    return type;
  SmallVector<tgl::IndexExprAttr> dims(type.getDims());
  dims.back() = tgl::IndexExprAttr::get(type.getContext(),
                                        IndexExpr(*row + std::max<int64_t>(1, bankBytes / bytes)));
  return tgl::TglTensorType::get(type.getContext(), dims, type.getElementType());
}

tgl::TglTensorType PrivateTemporaries::typeOf(tgl::TempOp temp) const {
  tgl::TglTensorType padded = paddedTypes.lookup(temp);
  return padded ? padded : temp.getTensor().getType();
}

/// Places every private temporary of the statement: in the stack frame or shared memory where it is
/// small, or where steps of a loop use it and it fits, else in the team's part of the workspace.
void PrivateTemporaries::allocate() {
  int64_t teams = e.shape.unitsPerBlock();
  Value *inBlock = b.CreateURem(e.unit, e.i64(teams));
  int64_t staticBytes = 0;
  // Teams of tiles that share a warp have what is theirs in other banks.
  auto apart = [&](int64_t bytes) -> int64_t {
    constexpr int64_t lineBytes = 128, bankBytes = 4;
    bool isPart = teamOf(e.statement) && e.shape.isPartOfWarp();
    int64_t step = std::min<int64_t>(int64_t(e.shape.team) * bankBytes, lineBytes);
    return isPart ? alignTo(bytes, lineBytes) + step : bytes;
  };
  e.statement.getBody().walk([&](tgl::TempOp temp) {
    if (Value *state = allocateState(temp)) {
      addresses[temp] = state;
      return;
    }
    bool ownedByThread = e.shape.byThread();
    for (auto around = temp->getParentOfType<tgl::ParallelOp>(); around != e.statement;
         around = around->getParentOfType<tgl::ParallelOp>())
      ownedByThread |= !runsSerially(around);
    IndexExpr bytes = tensorBytes(temp.getTensor().getType(), 16);
    std::optional<int64_t> constant = bytes.asConstant();
    Value *&place = addresses[temp];
    if (constant && *constant <= maxThreadBytes && ownedByThread) {
      AllocaInst *space = b.CreateAlloca(b.getInt8Ty(), e.i64(*constant), temp.getName());
      space->setAlignment(Align(16));
      place = space;
      return;
    }
    // What threads share and has a place in shared memory may be padded.
    tgl::TglTensorType padded = ownedByThread ? temp.getTensor().getType() : typeInShared(temp);
    std::optional<int64_t> shared = tensorBytes(padded, 16).asConstant();
    int64_t each = apart(std::max<int64_t>(shared ? alignTo(*shared, 16) : 0, 16));
    if (constant && *constant <= maxThreadBytes && staticBytes + each * teams <= mostStaticBytes) {
      paddedTypes[temp] = padded;
      staticBytes += each * teams;
      GlobalVariable *space = e.shared(ArrayType::get(b.getInt8Ty(), each * teams), temp.getName());
      place = b.CreateInBoundsGEP(b.getInt8Ty(), space, b.CreateMul(inBlock, e.i64(each)));
      return;
    }
    int64_t most = e.options.target.sharedBytes - otherSharedBytes - staticBytes -
                   int64_t(e.shape.sharedBytes);
    bool isUsedAgain =
        isUsedInSteps(temp) || teamOf(e.statement) || (constant && *constant <= maxThreadBytes);
    if (constant && !ownedByThread && isUsedAgain && each <= most / teams) {
      paddedTypes[temp] = padded;
      place = b.CreateInBoundsGEP(
          b.getInt8Ty(), e.dynamicShared(),
          b.CreateAdd(e.i64(e.shape.sharedBytes), b.CreateMul(inBlock, e.i64(each))));
      e.shape.sharedBytes += each * teams;
      return;
    }
    place =
        e.emitSize(workspaceBytes); // the offset; the address follows when the size of all is known
    // A thread function's units are threads: each has a part of its own already.
    bool isShared = ownedByThread && !e.shape.byThread();
    if (isShared)
      place = b.CreateAdd(place, b.CreateMul(e.thread, e.emitSize(bytes)));
    inWorkspace.push_back(temp);
    workspaceBytes = workspaceBytes + (isShared ? bytes * IndexExpr(e.shape.team) : bytes);
  });
  if (inWorkspace.empty())
    return;
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), e.workspace,
                                    b.CreateMul(e.unit, e.emitSize(workspaceBytes)));
  for (tgl::TempOp temp : inWorkspace)
    addresses[temp] = b.CreateInBoundsGEP(b.getInt8Ty(), base, addresses[temp]);
  workspaceBytes = workspaceBytes * IndexExpr(teams);
}
