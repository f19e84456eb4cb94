//===- TmaDescriptors.h - TMA descriptors and loads -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// TMA descriptors and loads.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_TMADESCRIPTORS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_TMADESCRIPTORS_H

#include "strategies/contraction/lower/load/SwizzledSharedStore.h"
#include <array>

namespace tegula {

/// Makes the TMA descriptors of the operands, and loads by them.
class TmaDescriptors : public ContractionCode {
public:
  explicit TmaDescriptors(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context) {}
  void emitTmaDescriptors();
  void makeTmaDescriptors();
  void acquireTmaDescriptors();
  /// Starts the copies of stage `number` (i64) of the tile into `stage`: of the rows and columns of
  /// a product, and of the columns of those that lie beside it.
  void loadStage(const WgmmaProduct &product, Value *number, Value *stage, Value *barrier);

private:
  Value *tmaDescriptorOf(unsigned product, bool ofRows);
  unsigned linesOfMap(const WgmmaOperand &operand, bool ofRows) const;
  std::array<unsigned, 2> tmaBoxOf(const WgmmaOperand &operand, bool ofRows) const;
  void loadTma(const WgmmaOperand &operand, unsigned which, bool ofRows, unsigned part, Value *k,
               Value *stage, Value *barrier);
  void makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand);

  WgmmaLoads wgmmaLoads;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_TMADESCRIPTORS_H
