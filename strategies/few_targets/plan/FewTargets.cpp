//===- FewTargets.cpp - Plans sums of many points in few elements ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/few_targets/plan/FewTargets.h"

#include "mlir/IR/Builders.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

int64_t FewTargetsTensor::elementBytes() const {
  return type().getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t FewTargetsPlan::windowBytes() const {
  int64_t bytes = 0;
  for (const FewTargetsTensor &one : tensors)
    bytes += one.bytes();
  return bytes;
}

int64_t FewTargetsPlan::windowElements() const {
  int64_t elements = 0;
  for (const FewTargetsTensor &one : tensors)
    elements += one.elements;
  return elements;
}

const FewTargetsTensor &FewTargetsPlan::of(WriteOp write) const {
  return *llvm::find_if(
      tensors, [&](const FewTargetsTensor &one) { return one.tensor == write.getTensor(); });
}

namespace {
class FewTargetsMatcher : MatcherBase {
public:
  explicit FewTargetsMatcher(ParallelOp op) : axes(cast<AxesOp>(op.getOperation())) {
    plan.op = op;
  }

  Matched<FewTargetsPlan> run() {
    if (!findWrites() || !checkBody() || !findAxes() || !findWindows())
      return why;
    return plan;
  }

private:
  AxesOp axes;
  FewTargetsPlan plan;
  SmallVector<WriteOp> writes;

  /// Writes that all combine, directly in the statement.
  bool findWrites() {
    plan.op.getBody().walk([&](WriteOp write) { writes.push_back(write); });
    auto combines = [](WriteOp write) {
      return write.getCombine() == ReduceKind::Sum || write.getCombine() == ReduceKind::Max ||
             write.getCombine() == ReduceKind::Min;
    };
    if (llvm::none_of(writes, combines))
      return failAsOther(plan.op, "no point adds to an element");
    if (llvm::any_of(writes, [](WriteOp write) { return write->hasAttr(partialAttrName); }))
      return failAsOther(plan.op, "its points are tiles of a product");
    for (WriteOp write : writes) {
      if (!combines(write))
        return fail(write, "a write of the statement replaces an element");
      if (write->getParentOp() != plan.op)
        return fail(write, "elements are added in a loop of the statement");
      auto same = llvm::find_if(plan.tensors, [&](const FewTargetsTensor &one) {
        return one.tensor == write.getTensor();
      });
      if (same == plan.tensors.end())
        plan.tensors.push_back({write.getTensor(), *write.getCombine(), {}, 1});
      else if (same->combine != *write.getCombine())
        return fail(write, "elements of " + describeTensor(write.getTensor()) +
                               " are combined in two ways");
    }
    plan.additions = writes.size();
    plan.op.getBody().walk([&](ReadOp read) {
      plan.bytesOfPoint += read.getTensorType().getElementType().getIntOrFloatBitWidth() / 8.0;
    });
    return true;
  }

  /// What a thread does for a point by itself.
  bool checkBody() {
    constexpr int64_t maxTerms = 64;
    bool isPlain = true;
    plan.op.getBody().walk([&](Operation *op) {
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        std::optional<int64_t> terms = knownPoints(cast<AxesOp>(op));
        isPlain &= terms && *terms <= maxTerms;
      } else {
        isPlain &= !op->getNumRegions() && !isa<TempOp, SortOp>(op);
      }
    });
    if (!isPlain)
      return fail(plan.op, "what a point adds is made by a nest, a loop or a sort of its own");
    Operation *reader = nullptr;
    plan.op.getBody().walk([&](ReadOp read) {
      if (llvm::any_of(plan.tensors,
                       [&](const FewTargetsTensor &one) { return one.tensor == read.getTensor(); }))
        reader = read;
    });
    return !reader || fail(reader, "the statement reads what it adds to");
  }

  /// The axis along which most reads touch neighbours in memory.
  std::optional<unsigned> contiguousAxis() {
    std::optional<unsigned> best;
    unsigned most = 0;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis) {
      unsigned near = 0;
      plan.op.getBody().walk([&](ReadOp read) {
        near +=
            strideAlong(read.getTensorType(), read.getSubscriptExprs(), axes.getAxes()[axis]) == 1;
      });
      if (near && near >= most)
        best = axis, most = near;
    }
    return best;
  }

  /// The dim that the axis alone subscripts in all writes to the tensor.
  std::optional<unsigned> ownDim(Value tensor, Value axis) {
    std::optional<unsigned> dim;
    for (WriteOp write : writes) {
      if (write.getTensor() != tensor)
        continue;
      SmallVector<ValueExpr> subscripts = write.getSubscriptExprs();
      auto *found = llvm::find(subscripts, ValueExpr(axis));
      unsigned place = found - subscripts.begin();
      if (found == subscripts.end() || (dim && *dim != place))
        return std::nullopt;
      dim = place;
    }
    return dim;
  }

  bool findAxes() {
    std::optional<int64_t> all = knownPoints(axes);
    if (!all)
      return fail(plan.op, "the number of points is not known when compiling",
                  "compile for known sizes (-d)");
    if (*all <= 0)
      return failAsOther(plan.op, "the statement has no points");
    for (const AxisRange &range : getAxisRanges(axes))
      for (Value own : axes.getAxes())
        if (range.lo.uses(own) || range.hi.uses(own))
          return fail(plan.op, "an axis begins or ends where another one says");
    std::optional<unsigned> near = contiguousAxis();
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis) {
      bool isApart = llvm::all_of(plan.tensors, [&](const FewTargetsTensor &one) {
        return ownDim(one.tensor, axes.getAxes()[axis]).has_value();
      });
      (isApart ? plan.apart : plan.inner).push_back(axis);
    }
    if (plan.inner.empty())
      return failAsOther(plan.op, "no two points add to one element");
    // Neighbouring threads read neighbours: not one of a row each.
    if (near && llvm::is_contained(plan.apart, *near)) {
      llvm::erase(plan.apart, *near);
      plan.inner.insert(llvm::upper_bound(plan.inner, *near), *near);
    }
    plan.groups = *knownPoints(axes, plan.apart);
    plan.points = *knownPoints(axes, plan.inner);
    return true;
  }

  bool findWindows() {
    for (FewTargetsTensor &one : plan.tensors) {
      SmallVector<unsigned> taken;
      for (unsigned axis : plan.apart)
        taken.push_back(*ownDim(one.tensor, axes.getAxes()[axis]));
      for (auto [dim, size] : llvm::enumerate(one.type().getDims())) {
        if (llvm::is_contained(taken, dim))
          continue;
        std::optional<int64_t> extent = size.getExpr().asConstant();
        if (!extent)
          return fail(plan.op,
                      "the dims of " + describeTensor(one.tensor) + " are not known when compiling",
                      "compile for known sizes (-d)");
        one.dims.push_back(dim);
        if (llvm::MulOverflow(one.elements, *extent, one.elements))
          return fail(plan.op, describeTensor(one.tensor) + " has too many elements");
      }
      Type element = one.type().getElementType();
      if (!element.isF32() && !element.isF64() && !element.isInteger(32) && !element.isInteger(64))
        return fail(plan.op, "elements of " + describeTensor(one.tensor) +
                                 " have a type that nothing is added in");
    }
    return true;
  }
};
} // namespace

Matched<FewTargetsPlan> tegula::planFewTargets(ParallelOp op) {
  return FewTargetsMatcher(op).run();
}

//===----------------------------------------------------------------------===//
// The shape
//===----------------------------------------------------------------------===//

Attribute FewTargetsShape::toAttribute(MLIRContext *context) const {
  return Builder(context).getDenseI64ArrayAttr({copies, parts, threads});
}

std::optional<FewTargetsShape> FewTargetsShape::of(ParallelOp op) {
  auto shape = op->getAttrOfType<DenseI64ArrayAttr>(attributeName);
  if (!shape || shape.size() != 3)
    return std::nullopt;
  return FewTargetsShape{shape[0], shape[1], shape[2]};
}

SmallVector<int64_t> FewTargetsShape::offsets(const FewTargetsPlan &plan) const {
  SmallVector<int64_t> offsets{0};
  for (const FewTargetsTensor &one : plan.tensors)
    offsets.push_back(llvm::alignTo(offsets.back() + copies * one.bytes(), 16));
  return offsets;
}

std::string FewTargetsShape::name(const FewTargetsPlan &plan) const {
  std::string elements = std::to_string(plan.windowElements()) + " elements in shared memory";
  return (copies == 1 ? "" : std::to_string(copies) + " copies of ") + elements + ", " +
         std::to_string(plan.groups * parts) + " blocks";
}

namespace {
/// What the model counts on, in operations of a microsecond on an H100 (bench/real,
/// docs/results/real.md: histogram_256 adds 3,900 to 32 sectors, histogram_rows 17,400 to 8,192).
constexpr double memoryAdditions = 17400, sectorAdditions = 122;
constexpr int64_t sectorBytes = 32, lanes = 32;
/// Of a multiprocessor, in shared memory: of integers whose addresses lie in different banks.
/// Floats are added by compare and swap. An estimate.
constexpr double sharedAdditions = 20000, floatFactor = 4, conflictFactor = 3.5;
/// Bytes that a multiprocessor gets from memory in a microsecond: its share of 3 TB/s.
constexpr double memoryBytes = 23000;
/// Clearing copies, barriers and the last additions, in microseconds.
constexpr double setup = 3;

/// Additions in memory by all points.
double generalTime(const FewTargetsPlan &plan) {
  double sectors = std::max<double>(1, double(plan.groups) * plan.windowBytes() / sectorBytes);
  return double(plan.groups) * plan.points * plan.additions /
         std::min(memoryAdditions, sectors * sectorAdditions);
}

double copiesTime(const FewTargetsPlan &plan, const FewTargetsShape &shape,
                  const TargetInfo &target) {
  bool isFloat = llvm::any_of(plan.tensors, [](const FewTargetsTensor &one) {
    return isa<FloatType>(one.type().getElementType());
  });
  double rate =
      sharedAdditions / (isFloat ? floatFactor : 1) / (shape.copies == lanes ? 1 : conflictFactor);
  // A block alone has too few threads for the most that a multiprocessor can do.
  double blocks = double(plan.groups) * shape.parts;
  double busy = std::min<double>(target.multiprocessors, blocks);
  double each = std::min<double>(blocks / busy, FewTargetsShape::maxResident);
  busy *= each / (each + 1) * (FewTargetsShape::maxResident + 1) / FewTargetsShape::maxResident;
  double points = double(plan.groups) * plan.points;
  double additions =
      std::max(points * plan.additions / rate, points * plan.bytesOfPoint / memoryBytes) / busy;
  // Neighbours of a warp add to one sector together.
  double sectors = blocks * plan.windowBytes() / sectorBytes;
  double clears = blocks * plan.windowElements() * shape.copies / (sharedAdditions * busy);
  return setup + additions + clears +
         std::max(sectors / memoryAdditions, double(shape.parts) / sectorAdditions);
}
} // namespace

Matched<FewTargetsShape> tegula::chooseFewTargetsShape(const FewTargetsPlan &plan,
                                                       const TargetInfo &target) {
  constexpr int64_t fewThreads = 512, manyThreads = 1024, waves = 2;
  constexpr int64_t maxResident = FewTargetsShape::maxResident;
  if (plan.windowBytes() > target.sharedBytes)
    return Mismatch{"the " + std::to_string(plan.windowElements()) +
                        " elements that its points add to do not fit into a block's shared memory",
                    "", plan.op};
  FewTargetsShape shape{lanes, 1, fewThreads};
  while (shape.copies > 1 && shape.offsets(plan).back() > target.sharedBytes / (2 * maxResident))
    shape.copies /= 2;
  int64_t bytes = shape.offsets(plan).back();
  if (bytes > target.sharedBytes)
    return Mismatch{"the elements that its points add to do not fit into a block's shared memory",
                    "", plan.op};
  int64_t resident =
      std::clamp<int64_t>(target.sharedBytes / std::max<int64_t>(bytes, 1), 1, maxResident);
  if (resident == 1)
    shape.threads = manyThreads;
  // At most as many parts as fill the machine: fewer where adding up copies takes longer.
  int64_t places = target.multiprocessors * resident;
  int64_t wanted = plan.groups >= waves * places  ? 1
                   : plan.groups > places / waves ? llvm::divideCeil(waves * places, plan.groups)
                                                  : places / plan.groups;
  double best = std::numeric_limits<double>::infinity();
  int64_t ofWave = std::max<int64_t>(target.multiprocessors / plan.groups, 1);
  for (int64_t parts = std::max<int64_t>(wanted, 1); parts;
       parts = parts > ofWave ? parts - ofWave : parts / 2) {
    FewTargetsShape other{shape.copies, parts, shape.threads};
    if (double time = copiesTime(plan, other, target); time < best)
      best = time, shape.parts = parts;
  }
  if (plan.groups > std::numeric_limits<int32_t>::max() / shape.parts)
    return Mismatch{"more than 2^31 blocks", "", plan.op};
  if (best >= generalTime(plan))
    return Mismatch{"adding to memory is as fast: " + std::to_string(plan.groups * plan.points) +
                        " points, " + std::to_string(plan.groups * plan.windowElements()) +
                        " elements",
                    "", plan.op};
  return shape;
}
