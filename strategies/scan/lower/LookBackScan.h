//===- LookBackScan.h - Decoupled look-back scan ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop in tiles (strategies/scan/plan/ScanTile.h): elements are read once and written once.
// (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016; here
// what is added up, and in which order, is the same in every run.) A block
//
//   takes a number        blocks that run have the smallest ones, so who waits for an earlier tile
//   waits for one that runs loads its elements    into registers, neighbours side by side in a
//   warp, all under way together adds them up          in a thread, by shuffles in a warp, through
//   shared memory between warps publishes its total looks back            for the totals of all
//   earlier parts of its group, one in each thread, and for the total of all
//                         groups before, which the last part of each group publishes
//   writes its results
//
// A published value is a word of 64 bits in memory that is zero before the launch: 32 bits of the
// value, and 1 above them. One atomic access brings both, so that nothing else needs an order in
// memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SCAN_LOWER_LOOKBACKSCAN_H
#define TEGULA_STRATEGIES_SCAN_LOWER_LOOKBACKSCAN_H

#include "codegen/simt/DeviceEmitter.h"
#include "strategies/scan/plan/ScanTile.h"

namespace tegula {

class LookBackScan {
public:
  LookBackScan(DeviceEmitter &emitter, tgl::ParallelOp op, const PrefixLoop &prefix);

  int64_t numBlocks() const { return grid.across * grid.parts; }
  bool looksBack() const { return grid.parts > 1; }
  /// Zeroed before the launch.
  int64_t workspaceBytes() const;
  void emit(llvm::Value *workspace);

private:
  using Values = llvm::SmallVector<llvm::Value *>;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  tgl::ParallelOp op;
  const PrefixLoop &prefix;
  ScanTile tile;
  int64_t points, count;
  ScanGrid grid;

  // A warp's threads: `across` points, and for each of them `rows` threads with different steps.
  // (Vectors of points would need four times the registers for totals: 79 in place of 48, and with
  // them three blocks at once in place of five.)
  unsigned across = 1, rows = 1;
  unsigned stepLanes = 1, rounds = 1; ///< elements of a thread: their product
  llvm::Value *workspace = nullptr;
  llvm::Value *inRow = nullptr, *row = nullptr, *warpNumber = nullptr; ///< i32: of the thread
  llvm::Value *part = nullptr, *column = nullptr;                      ///< i32: the tile
  llvm::Value *pointExists = nullptr;                                  ///< null: always

  /// The values of a thread in a round.
  struct Round {
    llvm::Value *exists = nullptr;      ///< null: always
    llvm::Value *base = nullptr;        ///< i64: the first step's index
    llvm::SmallVector<Values, 0> found; ///< results of the operations without the total
    Values upTo;                        ///< by step lane, in order: of the vector up to there
    llvm::Value *before = nullptr;      ///< of the warp's elements before; null: nothing
    llvm::Value *with = nullptr;        ///< and with these
  };
  llvm::SmallVector<Round, 0> inRounds;

  static constexpr unsigned warps = ScanTile::threads / DeviceEmitter::warp;
  llvm::Value *i32(unsigned value) { return b.getInt32(value); }
  llvm::Value *combine(llvm::Value *lhs, llvm::Value *rhs);
  llvm::Value *identity(llvm::Type *type);
  llvm::Value *shuffle(llvm::Value *value, bool up, llvm::Value *lane);
  llvm::Value *scanRows(llvm::Value *value);
  std::pair<llvm::Value *, llvm::Value *> combineWarps(llvm::Value *own, const llvm::Twine &name);
  void takeTicket();
  void emitLoop();
  bool usesExclusive() const;
  void inFullOrRagged(llvm::function_ref<void(bool isWhole)> body);
  void forEachLoaded(llvm::function_ref<void(llvm::Value *&)> visit);
  void locate(Round &round, unsigned number, bool isWhole);
  void load();
  void at(Round &round, llvm::function_ref<void()> body);
  llvm::Value *scanWarp();
  void write(Round &round, llvm::Value *before);

  static unsigned wordsOf(unsigned bits) { return bits > 32 ? 2 : 1; }
  llvm::Value *statusWordsAt(bool ofGroups, llvm::Value *number, llvm::Type *type);
  void publish(llvm::Value *words, llvm::Value *value);
  Values awaitStatus(llvm::ArrayRef<llvm::Value *> words, llvm::Type *type);
  llvm::Value *lookBack(llvm::Value *init);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_SCAN_LOWER_LOOKBACKSCAN_H
