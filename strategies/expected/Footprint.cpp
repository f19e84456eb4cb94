//===- Footprint.cpp - What neighbours ask of the caches ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/Footprint.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

static double bytesOf(const ThreadAccess &access) {
  return access.type.getElementType().getIntOrFloatBitWidth() / 8.0;
}

bool tegula::usesData(const ValueExpr &expr) {
  return any_of(expr.operands(),
                [](mlir::Value value) { return !isa<mlir::BlockArgument>(value); });
}

WarpAccess tegula::accessOfWarp(const ThreadAccess &access, ArrayRef<ThreadAxis> axes,
                                function_ref<std::optional<int64_t>(mlir::Value)> valueOf) {
  constexpr int64_t apart = 4096; // elements between places that data choose
  ValueExpr offset = elementOffset(access.type, access.subscripts);
  double bytes = bytesOf(access);
  DenseSet<int64_t> sectors, lines, words;
  SmallVector<double> banks(size_t(threadsOfWarp), 0);
  double most = 1;
  DenseMap<mlir::Value, int64_t> places;
  for (int64_t thread = 0; thread < int64_t(threadsOfWarp); ++thread) {
    places.clear();
    int64_t number = thread;
    for (const ThreadAxis &axis : axes) {
      auto points = std::max<int64_t>(1, int64_t(axis.points));
      // Where threads come to the end of a line, a next one begins.
      int64_t base = !axis.axis
                         ? 0
                         : valueOf(axis.axis).value_or(0) / int64_t(threadsOfWarp * axis.step) *
                               int64_t(threadsOfWarp * axis.step);
      if (axis.axis)
        places[axis.axis] =
            (points < threadsOfWarp ? 0 : base) + number % points * int64_t(axis.step);
      number /= points;
    }
    auto placeOf = [&](mlir::Value value) -> std::optional<int64_t> {
      if (auto own = places.find(value); own != places.end())
        return own->second;
      return valueOf(value);
    };
    auto chosenByData = [&](mlir::Value value) {
      hash_code hash = 0;
      for (mlir::BlockArgument axis : axesOf(value)) {
        hash = hash_combine(hash, placeOf(axis).value_or(0));
        // What bounds its range decides, too, where it begins.
        if (std::optional<AxisRange> range = getRange(axis))
          for (mlir::Value operand : range->lo.operands())
            for (mlir::BlockArgument bound : axesOf(operand))
              hash = hash_combine(hash, placeOf(bound).value_or(0));
      }
      return int64_t(size_t(hash) % (1 << 20)) * apart;
    };
    std::optional<int64_t> first =
        offset.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          if (var.isSymbol())
            return std::nullopt;
          mlir::Value operand = offset.operands()[var.position()];
          std::optional<int64_t> known = placeOf(operand);
          return known ? *known : chosenByData(operand);
        });
    if (!first)
      return {threadsOfWarp, threadsOfWarp, 1, threadsOfWarp};
    auto begin = int64_t(std::floor(double(*first) * bytes / sectorBytes)),
         end = int64_t(std::floor((double(*first) + access.elements - 1) * bytes / sectorBytes));
    for (int64_t sector = begin; sector <= end; ++sector)
      sectors.insert(sector), lines.insert(sector >> 2);
    constexpr double wordBytes = 4;
    auto word = int64_t(std::floor(double(*first) * bytes / wordBytes));
    if (words.insert(word).second)
      most = std::max(most, ++banks[size_t(word) % size_t(threadsOfWarp)]);
  }
  return {double(sectors.size()), double(lines.size()), most, double(words.size())};
}

double tegula::bytesOfPoints(const ThreadAccess &access,
                             function_ref<double(mlir::Value)> pointsOf) {
  double elements = 1, run = 1;
  for (auto [subscript, dim] : zip_equal(access.subscripts, access.type.getDims())) {
    double reach = 1, points = 1;
    bool isSteady = true;
    for (mlir::Value operand : subscript.operands()) {
      double own = std::max(pointsOf(operand), 1.0);
      std::optional<int64_t> step = stepAlong(subscript, operand);
      isSteady &= step.has_value();
      reach += std::abs(double(step.value_or(0))) * (own - 1);
      points *= own;
    }
    run = isSteady ? std::min(reach, points) : points;
    // What data choose lies anywhere.
    bool isDrawn = usesData(subscript);
    run = std::min(run, double(dim.getExpr().asConstant().value_or(int64_t(1) << 40)));
    elements *= run;
    run = isDrawn ? 1 : run;
  }
  double bytes = bytesOf(access), line = std::max(run, access.elements) * bytes;
  return elements * bytes * std::max(1.0, sectorBytes / line);
}
