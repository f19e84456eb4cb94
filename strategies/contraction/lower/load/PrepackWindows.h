//===- PrepackWindows.h - Prepacks images of convolutions, ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prepacks images of convolutions, and loads windows of them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKWINDOWS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKWINDOWS_H

#include "strategies/contraction/lower/block/TileIndices.h"
#include "strategies/contraction/lower/load/HaloTile.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Prepacks the pixels of an image in a launch before, and copies windows of them.
class PrepackedWindows : public ContractionCode {
public:
  explicit PrepackedWindows(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context), precision(context), haloLoads(context),
        indices(context) {}
  void prepackPixels(const WgmmaProduct &product, const WgmmaOperand &operand,
                     const PrepackedOperand &side, Value *number);
  Value *imageOf(const WgmmaProduct &product, const WgmmaOperand &operand, Value *number);
  void copyWindows(const WgmmaProduct &product, const WgmmaOperand &operand,
                   const PrepackedOperand &side, Value *number, Value *stage);

private:
  Value *scaleImage(const WindowOperand &window, const PrepackedOperand &side,
                    tgl::TglTensorType type, Value *image, Value *blockOfImage,
                    llvm::function_ref<Value *(Value *pixelOffset, Value *channel)> load);
  Value *plainWord(Value *word);

  WgmmaLoads wgmmaLoads;
  SplitPrecision precision;
  HaloLoads haloLoads;
  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKWINDOWS_H
