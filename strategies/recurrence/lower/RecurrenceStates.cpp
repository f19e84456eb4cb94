//===- RecurrenceStates.cpp - States of a persistent RNN in all blocks of a cluster ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Why nobody overwrites what another still reads: values of step t go into the copy that step t - 1
// read. A block that sends them has the values of step t - 1 from all blocks, and each block sent
// its own after a barrier to which its threads came when they were through with that copy. And a
// phase of a copy's barrier ends before bytes of its next one come, two steps later.
//
//===----------------------------------------------------------------------===//
#include "strategies/recurrence/lower/RecurrenceStates.h"
#include "codegen/async/Async.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

static constexpr unsigned clusterSpace = 7;

RecurrenceStates::RecurrenceStates(DeviceEmitter &emitter, const RecurrencePlan &plan,
                                   const RecurrenceShape &shape)
    : e(emitter), b(emitter.b), plan(plan), shape(shape) {}

/// Two copies of each state, with zeros up to what lanes read in whole vectors. Lanes of a point
/// put its value into blocks of the cluster in turn.
void RecurrenceStates::allocate(Value *threadOfBlock, Value *blockOfCluster) {
  thread = threadOfBlock;
  rank = blockOfCluster;
  for (auto [number, state] : enumerate(plan.states)) {
    int64_t elements = alignTo(state.points, RecurrenceShape::together);
    int64_t lanes = 1;
    for (const RecurrenceNest &nest : plan.nests) {
      for (const RecurrenceSum &sum : nest.sums)
        if (tgl::ReadOp(sum.state).getTensor() == state.tensor)
          elements = std::max(elements, shape.termsOfLane(nest, sum) * shape.lanesFor(nest.points));
      for (tgl::WriteOp write : tgl::ParallelOp(nest.op).getBody().front().getOps<tgl::WriteOp>())
        if (write.getTensor() == state.next)
          lanes = shape.lanesFor(nest.points);
    }
    State &placed = states.emplace_back();
    placed.elements = elements;
    placed.copies = e.shared(ArrayType::get(b.getFloatTy(), 2 * elements), "state");
    for (int64_t first = 0; hasCluster() && first < shape.cluster; first += lanes) {
      // By all threads: there is an address for every block of the cluster alone.
      Value *target = b.CreateURem(b.CreateAdd(b.CreateURem(thread, i64(lanes)), i64(first)),
                                   i64(shape.cluster));
      auto inBlock = [&](GlobalVariable *own) {
        return b.CreateIntrinsic(PointerType::get(b.getContext(), clusterSpace),
                                 Intrinsic::nvvm_mapa_shared_cluster,
                                 {own, b.CreateTrunc(target, b.getInt32Ty())});
      };
      placed.remote.push_back(inBlock(placed.copies));
      if (!shape.countsBytes)
        continue;
      if (!placed.barriers)
        placed.barriers = e.shared(ArrayType::get(b.getInt64Ty(), 2), "arrived");
      placed.remoteBarriers.push_back(inBlock(placed.barriers));
    }
  }
  // Other blocks see them after the barrier before the first step.
  if (shape.countsBytes)
    e.emitIf(b.CreateICmpEQ(thread, i64(0)), [&] {
      SmallVector<Value *> barriers;
      for (const State &state : states)
        for (unsigned copy : {0, 1})
          barriers.push_back(b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), state.barriers, copy));
      async::initCounts(b, barriers);
    });
  current.resize(states.size());
}

//===----------------------------------------------------------------------===//
// A row
//===----------------------------------------------------------------------===//

void RecurrenceStates::beginRow(ArrayRef<Value *> ended) { copy(ended, phases.begin()); }

SmallVector<Value *> RecurrenceStates::phasesAfter(Value *count) {
  return {b.CreateAdd(phases[0], b.CreateLShr(count, i64(1))),
          b.CreateAdd(phases[1], b.CreateLShr(b.CreateAdd(count, i64(1)), i64(1)))};
}

void RecurrenceStates::load() {
  for (auto [number, state] : enumerate(plan.states)) {
    mlir::Value axis = cast<tgl::ParallelOp>(tgl::WriteOp(state.write)->getParentOp()).getAxes()[0];
    SmallVector<ValueExpr> subscripts = tgl::WriteOp(state.write).getSubscriptExprs();
    int64_t elements = states[number].elements, points = state.points;
    Value *copies = states[number].copies;
    e.emitLoop(thread, i64(elements), i64(shape.threads), {}, [&](Value *index, ArrayRef<Value *>) {
      e.values[axis] = b.CreateBinaryIntrinsic(Intrinsic::umin, index, i64(points - 1));
      Value *value = e.decode(e.loadRaw(e.buffers[state.tensor], subscripts, nullptr),
                              cast<tgl::TglTensorType>(state.tensor.getType()).getElementType());
      Value *zero = ConstantFP::get(b.getFloatTy(), 0);
      value = b.CreateSelect(b.CreateICmpULT(index, i64(points)), value, zero);
      b.CreateStore(value, b.CreateInBoundsGEP(b.getFloatTy(), copies, index));
      b.CreateStore(
          zero, b.CreateInBoundsGEP(b.getFloatTy(), copies, b.CreateNSWAdd(index, i64(elements))));
      return SmallVector<Value *>();
    });
  }
}

void RecurrenceStates::store(Value *count) {
  for (auto [number, state] : enumerate(plan.states)) {
    auto copy = cast<tgl::ParallelOp>(tgl::WriteOp(state.write)->getParentOp());
    SmallVector<ValueExpr> subscripts = tgl::WriteOp(state.write).getSubscriptExprs();
    current[number] = b.CreateNSWMul(b.CreateAnd(count, i64(1)), i64(states[number].elements));
    Value *first = b.CreateNSWAdd(b.CreateNSWMul(rank, i64(shape.threads)), thread);
    e.emitLoop(first, i64(state.points), i64(shape.threads * shape.cluster), {},
               [&](Value *index, ArrayRef<Value *>) {
                 e.values[copy.getAxes()[0]] = index;
                 Value *value = b.CreateLoad(b.getFloatTy(), elementOf(number, index));
                 e.storeRaw(e.buffers[state.tensor], subscripts, value, nullptr);
                 return SmallVector<Value *>();
               });
  }
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

void RecurrenceStates::beginStep(Value *step) {
  for (auto [state, where] : zip_equal(states, current))
    where = b.CreateNSWMul(b.CreateAnd(step, i64(1)), i64(state.elements));
}

void RecurrenceStates::swapCopies(unsigned state) {
  current[state] = b.CreateNSWSub(i64(states[state].elements), current[state]);
}

Value *RecurrenceStates::elementOf(unsigned state, Value *index) {
  return b.CreateInBoundsGEP(b.getFloatTy(), states[state].copies,
                             b.CreateNSWAdd(current[state], index));
}

/// i64: 0 or 1, the copy that the step writes.
Value *RecurrenceStates::copyAfter(unsigned state) {
  return b.CreateZExt(b.CreateICmpEQ(current[state], i64(0)), b.getInt64Ty());
}

void RecurrenceStates::expect(Value *step) {
  Value *isOdd = b.CreateTrunc(step, b.getInt1Ty());
  Value *uses =
      b.CreateAdd(b.CreateSelect(isOdd, phases[0], phases[1]), b.CreateLShr(step, i64(1)));
  parity = b.CreateAnd(b.CreateTrunc(uses, b.getInt32Ty()), b.getInt32(1));
  e.emitIf(b.CreateICmpEQ(thread, i64(0)), [&] {
    for (auto [number, state] : enumerate(states))
      async::expect(b, b.CreateInBoundsGEP(b.getInt64Ty(), state.barriers, copyAfter(number)),
                    b.getInt32(plan.states[number].points * sizeof(float)));
  });
}

void RecurrenceStates::waitFor(unsigned state) {
  async::awaitPhase(
      b, b.CreateInBoundsGEP(b.getInt64Ty(), states[state].barriers, copyAfter(state)), parity,
      /*ofCluster=*/true);
}

void RecurrenceStates::send(const RecurrencePoint &point, unsigned state, Value *value) {
  Value *other = b.CreateNSWSub(i64(states[state].elements), current[state]);
  Value *index = b.CreateNSWAdd(other, point.axis);
  if (!hasCluster())
    return e.emitIf(point.writes, [&] {
      b.CreateStore(value, b.CreateInBoundsGEP(b.getFloatTy(), states[state].copies, index));
    });
  for (auto [round, remote] : enumerate(states[state].remote)) {
    Value *block = b.CreateNSWAdd(point.lane, i64(round * point.lanes));
    Value *to = b.CreateInBoundsGEP(b.getFloatTy(), remote, index);
    Value *barrier = nullptr;
    if (shape.countsBytes)
      barrier = b.CreateInBoundsGEP(b.getInt64Ty(), states[state].remoteBarriers[round],
                                    copyAfter(state));
    e.emitIf(b.CreateAnd(point.exists, b.CreateICmpULT(block, i64(shape.cluster))), [&] {
      if (barrier)
        async::storeToCluster(b, to, value, barrier);
      else
        b.CreateAlignedStore(value, to, Align(sizeof(float)));
    });
  }
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

void RecurrenceStates::syncBlock() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
}

void RecurrenceStates::syncAll() { hasCluster() ? async::syncCluster(b) : syncBlock(); }

void RecurrenceStates::syncAll(function_ref<void()> meanwhile) {
  if (hasCluster())
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_arrive_aligned, {});
  meanwhile();
  if (hasCluster())
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_wait_aligned, {});
  else
    syncBlock();
}
