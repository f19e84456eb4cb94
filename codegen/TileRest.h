//===- TileRest.h - What a statement makes of a tile's sums --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What follows the products of a statement, at every element of a block's tile. It knows where sums lie (BlockTile.h), not how
// they were made. There are three ways:
//
//   TileRest.cpp   all threads of the block share the tile, whose sums are in shared memory
//   WarpRest.cpp   each warp takes the sums of its own rows, from its own lines of shared memory
//   PairRest.cpp   each warp takes its own sums, from registers
//
// The first also leaves parts of reductions over the tile's rows and columns (TileParts.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_TILEREST_H
#define TEGULA_CODEGEN_TILEREST_H

#include "codegen/BlockTile.h"
#include "passes/TileParts.h"

namespace tegula {

/// Owns the order in which the rest of a statement is done, which depends on the statement and the tile's shape alone. Code is
/// emitted for the tile, and the threads, that `here` has then.
class TileRest {
  using Value = llvm::Value;

public:
  explicit TileRest(const BlockTile &here);

  /// How many rows lie between the elements of two neighbouring columns in the result: phases of a transposed convolution,
  /// which are the fastest of the rows. 1 where it is otherwise.
  static unsigned interleavedRows(const ContractionPlan &plan);
  /// Ends the block where no row of its tile is written.
  void endIfUnused();

  //===--- By all threads, from sums in shared memory ---===//

  /// Whether sums that are not finite are first to be added up again.
  bool mends() const { return bool(mended); }
  void mendSums();
  void emit();

  //===--- By each warp of a warpgroup alone ---===//

  /// Whether neighbours along columns are neighbours in all that is written, and nothing is read of that.
  bool fitsWarps() const;
  /// From the warp's lines of shared memory, of the warpgroup's columns that have a place there from `first` on.
  void emitByWarp(unsigned first = 0);
  /// Whether what emitByWarp writes leaves the warp's lines in bulk.
  bool storesInBulk() const { return bool(writeOfLines()); }
  void meetInWarp();
  /// Before the warp's lines are written again by other code.
  void awaitLines(bool untilWritten);

  /// Whether the rest can be done where sums are.
  bool fitsPairs() const { return bool(writeOfPairs()); }
  void emitOfPairs(llvm::ArrayRef<Value *> sums);

private:
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty()); }
  unsigned threads() const { return tile.threads(); }
  /// Axes to a row or column of the statement (i64).
  void setRow(Value *number) { here.setNumber(axes, plan.rows, plan.restCollapsesRows, number); }
  void setColumn(Value *number) {
    here.setNumber(axes, plan.columns, plan.restCollapsesColumns && !here.isPadded(), number);
  }
  Value *columnExists(Value *number); ///< i1

  // TileRest.cpp
  /// Rows of a column that a thread does at a time.
  struct RestRows {
    Value *first, *phase; ///< i32: row `first * phases + phase` in the tile
    Value *column;        ///< i32, in the tile
    unsigned phases, step, count;
    bool asks; ///< some may be beyond the last
  };
  void findMending();
  void splitLate();
  mlir::arith::CmpIOp guardOfRows();
  Value *isWritten(mlir::arith::CmpIOp guard, Value *number);
  Value *keptFromBranch(Value *value);
  void forRestRows(unsigned each, llvm::function_ref<void(const RestRows &)> body);
  Value *restRow(const RestRows &its, unsigned n, Value *&number);
  void emitRows(const RestRows &its);

  // TileParts.cpp
  /// A write of parts, with all that makes its value.
  struct Part {
    tgl::WriteOp write;
    llvm::SmallVector<mlir::Operation *> made;
    TileParts lines;
  };
  /// Rows of a tile that go into one number: every `step`-th from `first`.
  struct PartRows {
    Value *first, *number; ///< i64: in the tile, of the statement
    unsigned step, count;
  };
  void takeParts();
  unsigned partClasses(const PartLines &rows) const { return tile.rows / rows.length; }
  PartRows rowsOfClass(const PartLines &rows, Value *number);
  llvm::Constant *neutralPart(const Part &part);
  Value *combineParts(const Part &part, Value *x, Value *y);
  Value *partValue(const Part &part, const PartRows &its, Value *index, Value *column);
  void storePart(const Part &part, const PartRows &its, Value *columnNumber, Value *value);
  void emitColumnParts(const Part &part);
  void emitRowParts(const Part &part);
  void emitParts();

  // WarpRest.cpp
  bool writesVectors(tgl::WriteOp write) const;
  bool areAligned(tgl::WriteOp write, int64_t count) const;
  bool areRuns(tgl::WriteOp write, int64_t count) const;
  tgl::WriteOp onlyWrite() const;
  tgl::WriteOp writeOfLines() const;
  void storeLines(tgl::WriteOp write);
  void emitVectors(Value *first, unsigned step, unsigned count, Value *column);

  // PairRest.cpp
  tgl::WriteOp writeOfPairs() const;
  llvm::SmallVector<Value *> wordsOf(llvm::ArrayRef<Value *> pairs, mlir::Type element);
  Value *pairOf(tgl::WriteOp write, Value *first, Value *second);
  void storeWords(tgl::WriteOp write, Value *lines, unsigned firstColumn);

  const BlockTile &here;
  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  const TensorTile &tile;
  tgl::AxesOp axes;

  // The rest of the statement, in order: what nearly no sum needs, what does not wait for sums, what only makes values of
  // them, and what has effects or waits for that.
  llvm::SmallVector<mlir::Operation *> mending, early, values, late;
  mlir::Value mended;         ///< what `late` uses instead of the sum, where some are mended
  bool readsElements = false; ///< early, what varies along rows and columns
  llvm::SmallVector<Part, 0> parts;

  mlir::Operation *guardThatHolds = nullptr; ///< of all writes, in the code that is emitted: it need not be asked
};

} // namespace tegula

#endif // TEGULA_CODEGEN_TILEREST_H
