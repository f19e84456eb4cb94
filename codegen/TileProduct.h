//===- TileProduct.h - What a block knows of its products --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's tile of rows and columns, the sums of its elements, and how the operands of its
// products come to shared memory: for warps (TileOperand) or for warpgroups (PlaneOperand).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILEPRODUCT_H
#define TEGULA_CODEGEN_TILEPRODUCT_H

#include "codegen/TensorCore.h"
#include "codegen/Warpgroup.h"
#include "passes/ContractionPlan.h"
#include "passes/TensorTile.h"
#include "passes/WindowOperand.h"

namespace tegula {

/// Rows or columns of a block's tile.
struct TileGroup {
  llvm::ArrayRef<unsigned> axes; ///< of the statement
  unsigned extent;               ///< of a tile
  llvm::Value *total;            ///< i64, of the statement
  bool fits;                     ///< tiles have no elements beyond
  llvm::Value *first = nullptr;  ///< i64, of the tile
};
/// The summed axes of one product.
struct TileSum {
  SumOrder order;
  bool isReordered = false;     ///< points are not counted as the statement has them
  llvm::Value *total;           ///< points
  bool fits;                    ///< steps have none beyond
  llvm::Value *steps = nullptr; ///< of this block
  unsigned together = 1;        ///< steps that are one turn of a block's
};
/// One side of a product in shared memory.
struct TileOperand {
  const ContractionSide *side;
  const ContractionOperand *how;
  const TileGroup *group;
  Multiplicand type;
  SharedTile shared;
  unsigned offset; ///< in a stage
  unsigned vector; ///< elements that come at a time
  unsigned count;  ///< vectors for a thread
};
struct TileProduct {
  tgl::ReduceOp reduce;
  ProductOperands operands;
  TileSum sum;
  TileOperand row, column;
  unsigned stages = 2;
  bool copies() const;
  unsigned stageBytes() const { return row.shared.bytes() + column.shared.bytes(); }
};

/// One side of a product in shared memory as warpgroups read it.
struct PlaneOperand {
  const ContractionSide *side;
  const ContractionOperand *how;
  const TileGroup *group;
  PlaneTile shared;
  unsigned planes;                       ///< that are stored: 1 where the second is always 0
  unsigned offset;                       ///< in a stage
  unsigned threads, count;               ///< that bring it, and units for each
  unsigned vector;                       ///< elements that a load brings
  unsigned firstLine;                    ///< among the lines of both sides
  bool isCopied;                         ///< asynchronously; else through registers
  bool isStaged;                         ///< through registers, by the code that is emitted
  const WindowOperand *window = nullptr; ///< how it lies in its planes; null: line by line
  bool isShifted = false;                ///< its windows are one copy of the image, beside the ring
  void dealTo(unsigned number) {
    threads = number;
    count = shared.units() / threads;
  }
};
struct PlaneProduct {
  unsigned number;
  tgl::ReduceOp reduce;
  Multiplicand type;
  TileSum sum; ///< in steps of `substeps` stages
  PlaneOperand row, column;
  unsigned substeps;
  bool keepsPartial; ///< sums of a step are added to those before in f32
  llvm::Value *stagesBefore =
      nullptr; ///< i64, that went through the ring since the block began; null: none
  llvm::Value *scalesBefore = nullptr; ///< i32, of the tile before, where it has a place of its
                                       ///< own; null: there is one place
  llvm::Value *stagesEver = nullptr;   ///< i64, that will have when it ends; null: this tile's
  bool isScaled() const { return type == Multiplicand::TF32; }
  unsigned elementBytes() const { return isBytes(type) ? 1 : 2; }
  bool copies() const { return row.isCopied || column.isCopied; }
  bool evaluates() const { return !row.isCopied || !column.isCopied; }
  unsigned stageBytes() const {
    return row.shared.bytes() + (column.isShifted ? 0 : column.shared.bytes());
  }
};

} // namespace tegula

#endif // TEGULA_CODEGEN_TILEPRODUCT_H
