//===- Threads.cpp - How general code deals points out --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/Threads.h"

#include "codegen/simt/DeviceEmitter.h"
#include "codegen/simt/NestShape.h"
#include "codegen/simt/RaggedLanes.h"
#include "codegen/simt/TransposeTiles.h"
#include "codegen/simt/VectorAdds.h"
#include "ir/tgl/Invariance.h"
#include "passes/analysis/Nest.h"
#include "strategies/general/plan/StatementWork.h"

using namespace llvm;
using namespace tegula;

/// Of an H100 or H200.
static constexpr int64_t residentThreads = 132 * 2048;

StatementThreads::StatementThreads(tgl::ParallelOp statement) : hasLanes(true) {
  StatementWork work(statement);
  bool canBeThread = !work.hasSort && (!work.hasParallel || (work.isKnown() && !work.hasLarge));
  bool canBeTeam = work.hasParallel || work.hasReduce || work.hasSort || work.hasPrefix;
  if ((work.hasSteps || work.team) && canBeTeam)
    canBeThread = false;
  if (canBeThread && canBeTeam && work.isKnown()) {
    bool isKept = work.hasParallel && work.hasTemporaries;
    bool alongPoints = !work.hasRanges &&
                       (neighboursAreNear(statement) || (!isKept && runsAlongPoints(statement)));
    int64_t shortest = work.hasRanges ? shortRange : shortNest;
    bool isBusy = *work.points >= manyThreads || columnsKeepMemoryBusy(statement);
    bool byThread = (*work.inside < shortest && !isKept) || (alongPoints && isBusy);
    (byThread ? canBeTeam : canBeThread) = false;
  }
  if (canBeThread && canBeTeam && !tgl::Invariance::of(statement).isFree())
    canBeThread = false;
  // Else the runtime decides (PlanStep::chosen), by points that are known here.
  if (canBeThread && canBeTeam && work.points)
    canBeTeam = *work.points < residentThreads / 2;
  if (canBeTeam) {
    DeviceShape shape = teamFor(work);
    team = shape.team;
    block = shape.threads;
    return;
  }
  auto axes = cast<tgl::AxesOp>(statement.getOperation());
  if (std::optional<LaneChoice> choice =
          choices.choose(axes, DeviceEmitter::accessBytes, /*whole=*/true)) {
    lane = axes.getAxes()[choice->axis];
    vector = choice->width;
  }
  findColumnSplit(statement);
  if (std::optional<TransposeTile> tile = lane ? std::nullopt : chooseTransposeTile(statement)) {
    across = axes.getAxes()[tile->across];
    along = axes.getAxes()[tile->along];
    vector = double(tile->side) * tile->side;
  }
  auto all = llvm::to_vector(llvm::seq<unsigned>(0, axes.getAxes().size()));
  if (lane || across || columnSplit > 1)
    return;
  std::optional<LaneChoice> choice =
      chooseRaggedLanes(statement, all, DeviceEmitter::accessBytes, DeviceEmitter::accessBytes);
  if (!choice) // of an H100 or H200
    choice = chooseAddLanes(statement, all, DeviceEmitter::accessBytes);
  if (choice) {
    lane = axes.getAxes()[choice->axis];
    vector = choice->width;
  }
}

/// As ColumnSplit::keepsMemoryBusy (codegen/simt): whether threads that share columns are enough
/// for the memory, few as the points may be.
bool StatementThreads::columnsKeepMemoryBusy(tgl::ParallelOp statement) {
  constexpr double termsAtOnce = 4, bytesAtOnce = 132 * (24 << 10) / 4.0;
  StatementThreads own;
  own.hasLanes = true;
  auto axes = cast<tgl::AxesOp>(statement.getOperation());
  if (std::optional<LaneChoice> choice =
          own.choices.choose(axes, DeviceEmitter::accessBytes, /*whole=*/true)) {
    own.lane = axes.getAxes()[choice->axis];
    own.vector = choice->width;
  }
  own.findColumnSplit(statement);
  if (own.columnSplit == 1)
    return false;
  double bytes = 0;
  statement.getBody().walk([&](tgl::ReadOp read) {
    bytes = std::max(bytes, read.getTensorType().getElementType().getIntOrFloatBitWidth() / 8.0);
  });
  return double(*tgl::knownPoints(axes)) * own.columnSplit * termsAtOnce * bytes >= bytesAtOnce;
}

/// As codegen/simt/ColumnSplit.cpp: reductions along columns, of which none is short.
void StatementThreads::findColumnSplit(tgl::ParallelOp statement) {
  constexpr double split = 8, termsAtOnce = 4, longColumn = 512, manyColumns = 131072;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(statement.getOperation()));
  bool fits = points.has_value(), hasReduction = false;
  double shortest =
      points && double(*points) / vector < manyColumns ? split * termsAtOnce : longColumn;
  for (mlir::Operation &op : statement.getBody().front()) {
    auto reduce = dyn_cast<tgl::ReduceOp>(op);
    fits &= reduce || !op.getNumRegions();
    if (!reduce)
      continue;
    hasReduction = true;
    auto nest = cast<tgl::AxesOp>(op);
    std::optional<int64_t> terms = tgl::knownPoints(nest, {unsigned(nest.getAxes().size() - 1)});
    fits &= terms && double(*terms) >= shortest && (lane || !laneOf(nest));
    reduce.walk([&](mlir::Operation *nested) {
      auto read = dyn_cast<tgl::ReadOp>(nested);
      fits &= nested == reduce || !nested->getNumRegions();
      fits &= !read || !read.getFill();
    });
  }
  if (fits && hasReduction)
    columnSplit = split;
}

std::optional<LaneChoice> StatementThreads::laneOf(tgl::AxesOp nest) {
  if (!hasLanes || lane)
    return std::nullopt;
  return choices.choose(nest, DeviceEmitter::accessBytes, /*whole=*/true);
}
