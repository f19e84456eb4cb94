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
  /// The maps of what a stage of the product holds: of its rows, of its columns and of those of
  /// products that lie beside it. `stage` (i64): among all of the tile; then in its own product,
  /// where products are chained.
  llvm::SmallVector<Value *> mapsOf(const WgmmaProduct &product, Value *&stage);
  void loadStage(const WgmmaProduct &product, llvm::ArrayRef<Value *> maps, Value *k, Value *stage,
                 Value *barrier);

private:
  Value *tmaDescriptorOf(unsigned product, bool ofRows);
  unsigned linesOfMap(const WgmmaOperand &operand, bool ofRows) const;
  std::array<unsigned, 2> tmaBoxOf(const WgmmaOperand &operand, bool ofRows) const;
  void loadTma(const WgmmaOperand &operand, bool ofRows, unsigned part, Value *map, Value *k,
               Value *stage, Value *barrier);
  void makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand);

  WgmmaLoads wgmmaLoads;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_TMADESCRIPTORS_H
