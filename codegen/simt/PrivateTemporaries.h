//===- PrivateTemporaries.h - Memory of a statement's temporaries -*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_PRIVATETEMPORARIES_H
#define TEGULA_CODEGEN_SIMT_PRIVATETEMPORARIES_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

/// The temporary's type in shared memory. Threads side by side that each read another row of a
/// whole number of lines would all ask the same bank: a row is then a bank longer. A temporary that
/// is more than read and written by elements, as by a sort, has its rows as they are.
tgl::TglTensorType typeInShared(tgl::TempOp temp);

class PrivateTemporaries {
public:
  explicit PrivateTemporaries(DeviceEmitter &e);

  /// Finds those that stay in registers of the threads of a team.
  void planStates();
  /// Finds a place for each: registers, shared memory behind what is used of it, or the workspace.
  void allocate();
  llvm::Value *addressOf(tgl::TempOp temp) const { return addresses.lookup(temp); }
  /// Its type in memory, where rows may be longer.
  tgl::TglTensorType typeOf(tgl::TempOp temp) const;
  /// Of a block.
  const IndexExpr &bytesInWorkspace() const { return workspaceBytes; }
  /// Emits an access to a temporary in registers; false where it is not.
  bool emitIn(mlir::Operation *op);

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  /// Private temporaries in registers, with the elements of a thread in a round.
  llvm::DenseMap<mlir::Value, int64_t> ownStates;
  llvm::DenseMap<mlir::Operation *, llvm::Value *> addresses;
  llvm::DenseMap<mlir::Operation *, tgl::TglTensorType> paddedTypes;
  llvm::SmallVector<tgl::TempOp> inWorkspace;
  IndexExpr workspaceBytes;

  llvm::Value *allocateState(tgl::TempOp temp);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_PRIVATETEMPORARIES_H
