//===- HaloTile.cpp - Implicit GEMM from one halo tile for all filter taps ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbouring windows of a convolution share most of their elements. Copied tap by tap
// (PrepackWindows.cpp) an element comes from the second-level cache as often as there are taps, and
// where channels are few that takes most of the time. Here columns are counted along the padded
// image (strategies/contraction/plan/WindowOperand.h), so that the elements of a tile's columns at
// a tap are neighbours, and those at another tap the same, shifted: for a group of runs of channels
// a tile copies what all its taps need once, to a *patch*:
//
//   [run of the group][plane][pixel][channel of the run]
//
// Eight pixels are 128 bytes one after the other, what wgmma calls a core matrix without a swizzle,
// and may begin at any pixel. So a tap is an address. Each step of 16 points of the sum takes two
// units of eight channels, of neighbouring runs or of neighbouring taps, whose distance the
// descriptor holds.
//
// There are two patches, beside the ring, which holds rows alone. Columns that exist for the
// padding alone are summed up like others, and the rest of the statement leaves them out.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/HaloTile.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Columns of the padded image
//===----------------------------------------------------------------------===//

/// Where in an image of the tensor pixel `number` (i64) of the padded one lies, in elements, and
/// whether it does.
Value *HaloLoads::paddedOffset(const WindowOperand &window, tgl::TglTensorType type, Value *number,
                               Value *&exists) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (unsigned dim = type.getRank() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * *type.getDims()[dim].getExpr().asConstant();
  Value *offset = i64(0);
  for (unsigned n = window.pixelDims.size(); n-- > 0;) {
    unsigned dim = window.pixelDims[n];
    int64_t own = *type.getDims()[dim].getExpr().asConstant(), low = numbers.halo->lows[n],
            counted = numbers.halo->extents[n];
    Value *digit = n ? b.CreateURem(number, i64(counted)) : number;
    number = b.CreateUDiv(number, i64(counted));
    Value *coordinate = b.CreateAdd(digit, i64(low));
    if (low < 0 || low + counted > own) {
      exists = e.emitAnd(exists, b.CreateICmpULT(coordinate, i64(own))); // below 0 is large
      coordinate = b.CreateBinaryIntrinsic(Intrinsic::smax, coordinate, i64(0));
      coordinate = b.CreateBinaryIntrinsic(Intrinsic::smin, coordinate, i64(own - 1));
    }
    offset = b.CreateAdd(offset, b.CreateMul(coordinate, i64(strides[dim])));
  }
  return offset;
}

//===----------------------------------------------------------------------===//
// Halo tiles
//===----------------------------------------------------------------------===//

/// Of group `number` (i64), of all that the block multiplies.
Value *HaloLoads::haloAddress(Value *number) {
  Value *which =
      b.CreateURem(b.CreateTrunc(number, b.getInt32Ty()), i32(ContractionNumbers::haloBuffers));
  int64_t base = numbers.ringRowsBytes();
  return here.sharedAt(b.CreateAdd(b.CreateMul(which, i32(numbers.haloBytes())), i32(base)));
}

/// Of the tile's group `group` (i64) that among all of the block.
Value *HaloLoads::groupNumber(const WgmmaProduct &product, Value *group) {
  if (!product.stagesBefore)
    return group;
  return b.CreateAdd(b.CreateUDiv(product.stagesBefore, i64(product.substeps)), group);
}

/// Byte of the first column's unit `chunk` of a group in its patch, in the first plane. Units
/// beyond the last tap, which are multiplied by 0, are the last one's.
unsigned HaloLoads::offsetOfChunk(unsigned chunk) const {
  const KOrder &order = numbers.groupOrder();
  unsigned runs = order.groupVectors;
  chunk = std::min<unsigned>(chunk, order.taps * runs - 1);
  int64_t term = numbers.halo->haloPixels(tile.columns);
  return (chunk % runs * numbers.termsOfStep() * term +
          numbers.halo->offsetOf(chunk / runs, tile.columns)) *
         ContractionNumbers::haloChunkBytes;
}

/// Starts the copies of the tile's group `group` (i64), once the one before in its patch has been
/// multiplied.
void HaloLoads::loadHalo(const WgmmaProduct &product, const PrepackedOperand &side, Value *group) {
  const WgmmaOperand &operand = product.b;
  const WindowOperand &window = *operand.window;
  const KOrder &order = numbers.groupOrder();
  Value *number = groupNumber(product, group);
  async::acquire(b, context.haloRing, b.CreateTrunc(number, b.getInt32Ty()));
  Value *haloBuffer = haloAddress(number);

  // The image and the first run of the tile's point of the batch.
  tgl::ReadOp read = operand.how->read;
  indices.setPoint(product.reduce, product.kLoop, /*collapses=*/false, i64(0));
  here.setNumber(axes, operand.group->axes, /*collapses=*/false, i64(0));
  for (mlir::Operation *op : operand.side->slice)
    if (op != read)
      e.emitOp(op);
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  Value *image = i64(0);
  for (unsigned dim : ArrayRef(window.imageDims).take_front(numbers.halo->leadingImages)) {
    int64_t extent = *read.getTensorType().getDims()[dim].getExpr().asConstant();
    image = b.CreateAdd(b.CreateMul(image, i64(extent)), e.emitIndex(subscripts[dim]));
  }
  Value *firstPixel = b.CreateMul(image, i64(numbers.halo->images * numbers.halo->pixels));
  firstPixel = b.CreateAdd(firstPixel, operand.group->first);
  Value *firstRun =
      b.CreateUDiv(e.emitIndex(subscripts[window.channelDim]), i64(KOrder::channelVector));
  firstRun = b.CreateAdd(firstRun, b.CreateMul(group, i64(order.groupVectors)));

  Wgmma warps(b, /*isBF16=*/false);
  int64_t pixels = window.images * numbers.halo->pixels,
          runs = window.keptChannels() / KOrder::channelVector;
  unsigned term =
      numbers.halo->haloPixels(tile.columns) * ContractionNumbers::haloChunkBytes; // in the patch
  SmallVector<Value *> terms; // of each run and plane
  for (int64_t n = 0; n < order.groupVectors; ++n) {
    // Runs beyond the last are multiplied by 0.
    Value *run =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(firstRun, i64(n)), i64(runs - 1));
    for (unsigned which = 0; which < operand.terms; ++which) {
      Value *offset = b.CreateAdd(b.CreateMul(run, i64(operand.terms)), i64(which));
      offset = b.CreateAdd(e.emitSize(side.terms),
                           b.CreateMul(offset, i64(pixels * ContractionNumbers::haloChunkBytes)));
      terms.push_back(b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace, offset));
    }
  }
  for (const HaloTile::Stretch &stretch : numbers.halo->stretches(tile.columns))
    for (int64_t first = 0; first < stretch.count; first += numbers.producerThreads()) {
      Value *own = b.CreateAdd(here.thread, i32(first));
      auto copy = [&] {
        Value *pixel = b.CreateAdd(firstPixel, b.CreateAdd(wide(own), i64(stretch.first)));
        pixel = b.CreateBinaryIntrinsic(Intrinsic::smin, pixel,
                                        i64(pixels - 1)); // of columns beyond the last
        Value *from = b.CreateMul(pixel, i64(ContractionNumbers::haloChunkBytes));
        Value *to = b.CreateAdd(b.CreateMul(own, i32(ContractionNumbers::haloChunkBytes)),
                                i32(stretch.place * ContractionNumbers::haloChunkBytes));
        to = b.CreateInBoundsGEP(b.getInt8Ty(), haloBuffer, to);
        for (auto [n, base] : enumerate(terms)) {
          unsigned which = n / operand.terms * numbers.termsOfStep() + n % operand.terms;
          warps.copyChunk(b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(which * term)),
                          b.CreateInBoundsGEP(b.getInt8Ty(), base, from));
        }
      };
      if (first + numbers.producerThreads() <= stretch.count)
        copy();
      else
        e.emitIf(b.CreateICmpULT(own, i32(stretch.count)), copy);
    }
}

//===----------------------------------------------------------------------===//
// Offsets of taps
//===----------------------------------------------------------------------===//

/// Where the places of a group's units are kept: a word for each step of 16 points, as a descriptor
/// has them.
Value *HaloLoads::tapOffsetsAt(Value *step) {
  int64_t base = numbers.ringRowsBytes() + ContractionNumbers::haloBuffers * numbers.haloBytes();
  return here.sharedAt(b.CreateAdd(b.CreateShl(step, i32(2)), i32(base)));
}

/// Consumers see them at once.
void HaloLoads::storeTapOffsets() {
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned step = 0; step < numbers.tapOffsetsBytes() / 4; ++step) {
      unsigned place = offsetOfChunk(2 * step), apart = offsetOfChunk(2 * step + 1) - place;
      b.CreateAlignedStore(i32(Wgmma::coreOffsets(place, apart)), tapOffsetsAt(i32(step)),
                           Align(4));
    }
  });
  barrier();
}
