//===- ChunkRecurrences.cpp - Linear recurrences as products of chunks of steps ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/chunks/ChunkedInverse.h"
#include "passes/chunks/ChunkedLoop.h"
#include "target/DeviceFacts.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_CHUNKRECURRENCESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

// Estimates, in microseconds.

/// A launch of a captured graph, and what it waits for.
static constexpr double launchMicroseconds = 4;
/// A step in a launch that walks the loop: barriers, and loads that only it knows the addresses of.
static constexpr double stepMicroseconds = 1;
/// Scalar operations of a multiprocessor, in loops of general code, and those of a step for each
/// element of the state.
static constexpr double operationsPerMicrosecond = 55000, operationsOfElement = 8;
/// The same where each element has a decay of its own: kimi_delta_attention's 2048 steps take 22 ms
/// of an H200, those of gated_delta_rule, twice as many elements, 2.8 ms.
static constexpr double operationsOfDecayedElement = 64;
/// A product of a chunk that waits for the one before, of few tiles: what `tegula compile --why`
/// expects of both launches in the loop over chunks of gated_delta_rule and kimi_delta_attention.
static constexpr double productOfChunkMicroseconds = 7;
/// A step of a chunk where each channel walks its own decays, and what is fused into that: expected
/// of gated_linear_attention and kimi_delta_attention in chunks of 64 to 256 steps.
static constexpr double stepOfChannelsMicroseconds = 2.9;
static constexpr double bytesPerMicrosecond = 2e6;
/// Small products: of bf16, and of f32 in split precision.
static constexpr double flopsPerMicrosecond = 1.5e8, flopsOfF32PerMicrosecond = 2e7;
/// What temporaries may take of a device's memory.
static constexpr double maxBytes = 16e9;

namespace {
/// Sizes of the loop that are known when compiling.
struct LoopSizes {
  double steps, batch = 1, summed = 1, columns = 1;
  double readouts = 0;   ///< rows of queries for each step, over the batch
  double statements = 0; ///< that read the state
  bool isCorrected = false, isChannelwise = false;
};
} // namespace

static std::optional<LoopSizes> sizesOf(const LinearRecurrence &found) {
  LinearRecurrence copy(found);
  std::optional<int64_t> steps = (copy.loop.getHighExpr() - copy.loop.getLowExpr()).asConstant();
  if (!steps)
    return std::nullopt;
  LoopSizes sizes{double(std::max<int64_t>(0, *steps))};
  auto type = cast<TglTensorType>(found.state.getType());
  for (auto [dim, kind] : llvm::zip_equal(type.getDims(), found.dims)) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent)
      return std::nullopt;
    (kind == LinearRecurrence::Dim::Batch    ? sizes.batch
     : kind == LinearRecurrence::Dim::Summed ? sizes.summed
                                             : sizes.columns) *= double(*extent);
  }
  sizes.isCorrected = found.correction.has_value();
  sizes.isChannelwise = llvm::any_of(found.dimsOf(found.decay, found.axes), [&](unsigned dim) {
    return found.dims[dim] == LinearRecurrence::Dim::Summed;
  });
  for (LinearReadout &readout : copy.readouts) {
    std::optional<int64_t> points = knownPoints(cast<AxesOp>(readout.statement.getOperation()));
    if (!points)
      return std::nullopt;
    sizes.readouts += double(*points) / std::max(1.0, sizes.columns);
    ++sizes.statements;
  }
  return sizes;
}

static double timeOfSteps(const LoopSizes &sizes) {
  double points = std::ceil(sizes.batch * sizes.columns / device::multiprocessors);
  double operations = sizes.isChannelwise ? operationsOfDecayedElement : operationsOfElement;
  return sizes.steps *
         (stepMicroseconds + points * sizes.summed * operations / operationsPerMicrosecond);
}

namespace {
/// What chunks take: bytes of temporaries, operations and launches.
struct ChunkCosts {
  double bytes = 0, flops = 0, flopsOfF32 = 0, scalarOperations = 0, launches = 0;
  double microseconds = 0; ///< of what waits for the step or chunk before
};
} // namespace

/// Values that correct each other: inverses of matrices of chunks, products with them, and two
/// products for each chunk in order.
static void addCorrection(ChunkCosts &costs, const LoopSizes &sizes, double bytes, double length) {
  double chunks = std::ceil(sizes.steps / length), matrices = sizes.batch * chunks,
         block = double(stepsOfBlock(int64_t(length), stepsOfSubstitution));
  // The matrix and its inverse are f32; the inverse is kept for two products.
  costs.bytes += matrices * length * (length * (8 + 2 * bytes) + 4 * sizes.columns) +
                 matrices * length * sizes.summed * bytes;
  costs.scalarOperations += matrices * length * block * (block - 1) / 2 * operationsOfElement;
  for (double size = block; size < length; size *= 2) {
    costs.bytes += 4 * matrices * length * size / 2;
    costs.flopsOfF32 += matrices * 2 * length * size * size;
    costs.launches += 2;
  }
  costs.flops += 2 * matrices * length * length * (sizes.summed + sizes.columns);
  costs.launches += 5;
  costs.microseconds += 2 * chunks * productOfChunkMicroseconds;
}

/// Scores with decays of channels: an exponential and reads for each term of blocks on the
/// diagonal; beside it products of keys and queries that are kept for each size of blocks.
static void addChannels(ChunkCosts &costs, const LoopSizes &sizes, double bytes, double length) {
  double steps = std::ceil(sizes.steps / length) * length,
         block = double(stepsOfBlock(int64_t(length), stepsOfScalarScores));
  costs.scalarOperations += sizes.readouts * steps * block / 2 * sizes.summed * operationsOfElement;
  costs.microseconds += length * stepOfChannelsMicroseconds;
  for (double size = block; size < length; size *= 2) {
    costs.bytes += (sizes.readouts + sizes.batch) * steps / 2 * sizes.summed * bytes;
    costs.launches += 2 * sizes.statements + 1;
  }
}

/// Nothing where temporaries take too much memory.
static std::optional<double> timeOfChunks(const LoopSizes &sizes, bool isBF16, double length) {
  double chunks = std::ceil(sizes.steps / length), bytes = isBF16 ? 2 : 4;
  double elements = sizes.batch * chunks * sizes.summed * sizes.columns;
  ChunkCosts costs;
  costs.bytes = elements * (4 + bytes) + sizes.readouts * chunks * length * length * bytes +
                sizes.batch * sizes.steps * (sizes.summed + sizes.columns) * bytes;
  costs.flops = 2 * chunks * length *
                (elements / chunks + sizes.readouts * (length * (sizes.summed + sizes.columns) +
                                                       sizes.summed * sizes.columns));
  costs.launches = 7;
  if (sizes.isCorrected)
    addCorrection(costs, sizes, bytes, length);
  if (sizes.isChannelwise)
    addChannels(costs, sizes, bytes, length);
  if (costs.bytes > maxBytes)
    return std::nullopt;
  return costs.microseconds + costs.launches * launchMicroseconds +
         2 * costs.bytes / bytesPerMicrosecond +
         costs.scalarOperations / (operationsPerMicrosecond * device::multiprocessors) +
         costs.flopsOfF32 / flopsOfF32PerMicrosecond +
         costs.flops / (isBF16 ? flopsPerMicrosecond : flopsOfF32PerMicrosecond);
}

namespace {
struct ChunkRecurrencesPass
    : Counted<tegula::impl::ChunkRecurrencesPassBase<ChunkRecurrencesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ForOp loop : llvm::to_vector(getOperation().getBody().front().getOps<ForOp>()))
      if (tryLoop(loop))
        count("loops written in chunks");
  }

  bool refuse(ForOp loop, Mismatch why) {
    why.where = loop;
    remarkMismatch(loop, "chunks", why);
    return false;
  }

  bool tryLoop(ForOp loop) {
    Matched<LinearRecurrence> found = matchLinearRecurrence(loop);
    if (!found)
      return refuse(loop, found.mismatch());
    int64_t chosen = length;
    if (!chosen) {
      std::optional<LoopSizes> sizes = sizesOf(*found);
      if (!sizes)
        return refuse(loop, {"sizes are not known when compiling", "", loop});
      double best = timeOfSteps(*sizes);
      std::optional<double> ofChunks;
      for (int64_t each : {32, 64, 128, 256})
        if (std::optional<double> time = timeOfChunks(*sizes, roundsToBF16(*found), double(each));
            time && (!ofChunks || *time < *ofChunks)) {
          ofChunks = time;
          if (*time < best)
            chosen = each;
        }
      if (!chosen)
        return refuse(
            loop,
            {ofChunks
                 ? llvm::formatv("steps take {0:f0} us, chunks {1:f0} us", best, *ofChunks).str()
                 : "states of all chunks take too much memory",
             "", loop});
    }
    writeInChunks(*found, chosen);
    return true;
  }
};
} // namespace
