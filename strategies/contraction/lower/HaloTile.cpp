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
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned chunkBytes = 2 * KOrder::channelVector;

/// 16-bit numbers of a value in shared memory.
unsigned DeviceContraction::termsOfStep() const {
  const ProductOperands &how = products.front();
  return usesSplitPrecision() ? std::max(how.a.terms, how.b.terms) : 1;
}

//===----------------------------------------------------------------------===//
// Columns of the padded image
//===----------------------------------------------------------------------===//

/// Where in an image of the tensor pixel `number` (i64) of the padded one lies, in elements, and
/// whether it does.
Value *DeviceContraction::paddedOffset(const WindowOperand &window, tgl::TglTensorType type,
                                       Value *number, Value *&exists) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (unsigned dim = type.getRank() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * *type.getDims()[dim].getExpr().asConstant();
  Value *offset = i64(0);
  for (unsigned n = window.pixelDims.size(); n-- > 0;) {
    unsigned dim = window.pixelDims[n];
    int64_t own = *type.getDims()[dim].getExpr().asConstant(), low = halo->lows[n],
            counted = halo->extents[n];
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

DeviceContraction::GroupedPoint DeviceContraction::groupedPoint(const KOrder &order, Value *k) {
  Value *group = b.CreateUDiv(k, i64(order.groupPoints)),
        *within = b.CreateURem(k, i64(order.groupPoints));
  Value *chunk = b.CreateUDiv(within, i64(KOrder::channelVector)),
        *tap = b.CreateUDiv(chunk, i64(order.groupVectors));
  Value *run = b.CreateAdd(b.CreateMul(group, i64(order.groupVectors)),
                           b.CreateURem(chunk, i64(order.groupVectors)));
  Value *channel = b.CreateAdd(b.CreateMul(run, i64(KOrder::channelVector)),
                               b.CreateURem(within, i64(KOrder::channelVector)));
  Value *isTap = b.CreateICmpULT(tap, i64(order.taps));
  if (order.isReversed)
    tap = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(i64(order.taps - 1), tap), i64(0));
  return {channel, tap, isTap};
}

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

unsigned DeviceContraction::haloBytes() const {
  return halo->haloPixels(tile.columns) * groupOrder().groupVectors * termsOfStep() * chunkBytes;
}

HaloLayout DeviceContraction::haloLayout() const {
  const KOrder &order = groupOrder();
  HaloLayout layout{haloBuffers,   haloBytes(),          unsigned(order.groupVectors),
                    termsOfStep(), unsigned(order.taps), {}};
  for (const HaloTile::Stretch &stretch : halo->stretches(tile.columns))
    layout.pixels.emplace_back(stretch.first, stretch.first + stretch.count - 1);
  return layout;
}

/// Of group `number` (i64), of all that the block multiplies.
Value *DeviceContraction::haloAddress(Value *number) {
  Value *which = b.CreateURem(b.CreateTrunc(number, b.getInt32Ty()), i32(haloBuffers));
  int64_t base = ringRowsBytes();
  return here.sharedAt(b.CreateAdd(b.CreateMul(which, i32(haloBytes())), i32(base)));
}

/// Of the tile's group `group` (i64) that among all of the block.
Value *DeviceContraction::groupNumber(const WgmmaProduct &product, Value *group) {
  if (!product.stagesBefore)
    return group;
  return b.CreateAdd(b.CreateUDiv(product.stagesBefore, i64(product.substeps)), group);
}

/// Byte of the first column's unit `chunk` of a group in its patch, in the first plane. Units
/// beyond the last tap, which are multiplied by 0, are the last one's.
unsigned DeviceContraction::offsetOfChunk(unsigned chunk) const {
  const KOrder &order = groupOrder();
  unsigned runs = order.groupVectors;
  chunk = std::min<unsigned>(chunk, order.taps * runs - 1);
  int64_t term = halo->haloPixels(tile.columns);
  return (chunk % runs * termsOfStep() * term + halo->offsetOf(chunk / runs, tile.columns)) *
         chunkBytes;
}

/// Starts the copies of the tile's group `group` (i64), once the one before in its patch has been
/// multiplied.
void DeviceContraction::loadHalo(const WgmmaProduct &product, const PrepackedOperand &side,
                                 Value *group) {
  const WgmmaOperand &operand = product.b;
  const WindowOperand &window = *operand.window;
  const KOrder &order = groupOrder();
  Value *number = groupNumber(product, group);
  async::acquire(b, haloRing, b.CreateTrunc(number, b.getInt32Ty()));
  Value *haloBuffer = haloAddress(number);

  // The image and the first run of the tile's point of the batch.
  tgl::ReadOp read = operand.how->read;
  setPoint(product.reduce, product.kLoop, /*collapses=*/false, i64(0));
  here.setNumber(axes, operand.group->axes, /*collapses=*/false, i64(0));
  for (mlir::Operation *op : operand.side->slice)
    if (op != read)
      e.emitOp(op);
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  Value *image = i64(0);
  for (unsigned dim : ArrayRef(window.imageDims).take_front(halo->leadingImages)) {
    int64_t extent = *read.getTensorType().getDims()[dim].getExpr().asConstant();
    image = b.CreateAdd(b.CreateMul(image, i64(extent)), e.emitIndex(subscripts[dim]));
  }
  Value *firstPixel = b.CreateMul(image, i64(halo->images * halo->pixels));
  firstPixel = b.CreateAdd(firstPixel, operand.group->first);
  Value *firstRun =
      b.CreateUDiv(e.emitIndex(subscripts[window.channelDim]), i64(KOrder::channelVector));
  firstRun = b.CreateAdd(firstRun, b.CreateMul(group, i64(order.groupVectors)));

  Wgmma warps(b, /*isBF16=*/false);
  int64_t pixels = window.images * halo->pixels,
          runs = window.keptChannels() / KOrder::channelVector;
  unsigned term = halo->haloPixels(tile.columns) * chunkBytes; // in the patch
  SmallVector<Value *> terms;                                  // of each run and plane
  for (int64_t n = 0; n < order.groupVectors; ++n) {
    // Runs beyond the last are multiplied by 0.
    Value *run =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(firstRun, i64(n)), i64(runs - 1));
    for (unsigned which = 0; which < operand.terms; ++which) {
      Value *offset = b.CreateAdd(b.CreateMul(run, i64(operand.terms)), i64(which));
      offset = b.CreateAdd(e.emitSize(side.terms), b.CreateMul(offset, i64(pixels * chunkBytes)));
      terms.push_back(b.CreateInBoundsGEP(b.getInt8Ty(), prepackedBase, offset));
    }
  }
  for (const HaloTile::Stretch &stretch : halo->stretches(tile.columns))
    for (int64_t first = 0; first < stretch.count; first += producerThreads()) {
      Value *own = b.CreateAdd(here.thread, i32(first));
      auto copy = [&] {
        Value *pixel = b.CreateAdd(firstPixel, b.CreateAdd(wide(own), i64(stretch.first)));
        pixel = b.CreateBinaryIntrinsic(Intrinsic::smin, pixel,
                                        i64(pixels - 1)); // of columns beyond the last
        Value *from = b.CreateMul(pixel, i64(chunkBytes));
        Value *to = b.CreateAdd(b.CreateMul(own, i32(chunkBytes)), i32(stretch.place * chunkBytes));
        to = b.CreateInBoundsGEP(b.getInt8Ty(), haloBuffer, to);
        for (auto [n, base] : enumerate(terms)) {
          unsigned which = n / operand.terms * termsOfStep() + n % operand.terms;
          warps.copyChunk(b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(which * term)),
                          b.CreateInBoundsGEP(b.getInt8Ty(), base, from));
        }
      };
      if (first + producerThreads() <= stretch.count)
        copy();
      else
        e.emitIf(b.CreateICmpULT(own, i32(stretch.count)), copy);
    }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Where the places of a group's units are kept: a word for each step of 16 points, as a descriptor
/// has them.
Value *DeviceContraction::tapOffsetsAt(Value *step) {
  int64_t base = ringRowsBytes() + haloBuffers * haloBytes();
  return here.sharedAt(b.CreateAdd(b.CreateShl(step, i32(2)), i32(base)));
}

unsigned DeviceContraction::tapOffsetsBytes() const {
  return groupOrder().groupPoints / Wgmma::stepDepth * 4;
}

/// Consumers see them at once.
void DeviceContraction::storeTapOffsets() {
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned step = 0; step < tapOffsetsBytes() / 4; ++step) {
      unsigned place = offsetOfChunk(2 * step), apart = offsetOfChunk(2 * step + 1) - place;
      b.CreateAlignedStore(i32(Wgmma::coreOffsets(place, apart)), tapOffsetsAt(i32(step)),
                           Align(4));
    }
  });
  barrier();
}

/// Starts the products of stage `inGroup` (i32) of a group, the `inBlock`-th of the block,
/// `accumulators` (none: 0) added.
DeviceContraction::Accumulators DeviceContraction::multiplyHalo(const WgmmaProduct &product,
                                                                Value *inBlock, Value *haloBuffer,
                                                                Value *inGroup,
                                                                ArrayRef<Value *> accumulators) {
  Wgmma warps(b, product.type == MmaType::BF16);
  Value *stage = inRing(inBlock);
  const WgmmaSharedLayout &row = product.a.shared;
  unsigned steps = row.depth() / Wgmma::stepDepth;
  SmallVector<Value *> offsets;
  for (unsigned step = 0; step < steps; ++step) {
    Value *number = b.CreateAdd(b.CreateMul(inGroup, i32(steps)), i32(step));
    offsets.push_back(b.CreateAlignedLoad(b.getInt32Ty(), tapOffsetsAt(number), Align(4)));
  }
  TileCoord first = warpgroupCorner(b, tile, here.thread);
  Value *haloStart = b.CreatePtrToInt(haloBuffer, b.getInt32Ty());
  haloStart = b.CreateAdd(haloStart, b.CreateMul(first.column, i32(chunkBytes)));
  Value *rowAddress = b.CreatePtrToInt(stageAddress(product, stage), b.getInt32Ty());
  unsigned term = halo->haloPixels(tile.columns) * chunkBytes;
  async::wait(b, rings[product.number], inBlock, i32(0));
  Accumulators result(accumulators.begin(), accumulators.end());
  auto multiplyAll = [&](unsigned aTerm, unsigned bTerm) {
    for (unsigned step = 0; step < steps; ++step) {
      Value *rows = warps.descriptor(row, rowAddress, first.row, aTerm, step);
      Value *columns = warps.coreDescriptor(haloStart, offsets[step], bTerm * term);
      result = warps.multiply(result, warpgroupColumns(tile), rows, row.kMajor, columns,
                              /*bKMajor=*/true);
    }
  };
  forTermPairs(product, multiplyAll);
  async::commitProducts(b);
  return result;
}

/// Group by group; where sums are to keep f32's accuracy tensor cores add up no more than 64
/// points.
DeviceContraction::Accumulators DeviceContraction::haloMainloop(const WgmmaProduct &product) {
  unsigned count = product.substeps;
  SmallVector<Value *> zeros(warpgroupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  Value *total = product.stagesInAll ? product.stagesInAll : numStages(product);
  total = b.CreateTrunc(total, b.getInt32Ty());
  auto sumUpGroup = [&](Value *group, ArrayRef<Value *> current) {
    Value *groupInBlock = groupNumber(product, group), *haloBuffer = haloAddress(groupInBlock);
    // Of the group's first stage and of all; numbers of 32 bits, as registers are few.
    Value *firstStage = b.CreateTrunc(b.CreateMul(groupInBlock, i64(count)), b.getInt32Ty());
    auto multiply = [&](Value *inGroup, ArrayRef<Value *> accumulators) {
      return multiplyHalo(product, b.CreateAdd(firstStage, inGroup), haloBuffer, inGroup,
                          accumulators);
    };
    auto giveBack = [&](Value *inGroup) { // unless nobody waits for it
      Value *number = b.CreateAdd(firstStage, inGroup);
      e.emitIf(b.CreateICmpULT(b.CreateAdd(number, i32(ringStages())), total),
               [&] { async::release(b, rings[product.number], number); });
    };
    auto addStages = [&](Value *first, unsigned many, ArrayRef<Value *> accumulators) {
      SmallVector<Accumulators> partial{Accumulators()};
      Accumulators next;
      for (unsigned n = 0; n < many; ++n)
        partial.push_back(multiply(b.CreateAdd(first, i32(n)), partial.back()));
      for (unsigned n = 0; n + 1 < many; ++n) {
        async::awaitProducts(b, partial[n + 1].front());
        giveBack(b.CreateAdd(first, i32(n)));
      }
      Accumulators ready = async::readProducts(b, partial.back());
      giveBack(b.CreateAdd(first, i32(many - 1)));
      for (auto [sum, added] : zip_equal(accumulators, ready))
        next.push_back(b.CreateFAdd(sum, added));
      return next;
    };
    Accumulators accumulators(current);
    e.keepNextLoopRolled = true;
    if (product.promotesAccumulators) {
      constexpr unsigned together = 2;
      accumulators = e.emitLoop(
          i64(0), i64(count / together), i64(1), accumulators,
          [&](Value *pair, ArrayRef<Value *> before) {
            return addStages(b.CreateMul(b.CreateTrunc(pair, b.getInt32Ty()), i32(together)),
                             together, before);
          },
          "pair");
      if (count % together)
        accumulators = addStages(i32(count - 1), 1, accumulators);
    } else {
      accumulators = e.emitLoop(
          i64(0), i64(count), i64(1), accumulators,
          [&](Value *number, ArrayRef<Value *> before) {
            Value *inGroup = b.CreateTrunc(number, b.getInt32Ty());
            Accumulators next = multiply(inGroup, before);
            async::awaitProducts(b, before.front());
            e.emitIf(b.CreateICmpNE(inGroup, i32(0)),
                     [&] { giveBack(b.CreateSub(inGroup, i32(1))); });
            return next;
          },
          "stage");
      accumulators = async::readProducts(b, accumulators);
      giveBack(i32(count - 1));
    }
    Value *nextFirst = b.CreateAdd(firstStage, i32(haloBuffers * count));
    e.emitIf(b.CreateICmpULT(nextFirst, total),
             [&] { async::release(b, haloRing, b.CreateTrunc(groupInBlock, b.getInt32Ty())); });
    return accumulators;
  };
  return e.emitLoop(i64(0), product.kLoop.steps, i64(1), zeros, sumUpGroup, "group");
}
