//===- SwizzledSharedStore.h - Loads operands of wgmma, an ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads operands of wgmma, and stores them in the swizzled layout.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SWIZZLEDSHAREDSTORE_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SWIZZLEDSHAREDSTORE_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"

namespace tegula {

/// Loads the operands of wgmma to shared memory: through registers, or by cp.async.
class WgmmaLoads : public ContractionCode {
public:
  explicit WgmmaLoads(ContractionContext &context)
      : ContractionCode(context), indices(context), precision(context) {}
  struct ChunkCoord {
    Value *line, *chunk; ///< i32: coordinates in the tile
    unsigned below;      ///< lines to add, a multiple of 8, which leaves the swizzle unchanged
  };
  /// Product `number`; of a tile with accumulated products the first stands for all.
  WgmmaProduct makeWgmmaProduct(unsigned number);
  /// Steps of `depth` points of one product's sum (i64).
  Value *stepsOf(const ContractionProduct &product, int64_t depth);
  Wgmma wgmmaFor(const WgmmaProduct &product);
  ChunkCoord chunkOf(const WgmmaOperand &operand, unsigned index);
  ChunkCoord chunkInLine(unsigned perLine, unsigned index, unsigned threads);
  Value *numberOf(const WgmmaOperand &operand, Value *line, unsigned count);
  Value *readOffset(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                    Value *number, Value *&inside);
  Value *addressAt(const WgmmaOperand &operand, Value *offset);
  Value *loadElement(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number);
  Value *loadChunkAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number);
  static unsigned chunksOfStage(const WgmmaProduct &product);
  llvm::SmallVector<Value *> loadChunks(const WgmmaProduct &product, Value *step);
  llvm::SmallVector<Value *> loadNext(const WgmmaProduct &product, Value *number);
  void storeChunks(const WgmmaProduct &product, llvm::ArrayRef<Value *> chunks,
                   llvm::ArrayRef<Value *> scales, Value *stage);
  void copyChunks(const WgmmaProduct &product, Value *step, Value *stage);
  Value *lineOf(const ChunkCoord &place) { return b.CreateAdd(place.line, i32(place.below)); }

private:
  llvm::Type *elementOf(const WgmmaProduct &product, const WgmmaOperand &operand);
  Value *readAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number, Value *&exists);
  Value *loadAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *place,
                Value *exists);
  Value *insert(Value *chunk, Value *values, unsigned n);
  std::optional<int64_t> stepInChunk(const WgmmaProduct &product, const WgmmaOperand &operand);
  Value *loadSteps(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                   Value *number, int64_t step);
  Value *loadChunk(const WgmmaProduct &product, const WgmmaOperand &operand, Value *step,
                   unsigned index);
  Value *copyAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *line, unsigned count, Value *&exists);

  TileIndices indices;
  SplitPrecision precision;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SWIZZLEDSHAREDSTORE_H
