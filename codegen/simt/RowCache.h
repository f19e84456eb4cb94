//===- RowCache.h - Rows that several nests of a statement read ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The row that nests of the statement read, cached in dynamic shared memory (RowCache.cpp), where
// the next one may be copied while this one is read (RowCopies.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_ROWCACHE_H
#define TEGULA_CODEGEN_SIMT_ROWCACHE_H

#include "codegen/common/LaneChoices.h"
#include "codegen/nvgpu/TileLayout.h"
#include "codegen/simt/DeviceShape.h"
#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

class RowCache {
public:
  explicit RowCache(DeviceEmitter &e);

  /// Sets the blocks of `wanted` that share a row, and its bytes of shared memory.
  void plan(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer, DeviceShape &wanted);

  /// Whether there is a row, whether the nest is one that reads it.
  bool isPlanned() const { return row.vectors != 0; }
  bool holds(mlir::Operation *nest) const { return row.nests.contains(nest); }
  /// Whether the next row is copied while this one is read.
  bool copies() const { return row.copies; }
  /// Layout of the row; nothing if there is none.
  std::optional<RowLayout> layout(llvm::StringRef name) const;
  const std::optional<ClusterAnswer> &answer() const { return row.answer; }

  /// The lanes of a nest, which may be those of the row.
  std::optional<LaneChoice> laneOf(tgl::AxesOp nest);
  /// Emits `body` for the lanes of a nest at `base`: of a shifted row those that are its own.
  void withLanes(tgl::AxesOp nest, const LaneChoice &lane, llvm::Value *base,
                 llvm::function_ref<void()> body);
  /// Distributes the vectors of a cached row over the team, for one nest or several at once.
  llvm::SmallVector<llvm::Value *> distribute(llvm::ArrayRef<tgl::AxesOp> nests,
                                              const std::optional<LaneChoice> &lane,
                                              llvm::ArrayRef<llvm::Value *> inits,
                                              DistributedBody body);
  /// Emits an operation whose element, or value, is in the cache; false where it is not.
  bool emitIn(mlir::Operation *op);

  /// At the axes of a row.
  void beginRow() { row.shift = emitShift(); }
  void atNextRow(tgl::AxesOp axes, llvm::ArrayRef<unsigned> outer, llvm::Value *number,
                 llvm::Value *count);
  void prefetchFirstRow();

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;

  /// The row that nests of the statement read, cached in dynamic shared memory.
  struct Row {
    /// By read: its slot, and whether it takes the element from memory, being the first.
    llvm::DenseMap<mlir::Operation *, std::pair<unsigned, bool>> slotOf;
    llvm::DenseSet<mlir::Operation *> nests; // that read any of it
    llvm::SmallVector<unsigned> bytes;       // by slot: of a vector
    llvm::SmallVector<llvm::Value *> bases;  // by slot: of the first
    int64_t vectors = 0, rounds = 0;         // of the row; of a thread
    unsigned ahead = 1;                      // rounds that are loaded together
    llvm::SmallVector<std::pair<tgl::ReadOp, tgl::AxesOp>>
        sources; // by slot: the first read, its nest
    llvm::SmallVector<llvm::DenseSet<mlir::Operation *>>
        lastNests; // by slot: nests after which it is free
    /// The next row is copied where this one was (RowCopies.cpp); its axes of the statement,
    /// and whether it exists.
    bool copies = false;
    /// Vectors begin at multiples of their length in memory, wherever a row does: so many elements
    /// before it.
    bool isShifted = false;
    std::pair<tgl::ReadOp, tgl::AxesOp> shiftedBy; // a read that says how many
    llvm::Value *shift = nullptr, *nextShift = nullptr;
    bool atEdge = false; // vectors of the round that is emitted may hang over
    std::optional<LaneChoice> lane;
    int64_t terms = 0; // of the row
    llvm::SmallVector<std::pair<mlir::Value, llvm::Value *>> next;
    llvm::Value *hasNext = nullptr;
    llvm::DenseMap<unsigned, llvm::Value *> *loaded =
        nullptr;                  // by slot, in the round that is emitted
    llvm::Value *round = nullptr; // that one
    /// By operation: the slot where its value replaces the element, or where later nests find it.
    llvm::DenseMap<mlir::Operation *, unsigned> storedTo, foundIn;
    std::optional<ClusterAnswer> answer;
  } row;

  unsigned blocksAsked(int64_t asked, unsigned largest, int64_t most, int64_t vectors,
                       llvm::function_ref<int64_t(unsigned)> bytesWith);
  void planRowValues(llvm::ArrayRef<tgl::AxesOp> nests, llvm::ArrayRef<unsigned> walks);
  bool isSameInRow(mlir::Value first, tgl::AxesOp firstNest, mlir::Value second,
                   tgl::AxesOp secondNest);
  RowDistribution rowDistribution() const;
  std::pair<int64_t, int64_t> wholeRounds() const;
  llvm::Value *rowSlot(unsigned slot, llvm::Value *round);

  //===--- Copies (RowCopies.cpp) ---===//

  bool canPrefetchRows(tgl::ParallelOp op, const std::optional<LaneChoice> &lane);
  std::optional<LaneChoice> planShift(tgl::ParallelOp op, llvm::ArrayRef<tgl::AxesOp> nests);
  llvm::Value *emitShift();
  void prefetch(unsigned slot, llvm::Value *round, llvm::Value *number, llvm::Value *exists);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_ROWCACHE_H
