//===- ClusterReduction.cpp - Cluster reductions through distributed shared memory ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each block of a cluster puts its part of a reduction into a slot of all the others. Floats are
// stored with `st.async`, whose bytes a barrier in the other block's shared memory counts: a thread
// that waits there waits for these alone. The cluster's own barrier has every thread wait until all
// it stored before has reached the L2 cache (`MEMBAR.ALL.GPU`), which for a row that was just
// written is long.
//
// Rows take turns with two sets of slots and of barriers. Who sends for a row has the values of the
// row before from all blocks, and each sent those after a barrier of its threads, which had then
// read the set of two rows before.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/ClusterReduction.h"

#include "codegen/async/Async.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

ClusterReduction::ClusterReduction(DeviceEmitter &e) : e(e), b(e.b) {}

/// Barriers of the statement's reductions that are single floats.
void ClusterReduction::allocate(tgl::ParallelOp op) {
  auto isCounted = [&](tgl::ReduceOp reduce) {
    return e.options.usesAsyncStores && all_of(initialAccumulator(e, reduce), [](Value *element) {
             return element->getType()->isFloatTy();
           });
  };
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    if (isCounted(reduce))
      barriersOf[reduce] = e.shared(ArrayType::get(b.getInt64Ty(), 2), "arrived");
  if (!barriersOf.empty())
    e.emitIf(b.CreateICmpEQ(e.thread, e.i64(0)), [&] {
      SmallVector<Value *> all;
      for (auto [reduce, barriers] : barriersOf)
        for (unsigned set : {0, 1})
          all.push_back(b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), barriers, set));
      async::initCounts(b, all);
    });
  async::syncCluster(b); // a block's shared memory may be written once it has begun
}

Accumulator ClusterReduction::combine(tgl::ReduceOp op, Accumulator accumulator) {
  constexpr unsigned clusterSpace = 7;
  GlobalVariable *barriers = barriersOf.lookup(op);
  Type *slotType = barriers ? b.getFloatTy() : b.getInt64Ty(),
       *address = PointerType::get(b.getContext(), clusterSpace);
  SmallVector<GlobalVariable *> slots;
  for (size_t part = 0; part < accumulator.size(); ++part)
    slots.push_back(e.shared(ArrayType::get(slotType, 2 * e.shape.cluster), "cluster"));
  Value *turn = b.CreateAnd(e.rowPhase, e.i64(1)),
        *set = b.CreateNSWMul(turn, e.i64(e.shape.cluster));
  auto memoryType = [&](Value *element) {
    return element->getType()->isIntegerTy(1) ? b.getInt8Ty() : element->getType();
  };
  // By all threads, as LLVM does not know that there is no address for a block that is not in the
  // cluster.
  Value *mine = b.CreateURem(e.thread, e.i64(e.shape.cluster));
  auto inBlock = [&](Value *own) {
    return b.CreateIntrinsic(address, Intrinsic::nvvm_mapa_shared_cluster,
                             {own, b.CreateTrunc(mine, b.getInt32Ty())});
  };
  SmallVector<Value *> places;
  for (GlobalVariable *array : slots)
    places.push_back(inBlock(b.CreateInBoundsGEP(slotType, array, b.CreateNSWAdd(set, e.rank))));
  Value *barrier = nullptr, *other = nullptr;
  if (barriers) {
    barrier = b.CreateInBoundsGEP(b.getInt64Ty(), barriers, turn);
    other = inBlock(barrier);
    e.emitIf(b.CreateICmpEQ(e.thread, e.i64(0)), [&] {
      async::expect(b, barrier, b.getInt32(e.shape.cluster * accumulator.size() * sizeof(float)));
    });
  }
  e.emitIf(b.CreateICmpULT(e.thread, e.i64(e.shape.cluster)), [&] {
    for (auto [element, place] : zip_equal(accumulator, places)) {
      if (barrier) {
        async::storeToCluster(b, place, element, other);
        continue;
      }
      Value *value =
          element->getType()->isIntegerTy(1) ? b.CreateZExt(element, b.getInt8Ty()) : element;
      b.CreateAlignedStore(value, place, Align(memoryType(element)->getPrimitiveSizeInBits() / 8));
    }
  });
  if (barrier)
    async::awaitPhase(b, barrier, b.CreateTrunc(b.CreateLShr(e.rowPhase, 1), b.getInt32Ty()),
                      /*ofCluster=*/true);
  else
    async::syncCluster(b);
  for (auto [element, array] : zip_equal(accumulator, slots)) {
    bool isBit = element->getType()->isIntegerTy(1);
    element = b.CreateLoad(memoryType(element),
                           b.CreateInBoundsGEP(slotType, array, b.CreateNSWAdd(set, mine)));
    if (isBit)
      element = b.CreateTrunc(element, b.getInt1Ty());
  }
  return e.combineWarp(op, std::move(accumulator), e.shape.cluster);
}
