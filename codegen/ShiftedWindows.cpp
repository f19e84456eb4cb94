//===- ShiftedWindows.cpp - Windows of a tile as one copy of the image -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbouring windows of a convolution share most of their elements. Copied tap by tap (PackedWindows.cpp) an element
// comes from the second-level cache as often as there are taps, and where channels are few that takes most of the time.
// Here columns are counted along the padded image (passes/WindowOperand.h), so that the elements of a tile's columns at
// a tap are neighbours, and those at another tap the same, shifted: for a group of runs of channels a tile copies what
// all its taps need once, to a *patch*:
//
//   [run of the group][plane][pixel][channel of the run]
//
// Eight pixels are 128 bytes one after the other, what wgmma calls a core matrix without a swizzle, and may begin at
// any pixel. So a tap is an address. Each step of 16 points of the sum takes two units of eight channels, of
// neighbouring runs or of neighbouring taps, whose distance the descriptor holds.
//
// There are two patches, beside the ring, which holds rows alone. Columns that exist for the padding alone are summed
// up like others, and the rest of the statement leaves them out.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

static constexpr unsigned unitBytes = 2 * SumOrder::run;

/// 16-bit numbers of a value in shared memory.
unsigned DeviceContraction::stepPlanes() const {
  const ProductOperands &how = products.front();
  return isSplit() ? std::max(how.row.parts, how.column.parts) : 1;
}

//===----------------------------------------------------------------------===//
// Columns of the padded image
//===----------------------------------------------------------------------===//

/// Where in an image of the tensor pixel `number` (i64) of the padded one lies, in elements, and whether it does.
Value *DeviceContraction::paddedOffset(const WindowOperand &window, tgl::TglTensorType type, Value *number,
                                       Value *&exists) {
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (unsigned dim = type.getRank() - 1; dim > 0; --dim)
    strides[dim - 1] = strides[dim] * *type.getDims()[dim].getExpr().asConstant();
  Value *offset = i64(0);
  for (unsigned n = window.pixelDims.size(); n-- > 0;) {
    unsigned dim = window.pixelDims[n];
    int64_t own = *type.getDims()[dim].getExpr().asConstant(), low = shifted->lows[n], counted = shifted->extents[n];
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

DeviceContraction::GroupedPoint DeviceContraction::groupedPoint(const SumOrder &order, Value *k) {
  Value *group = b.CreateUDiv(k, i64(order.groupPoints)), *within = b.CreateURem(k, i64(order.groupPoints));
  Value *unit = b.CreateUDiv(within, i64(SumOrder::run)), *tap = b.CreateUDiv(unit, i64(order.groupRuns));
  Value *run = b.CreateAdd(b.CreateMul(group, i64(order.groupRuns)), b.CreateURem(unit, i64(order.groupRuns)));
  Value *channel = b.CreateAdd(b.CreateMul(run, i64(SumOrder::run)), b.CreateURem(within, i64(SumOrder::run)));
  Value *isTap = b.CreateICmpULT(tap, i64(order.taps));
  if (order.isReversed)
    tap = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(i64(order.taps - 1), tap), i64(0));
  return {channel, tap, isTap};
}

//===----------------------------------------------------------------------===//
// Patches
//===----------------------------------------------------------------------===//

unsigned DeviceContraction::patchBytes() const {
  return shifted->patchPixels(tile.columns) * groupOrder().groupRuns * stepPlanes() * unitBytes;
}

PatchLayout DeviceContraction::patchLayout() const {
  const SumOrder &order = groupOrder();
  PatchLayout layout{patches, patchBytes(), unsigned(order.groupRuns), stepPlanes(), unsigned(order.taps), {}};
  for (const ShiftedWindows::Stretch &stretch : shifted->stretches(tile.columns))
    layout.pixels.emplace_back(stretch.first, stretch.first + stretch.count - 1);
  return layout;
}

/// Of group `number` (i64), of all that the block multiplies.
Value *DeviceContraction::patchAt(Value *number) {
  Value *which = b.CreateURem(b.CreateTrunc(number, b.getInt32Ty()), i32(patches));
  int64_t base = ringRowsBytes();
  return here.sharedAt(b.CreateAdd(b.CreateMul(which, i32(patchBytes())), i32(base)));
}

/// Of the tile's group `group` (i64) that among all of the block.
Value *DeviceContraction::groupNumber(const PlaneProduct &product, Value *group) {
  if (!product.stagesBefore)
    return group;
  return b.CreateAdd(b.CreateUDiv(product.stagesBefore, i64(product.substeps)), group);
}

/// Byte of the first column's unit `unit` of a group in its patch, in the first plane. Units beyond the last tap, which
/// are multiplied by 0, are the last one's.
unsigned DeviceContraction::placeOfUnit(unsigned unit) const {
  const SumOrder &order = groupOrder();
  unsigned runs = order.groupRuns;
  unit = std::min<unsigned>(unit, order.taps * runs - 1);
  int64_t plane = shifted->patchPixels(tile.columns);
  return (unit % runs * stepPlanes() * plane + shifted->placeOf(unit / runs, tile.columns)) * unitBytes;
}

/// Starts the copies of the tile's group `group` (i64), once the one before in its patch has been multiplied.
void DeviceContraction::copyPatch(const PlaneProduct &product, const PackedSide &side, Value *group) {
  const PlaneOperand &operand = product.column;
  const WindowOperand &window = *operand.window;
  const SumOrder &order = groupOrder();
  Value *number = groupNumber(product, group);
  async::acquire(b, patchRing, b.CreateTrunc(number, b.getInt32Ty()));
  Value *patch = patchAt(number);

  // The image and the first run of the tile's point of the batch.
  tgl::ReadOp read = operand.how->read;
  setPoint(product.reduce, product.sum, /*collapses=*/false, i64(0));
  here.setNumber(axes, operand.group->axes, /*collapses=*/false, i64(0));
  for (mlir::Operation *op : operand.side->slice)
    if (op != read)
      e.emitOp(op);
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  Value *image = i64(0);
  for (unsigned dim : ArrayRef(window.imageDims).take_front(shifted->leadingImages)) {
    int64_t extent = *read.getTensorType().getDims()[dim].getExpr().asConstant();
    image = b.CreateAdd(b.CreateMul(image, i64(extent)), e.emitIndex(subscripts[dim]));
  }
  Value *firstPixel = b.CreateMul(image, i64(shifted->images * shifted->pixels));
  firstPixel = b.CreateAdd(firstPixel, operand.group->first);
  Value *firstRun = b.CreateUDiv(e.emitIndex(subscripts[window.channelDim]), i64(SumOrder::run));
  firstRun = b.CreateAdd(firstRun, b.CreateMul(group, i64(order.groupRuns)));

  Warpgroup warps(b, /*isBrain=*/false);
  int64_t pixels = window.images * shifted->pixels, runs = window.keptChannels() / SumOrder::run;
  unsigned plane = shifted->patchPixels(tile.columns) * unitBytes; // in the patch
  SmallVector<Value *> planes; // of each run and plane
  for (int64_t n = 0; n < order.groupRuns; ++n) {
    // Runs beyond the last are multiplied by 0.
    Value *run = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(firstRun, i64(n)), i64(runs - 1));
    for (unsigned which = 0; which < operand.planes; ++which) {
      Value *offset = b.CreateAdd(b.CreateMul(run, i64(operand.planes)), i64(which));
      offset = b.CreateAdd(e.emitSize(side.planes), b.CreateMul(offset, i64(pixels * unitBytes)));
      planes.push_back(b.CreateInBoundsGEP(b.getInt8Ty(), packed, offset));
    }
  }
  for (const ShiftedWindows::Stretch &stretch : shifted->stretches(tile.columns))
    for (int64_t first = 0; first < stretch.count; first += stagers()) {
      Value *own = b.CreateAdd(here.thread, i32(first));
      auto copy = [&] {
        Value *pixel = b.CreateAdd(firstPixel, b.CreateAdd(wide(own), i64(stretch.first)));
        pixel = b.CreateBinaryIntrinsic(Intrinsic::smin, pixel, i64(pixels - 1)); // of columns beyond the last
        Value *from = b.CreateMul(pixel, i64(unitBytes));
        Value *to = b.CreateAdd(b.CreateMul(own, i32(unitBytes)), i32(stretch.place * unitBytes));
        to = b.CreateInBoundsGEP(b.getInt8Ty(), patch, to);
        for (auto [n, base] : enumerate(planes)) {
          unsigned which = n / operand.planes * stepPlanes() + n % operand.planes;
          warps.copyUnit(b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(which * plane)),
                         b.CreateInBoundsGEP(b.getInt8Ty(), base, from));
        }
      };
      if (first + stagers() <= stretch.count)
        copy();
      else
        e.emitIf(b.CreateICmpULT(own, i32(stretch.count)), copy);
    }
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Where the places of a group's units are kept: a word for each step of 16 points, as a descriptor has them.
Value *DeviceContraction::placesAt(Value *step) {
  int64_t base = ringRowsBytes() + patches * patchBytes();
  return here.sharedAt(b.CreateAdd(b.CreateShl(step, i32(2)), i32(base)));
}

unsigned DeviceContraction::placesBytes() const { return groupOrder().groupPoints / Warpgroup::stepDepth * 4; }

/// Consumers see them at once.
void DeviceContraction::storePlaces() {
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned step = 0; step < placesBytes() / 4; ++step) {
      unsigned place = placeOfUnit(2 * step), apart = placeOfUnit(2 * step + 1) - place;
      b.CreateAlignedStore(i32(Warpgroup::coreOffsets(place, apart)), placesAt(i32(step)), Align(4));
    }
  });
  barrier();
}

/// Starts the products of stage `inGroup` (i32) of a group, the `inBlock`-th of the block, `sums` (none: 0) added.
DeviceContraction::Sums DeviceContraction::multiplyShifted(const PlaneProduct &product, Value *inBlock, Value *patch,
                                                           Value *inGroup, ArrayRef<Value *> sums) {
  Warpgroup warps(b, product.type == Multiplicand::BF16);
  Value *stage = inRing(inBlock);
  const PlaneTile &row = product.row.shared;
  unsigned steps = row.depth() / Warpgroup::stepDepth;
  SmallVector<Value *> offsets;
  for (unsigned step = 0; step < steps; ++step) {
    Value *number = b.CreateAdd(b.CreateMul(inGroup, i32(steps)), i32(step));
    offsets.push_back(b.CreateAlignedLoad(b.getInt32Ty(), placesAt(number), Align(4)));
  }
  TilePlace first = groupCorner(b, tile, here.thread);
  Value *patchAddress = b.CreatePtrToInt(patch, b.getInt32Ty());
  patchAddress = b.CreateAdd(patchAddress, b.CreateMul(first.column, i32(unitBytes)));
  Value *rowAddress = b.CreatePtrToInt(planeStage(product, stage), b.getInt32Ty());
  unsigned plane = shifted->patchPixels(tile.columns) * unitBytes;
  async::wait(b, rings[product.number], inBlock, i32(0));
  Sums result(sums.begin(), sums.end());
  auto multiplyAll = [&](unsigned rowPlane, unsigned columnPlane) {
    for (unsigned step = 0; step < steps; ++step) {
      Value *rows = warps.descriptor(row, rowAddress, first.row, rowPlane, step);
      Value *columns = warps.coreDescriptor(patchAddress, offsets[step], columnPlane * plane);
      result = warps.multiply(result, groupColumns(tile), rows, row.alongSum, columns, /*columnsAlongSum=*/true);
    }
  };
  forPlanes(product, multiplyAll);
  async::commitProducts(b);
  return result;
}

/// Group by group; where sums are to keep f32's accuracy tensor cores add up no more than 64 points.
DeviceContraction::Sums DeviceContraction::sumUpShifted(const PlaneProduct &product) {
  unsigned count = product.substeps;
  SmallVector<Value *> zeros(groupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  Value *total = product.stagesEver ? product.stagesEver : numStages(product);
  total = b.CreateTrunc(total, b.getInt32Ty());
  auto sumUpGroup = [&](Value *group, ArrayRef<Value *> current) {
    Value *groupInBlock = groupNumber(product, group), *patch = patchAt(groupInBlock);
    // Of the group's first stage and of all; numbers of 32 bits, as registers are few.
    Value *firstStage = b.CreateTrunc(b.CreateMul(groupInBlock, i64(count)), b.getInt32Ty());
    auto multiply = [&](Value *inGroup, ArrayRef<Value *> sums) {
      return multiplyShifted(product, b.CreateAdd(firstStage, inGroup), patch, inGroup, sums);
    };
    auto giveBack = [&](Value *inGroup) { // unless nobody waits for it
      Value *number = b.CreateAdd(firstStage, inGroup);
      e.emitIf(b.CreateICmpULT(b.CreateAdd(number, i32(ringStages())), total),
               [&] { async::release(b, rings[product.number], number); });
    };
    auto addStages = [&](Value *first, unsigned many, ArrayRef<Value *> sums) {
      SmallVector<Sums> partial{Sums()};
      Sums next;
      for (unsigned n = 0; n < many; ++n)
        partial.push_back(multiply(b.CreateAdd(first, i32(n)), partial.back()));
      for (unsigned n = 0; n + 1 < many; ++n) {
        async::awaitProducts(b, partial[n + 1].front());
        giveBack(b.CreateAdd(first, i32(n)));
      }
      Sums ready = async::readProducts(b, partial.back());
      giveBack(b.CreateAdd(first, i32(many - 1)));
      for (auto [sum, added] : zip_equal(sums, ready))
        next.push_back(b.CreateFAdd(sum, added));
      return next;
    };
    Sums sums(current);
    e.nextLoopStays = true;
    if (product.keepsPartial) {
      constexpr unsigned together = 2;
      sums = e.emitLoop(
          i64(0), i64(count / together), i64(1), sums,
          [&](Value *pair, ArrayRef<Value *> before) {
            return addStages(b.CreateMul(b.CreateTrunc(pair, b.getInt32Ty()), i32(together)), together, before);
          },
          "pair");
      if (count % together)
        sums = addStages(i32(count - 1), 1, sums);
    } else {
      sums = e.emitLoop(
          i64(0), i64(count), i64(1), sums,
          [&](Value *number, ArrayRef<Value *> before) {
            Value *inGroup = b.CreateTrunc(number, b.getInt32Ty());
            Sums next = multiply(inGroup, before);
            async::awaitProducts(b, before.front());
            e.emitIf(b.CreateICmpNE(inGroup, i32(0)), [&] { giveBack(b.CreateSub(inGroup, i32(1))); });
            return next;
          },
          "stage");
      sums = async::readProducts(b, sums);
      giveBack(i32(count - 1));
    }
    Value *nextFirst = b.CreateAdd(firstStage, i32(patches * count));
    e.emitIf(b.CreateICmpULT(nextFirst, total),
             [&] { async::release(b, patchRing, b.CreateTrunc(groupInBlock, b.getInt32Ty())); });
    return sums;
  };
  return e.emitLoop(i64(0), product.sum.steps, i64(1), zeros, sumUpGroup, "group");
}
