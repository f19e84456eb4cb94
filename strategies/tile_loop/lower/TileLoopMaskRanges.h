//===- TileLoopMaskRanges.h - Columns in which masks of data hold -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch before the loop has a block for each block of rows. It finds the extremes of what masks
// (TileLoopMasks.h) compare in these rows, holds each column against them, and leaves four numbers
// in the workspace: the range of columns outside of which the mask holds nowhere, and a range in
// which it holds for all rows. The loop visits no tile outside of the first, and evaluates the
// mask, with its reads, in no tile inside of the second.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPMASKRANGES_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPMASKRANGES_H

#include "codegen/simt/DeviceEmitter.h"
#include "strategies/tile_loop/plan/TileLoop.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

class MaskRanges {
public:
  /// `base`: the byte of the workspace at which the numbers begin.
  MaskRanges(DeviceEmitter &emitter, const TileLoopPlan &plan, const TileLoopShape &tile,
             int64_t base)
      : e(emitter), b(emitter.b), plan(plan),
        axes(cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation())), rows(tile.rows()),
        base(base) {}

  static constexpr unsigned threads = 256;
  static constexpr unsigned sharedBytes = threads / 32 * sizeof(int64_t);
  int64_t count() const;
  int64_t end() const { return base + int64_t(plan.masks.size()) * count() * rangeBytes; }

  /// Emits the launch.
  void emit(llvm::Value *memory);

  llvm::Value *entryOf(llvm::Value *firstRow);
  /// Columns (i64): the first and the end of those in which the mask may hold, and of those in
  /// which it holds for all rows.
  std::array<llvm::Value *, 4> endsOf(unsigned mask, llvm::Value *entry, llvm::Value *memory);

private:
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value *>;
  struct Extremes {
    Value *least, *greatest;
  };
  /// Whether a condition may hold, and whether it does for all rows.
  struct Holds {
    Value *somewhere, *everywhere;
  };
  static constexpr int64_t rangeBytes = 4 * 8;

  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true); }
  Value *readSreg(llvm::Intrinsic::ID id, unsigned limit);
  void barrier();
  llvm::SmallVector<unsigned> batch() const;
  Value *placeOf(unsigned mask, Value *entry, Value *memory);
  Value *acrossBlock(Value *number, llvm::Intrinsic::ID id);
  Value *orderedAt(mlir::Value value, bool isUnsigned);
  Holds holdsIn(const llvm::MapVector<mlir::Value, Extremes> &rows, mlir::BlockArgument column,
                mlir::Value condition);

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const TileLoopPlan &plan;
  mutable tgl::AxesOp axes;
  int64_t rows; ///< of a block
  int64_t base;
  llvm::GlobalVariable *shared = nullptr;
  Value *thread = nullptr, *lane = nullptr; // i32
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPMASKRANGES_H
