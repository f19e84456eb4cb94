//===- Epilogue.h - Epilogue of a tile of accumulators ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The epilogue computes and writes what follows the products of a statement, at every element of a
// block's tile. It reads accumulators (BlockTile.h) and does not depend on the mainloop. There are
// three forms:
//
//   Epilogue.cpp          all threads of the block share the tile; accumulators are in shared
//   memory WarpEpilogue.cpp      each warp takes its own rows, through its own part of shared
//   memory RegisterEpilogue.cpp  each warp takes its accumulators from registers
//
// The first also computes partial reductions over the tile's rows and columns
// (EpilogueReductions.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_EPILOGUE_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_EPILOGUE_H

#include "strategies/contraction/lower/block/BlockTile.h"

namespace tegula {

/// The epilogue of a statement: orders its operations once, and emits them for the tile and threads
/// that `here` has at the call.
class Epilogue {
  using Value = llvm::Value;

public:
  explicit Epilogue(const BlockTile &here);

  /// Emits a return for blocks whose tile is not written at all.
  void returnIfUnused();

  //===--- By all threads of the block, from shared memory ---===//

  /// Whether accumulators that are not finite are recomputed before the epilogue.
  bool recomputesNonFinite() const { return bool(parts.recomputed); }
  void recomputeNonFinite();
  void emit();

  //===--- By each warp of a warpgroup ---===//

  /// Emits the warp epilogue for the columns that are in shared memory, from column `first` of the
  /// warpgroup on.
  void emitPerWarp(unsigned first = 0);
  /// Whether emitPerWarp stores by cp.async.bulk.
  bool storesInBulk() const { return bool(parts.lineWrite()); }
  void syncWarp();
  /// Waits until the bulk stores have read the warp's lines of shared memory, or (`untilWritten`)
  /// are complete.
  void awaitLines(bool untilWritten);

  /// Whether the register epilogue applies.
  bool fitsRegisterEpilogue() const { return bool(parts.registerWrite()); }
  void emitInRegisters(llvm::ArrayRef<Value *> accumulators);

private:
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty()); }
  unsigned threads() const { return tile.threads(); }
  /// Sets the axes to row or column `number` (i64) of the statement.
  void setRow(Value *number) {
    here.setNumber(axes, plan.rows, plan.epilogueCollapsesRows, number);
  }
  void setColumn(Value *number) {
    here.setNumber(axes, plan.columns, plan.epilogueCollapsesColumns && !here.isPadded(), number);
  }
  Value *columnExists(Value *number); ///< i1

  // Epilogue.cpp
  /// The rows of a column that a thread handles together.
  struct EpilogueRows {
    Value *first, *phase; ///< i32: the first row is `first * phases + phase` of the tile
    Value *column;        ///< i32: column of the tile
    unsigned phases, step, count;
    bool asks; ///< whether rows may lie beyond the last one
  };
  Value *isWritten(mlir::arith::CmpIOp guard, Value *number);
  Value *keepOutOfBranch(Value *value);
  void forEpilogueRows(unsigned each, llvm::function_ref<void(const EpilogueRows &)> body);
  Value *epilogueRow(const EpilogueRows &its, unsigned n, Value *&number);
  void emitRows(const EpilogueRows &its);

  // EpilogueReductions.cpp
  using PartialWrite = EpiloguePlan::PartialWrite;
  /// The rows of a tile that are reduced to one number: every `step`-th row from `first`.
  struct ReducedRows {
    Value *first, *number; ///< i64: first row, in the tile and in the statement
    unsigned step, count;
  };
  unsigned rowClasses(const ReducedLines &rows) const { return tile.rows / rows.length; }
  ReducedRows rowsOfClass(const ReducedLines &rows, Value *number);
  llvm::Constant *neutralPartial(const PartialWrite &partial);
  Value *combinePartials(const PartialWrite &partial, Value *x, Value *y);
  Value *partialValue(const PartialWrite &partial, const ReducedRows &its, Value *index,
                      Value *column);
  void storePartial(const PartialWrite &partial, const ReducedRows &its, Value *columnNumber,
                    Value *value);
  void emitColumnPartials(const PartialWrite &partial);
  void emitRowPartials(const PartialWrite &partial);
  void emitPartials();

  // WarpEpilogue.cpp
  void storeLines(tgl::WriteOp write);
  void emitVectors(Value *first, unsigned step, unsigned count, Value *column);

  // RegisterEpilogue.cpp
  llvm::SmallVector<Value *> wordsOf(llvm::ArrayRef<Value *> pairs, mlir::Type element);
  Value *pairOf(tgl::WriteOp write, llvm::ArrayRef<Value *> sums, unsigned first);
  void storeWords(tgl::WriteOp write, Value *lines, unsigned firstColumn);

  const BlockTile &here;
  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  const TensorTile &tile;
  tgl::AxesOp axes;
  EpiloguePlan parts;

  mlir::Operation *knownGuard =
      nullptr; ///< the guard of all writes, if it is known to hold in the current code
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_EPILOGUE_H
