//===- MmaProduct.h - The matrix products of a block's tile ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes a block's tile along M, N and K, and the operands of its products in shared memory: for
// mma.sync (MmaOperand) or for wgmma (WgmmaOperand).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_TILEPRODUCT_H
#define TEGULA_CODEGEN_NVGPU_TILEPRODUCT_H

#include "codegen/nvgpu/Mma.h"
#include "codegen/nvgpu/Wgmma.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "strategies/contraction/plan/WindowOperand.h"

namespace tegula {

/// The M or N dimension of a block's tile.
struct TileDim {
  llvm::ArrayRef<unsigned> axes; ///< axes of the statement
  unsigned extent;               ///< rows or columns of a tile
  llvm::Value *total;            ///< i64: those of the statement
  bool fits;                     ///< whether the extent divides the total
  llvm::Value *first = nullptr;  ///< i64: first row or column of the tile
};
/// The K loop of one product.
struct KLoop {
  KOrder order;
  bool isReordered = false;     ///< whether points are not in the statement's order
  llvm::Value *total;           ///< i64: points
  bool fits;                    ///< whether steps have no points beyond the last
  llvm::Value *steps = nullptr; ///< i64: steps of this block
  unsigned together = 1;        ///< consecutive steps that split-K gives to one block
};
/// An operand of mma.sync in shared memory.
struct MmaOperand {
  const ContractionSide *side;
  const ContractionOperand *how;
  const TileDim *group;
  MmaType type;
  MmaSharedLayout shared;
  unsigned offset; ///< byte offset in a stage
  unsigned vector; ///< elements of a copy
  unsigned count;  ///< copies of a thread
};
struct MmaProduct {
  unsigned number; ///< among the plan's
  tgl::ReduceOp reduce;
  ProductOperands operands;
  KLoop kLoop;
  MmaOperand a, b;
  unsigned stages = 2;
  bool copies() const;
  unsigned stageBytes() const { return a.shared.bytes() + b.shared.bytes(); }
};

/// An operand of wgmma in shared memory.
struct WgmmaOperand {
  const ContractionSide *side;
  const ContractionOperand *how;
  const TileDim *group;
  WgmmaSharedLayout shared;
  unsigned terms;                        ///< stored terms: 1 if the second is always 0
  unsigned planes = 1;                   ///< of bf16 terms: each is a tile of its own
  unsigned offset;                       ///< byte offset in a stage
  unsigned threads, count;               ///< threads that load it, and chunks for each
  unsigned vector;                       ///< elements of a load
  unsigned firstLine;                    ///< index of its first line among those of A and B
  bool isCopied;                         ///< asynchronously; else through registers
  bool isStaged;                         ///< through registers, by the code that is emitted
  const WindowOperand *window = nullptr; ///< the prepacked image; null: prepacked line by line
  mlir::Value givenMatrix;               ///< the chosen matrix whose index is set, not read
  bool usesHaloTile = false;             ///< whether it reads a halo tile, beside the ring
  unsigned bytes() const { return planes * shared.bytes(); }
  void distributeOver(unsigned number) {
    threads = number;
    count = shared.chunks() / threads;
  }
};
struct WgmmaProduct {
  unsigned number;
  tgl::ReduceOp reduce;
  MmaType type;
  KLoop kLoop; ///< in steps of `substeps` stages
  WgmmaOperand a, b;
  unsigned substeps;
  bool promotesAccumulators; ///< whether the accumulators of a step are added to f32 registers
  llvm::Value *stagesBefore =
      nullptr; ///< i64, that went through the ring since the block began; null: none
  llvm::Value *scalesBefore = nullptr; ///< i32, of the tile before, where it has a place of its
                                       ///< own; null: there is one place
  llvm::Value *stagesInAll = nullptr;  ///< i64, that will have when it ends; null: this tile's
  bool isScaled() const { return type == MmaType::TF32; }
  unsigned elementBytes() const { return isBytes(type) ? 1 : 2; }
  bool copies() const { return a.isCopied || b.isCopied; }
  bool evaluates() const { return !a.isCopied || !b.isCopied; }
  unsigned planes() const { return std::max(a.planes, b.planes); }
  unsigned stageBytes() const { return a.bytes() + (b.usesHaloTile ? 0 : b.bytes()); }
};

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_TILEPRODUCT_H
