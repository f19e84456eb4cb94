//===- ChainCosts.cpp - When launches of small sums become one ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/ChainCosts.h"

#include "ir/tgl/TglShapes.h"
#include "passes/analysis/RegisterTiles.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "target/DeviceFacts.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

// Estimates; docs/design/rows-and-columns.md has what they are made of.

/// A launch of a captured graph, from the end of the one before; a statement in it.
static constexpr double launchMicroseconds = 2, statementMicroseconds = 0.3;
static constexpr double clocksPerMicrosecond = 1700;
/// Bytes from memory, and from the second-level cache, of tensors that are not larger.
static constexpr double memoryBytes = 4.0e6, cacheBytes = 6.5e6, cachedTensor = 30e6;
/// Threads of a multiprocessor that hide each other's waits, fewer where each has sums enough that
/// do not wait for each other; that have registers for a tile.
static constexpr double busyThreads = 512, busyThreadsOfTiles = 256, mostThreads = 512;
static constexpr int64_t manySums = 16;
/// What the temporaries of a block may have of shared memory, on all cards; what those of a
/// multiprocessor's blocks have.
static constexpr double blockBytes = 88 << 10, sharedBytes = 200 << 10;
/// General code's time to that of its instructions and accesses: of fft_1024, on an H200.
static constexpr double generalShare = 2;

/// Parts of a launch that are nearly as busy get into each other's way.
static double together(double one, double other) {
  return std::max(one, other) + 0.3 * std::min(one, other);
}

static double sizeOf(Value tensor) {
  auto type = cast<TglTensorType>(tensor.getType());
  return double(knownElements(tensor).value_or(0)) * type.getElementType().getIntOrFloatBitWidth() /
         8;
}

/// Whether only these statements, of one run of a loop around them, use the temporary.
static bool isOwn(Value tensor, ArrayRef<ParallelOp> statements) {
  auto temp = tensor.getDefiningOp<TempOp>();
  if (!temp || temp->getBlock() != ParallelOp(statements.front())->getParentOp()->getBlock())
    return false;
  return llvm::all_of(temp->getUsers(), [&](Operation *user) {
    return llvm::any_of(statements, [&](ParallelOp one) { return one->isAncestor(user); });
  });
}

static llvm::SetVector<Value> tensorsOf(ArrayRef<ParallelOp> statements) {
  llvm::SetVector<Value> all;
  for (ParallelOp statement : statements) {
    Accesses accesses = accessesOf(statement);
    all.insert_range(accesses.reads);
    all.insert_range(accesses.writes);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// One launch
//===----------------------------------------------------------------------===//

namespace {
/// What a multiprocessor has to do for a point.
struct PointWork {
  double clocks = 0;
  bool hasManySums = true; ///< in all nests with sums that read alike
};
} // namespace

/// The work of a point's nests, over the axes that are left.
static std::optional<PointWork> workOfPoint(ArrayRef<ParallelOp> statements,
                                            ArrayRef<IndependentAxis> axes, int64_t team) {
  PointWork work;
  bool hasTile = false;
  for (ParallelOp statement : statements) {
    SmallVector<unsigned> inner;
    for (unsigned axis = 0; axis < statement.getAxes().size(); ++axis)
      if (llvm::none_of(axes,
                        [&](const IndependentAxis &one) { return one.lookup(statement) == axis; }))
        inner.push_back(axis);
    if (inner.empty())
      return std::nullopt;
    auto op = cast<AxesOp>(statement.getOperation());
    std::optional<RegisterTile> tile = chooseRegisterTile(op, inner, team);
    std::optional<double> own =
        tile ? std::optional(tile->clocks) : clocksWithoutTile(op, inner, team);
    if (!own)
      return std::nullopt;
    hasTile |= tile.has_value();
    work.hasManySums &= !tile || tile->accumulators >= manySums;
    work.clocks += *own;
  }
  return hasTile ? std::optional(work) : std::nullopt;
}

/// Bytes of a tensor that points have parts of, as f32 at least.
static double partOf(Value tensor, ArrayRef<ParallelOp> statements,
                     ArrayRef<IndependentAxis> axes) {
  constexpr double bits = 32;
  for (ParallelOp statement : statements)
    for (Operation *user : tensor.getUsers()) {
      auto read = dyn_cast<ReadOp>(user);
      if (!read || !statement->isAncestor(read) || read->getParentOp() == statement)
        continue;
      for (const IndependentAxis &axis : axes)
        if (llvm::any_of(read.getSubscriptExprs(), [&](const ValueExpr &subscript) {
              return subscript.uses(statement.getAxes()[axis.lookup(statement)]);
            }))
          return sizeOf(tensor) *
                 std::max(1.0,
                          bits / read.getTensorType().getElementType().getIntOrFloatBitWidth());
    }
  return 0;
}

/// Whether statements hand a tensor on that others use too: it stays in memory.
static bool handOnInMemory(ArrayRef<ParallelOp> statements) {
  llvm::SetVector<Value> read, written;
  for (ParallelOp statement : statements) {
    Accesses accesses = accessesOf(statement);
    read.insert_range(accesses.reads);
    written.insert_range(accesses.writes);
  }
  return llvm::any_of(
      written, [&](Value tensor) { return read.contains(tensor) && !isOwn(tensor, statements); });
}

static std::optional<double> timeOfChain(ArrayRef<ParallelOp> statements,
                                         ArrayRef<IndependentAxis> axes, int64_t team) {
  double points = 1;
  auto first = cast<AxesOp>(ParallelOp(statements.front()).getOperation());
  for (const IndependentAxis &axis : axes) {
    std::optional<int64_t> own = knownPoints(first, {axis.lookup(first)});
    if (!own || *own < 1)
      return std::nullopt;
    points *= double(*own);
  }
  std::optional<PointWork> work = workOfPoint(statements, axes, team);
  if (!work)
    return std::nullopt;
  double bytes = 0, kept = 0;
  for (Value tensor : tensorsOf(statements)) {
    if (!knownElements(tensor))
      return std::nullopt;
    if (!isOwn(tensor, statements)) {
      bytes += sizeOf(tensor);
      kept += partOf(tensor, statements, axes) / points; // which the team may keep
      continue;
    }
    auto type = cast<TglTensorType>(tensor.getType());
    TglTensorType padded = typeOfSharedRows(type);
    double elements = 1, own = 1;
    for (auto [dim, other] : llvm::zip_equal(type.getDims(), padded.getDims())) {
      elements *= double(dim.getExpr().asConstant().value_or(1));
      own *= double(other.getExpr().asConstant().value_or(1));
    }
    kept += sizeOf(tensor) * own / std::max(elements, 1.0) / points;
  }
  constexpr int64_t warp = 32, blockOfWarps = 128; // of several points (StatementWork.cpp)
  double teams = team <= warp ? double(blockOfWarps / team) : 1;
  if (kept * teams > blockBytes)
    return std::nullopt;
  constexpr double ofMultiprocessors = device::multiprocessors;
  double rounds = points / ofMultiprocessors, blocks = std::ceil(points / teams);
  if (blocks < 8 * ofMultiprocessors)
    rounds = std::ceil(blocks / ofMultiprocessors) * teams;
  double resident = std::min({mostThreads, std::ceil(points / ofMultiprocessors) * double(team),
                              std::floor(sharedBytes / std::max(kept, 1.0)) * double(team)});
  double compute = work->clocks * rounds / clocksPerMicrosecond *
                   std::max(1.0, (work->hasManySums ? busyThreadsOfTiles : busyThreads) / resident);
  return launchMicroseconds + statementMicroseconds * double(statements.size()) +
         together(bytes / memoryBytes, compute);
}

std::optional<ChainPlan> tegula::planChain(ArrayRef<ParallelOp> statements) {
  constexpr size_t mostAxes = 4;
  SmallVector<IndependentAxis> all = independentAxes(statements, /*runOnce=*/true);
  if (all.size() > mostAxes)
    all.truncate(mostAxes);
  // Parts of a warp that have no point repeat the last one, which others may be writing.
  int64_t leastTeam = handOnInMemory(statements) ? 32 : 4;
  std::optional<ChainPlan> best;
  for (unsigned set = 1; set < 1u << all.size(); ++set)
    for (int64_t team = leastTeam; team <= 512; team *= 2) {
      ChainPlan plan;
      for (auto [number, axis] : llvm::enumerate(all))
        if (set >> number & 1)
          plan.axes.push_back(axis);
      std::optional<double> time = timeOfChain(statements, plan.axes, team);
      if (!time || (best && *time >= best->microseconds))
        continue;
      plan.team = team;
      plan.microseconds = *time;
      best = std::move(plan);
    }
  return best;
}

//===----------------------------------------------------------------------===//
// Launches of their own
//===----------------------------------------------------------------------===//

/// Microseconds of a product on tensor cores, whose tiles have 64 rows and columns at least, and
/// fill and drain their pipelines: as the ranking of tiles has it for sums of 16 terms.
static std::optional<double> timeOfProduct(const TensorProduct &product) {
  constexpr double splitRate = 275e6, rate = 470e6, least = 64; // operations in a microsecond
  constexpr double clocksOfTile = 2500, pointsOfTile = 128 * 128;
  const ContractionPlan &plan = product.plan;
  auto op = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  double time = 0;
  for (auto [each, operands] : llvm::zip_equal(plan.products, product.operands)) {
    std::optional<int64_t> batch = knownPoints(op, plan.batch), rows = knownPoints(op, plan.rows),
                           columns = knownPoints(op, plan.columns),
                           terms = knownPoints(cast<AxesOp>(ReduceOp(each.reduce).getOperation()));
    if (!batch || !rows || !columns || !terms)
      return std::nullopt;
    auto padded = [](int64_t extent, double step) {
      return std::ceil(double(extent) / step) * step;
    };
    double points = padded(*rows, least) * padded(*columns, least);
    time += 2 * double(*batch) * points * padded(*terms, least / 2) /
            (operands.multiplications() > 1 ? splitRate : rate);
    time += std::ceil(double(*batch) * std::ceil(points / pointsOfTile) /
                      double(device::multiprocessors)) *
            clocksOfTile / clocksPerMicrosecond;
  }
  return time;
}

/// Whether every product has rows and columns for whole tiles, and terms for more than to fill and
/// drain a pipeline.
static bool fillsTiles(const TensorProduct &product) {
  constexpr int64_t least = 64, leastTerms = 32;
  const ContractionPlan &plan = product.plan;
  auto op = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  return llvm::all_of(plan.products, [&](const ContractionProduct &each) {
    auto sum = cast<AxesOp>(ReduceOp(each.reduce).getOperation());
    return knownPoints(op, plan.rows).value_or(0) >= least &&
           knownPoints(op, plan.columns).value_or(0) >= least &&
           knownPoints(sum).value_or(0) >= leastTerms;
  });
}

std::optional<AloneTime> tegula::timeAlone(ParallelOp statement) {
  AloneTime time;
  double memory = 0;
  for (Value tensor : tensorsOf({statement})) {
    if (!knownElements(tensor))
      return std::nullopt;
    double bytes = sizeOf(tensor);
    bool isNear = tensor.getDefiningOp<TempOp>() && bytes <= cachedTensor;
    memory += bytes / (isNear ? cacheBytes : memoryBytes);
  }
  std::optional<double> compute;
  if (Matched<TensorProduct> product = matchTensorProduct(statement)) {
    time.isProduct = true;
    time.isLarge = fillsTiles(*product);
    compute = timeOfProduct(*product);
  } else {
    constexpr int64_t warp = 32;
    auto op = cast<AxesOp>(statement.getOperation());
    std::optional<double> clocks = clocksWithoutTile(
        op, llvm::to_vector(llvm::seq<unsigned>(0, statement.getAxes().size())), warp);
    if (clocks)
      compute = *clocks * generalShare / clocksPerMicrosecond / double(device::multiprocessors);
  }
  if (!compute)
    return std::nullopt;
  time.microseconds = launchMicroseconds + together(memory, *compute);
  return time;
}
