//===- StatementWork.cpp - Chooses a thread or a team for each point ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/general/plan/StatementWork.h"

#include "codegen/simt/DataRanges.h"
#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "ir/tgl/Invariance.h"
#include "ir/tgl/TglUtils.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/PrefixLoop.h"
#include "passes/analysis/RegisterTiles.h"
#include "passes/analysis/ShortRows.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

/// The longest that an axis is in any step of the loops around it: `j` from 0 to t.
static std::optional<int64_t> lengthInSteps(tgl::AxesOp nest, const tgl::AxisRange &range) {
  if (!nest->getParentOfType<tgl::ForOp>())
    return std::nullopt;
  Prover prover(sizeFacts(nest->getParentOfType<tgl::KernelOp>()));
  std::optional<IndexExpr> most = AxisScope(prover, nest).maxOf(range.hi - range.lo);
  return most ? most->asConstant() : std::nullopt;
}

/// Points of a nest, or the most that it has where it goes over a piece of which the last may be
/// shorter, and the first is as long as any: `i` from 257 p to min(10007, 257 p + 257).
static std::optional<int64_t> maxPoints(tgl::AxesOp nest) {
  int64_t points = 1;
  for (const tgl::AxisRange &range : getAxisRanges(nest)) {
    std::optional<int64_t> most = lengthOfFirst(range);
    if (!most || ValueExpr::min(range.hi, range.lo + ValueExpr(*most)) != range.hi)
      most = lengthInSteps(nest, range);
    if (!most || MulOverflow(points, std::max<int64_t>(*most, 0), points))
      return std::nullopt;
  }
  return points;
}

/// Whether the loop is the same for all points of the statement, and carries no values.
static bool isUniform(tgl::ForOp loop, tgl::ParallelOp statement) {
  return loop.getInits().empty() && none_of(loop.getIndices(), [&](mlir::Value value) {
           return statement->isAncestor(value.getParentBlock()->getParentOp());
         });
}

StatementWork::StatementWork(tgl::ParallelOp op) {
  team = teamOf(op);
  points = tgl::plannedPoints(cast<tgl::AxesOp>(op.getOperation()));
  tgl::Accesses accesses = tgl::accessesOf(op);
  isPlain = none_of(accesses.writes, [&](mlir::Value tensor) {
    auto temp = tensor.getDefiningOp<tgl::TempOp>();
    bool isOwn = temp && isPrivate(temp) && !nestsThatOwn(temp).empty();
    return accesses.reads.contains(tensor) && !isOwn;
  });
  op.getBody().walk([&](mlir::Operation *nested) {
    mlir::Operation *above = nested->getParentOp();
    while (isa<tgl::ForOp>(above) && isUniform(cast<tgl::ForOp>(above), op))
      above = above->getParentOp();
    auto reduce = dyn_cast<tgl::ReduceOp>(nested);
    std::optional<int64_t> mean = reduce ? meanLength(reduce, op) : std::nullopt;
    hasRanges |= mean.has_value();
    bool isNest = isa<tgl::ParallelOp, tgl::ReduceOp>(nested) && above == op &&
                  (mean || tgl::knownPoints(cast<tgl::AxesOp>(nested)));
    bool isSteps = isa<tgl::ForOp>(nested) && isUniform(cast<tgl::ForOp>(nested), op);
    isPlain &= !nested->getNumRegions() || isNest || isSteps;
    hasSteps |= isa<tgl::ForOp>(nested->getParentOp()) && above == op &&
                isa<tgl::ParallelOp, tgl::ReduceOp>(nested);
    hasParallel |= isa<tgl::ParallelOp>(nested);
    hasReduce |= isa<tgl::ReduceOp>(nested);
    if (auto temp = dyn_cast<tgl::TempOp>(nested)) {
      hasTemporaries = true;
      hasLarge |= isLarge(temp);
      hasShared |= nestsThatOwn(temp).empty();
    }
    hasSort |= isa<tgl::SortOp>(nested);
    auto loop = dyn_cast<tgl::ForOp>(nested);
    bool isPrefix = loop && loop->getParentOp() == op && matchPrefixLoop(loop);
    hasPrefix |= isPrefix;
    if (isPrefix) {
      std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
      inside = steps && inside ? std::optional(std::max(*inside, *steps)) : std::nullopt;
    }
    if (!isa<tgl::ParallelOp, tgl::ReduceOp>(nested))
      return;
    for (mlir::Operation *around = nested->getParentOp(); around != op;
         around = around->getParentOp())
      if (auto nest = dyn_cast<tgl::ParallelOp>(around);
          isa<tgl::ReduceOp>(around) || (nest && !runsSerially(nest)))
        return; // done by the threads that the nest around it is dealt out to
    std::optional<int64_t> nest = mean ? mean : maxPoints(cast<tgl::AxesOp>(nested));
    if (auto parallel = dyn_cast<tgl::ParallelOp>(nested); parallel && dealsToParts(parallel))
      *nest *= longestInside(parallel); // by parts, which share rows
    inside = nest && inside ? std::optional(std::max(*inside, *nest)) : std::nullopt;
  });
}

/// Vectors that a thread of a team takes, where there are enough; of a team that is part of a warp.
static constexpr int64_t vectorsPerThread = 4, vectorsInWarp = 2;
/// Threads that hide each other's waits for memory: four warps of each multiprocessor's schedulers.
static constexpr int64_t busyThreads = 65536;
/// Elements that a thread takes of a row of a length that data gives.
static constexpr int64_t elementsOfRange = 4;
/// Fewer threads have no whole vector of 32 bytes, which is what memory gives.
static constexpr int64_t minTeam = 4;

/// Elements that do not fit into the registers of a block.
static constexpr int64_t longRow = 32768;

/// A team of several warps is a block: it synchronises as one.
static unsigned threadsOf(unsigned team) { return team <= DeviceEmitter::warp ? 128 : team; }

DeviceShape tegula::teamFor(const StatementWork &work) {
  std::optional<int64_t> inside = work.inside;
  DeviceShape shape;
  if (work.team) {
    shape.team = unsigned(*work.team);
    shape.threads = threadsOf(shape.team);
    return shape;
  }
  shape.team = shape.threads = 256;
  if (!inside)
    return shape;
  int64_t vectors = divideCeil(*inside, DeviceEmitter::accessBytes / 4);
  // A thread has a few elements of a row that begins anywhere, and shorter rows wait for longer
  // ones of their warp.
  if (work.hasRanges) {
    constexpr int64_t longest = 256;
    shape.team = PowerOf2Ceil(std::clamp<int64_t>(
        divideCeil(*inside, elementsOfRange),
        work.isPlain && !work.hasShared ? minTeam : DeviceEmitter::warp, longest));
    shape.threads = threadsOf(shape.team);
    return shape;
  }
  // Teams that meet again and again are better small and many. Rows too long for registers leave
  // those for loads that are under way.
  int64_t most = work.hasPrefix ? 256 : *inside > longRow ? 512 : 1024;
  // A sort's steps are between threads: a vector each.
  shape.team = PowerOf2Ceil(std::clamp<int64_t>(
      divideCeil(vectors, work.hasSort ? 1 : vectorsPerThread), DeviceEmitter::warp, most));
  // Several short rows are a warp's.
  if (shape.team == DeviceEmitter::warp && work.isPlain && !work.hasShared) {
    // Steps of a loop are walked again and again: what each thread does for all of a point's
    // counts.
    int64_t most = work.hasSteps ? vectorsPerThread : vectorsInWarp;
    shape.team =
        PowerOf2Ceil(std::clamp<int64_t>(divideCeil(vectors, most), minTeam, DeviceEmitter::warp));
    while (work.hasSteps && work.points && shape.team < DeviceEmitter::warp &&
           *work.points * shape.team < busyThreads && shape.team < vectors)
      shape.team *= 2;
  }
  shape.threads = threadsOf(shape.team);
  return shape;
}
