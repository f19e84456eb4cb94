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
  Value *tmaDescriptorOf(const WgmmaProduct &product, const WgmmaOperand &operand);
  void emitTmaDescriptors();
  void makeTmaDescriptors();
  void acquireTmaDescriptors();
  void loadTma(const WgmmaOperand &operand, Value *map, Value *k, Value *stage, Value *barrier);

private:
  static std::array<unsigned, 2> tmaBoxOf(const WgmmaOperand &operand);
  void makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand);

  WgmmaLoads wgmmaLoads;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_TMADESCRIPTORS_H
