//===- Figures.cpp - What a kernel moves, computes and occupies ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Figures.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tegula::report {

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

KnownSizes::KnownSizes(const CompiledKernel &kernel, const std::map<std::string, int64_t> &given) {
  for (const SizeSpec &spec : kernel.checks->sizes()) {
    auto own = given.find(spec.name);
    std::optional<int64_t> value;
    if (own != given.end())
      value = own->second;
    else if (!spec.boundBy)
      value = evaluate(spec.definition);
    else // the extent of a dim `2*P`
      value = kernel.arguments[spec.boundBy->first].dims[spec.boundBy->second].evaluate(
          [&](const IndexVar &var) -> std::optional<int64_t> {
            auto found = given.find(var.name().str());
            return found == given.end() ? of(var.name()) : std::optional(found->second);
          });
    if (value)
      values[spec.name] = *value;
    else
      unknown.push_back(spec.name);
  }
}

std::optional<int64_t> KnownSizes::of(StringRef name) const {
  auto found = values.find(std::string(name));
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int64_t> KnownSizes::evaluate(const IndexExpr &expr) const {
  return expr.evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    return var.isSymbol() ? of(var.name()) : std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Bytes of a tensor of these dims.
static std::optional<int64_t> bytesOf(DType type, ArrayRef<IndexExpr> dims,
                                      const KnownSizes &sizes) {
  SmallVector<int64_t> shape;
  for (const IndexExpr &dim : dims) {
    std::optional<int64_t> extent = sizes.evaluate(dim);
    if (!extent)
      return std::nullopt;
    shape.push_back(*extent);
  }
  return storageBytes(type, shape);
}

namespace {
class LaunchCollector {
public:
  LaunchCollector(const CompiledKernel &kernel, const KnownSizes &sizes, const DeviceLimits &limits)
      : kernel(kernel), sizes(sizes), limits(limits) {
    for (const KernelArgument &argument : kernel.arguments)
      if (argument.role != KernelArgument::Scalar)
        tensors.push_back(&argument);
  }

  void collect(ArrayRef<PlanStep> steps) {
    for (const PlanStep &step : steps) {
      if (step.kind == PlanStep::Loop)
        collect(step.body);
      else if (step.kind == PlanStep::Launch)
        add(step);
    }
  }

  std::vector<LaunchFigures> result;

private:
  void add(const PlanStep &step) {
    std::optional<int64_t> points = sizes.evaluate(step.points);
    std::optional<int64_t> bytes = 0;
    for (const PlanArgument &argument : step.arguments)
      if (argument.kind == PlanArgument::Buffer) {
        std::optional<int64_t> own = bytesOfBuffer(kernel.plan.buffers[argument.index]);
        bytes = own && bytes ? std::optional(*own + *bytes) : std::nullopt;
      }
    uint64_t residentThreads = uint64_t(limits.multiprocessors) * limits.warps * 32;
    bool hasTiles = !step.tiles.launches.empty();
    const PlanFunction *chosen =
        points && !hasTiles ? &step.functionFor(*points, residentThreads) : nullptr;
    for (const PlanFunction *function : {&step.byThread, &step.byTeam}) {
      if (function->name.empty())
        continue;
      LaunchFigures figures;
      figures.function = function->name;
      bool byThread = function->unitsPerBlock == function->threads;
      figures.units = byThread ? std::to_string(function->pointsPerUnit) + " points for a thread"
                               : std::to_string(function->unitsPerBlock) + " teams of " +
                                     std::to_string(function->threads / function->unitsPerBlock) +
                                     " threads";
      if (function->cluster > 1)
        figures.units = "a point for a cluster";
      figures.threads = function->threads;
      figures.cluster = function->cluster;
      figures.dynamicShared = function->sharedBytes;
      if (points)
        figures.blocks = function->blocksFor(*points);
      figures.isChosen = function == chosen;
      figures.bytes = bytes;
      result.push_back(figures);
    }
    for (const PlanTileLaunch &launch : step.tiles.launches) {
      LaunchFigures figures;
      figures.function = launch.function;
      figures.units = launch.unit;
      figures.threads = launch.threads;
      figures.dynamicShared = launch.sharedBytes;
      if (std::optional<int64_t> blocks = sizes.evaluate(launch.blocks))
        figures.blocks = *blocks;
      figures.isChosen = true; // where what they need of addresses holds
      figures.bytes = bytes;
      result.push_back(figures);
    }
  }

  std::optional<int64_t> bytesOfBuffer(const PlanBuffer &buffer) {
    if (buffer.argument < 0)
      return sizes.evaluate(buffer.bytes);
    return bytesOf(tensors[buffer.argument]->dtype, tensors[buffer.argument]->dims, sizes);
  }

  const CompiledKernel &kernel;
  const KnownSizes &sizes;
  const DeviceLimits &limits;
  std::vector<const KernelArgument *> tensors;
};
} // namespace

std::vector<LaunchFigures> launchesOf(const CompiledKernel &kernel, const KnownSizes &sizes,
                                      const DeviceLimits &limits) {
  LaunchCollector collector(kernel, sizes, limits);
  collector.collect(kernel.plan.steps);
  return std::move(collector.result);
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

std::optional<CallFigures> callFigures(const CompiledKernel &kernel, const KnownSizes &sizes) {
  if (!sizes.missing().empty())
    return std::nullopt;
  CallFigures figures;
  for (const KernelArgument &argument : kernel.arguments) {
    if (argument.role == KernelArgument::Scalar)
      continue;
    std::optional<int64_t> bytes = bytesOf(argument.dtype, argument.dims, sizes);
    if (!bytes)
      return std::nullopt;
    figures.bytes += double(*bytes) * (argument.role == KernelArgument::Inout ? 2 : 1);
  }
  figures.operations = kernel.work.operations([&](StringRef name) { return sizes.of(name); });
  return figures;
}

/// The launches of the plan in which blocks compute tiles.
static void collectTiles(ArrayRef<PlanStep> steps, SmallVectorImpl<const PlanTiles *> &tiles) {
  for (const PlanStep &step : steps) {
    collectTiles(step.body, tiles);
    if (!step.tiles.launches.empty())
      tiles.push_back(&step.tiles);
  }
}

OperationRate operationRate(const CompiledKernel &kernel, const DeviceLimits &limits) {
  OperationRate fastest{limits.flops32, "f32 multiply-adds"};
  auto consider = [&](double rate, const std::string &units) {
    if (rate > fastest.perSecond)
      fastest = {rate, units};
  };
  SmallVector<const PlanTiles *> all;
  collectTiles(kernel.plan.steps, all);
  for (const PlanTiles *tiles : all)
    if (none_of(tiles->launches, [&](const PlanTileLaunch &launch) {
          return any_of(kernel.layouts, [&](const TileLayout &layout) {
            return layout.function == launch.function;
          });
        }))
      consider(limits.flopsTensor16, "tensor cores, 16 bits"); // rows that walk a tile loop
  for (const TileLayout &layout : kernel.layouts)
    for (const ProductLayout &product : layout.products) {
      bool areBytes = isBytes(product.type),
           isHalf = product.type != MmaType::TF32 || layout.usesWgmma;
      // Twice as many bytes a clock as numbers of 16 bits, on all devices that have both.
      double rate = areBytes ? 2 * limits.flopsTensor16
                    : isHalf ? limits.flopsTensor16
                             : limits.flopsTensor32;
      std::string units = areBytes ? "tensor cores, 8 bits"
                          : isHalf ? "tensor cores, 16 bits"
                                   : "tensor cores, tf32";
      if (product.multiplications > 1) {
        rate /= product.multiplications;
        units += ", " + std::to_string(product.multiplications) + " products for one of f32";
      }
      consider(rate, units);
    }
  return fastest;
}

} // namespace tegula::report
