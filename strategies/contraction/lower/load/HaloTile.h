//===- HaloTile.h - Loads a halo tile for all filter taps -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads a halo tile for all filter taps.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_HALOTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_HALOTILE_H

#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// Copies the halo tiles of an image, and keeps where in them each tap begins.
class HaloLoads : public ContractionCode {
public:
  explicit HaloLoads(ContractionContext &context) : ContractionCode(context), indices(context) {}
  Value *paddedOffset(const WindowOperand &window, tgl::TglTensorType type, Value *pixel,
                      Value *&exists);
  Value *haloAddress(Value *number);
  Value *groupNumber(const WgmmaProduct &product, Value *group);
  void loadHalo(const WgmmaProduct &product, const PrepackedOperand &side, Value *group);
  Value *tapOffsetsAt(Value *step);
  void storeTapOffsets();

private:
  unsigned offsetOfChunk(unsigned chunk) const;

  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_HALOTILE_H
