//===- SplitPrecision.h - f32 elements as scaled sums of 1 ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 elements as scaled sums of 16-bit terms.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SPLITPRECISION_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SPLITPRECISION_H

#include "strategies/contraction/lower/block/ContractionContext.h"
#include <array>

namespace tegula {

/// Finds the scale of a row or column, splits elements by it, and takes it out of accumulators.
class SplitPrecision : public ContractionCode {
public:
  explicit SplitPrecision(ContractionContext &context) : ContractionCode(context) {}
  enum class LineValue : unsigned { Maximum, InverseScale };
  Value *lineScaleAddress(LineValue which, Value *line);
  Value *scaleOfLine(const WgmmaProduct &product, Value *line);
  Value *scaleOf(Value *maximum, bool isInverse, int scaledExponent = lineExponent);
  Value *inverseScale(Value *largest, Value *least, int scaledExponent = lineExponent);
  void noteLargest(Value *largest, Value *least, Value *value);
  Value *largestOf(Value *chunk);
  void unscale(const WgmmaProduct &product, llvm::MutableArrayRef<Value *> accumulators);
  llvm::SmallVector<Value *> bf16Terms(Value *chunk);
  std::array<Value *, 2> splitChunk(Value *chunk, Value *scale, unsigned terms);
  /// Scaling puts the largest element of a line's first step below 2^10: what is 64 times as large
  /// fits, and little is lost. An image has far more elements than are looked at: of those of a
  /// softmax some are 64 times as large.
  static constexpr int lineExponent = 9, sampledExponent = 5;

private:
  Value *lineScaleWord(Value *number);
  Value *keepNonZero(Value *chunk, Value *scale, Value *words);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_SPLITPRECISION_H
