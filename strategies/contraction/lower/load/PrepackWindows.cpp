//===- PrepackWindows.cpp - Prepacks images of convolutions ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of an operand whose elements several lines use (strategies/contraction/plan/WindowOperand.h) the
// launch before makes planes element by element, with channels innermost:
//
//   [image][pixel][plane][channel]
//
// Producers copy units of eight channels from there, and zeros where a window hangs over the edge.
// So what is read is in whole sectors whatever the order of the tensor's dims, and an element's
// place is reckoned once for eight. Where a tile has one copy of the image for all taps
// (HaloTile.cpp) pixels are those of the padded image, and neighbours:
//
//   [run of channels][plane][image][pixel][channel of the run]
//
// An image has one scale, from a sample of its elements. Elements larger than fit are infinite in
// their plane, those of an image with a sample of zeros that are too small to keep their bits are
// made NaN there: either leads the tiles that use them to the careful sums.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/PrepackWindows.h"

#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/lower/block/PrepackShape.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <cmath>

using namespace llvm;
using namespace tegula;

/// The dims' strides in the tensor, in elements.
static SmallVector<int64_t> stridesOf(tgl::TglTensorType type) {
  SmallVector<int64_t> strides(type.getRank());
  int64_t stride = 1;
  for (unsigned dim = type.getRank(); dim-- > 0;) {
    strides[dim] = stride;
    stride *= *type.getDims()[dim].getExpr().asConstant();
  }
  return strides;
}

/// Where point `number` (i64) of the dims lies, the last fastest, in elements.
static Value *offsetAlong(IRBuilder<> &b, tgl::TglTensorType type, ArrayRef<unsigned> dims,
                          Value *number) {
  SmallVector<int64_t> strides = stridesOf(type);
  Value *offset = b.getInt64(0);
  for (unsigned dim : reverse(dims)) {
    Value *digit = number;
    if (dim != dims.front()) {
      Value *extent = b.getInt64(*type.getDims()[dim].getExpr().asConstant());
      digit = b.CreateURem(number, extent);
      number = b.CreateUDiv(number, extent);
    }
    offset = b.CreateAdd(offset, b.CreateMul(digit, b.getInt64(strides[dim])));
  }
  return offset;
}

//===----------------------------------------------------------------------===//
// The launch before
//===----------------------------------------------------------------------===//

/// The scale of an image, from a sample of its elements; its first block leaves one over it in the
/// workspace.
Value *PrepackedWindows::scaleImage(const WindowOperand &window, const PrepackedOperand &side,
                                    tgl::TglTensorType type, Value *image, Value *blockOfImage,
                                    function_ref<Value *(Value *, Value *)> load) {
  // The sample: elements from all over the image, not all from its first columns; neighbours are
  // those of a warp.
  constexpr unsigned samplesOfThread = 4;
  int64_t elements = window.pixels * window.channels,
          samples = int64_t(samplesOfThread) * numbers.prepackThreads();
  int64_t apart = std::max<int64_t>(1, elements / samples), further = 0x9e37 % apart;
  Value *largestAt = here.sharedAt(i32(0)), *leastAt = here.sharedAt(i32(sizeof(float)));
  auto loadWord = [&](Value *place) {
    return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4));
  };
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    b.CreateAlignedStore(i32(0), largestAt, Align(4));
    b.CreateAlignedStore(i32(-1), leastAt, Align(4));
  });
  barrier();
  Value *sampled = ConstantFP::get(b.getFloatTy(), 0);
  for (unsigned n = 0; n < samplesOfThread; ++n) {
    Value *sample = wide(b.CreateAdd(here.thread, i32(n * numbers.prepackThreads())));
    Value *place = b.CreateMul(sample, i64(apart));
    if (apart > 1)
      place = b.CreateAdd(place, b.CreateURem(b.CreateMul(sample, i64(further)), i64(apart)));
    place = b.CreateBinaryIntrinsic(Intrinsic::umin, place, i64(elements - 1));
    Value *pixel = offsetAlong(b, type, window.pixelDims, b.CreateURem(place, i64(window.pixels)));
    Value *value = load(pixel, b.CreateUDiv(place, i64(window.pixels)));
    sampled = b.CreateMaxNum(sampled, b.CreateUnaryIntrinsic(Intrinsic::fabs, value));
  }
  Value *size = b.CreateBitCast(sampled, b.getInt32Ty());
  Value *ofWarp =
      b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_redux_sync_umax, {size, i32(-1)});
  e.emitIf(b.CreateICmpEQ(here.lane, i32(0)),
           [&] { precision.noteLargest(largestAt, leastAt, ofWarp); });
  barrier();
  Value *largest = loadWord(largestAt);
  Value *scale = precision.scaleOf(largest, /*isInverse=*/false, SplitPrecision::sampledExponent);
  Value *isFirst =
      b.CreateAnd(b.CreateICmpEQ(here.thread, i32(0)), b.CreateICmpEQ(blockOfImage, i64(0)));
  e.emitIf(isFirst, [&] {
    Value *scales = b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace, e.emitSize(side.scales));
    b.CreateAlignedStore(
        precision.inverseScale(largest, loadWord(leastAt), SplitPrecision::sampledExponent),
        b.CreateInBoundsGEP(b.getFloatTy(), scales, image), Align(4));
  });
  return scale;
}

/// The share of the block that is `number`-th (i64) of those that make this side.
void PrepackedWindows::prepackPixels(const WgmmaProduct &product, const WgmmaOperand &operand,
                                     const PrepackedOperand &side, Value *number) {
  const WindowOperand &window = *operand.window;
  unsigned warps = numbers.prepackThreads() / 32;
  int64_t pixels = numbers.usesHaloTile() ? numbers.halo->pixels : window.pixels;
  PrepackShape shape(window, pixels, numbers.usesHaloTile(), warps);
  tgl::TglTensorType type = tgl::ReadOp(operand.how->read).getTensorType();
  Value *image = b.CreateUDiv(number, i64(shape.blocks(warps)));
  Value *blockOfImage = b.CreateURem(number, i64(shape.blocks(warps)));
  Value *imageOffset = offsetAlong(b, type, window.imageDims, image);
  int64_t channelStride = stridesOf(type)[window.channelDim];
  Type *element =
      numbers.usesSplitPrecision() ? b.getFloatTy() : static_cast<Type *>(b.getInt16Ty());
  auto load = [&](Value *pixelOffset, Value *channel) {
    Value *offset = b.CreateAdd(imageOffset, pixelOffset);
    offset = b.CreateAdd(offset, b.CreateMul(channel, i64(channelStride)));
    return b.CreateAlignedLoad(element, wgmmaLoads.addressAt(operand, offset),
                               Align(element->getPrimitiveSizeInBits() / 8));
  };

  Value *scale = numbers.usesSplitPrecision()
                     ? scaleImage(window, side, type, image, blockOfImage, load)
                     : nullptr;

  Value *chunkOfLane = b.CreateUDiv(here.lane, i32(shape.lanesOfPixels)),
        *pixelOfLane = b.CreateURem(here.lane, i32(shape.lanesOfPixels));
  Value *warp = wide(b.CreateLShr(here.thread, i32(5)));
  int64_t kept = window.keptChannels(), chunks = kept / WindowOperand::channelVector;
  auto packChunk = [&](Value *pixel, Value *chunk) {
    Value *channel = b.CreateMul(chunk, i64(WindowOperand::channelVector)), *isInside = nullptr;
    Value *pixelOffset = numbers.usesHaloTile()
                             ? haloLoads.paddedOffset(window, type, pixel, isInside)
                             : offsetAlong(b, type, window.pixelDims, pixel);
    Value *values = PoisonValue::get(FixedVectorType::get(element, WindowOperand::channelVector));
    for (unsigned n = 0; n < WindowOperand::channelVector; ++n) {
      Value *own = b.CreateAdd(channel, i64(n)), *exists = isInside;
      if (window.channels != kept) {
        Value *isChannel = b.CreateICmpSLT(own, i64(window.channels));
        own = b.CreateSelect(isChannel, own, i64(0));
        exists = e.emitAnd(exists, isChannel);
      }
      Value *value = load(pixelOffset, own);
      if (exists)
        value = b.CreateSelect(exists, value, Constant::getNullValue(element));
      values = b.CreateInsertElement(values, value, n);
    }
    std::array<Value *, 2> terms = {values, nullptr};
    if (numbers.usesSplitPrecision())
      terms = precision.splitChunk(values, scale, operand.terms);
    // In elements, and how far the next plane is.
    Value *first = b.CreateAdd(b.CreateMul(image, i64(pixels)), pixel);
    int64_t apart =
        numbers.usesHaloTile() ? window.images * pixels * WindowOperand::channelVector : kept;
    if (numbers.usesHaloTile())
      first = b.CreateAdd(b.CreateMul(chunk, i64(operand.terms * apart)),
                          b.CreateMul(first, i64(WindowOperand::channelVector)));
    else
      first = b.CreateAdd(b.CreateMul(first, i64(operand.terms * kept)), channel);
    for (unsigned term = 0; term < operand.terms; ++term) {
      Value *offset = b.CreateShl(b.CreateAdd(first, i64(term * apart)), i64(1));
      Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace,
                                         b.CreateAdd(e.emitSize(side.terms), offset));
      b.CreateAlignedStore(terms[term], place, Align(16));
    }
  };
  e.emitLoop(
      i64(0), i64(shape.rounds), i64(1), {},
      [&](Value *round, ArrayRef<Value *>) {
        Value *task = b.CreateAdd(b.CreateMul(blockOfImage, i64(shape.rounds)), round);
        task = b.CreateAdd(b.CreateMul(task, i64(warps)), warp);
        Value *pixel =
            b.CreateMul(b.CreateUDiv(task, i64(shape.chunkGroups)), i64(shape.lanesOfPixels));
        pixel = b.CreateAdd(pixel, wide(pixelOfLane));
        Value *chunk =
            b.CreateMul(b.CreateURem(task, i64(shape.chunkGroups)), i64(shape.lanesOfChunks));
        chunk = b.CreateAdd(chunk, wide(chunkOfLane));
        Value *exists =
            b.CreateAnd(b.CreateICmpSLT(pixel, i64(pixels)), b.CreateICmpSLT(chunk, i64(chunks)));
        e.emitIf(exists, [&] { packChunk(pixel, chunk); });
        return SmallVector<Value *>();
      },
      "round");
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// The image (i64) that line `number` (i64, of the statement) is of.
Value *PrepackedWindows::imageOf(const WgmmaProduct &product, const WgmmaOperand &operand,
                                 Value *number) {
  tgl::ReadOp read = operand.how->read;
  indices.setPoint(product.reduce, product.kLoop, /*collapses=*/false, i64(0));
  here.setNumber(axes, operand.group->axes, /*collapses=*/false, number);
  for (mlir::Operation *op : operand.side->slice)
    if (op != read)
      e.emitOp(op);
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  Value *image = i64(0);
  for (unsigned dim : operand.window->imageDims) {
    int64_t extent = *read.getTensorType().getDims()[dim].getExpr().asConstant();
    Value *own = b.CreateBinaryIntrinsic(Intrinsic::smax, e.emitIndex(subscripts[dim]), i64(0));
    own = b.CreateBinaryIntrinsic(Intrinsic::smin, own,
                                  i64(extent - 1)); // where a fill stands for the whole image
    image = b.CreateAdd(b.CreateMul(image, i64(extent)), own);
  }
  return image;
}

/// What a formula of axes between constants does not exceed; without end where it is of other
/// things.
static double reachOf(const tgl::ValueExpr &expr, const IndexExpr &part) {
  constexpr double endless = std::numeric_limits<double>::infinity();
  double total = 0;
  for (const IndexExpr::Term &term : part.terms()) {
    double reach = std::abs(double(term.coefficient));
    for (const auto &[atom, power] : term.factors) {
      double factor = 0;
      for (const IndexExpr &operand : atom->operands)
        factor += reachOf(expr, operand);
      if (atom->kind == IndexExpr::AtomKind::Variable) {
        if (atom->var.isSymbol())
          return endless;
        auto argument = dyn_cast<mlir::BlockArgument>(expr.operands()[atom->var.position()]);
        std::optional<tgl::AxisRange> range = argument ? tgl::getRange(argument) : std::nullopt;
        std::optional<int64_t> lo = range ? range->lo.asConstant() : std::nullopt;
        std::optional<int64_t> hi = range ? range->hi.asConstant() : std::nullopt;
        if (!lo || !hi)
          return endless;
        factor = std::max(std::abs(double(*lo)), std::abs(double(*hi)));
      }
      reach *= std::pow(factor, power);
    }
    total += reach;
  }
  return total;
}

/// The same, as often as it is needed: the optimiser does not go back to the 64 bits that the word
/// was cut from.
Value *PrepackedWindows::plainWord(Value *word) {
  auto *type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
  return b.CreateCall(InlineAsm::get(type, "mov.b32 $0, $1;", "=r,r", /*hasSideEffects=*/false),
                      {word});
}

/// Starts the copies of stage `number` (i64, of the whole sum).
void PrepackedWindows::copyWindows(const WgmmaProduct &product, const WgmmaOperand &operand,
                                   const PrepackedOperand &side, Value *number, Value *stage) {
  const WindowOperand &window = *operand.window;
  const KOrder &order = product.kLoop.order;
  tgl::ReadOp read = operand.how->read;
  tgl::TglTensorType type = read.getTensorType();
  auto summed = cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation());
  Wgmma group(b, /*isBF16=*/false);
  Value *firstPoint =
      b.CreateMul(b.CreateTrunc(number, b.getInt32Ty()), i32(operand.shared.depth()));
  int64_t kept = window.keptChannels(), total = order.points(summed);
  // A producer's warp has its scheduler to itself, and what it waits for is its own arithmetic: 32
  // bits where planes have no more bytes.
  constexpr int64_t maxInt32 = (int64_t(1) << 31) - 1;
  std::optional<int64_t> start = side.terms.asConstant();
  SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
  bool isShort = start && *start + 2 * window.keptElements() * operand.terms <= maxInt32 &&
                 all_of(subscripts, [&](const tgl::ValueExpr &one) {
                   return reachOf(one, one.expr()) <= maxInt32;
                 });
  Type *placeType = isShort ? b.getInt32Ty() : b.getInt64Ty();
  // Four threads share a line: then few enough lines are a thread's for their places to stay in
  // registers.
  constexpr unsigned perLine = 4;
  unsigned rounds = operand.shared.chunksPerLine() / perLine,
           count = operand.shared.extent * perLine / numbers.producerThreads();
  for (unsigned index = 0; index < count * rounds; ++index) {
    WgmmaLoads::ChunkCoord place =
        wgmmaLoads.chunkInLine(perLine, index / rounds, numbers.producerThreads());
    place.chunk = b.CreateAdd(place.chunk, i32(index % rounds * perLine));
    // Numbers of 32 bits: a sum of more points has no planes that fit.
    Value *k = b.CreateAdd(firstPoint, b.CreateShl(place.chunk, i32(3)));
    // Steps are whole, stages of the last may be beyond the sum.
    Value *exists = total % (operand.shared.depth() * product.substeps)
                        ? b.CreateICmpULT(k, i32(total))
                        : nullptr;
    e.values[summed.getAxes()[window.channelAxis]] = wide(b.CreateURem(k, i32(order.padded)));
    here.setNumber(summed, ArrayRef(order.axes).drop_back(), /*collapses=*/false,
                   wide(b.CreateUDiv(k, i32(order.padded))));
    here.setNumber(axes, operand.group->axes, /*collapses=*/false,
                   wgmmaLoads.numberOf(operand, wide(wgmmaLoads.lineOf(place)), 1));
    for (mlir::Operation *op : operand.side->slice)
      if (op != read)
        e.emitOp(op);
    SmallVector<tgl::ValueExpr> subscripts = read.getSubscriptExprs();
    auto coordinate = [&](unsigned dim) -> Value * {
      Value *its = e.emitIndex(subscripts[dim]);
      return isShort ? plainWord(b.CreateTrunc(its, placeType)) : its;
    };
    auto numberIn = [&](ArrayRef<unsigned> dims, Value *result) {
      for (unsigned dim : dims) {
        Value *extent = ConstantInt::get(placeType, *type.getDims()[dim].getExpr().asConstant());
        Value *its = coordinate(dim);
        // Unsigned: below 0 is large.
        if (read.getFill())
          exists = e.emitAnd(exists, b.CreateICmpULT(its, extent));
        result = result ? b.CreateAdd(b.CreateMul(result, extent), its) : its;
      }
      return result;
    };
    Value *pixel = numberIn(window.pixelDims, numberIn(window.imageDims, nullptr));
    Value *element = b.CreateMul(pixel, ConstantInt::get(placeType, operand.terms * kept));
    element = b.CreateAdd(element, coordinate(window.channelDim));
    Value *bytes = b.CreateShl(element, uint64_t(1));
    if (exists)
      bytes = b.CreateSelect(exists, bytes, ConstantInt::get(placeType, 0));
    if (isShort)
      bytes = plainWord(b.CreateAdd(bytes, i32(*start)));
    else
      bytes = b.CreateAdd(bytes, e.emitSize(side.terms));
    Value *first =
        b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace, b.CreateZExt(bytes, b.getInt64Ty()));
    for (unsigned term = 0; term < operand.terms; ++term) {
      Value *to = b.CreateAdd(group.swizzledOffset(operand.shared, place.line, place.chunk, term),
                              i32(operand.offset + place.below * WgmmaSharedLayout::lineBytes));
      Value *from = b.CreateInBoundsGEP(b.getInt8Ty(), first, i64(2 * term * kept));
      to = b.CreateInBoundsGEP(b.getInt8Ty(), stage, to);
      group.copyChunk(to, from, exists);
    }
  }
}
