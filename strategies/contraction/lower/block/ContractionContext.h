//===- ContractionContext.h - What code of a contraction shares -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code of a contraction comes from a class for each feature: its loads, its mainloops, split-K, the
// persistent scheduler. They share a ContractionContext: the numbers, the builder, the block's
// tile, and what one of them leaves for others. ContractionCode has short names for it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONCONTEXT_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONCONTEXT_H

#include "codegen/async/Async.h"
#include "strategies/contraction/lower/block/BlockTile.h"
#include <map>

namespace tegula {

/// The K slice of a block in a remaining tile: first stage, distance to its next one, number of
/// stages (i64).
struct TailSlice {
  llvm::Value *first, *step, *stages;
};

/// A thread's flags for accumulators that may be inaccurate.
struct AccuracyFlags {
  /// i1, uniform over the consumers: the tile must be recomputed; null: it is accurate.
  llvm::Value *isInaccurate = nullptr;
  /// i32: bit n is set if accumulators 4n .. 4n + 3 must be recomputed one by one.
  llvm::Value *flagged = nullptr;
  llvm::Value *numFlagged = nullptr; ///< i32: number of such groups of four in the warp
};

struct ContractionContext {
  ContractionContext(Emitter &emitter, const ContractionNumbers &numbers)
      : numbers(numbers), e(emitter), b(emitter.b), here(emitter, numbers) {}

  const ContractionNumbers &numbers;
  Emitter &e;
  llvm::IRBuilder<> &b;
  llvm::Value *workspace = nullptr; ///< address
  BlockTile here;                   ///< the tile and threads that the current code is for

  //===--- The block's tile and its slice of K ---===//

  llvm::Value *split = nullptr;        ///< i64
  llvm::Value *partialIndex = nullptr; ///< i64: index of the block's partial sums among all
  std::optional<TailSlice> tailSlice;  ///< the block's K slice, if the last wave is split
  llvm::Value *batch = nullptr;        ///< i64: index of the tile's batch point

  //===--- The roles of a warp-specialised block ---===//

  llvm::SmallVector<llvm::Value *> rings; ///< by product
  llvm::Value *haloRing = nullptr;        ///< ring of the halo tiles
  /// Copies in flight at the start of a block, one for each stage that consumers load.
  llvm::SmallVector<llvm::Value *> prologueLoads;
  unsigned consumerBarrier = 0; ///< named barrier of the threads that the current code is for

  /// By product: operands that are evaluated, not copied.
  std::map<unsigned, ProductOperands> evaluatedOperands;

  /// Notes the layout of a product, for drawings.
  void note(const MmaProduct &product);
  void note(const WgmmaProduct &product);
  std::vector<ProductLayout> noted;
};

/// Base of the classes that emit a feature's code.
class ContractionCode {
public:
  using Value = llvm::Value;
  using Accumulators = llvm::SmallVector<Value *>;
  /// A mainloop is emitted up to twice: the fast path, unrolled, and the exact path, rolled, which
  /// is right for any value.
  enum class Path { Fast, Exact };
  /// Named barriers of a warp-specialised block; rings' barriers begin at FirstRing. Consumers use
  /// barrier 0 in the epilogue.
  enum NamedBarrier : unsigned {
    ProducersOnly = 1,
    BarriersAreReady = 2,
    SharedIsFree = 3,
    FirstRing = 4
  };

protected:
  explicit ContractionCode(ContractionContext &context);

  ContractionContext &context;
  const ContractionNumbers &numbers;
  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  const TensorTile &tile;
  const TileMemory &memory;
  llvm::ArrayRef<ProductOperands> products;
  tgl::AxesOp axes; ///< the statement's
  BlockTile &here;

  Value *i32(int64_t value) const { return b.getInt32(value); }
  Value *i64(int64_t value) const { return b.getInt64(value); }
  Value *wide(Value *value) const { return b.CreateZExt(value, b.getInt64Ty()); }
  Value *ceilDiv(Value *x, Value *y) const;
  llvm::Constant *zeroAccumulator() const {
    return llvm::Constant::getNullValue(here.accumulatorType());
  }
  Value *addAccumulators(Value *x, Value *y) const {
    return plan.element.isF32() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  }
  void storePair(Value *first, Value *second, Value *place) const;
  /// A barrier of the threads that the current code is for.
  void barrier() const;
  void withRecomputedIndices(llvm::function_ref<void()> body) const;
  Value *numStages(const WgmmaProduct &product) const;
  Value *stageNumber(const WgmmaProduct &product, Value *number) const;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONCONTEXT_H
