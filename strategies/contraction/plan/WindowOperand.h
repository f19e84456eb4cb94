//===- WindowOperand.h - Operands that are windows on an image --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A line of a product (a row or a column with all points of its sum) of a convolution's image is a
// window:
//
//   sum(x[n, c, p + r - 1, q + s - 1, fill=0] * w[o, r, s, c] for r, s, c)
//
// Neighbouring windows share elements, so to split or to round the lines of such an operand before
// (PrepackOperands.cpp) is done for each element once, and element by element: an element's place
// in the planes comes from its place in the tensor, with the one dim that a summed axis alone walks
// along, the *channels*, made the innermost, in runs of eight. The tensor's other dims are those of
// *pixels*, which other summed axes walk along (and those that lie within), and those of *images*,
// which none does: all that one line uses is of one image.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_WINDOWOPERAND_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_WINDOWOPERAND_H

#include "strategies/contraction/plan/TensorTile.h"

namespace tegula {

/// The order in which a product's sum is taken: `axes` of the sum, the last fastest, counted up to
/// `padded` (0: its own points), a multiple of a unit. Points beyond its own count as 0.
///
/// With `groupVectors` the last axis goes by groups of so many runs: all of a group for one point
/// of the other axes (a *tap*) after the other, the last first where `isReversed`, then the next
/// group. A group has `groupPoints`, of which those beyond its last tap count as 0.
struct KOrder {
  llvm::SmallVector<unsigned> axes;
  int64_t padded = 0;
  int64_t groupVectors = 0, groupPoints = 0, taps = 0;
  bool isReversed = false;
  static constexpr int64_t channelVector = 8;

  int64_t numGroups() const { return llvm::divideCeil(padded / channelVector, groupVectors); }
  /// All points; the sum's are known.
  int64_t points(tgl::AxesOp summed) const;
};

struct WindowOperand {
  unsigned channelAxis;                             ///< of the sum
  unsigned channelDim;                              ///< of the tensor
  llvm::SmallVector<unsigned> imageDims, pixelDims; ///< of the tensor, in its order
  int64_t images = 1, pixels = 1, channels = 1;     ///< of the tensor
  static constexpr int64_t channelVector =
      KOrder::channelVector; ///< channels that are kept together

  /// Channels of a pixel as they are kept.
  int64_t keptChannels() const { return llvm::divideCeil(channels, channelVector) * channelVector; }
  int64_t keptElements() const { return images * pixels * keptChannels(); }
};

/// The side as windows on its tensor; nothing where its lines share no elements, its channels do
/// not come in runs, or what is multiplied is of another type.
std::optional<WindowOperand> planWindows(const ContractionOperand &operand, MmaType type,
                                         tgl::ReduceOp reduce);

/// For planes that are made before: a side of windows, of which there is one at most, and the order
/// of the sum.
struct PrepackedProduct {
  std::optional<WindowOperand> a, b;
  KOrder order;
};
PrepackedProduct planPrepackedProduct(const ProductOperands &operands, tgl::ReduceOp reduce);

/// Windows of neighbouring columns as one stretch of pixels. Where a column's pixel is its own
/// number plus that of the tap, columns are counted along the tensor's dims padded to all that taps
/// reach, so that numbers go up by one from pixel to pixel: then column `m` has at a tap the pixel
/// `m + shift` whatever `m` is, and what a tile needs of the image is a few stretches of
/// neighbours, for all taps together. Columns that are there for the padding alone are not used.
struct HaloTile {
  llvm::SmallVector<int64_t> lows,
      extents; ///< of the pixel dims: the first coordinate, below 0 perhaps; how many
  llvm::SmallVector<int64_t> shifts; ///< of taps, ascending, in pixels
  bool isReversed = false;           ///< the first is that of the last point of the sum's axes
  unsigned leadingImages =
      0; ///< image dims that no column walks along: a tile has one place in them
  int64_t images = 1, pixels = 1; ///< that columns walk along; padded

  /// Neighbours that the taps of `columns` columns need.
  struct Stretch {
    int64_t first, count; ///< pixels, from the tile's first
    int64_t place;        ///< of its first among those of all stretches
  };
  llvm::SmallVector<Stretch> stretches(int64_t columns) const;
  /// Pixels of all stretches.
  int64_t haloPixels(int64_t columns) const;
  /// The number, among the pixels of all stretches, of the first column's pixel at tap `tap`.
  int64_t offsetOf(int64_t tap, int64_t columns) const;
};

/// Nothing where columns do not walk along the image one pixel at a time, or taps neither all
/// upwards nor all downwards.
std::optional<HaloTile> planHaloTile(const WindowOperand &window, tgl::ReadOp read,
                                     tgl::ReduceOp reduce, tgl::AxesOp axes,
                                     llvm::ArrayRef<unsigned> columns);

/// `order` by groups for such windows: of `depth` points at a time, with few points that count as
/// 0; nothing where a group is too long. What those are multiplied with is an element all the same,
/// which may be infinite: without `mayPad` there are none.
std::optional<KOrder> groupChannels(KOrder order, const HaloTile &halo, int64_t depth,
                                    int64_t columns, bool mayPad);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_WINDOWOPERAND_H
