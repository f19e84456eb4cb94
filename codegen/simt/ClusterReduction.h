//===- ClusterReduction.h - Reductions by the blocks of a cluster -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_CLUSTERREDUCTION_H
#define TEGULA_CODEGEN_SIMT_CLUSTERREDUCTION_H

#include "codegen/common/Accumulators.h"
#include "ir/tgl/Tgl.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

class ClusterReduction {
public:
  explicit ClusterReduction(DeviceEmitter &e);

  /// Barriers for the statement's reductions.
  void allocate(tgl::ParallelOp op);
  /// The accumulators of all blocks together, from each block's own.
  Accumulator combine(tgl::ReduceOp op, Accumulator accumulator);

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  /// By reduction: two barriers, at which blocks of a cluster have its parts.
  llvm::MapVector<mlir::Operation *, llvm::GlobalVariable *> barriersOf;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_CLUSTERREDUCTION_H
