//===- TileRoles.h - Roles of warps, pipes and boxes --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILE_TILEROLES_H
#define TEGULA_CODEGEN_TILE_TILEROLES_H

#include "ir/tile/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class TileEmitter;

/// Translates `tile.roles`, and what is in them alone.
class TileRoles {
public:
  explicit TileRoles(TileEmitter &emitter);

  /// Bytes of the launch's workspace that each block of the kernel has for itself.
  static int64_t workspaceOfBlock(tile::KernelOp kernel);

  void emit(tile::RolesOp op);
  void describe(tile::TmaDescriptorOp op);
  void fill(tile::FillOp op);
  void copyBox(tile::CopyBoxOp op);
  void wait(tile::WaitOp op);
  void release(tile::ReleaseOp op);

private:
  using Value = llvm::Value;

  TileEmitter &e;
  llvm::IRBuilder<> &b;
  llvm::DenseMap<mlir::Value, Value *> pipes; ///< rings
  Value *filled = nullptr;                    ///< the barrier of the stage that is being filled

  void makePipes(tile::RolesOp op);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_TILE_TILEROLES_H
