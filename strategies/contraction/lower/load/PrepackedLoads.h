//===- PrepackedLoads.h - Loads prepacked operands to shar ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads prepacked operands to shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKEDLOADS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKEDLOADS_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/HaloTile.h"
#include "strategies/contraction/lower/load/PrepackWindows.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Copies the stages and the scales that a launch before has left in the workspace.
class PrepackedLoads : public ContractionCode {
public:
  explicit PrepackedLoads(ContractionContext &context)
      : ContractionCode(context), windows(context), wgmmaLoads(context), indices(context),
        haloLoads(context), precision(context) {}
  Value *prepackedTermsOf(const WgmmaOperand &operand, const PrepackedOperand &side, Value *stage);
  Value *scaleAddress(const WgmmaProduct &product, const WgmmaOperand &operand,
                      const PrepackedOperand &side, Value *line);
  void copyPrepacked(const WgmmaProduct &product, Value *number, Value *stage);
  void loadScales(const WgmmaProduct &product);

private:
  Value *prepackedTermsAt(const WgmmaOperand &operand, const PrepackedOperand &side);
  void copyPrepackedLines(const WgmmaOperand &operand, const PrepackedOperand &side, Value *number,
                          Value *stage);

  PrepackedWindows windows;
  WgmmaLoads wgmmaLoads;
  TileIndices indices;
  HaloLoads haloLoads;
  SplitPrecision precision;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKEDLOADS_H
