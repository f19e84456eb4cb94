//===- WindowOperand.h - Operands whose elements several windows use ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line of a product (a row or a column with all points of its sum) of a convolution's image is a window:
//
//   sum(x[n, c, p + r - 1, q + s - 1, fill=0] * w[o, r, s, c] for r, s, c)
//
// Neighbouring windows share elements, so to split or to round the lines of such an operand before (PackedPlanes.cpp)
// is done for each element once, and element by element: an element's place in the planes comes from its place in the
// tensor, with the one dim that a summed axis alone walks along, the *channels*, made the innermost, in runs of eight.
// The tensor's other dims are those of *pixels*, which other summed axes walk along, and those of *images*, which none
// does: all that one line uses is of one image.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_WINDOWOPERAND_H
#define TEGULA_PASSES_WINDOWOPERAND_H

#include "passes/TensorTile.h"

namespace tegula {

struct WindowOperand {
  unsigned channelAxis;                                ///< of the sum
  unsigned channelDim;                                 ///< of the tensor
  llvm::SmallVector<unsigned> imageDims, pixelDims;    ///< of the tensor, in its order
  int64_t images = 1, pixels = 1, channels = 1;        ///< of the tensor
  static constexpr int64_t run = 8;                    ///< channels that are kept together

  /// Channels of a pixel as they are kept.
  int64_t keptChannels() const { return llvm::divideCeil(channels, run) * run; }
  int64_t keptElements() const { return images * pixels * keptChannels(); }
};

/// The order in which a product's sum is taken: `axes` of the sum, the last fastest, counted up to `padded` (0: its
/// own points), a multiple of a unit. Points beyond its own count as 0.
struct SumOrder {
  llvm::SmallVector<unsigned> axes;
  int64_t padded = 0;
  /// All points; the sum's are known.
  int64_t points(tgl::AxesOp summed) const;
};

/// The side as windows on its tensor; nothing where its lines share no elements, its channels do not come in runs, or
/// what is multiplied is of another type.
std::optional<WindowOperand> planWindows(const ContractionOperand &operand, Multiplicand type, tgl::ReduceOp reduce);

/// For planes that are made before: a side of windows, of which there is one at most, and the order of the sum.
struct PackedProduct {
  std::optional<WindowOperand> row, column;
  SumOrder order;
};
PackedProduct planPackedProduct(const ProductOperands &operands, tgl::ReduceOp reduce);

} // namespace tegula

#endif // TEGULA_PASSES_WINDOWOPERAND_H
