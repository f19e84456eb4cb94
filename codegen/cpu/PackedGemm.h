//===- PackedGemm.h - Packed matrix products on the CPU ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parallel statement whose values come from sums of products runs as a blocked matrix product:
// the axes of the statement fall into *rows* (only one side of the product varies along them),
// *columns* (only the other side) and *batch* (both). A unit of work is a block of rows times a
// block of columns at one point of the batch axes:
//
//   for each block of the summed axes
//     pack the columns' factor into panels [k][48], the rows' factor into panels [k][8]
//     for each panel of columns, for each panel of rows
//       8 x 48 sums in registers, added to the unit's accumulators
//       after the last block: the rest of the statement, a row of the tile at a time
//
// (numbers for f32 and AVX-512). Packing evaluates whatever stands inside the sum: reads with any
// affine subscript, fills, conversions, elementwise functions. So a convolution is a matrix product
// whose columns are the points of an image.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_PACKEDGEMM_H
#define TEGULA_CODEGEN_CPU_PACKEDGEMM_H

#include "codegen/common/Emitter.h"
#include "strategies/contraction/plan/ContractionPlan.h"

namespace tegula {

/// Numbers of the blocks, found when running.
struct PackedGemmShape {
  llvm::Value *rows, *columns, *batch;   // points
  llvm::Value *rowPanels, *columnPanels; // of one unit
  llvm::Value *rowBlocks, *columnBlocks, *units;
  llvm::Value *longestSum, *totalSum; // of all products: largest block, all blocks
  llvm::Value *tilesKept;             // accumulators of a unit, in tiles

  /// To and from what an outlined function receives.
  llvm::SmallVector<llvm::Value *> values() const {
    return {rows,         columns, batch,      rowPanels, columnPanels, rowBlocks,
            columnBlocks, units,   longestSum, totalSum,  tilesKept};
  }
  static PackedGemmShape from(llvm::ArrayRef<llvm::Value *> v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10]};
  }
};

class PackedGemmEmitter {
public:
  PackedGemmEmitter(Emitter &emitter, const ContractionPlan &plan);

  /// Numbers for a run on so many threads, with at least so many units for each where possible.
  PackedGemmShape emitShape(llvm::Value *threads, llvm::Value *unitsEach);
  /// A bit: large enough for packing to pay.
  llvm::Value *emitWorthwhile(const PackedGemmShape &shape);
  /// Operations of one unit, in vectors.
  llvm::Value *emitCost(const PackedGemmShape &shape);
  llvm::Value *emitScratchBytes(const PackedGemmShape &shape);
  /// Runs one unit with scratch memory of that many bytes.
  void emitUnit(const PackedGemmShape &shape, llvm::Value *unit, llvm::Value *scratch);

private:
  using Value = llvm::Value;

  /// Rows or columns of a unit.
  struct Side {
    llvm::ArrayRef<unsigned> group; ///< axes of the statement
    bool isSingle;                  ///< one axis, or axes that count as their last one
    unsigned panel;                 ///< elements of a panel
    unsigned width;                 ///< lanes when spread along its last axis
    llvm::SmallVector<Value *> lows, extents;
    Value *total = nullptr;
    Value *first = nullptr, *count = nullptr; ///< of the unit
    Value *tables = nullptr,
          *tableLength = nullptr; ///< values of each axis at the unit's elements
  };

  /// The summed axes of one product, in blocks of the outermost (or of all, where both sides
  /// collapse).
  struct Sum {
    bool collapsed;
    llvm::SmallVector<Value *> lows, extents;
    Value *low, *high; ///< what blocks are cut from
    Value *inner;      ///< points for each step of that
    Value *step;       ///< of a block
  };

  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *extentOf(tgl::AxesOp op, unsigned axis);
  Value *product(llvm::ArrayRef<Value *> factors);
  Value *ceilDiv(Value *x, Value *y);
  Value *at(Value *base, Value *elements); // of the product's type
  Value *minimum(Value *x, Value *y);
  Sum sumOf(const ContractionProduct &product);
  void fillTable(Side &side);
  void setElement(Side &side, Value *number);
  void withVector(Side &side, Value *first, unsigned width, llvm::function_ref<void()> body);
  void spread(mlir::Value axis, unsigned width, Value *base, Value *from, Value *to,
              llvm::function_ref<void()> body);
  Value *evaluate(const ContractionSide &side);
  void forSum(const ContractionProduct &product, const Sum &sum, Value *begin, Value *end,
              bool collapsed, bool withLast, llvm::function_ref<void(Value *position)> body);
  void pack(Side &side, const ContractionProduct &product, const ContractionSide &factors,
            const Sum &sum, Value *begin, Value *end, Value *panels, Value *panelLength);
  void packAlongAxes(Side &side, const ContractionProduct &product, const ContractionSide &factors,
                     const Sum &sum, Value *begin, Value *end, Value *panel, Value *first);
  void packAlongSum(Side &side, const ContractionProduct &product, const ContractionSide &factors,
                    const Sum &sum, Value *begin, Value *end, Value *panel, Value *first,
                    unsigned group);
  llvm::Function *turnKernel(unsigned count, unsigned stride);
  llvm::Function *microKernel();
  void emitEpilogue(Side &row, Side &column, Value *rowPanel, Value *columnPanel,
                    llvm::ArrayRef<Value *> tiles);

  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  tgl::AxesOp axes;
  llvm::Type *element;
  static constexpr int64_t cacheLine = 64;
  unsigned elementBytes, lanes;   ///< lanes of a vector
  unsigned tileRows, tileVectors; ///< of the tile in registers
  unsigned tileColumns() const { return tileVectors * lanes; }
};

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_PACKEDGEMM_H
