//===- DeviceClusters.cpp - Blocks of a cluster that share a row --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

void DeviceEmitter::meetCluster() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_arrive_aligned, {});
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cluster_wait_aligned, {});
}

/// Results of the blocks of a cluster: each puts its own into a slot of all the others. Rows take turns with two sets of
/// slots: who puts something into a set has met all blocks since they read it two rows before, so that nobody waits at a
/// row's end, where all of it would have to be stored first.
Emitter::Accumulator DeviceEmitter::combineCluster(tgl::ReduceOp op, Accumulator accumulator) {
  if (shape.cluster == 1)
    return accumulator;
  constexpr unsigned clusterSpace = 7;
  SmallVector<GlobalVariable *> slots;
  for (size_t part = 0; part < accumulator.size(); ++part)
    slots.push_back(shared(ArrayType::get(b.getInt64Ty(), 2 * shape.cluster), "cluster"));
  Value *set = b.CreateNSWMul(rowParity, i64(shape.cluster));
  auto memoryType = [&](Value *element) {
    return element->getType()->isIntegerTy(1) ? b.getInt8Ty() : element->getType();
  };
  // By all threads, as LLVM does not know that there is no address for a block that is not in the cluster.
  Value *mine = b.CreateURem(thread, i64(shape.cluster));
  SmallVector<Value *> places;
  for (GlobalVariable *array : slots)
    places.push_back(b.CreateIntrinsic(
        PointerType::get(module.getContext(), clusterSpace), Intrinsic::nvvm_mapa_shared_cluster,
        {b.CreateInBoundsGEP(b.getInt64Ty(), array, b.CreateNSWAdd(set, rank)), b.CreateTrunc(mine, b.getInt32Ty())}));
  emitIf(b.CreateICmpULT(thread, i64(shape.cluster)), [&] {
    for (auto [element, place] : zip_equal(accumulator, places)) {
      Value *value = element->getType()->isIntegerTy(1) ? b.CreateZExt(element, b.getInt8Ty()) : element;
      b.CreateAlignedStore(value, place, Align(memoryType(element)->getPrimitiveSizeInBits() / 8));
    }
  });
  meetCluster();
  for (auto [element, array] : zip_equal(accumulator, slots)) {
    bool isBit = element->getType()->isIntegerTy(1);
    element = b.CreateLoad(memoryType(element), b.CreateInBoundsGEP(b.getInt64Ty(), array, b.CreateNSWAdd(set, mine)));
    if (isBit)
      element = b.CreateTrunc(element, b.getInt1Ty());
  }
  return combineWarp(op, std::move(accumulator), shape.cluster);
}
