//===- DeviceContraction.cpp - Matrix products on tensor cores -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "strategies/contraction/lower/CheckedMainloop.h"
#include "strategies/contraction/lower/PersistentConsumer.h"
#include "strategies/contraction/lower/PersistentProducer.h"
#include "strategies/contraction/lower/SplitK.h"
#include "strategies/contraction/lower/WarpSpecialization.h"
#include "strategies/contraction/lower/load/PrepackOperands.h"

using namespace llvm;
using namespace tegula;

namespace {
/// A block that ends with its tile.
class OutputTile : public ContractionCode {
public:
  explicit OutputTile(ContractionContext &context) : ContractionCode(context) {}
  void emit();
};
} // namespace

void OutputTile::emit() {
  SplitK splitK(context);
  StageRings stageRings(context);
  CheckedMainloop mainloop(context);
  tile.splits > 1 ? splitK.setSplit() : TileIndices(context).setTile(wide(here.block));
  Epilogue epilogue(here);
  epilogue.returnIfUnused();
  // Two blocks have a multiprocessor, one of which multiplies while the other brings elements: a
  // thread has half of the registers.
  if (numbers.usesBF16Terms() && memory.residents() > 1)
    b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "2");
  if (numbers.isWarpSpecialized())
    WarpSpecialization(context).start([&] { Producer(context).produceAll(); });
  if (numbers.usesClusterReduce())
    splitK.startClusterReduce();
  bool recomputesNonFinite = epilogue.recomputesNonFinite() && tile.splits == 1;
  for (unsigned which = 0; which < products.size(); ++which) {
    if (recomputesNonFinite && numbers.isChecked(which))
      mainloop.emitCheckedMainloop(which, [&] { epilogue.recomputeNonFinite(); });
    else
      mainloop.emitCheckedMainloop(which);
    if (numbers.isWarpSpecialized() && which + 1 < products.size())
      stageRings.releaseProducers();
  }
  if (numbers.usesClusterReduce())
    splitK.clusterReduce();
  barrier();
  if (numbers.storesPartials())
    return splitK.storePartials();
  if (epilogue.recomputesNonFinite() && (numbers.usesClusterReduce() || !numbers.isChecked(0))) {
    epilogue.recomputeNonFinite();
    barrier(); // others begin reductions with them
  }
  epilogue.emit();
}

void DeviceContraction::emitTile(Value *workspace) {
  context.here.begin();
  context.workspace = workspace;
  if (context.numbers.isPersistent()) {
    WarpSpecialization(context).start(
        [&] { PersistentProducer(context).producePersistentTiles(); });
    return PersistentConsumer(context).emit();
  }
  OutputTile(context).emit();
}

void DeviceContraction::emitCombine(Value *workspace) {
  context.workspace = workspace;
  SplitK(context).emitCombine();
}

void DeviceContraction::emitPrepack(Value *workspace) {
  context.workspace = workspace;
  PrepackLaunch(context).emitPrepack();
}

void DeviceContraction::emitTmaDescriptors(Value *workspace) {
  context.workspace = workspace;
  TmaDescriptors(context).emitTmaDescriptors();
}

TileLayout DeviceContraction::layout(StringRef function) const {
  const ContractionNumbers &numbers = context.numbers;
  return {function.str(),
          numbers.tile,
          numbers.usesWgmma(),
          numbers.isWarpSpecialized(),
          numbers.hasCopyProducers(),
          numbers.sharedBytes(),
          context.noted};
}
