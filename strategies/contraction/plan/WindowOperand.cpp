//===- WindowOperand.cpp - Operands that are windows on an image ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/plan/WindowOperand.h"

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

int64_t KOrder::points(tgl::AxesOp summed) const {
  if (!padded)
    return tgl::knownPoints(summed).value_or(0);
  if (groupVectors)
    return numGroups() * groupPoints;
  return tgl::knownPoints(summed, ArrayRef(axes).drop_back()).value_or(0) * padded;
}

/// Whether a subscript is the axis plus something that is a multiple of a run wherever it is read.
static bool walksAlongVectors(const ValueExpr &subscript, mlir::Value axis) {
  if (tgl::stepAlong(subscript, axis) != 1)
    return false;
  ValueExpr start = subscript.substitute(axis, ValueExpr(int64_t(0)));
  return llvm::all_of(start.expr().terms(), [](const IndexExpr::Term &term) {
    return term.coefficient % WindowOperand::channelVector == 0;
  });
}

static std::optional<WindowOperand> planAlong(tgl::ReadOp read, tgl::AxesOp summed,
                                              unsigned channelAxis) {
  mlir::Value channel = summed.getAxes()[channelAxis];
  if (tgl::getAxisRange(summed, channelAxis).lo.asConstant() != 0)
    return std::nullopt;
  WindowOperand window;
  window.channelAxis = channelAxis;
  SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
  auto usesSum = [&](const ValueExpr &subscript) {
    return llvm::any_of(summed.getAxes(), [&](mlir::Value axis) { return subscript.uses(axis); });
  };
  auto isComputed = [&](mlir::Value value) { // in the sum, so that no axis shows how it moves
    return value.getDefiningOp() && value.getParentBlock() == summed.getAxesBlock();
  };
  auto isOfStatement = [&](mlir::Value value) {
    return !llvm::is_contained(summed.getAxes(), value) && axesOpOf(value);
  };
  bool hasChannels = false, isShared = false;
  for (auto [number, subscript, dim] : enumerate(subscripts, read.getTensorType().getDims())) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent || *extent < 1 || llvm::any_of(subscript.operands(), isComputed))
      return std::nullopt;
    if (subscript.uses(channel)) {
      if (hasChannels || !walksAlongVectors(subscript, channel))
        return std::nullopt;
      hasChannels = true;
      window.channelDim = number;
      window.channels = *extent;
      // Fills are for pixels and images alone.
      Prover prover(sizeFacts(read->getParentOfType<tgl::KernelOp>()));
      AxisScope scope(prover, read);
      if (!scope.provesInBounds(subscript, dim.getExpr()))
        return std::nullopt;
    } else if (usesSum(subscript)) {
      window.pixelDims.push_back(number);
      window.pixels *= *extent;
      bool walks = false;
      for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis)
        walks |= subscript.uses(summed.getAxes()[axis]) && tgl::knownPoints(summed, {axis}) != 1;
      // Points of one line are another's where both the sum and the statement walk along the dim.
      isShared |= walks && llvm::any_of(subscript.operands(), isOfStatement);
    } else {
      window.imageDims.push_back(number);
      window.images *= *extent;
    }
  }
  if (!hasChannels || !isShared)
    return std::nullopt;
  // Dims within an image are counted with its pixels, so that these are neighbours as they are in
  // the tensor.
  auto isWithin = [&](unsigned dim) { return dim > window.pixelDims.front(); };
  for (unsigned dim : window.imageDims)
    if (isWithin(dim)) {
      int64_t extent = *read.getTensorType().getDims()[dim].getExpr().asConstant();
      window.images /= extent;
      window.pixels *= extent;
      window.pixelDims.push_back(dim);
    }
  llvm::erase_if(window.imageDims, isWithin);
  llvm::sort(window.pixelDims);
  return window;
}

/// Whether elements are what is multiplied or, of f32, numbers of 16 bits are made of them.
static bool canBeKept(mlir::Type element, MmaType type) {
  switch (type) {
  case MmaType::F16:
    return element.isF16();
  case MmaType::BF16:
    return element.isBF16();
  case MmaType::TF32:
    return element.isF32();
  case MmaType::F8:
  case MmaType::I8:
    return false; // units of bytes are sixteen channels
  }
  llvm_unreachable("a type of multiplicands");
}

std::optional<WindowOperand> tegula::planWindows(const ContractionOperand &operand, MmaType type,
                                                 tgl::ReduceOp reduce) {
  auto summed = tgl::axesOfOp(reduce);
  tgl::ReadOp read = operand.read;
  if (!operand.isPlain || !canBeKept(read.getTensorType().getElementType(), type) ||
      !tgl::knownPoints(summed))
    return std::nullopt;
  // The longest axis has the fewest points beyond its own.
  std::optional<WindowOperand> best;
  for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis) {
    std::optional<WindowOperand> window = planAlong(read, summed, axis);
    if (window && (!best || *tgl::knownPoints(summed, {axis}) >
                                *tgl::knownPoints(summed, {best->channelAxis})))
      best = std::move(window);
  }
  return best;
}

PrepackedProduct tegula::planPrepackedProduct(const ProductOperands &operands,
                                              tgl::ReduceOp reduce) {
  auto summed = tgl::axesOfOp(reduce);
  PrepackedProduct prepacked;
  prepacked.order.axes = to_vector(seq<unsigned>(0, summed.getAxes().size()));
  prepacked.b = planWindows(operands.b, operands.type, reduce);
  if (!prepacked.b)
    prepacked.a = planWindows(operands.a, operands.type, reduce);
  const std::optional<WindowOperand> &window = prepacked.b ? prepacked.b : prepacked.a;
  if (!window)
    return prepacked;
  llvm::erase(prepacked.order.axes, window->channelAxis);
  prepacked.order.axes.push_back(window->channelAxis);
  prepacked.order.padded =
      alignTo(*tgl::knownPoints(summed, {window->channelAxis}), WindowOperand::channelVector);
  return prepacked;
}

//===----------------------------------------------------------------------===//
// Windows as one stretch of pixels
//===----------------------------------------------------------------------===//

SmallVector<HaloTile::Stretch> HaloTile::stretches(int64_t columns) const {
  SmallVector<Stretch> result;
  for (int64_t shift : shifts) {
    if (!result.empty() && shift <= result.back().first + result.back().count) {
      result.back().count = std::max(result.back().count, shift + columns - result.back().first);
      continue;
    }
    int64_t place = result.empty() ? 0 : result.back().place + result.back().count;
    result.push_back({shift, columns, place});
  }
  return result;
}

int64_t HaloTile::haloPixels(int64_t columns) const {
  Stretch last = stretches(columns).back();
  return last.place + last.count;
}

int64_t HaloTile::offsetOf(int64_t tap, int64_t columns) const {
  for (const Stretch &stretch : stretches(columns))
    if (shifts[tap] >= stretch.first && shifts[tap] < stretch.first + stretch.count)
      return stretch.place + shifts[tap] - stretch.first;
  llvm_unreachable("each tap is in a stretch");
}

/// The dims that columns walk along, one for each axis, as the tensor has them: images, then
/// pixels.
static std::optional<SmallVector<unsigned>> walkedDims(const WindowOperand &window,
                                                       tgl::ReadOp read, tgl::AxesOp axes,
                                                       ArrayRef<unsigned> columns) {
  SmallVector<unsigned> dims(window.imageDims);
  dims.append(window.pixelDims);
  if (columns.size() < window.pixelDims.size() || columns.size() > dims.size() ||
      !llvm::is_sorted(window.imageDims) || !llvm::is_sorted(window.pixelDims))
    return std::nullopt;
  dims.erase(dims.begin(), dims.end() - columns.size());
  SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
  for (auto [number, subscript] : enumerate(subscripts)) {
    auto own = llvm::find(dims, unsigned(number));
    for (auto [place, column] : enumerate(columns)) {
      bool isOwn = own != dims.end() && own - dims.begin() == int64_t(place);
      if (subscript.uses(axes.getAxes()[column]) != isOwn)
        return std::nullopt;
    }
  }
  return dims;
}

std::optional<HaloTile> tegula::planHaloTile(const WindowOperand &window, tgl::ReadOp read,
                                             tgl::ReduceOp reduce, tgl::AxesOp axes,
                                             ArrayRef<unsigned> columns) {
  auto summed = tgl::axesOfOp(reduce);
  std::optional<SmallVector<unsigned>> dims = walkedDims(window, read, axes, columns);
  if (!dims || tgl::getAxisRange(summed, window.channelAxis).lo.asConstant() != 0)
    return std::nullopt;
  HaloTile halo;
  halo.leadingImages = window.imageDims.size() + window.pixelDims.size() - columns.size();
  SmallVector<ValueExpr> subscripts = read.getSubscriptExprs();
  SmallVector<unsigned> taps; // axes of the sum
  SmallVector<int64_t> points;
  int64_t numTaps = 1;
  for (unsigned axis = 0; axis < summed.getAxes().size(); ++axis) {
    if (axis == window.channelAxis)
      continue;
    taps.push_back(axis);
    points.push_back(tgl::knownPoints(summed, {axis}).value_or(0));
    numTaps *= points.back();
  }
  constexpr int64_t maxTaps = 512;
  if (numTaps < 1 || numTaps > maxTaps)
    return std::nullopt;

  SmallVector<SmallVector<int64_t>> steps; // of each pixel dim, for each of `taps`
  SmallVector<int64_t> starts; // of each pixel dim: where the first tap of the first column is
  for (auto [place, dim] : enumerate(*dims)) {
    const ValueExpr &subscript = subscripts[dim];
    mlir::Value axis = axes.getAxes()[columns[place]];
    std::optional<int64_t> low = tgl::getAxisRange(axes, columns[place]).lo.asConstant(),
                           extent = tgl::knownPoints(axes, {columns[place]});
    if (!low || !extent || *extent < 1 || tgl::stepAlong(subscript, axis) != 1)
      return std::nullopt;
    SmallVector<int64_t> its;
    for (unsigned tap : taps) {
      mlir::Value value = summed.getAxes()[tap];
      std::optional<int64_t> step = subscript.uses(value) ? tgl::stepAlong(subscript, value) : 0;
      if (!step)
        return std::nullopt;
      its.push_back(*step);
    }
    std::optional<int64_t> start =
        subscript
            .substitute([&](mlir::Value value) -> std::optional<ValueExpr> {
              if (value == axis)
                return ValueExpr(*low);
              for (unsigned tap : taps)
                if (value == summed.getAxes()[tap])
                  return tgl::getAxisRange(summed, tap).lo;
              return std::nullopt;
            })
            .asConstant();
    if (!start)
      return std::nullopt;
    if (!llvm::is_contained(window.pixelDims, dim)) {
      std::optional<int64_t> whole = read.getTensorType().getDims()[dim].getExpr().asConstant();
      if (*start != 0 || whole != extent ||
          llvm::any_of(its, [](int64_t step) { return step != 0; }))
        return std::nullopt;
      halo.images *= *extent;
      continue;
    }
    int64_t first = *start, last = *start + *extent - 1;
    for (auto [step, count] : zip_equal(its, points)) {
      first += std::min<int64_t>(0, step * (count - 1));
      last += std::max<int64_t>(0, step * (count - 1));
    }
    halo.lows.push_back(first);
    halo.extents.push_back(last - first + 1);
    halo.pixels *= last - first + 1;
    starts.push_back(*start - first);
    steps.push_back(std::move(its));
  }

  for (int64_t tap = 0; tap < numTaps; ++tap) {
    int64_t shift = 0, rest = tap;
    SmallVector<int64_t> at(points.size());
    for (unsigned n = points.size(); n-- > 0; rest /= points[n])
      at[n] = rest % points[n];
    for (unsigned dim = 0; dim < starts.size(); ++dim) {
      int64_t coordinate = starts[dim];
      for (auto [step, own] : zip_equal(steps[dim], at))
        coordinate += step * own;
      shift = shift * halo.extents[dim] + coordinate;
    }
    halo.shifts.push_back(shift);
  }
  if (numTaps > 1 && halo.shifts.front() > halo.shifts.back()) {
    halo.isReversed = true;
    std::reverse(halo.shifts.begin(), halo.shifts.end());
  }
  if (!llvm::is_sorted(halo.shifts))
    return std::nullopt;
  return halo;
}

std::optional<KOrder> tegula::groupChannels(KOrder order, const HaloTile &halo, int64_t depth,
                                            int64_t columns, bool mayPad) {
  // Shared memory holds the offsets of all steps, and the parts of the image that two groups need.
  constexpr int64_t maxSteps = 64, maxHaloBytes = 40 * 1024;
  order.taps = halo.shifts.size();
  order.isReversed = halo.isReversed;
  int64_t runs = order.padded / KOrder::channelVector, best = 0, terms = 64 / depth;
  for (int64_t count = 1; count <= runs; count *= 2) {
    // Two steps at least: producers are as far ahead of what they have told consumers of.
    int64_t points =
        std::max<int64_t>(alignTo(order.taps * count * KOrder::channelVector, depth), 2 * depth);
    int64_t total = divideCeil(runs, count) * points;
    bool fits =
        halo.haloPixels(columns) * count * terms * 2 * KOrder::channelVector <= maxHaloBytes;
    bool isPadded = points != order.taps * count * KOrder::channelVector || runs % count != 0;
    if (points / depth > maxSteps || !fits || (best && total >= best) || (isPadded && !mayPad))
      continue;
    best = total;
    order.groupVectors = count;
    order.groupPoints = points;
  }
  return best ? std::optional(order) : std::nullopt;
}
