//===- ChainLaunches.cpp - Puts launches of small sums into one -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Invariance.h"
#include "passes/Passes.h"
#include "passes/analysis/Matched.h"
#include "passes/analysis/RegisterTiles.h"
#include "passes/fuse/Access.h"
#include "passes/fuse/MergeNests.h"
#include "passes/schedule/ChainCosts.h"
#include "passes/schedule/StagePoints.h"
#include "passes/schedule/StatementPoints.h"
#include "strategies/ScheduleBlock.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_CHAINLAUNCHESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// The launch's statement, if it is all that the launch is.
static ParallelOp statementOf(LaunchOp launch) {
  Block &body = launch.getBody().front();
  auto statement = llvm::hasSingleElement(body) ? dyn_cast<ParallelOp>(body.front()) : ParallelOp();
  return statement && !statement.getAxes().empty() ? statement : ParallelOp();
}

//===----------------------------------------------------------------------===//
// Launches that become one
//===----------------------------------------------------------------------===//

namespace {
/// Launches of one block, in order, and how they would run as one.
struct Chain {
  SmallVector<Operation *> launches;
  SmallVector<ParallelOp> statements;
  ChainPlan plan;
  double alone = 0;         ///< microseconds in launches of their own
  bool hasProducts = false; ///< some of which tensor cores would multiply

  /// What one launch is to save, for estimates may err; one more launch less is sure.
  bool isWorthwhile() const {
    constexpr double share = 0.8, shareOfOne = 0.6;
    return launches.size() > 1 ? plan.microseconds < share * alone
                               : !hasProducts && plan.microseconds < shareOfOne * alone;
  }
};
} // namespace

/// The chain with one more launch; nothing where it could not be one launch.
static std::optional<Chain> withLaunch(const Chain &chain, LaunchOp launch) {
  constexpr size_t mostStatements = 16;
  ParallelOp statement = statementOf(launch);
  if (!statement || chain.statements.size() == mostStatements)
    return std::nullopt;
  std::optional<AloneTime> alone = timeAlone(statement);
  if (!alone || alone->isLarge)
    return std::nullopt;
  Chain longer = chain;
  longer.launches.push_back(launch);
  longer.statements.push_back(statement);
  longer.alone += alone->microseconds;
  longer.hasProducts |= alone->isProduct;
  std::optional<ChainPlan> plan = planChain(longer.statements);
  if (!plan)
    return std::nullopt;
  longer.plan = std::move(*plan);
  return longer;
}

/// The longest chain that begins with the launch and pays at each of its launches. What stands
/// between its launches runs before it.
static std::optional<Chain> chainFrom(LaunchOp first) {
  std::optional<Chain> chain = withLaunch({}, first), best;
  if (!chain)
    return std::nullopt;
  if (chain->isWorthwhile())
    best = chain;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    if (isa<TempOp>(op) || (!op->getNumRegions() && isMemoryEffectFree(op)))
      continue;
    auto launch = dyn_cast<LaunchOp>(op);
    std::optional<Chain> longer = launch ? withLaunch(*chain, launch) : std::nullopt;
    if (longer) {
      chain = std::move(longer);
      if (chain->isWorthwhile() && (!best || best->plan.microseconds + chain->alone - best->alone >
                                                 chain->plan.microseconds))
        best = chain;
      continue;
    }
    bool staysBefore =
        isa<LaunchOp, ForOp>(op) &&
        llvm::none_of(chain->launches, [&](Operation *one) { return conflict(one, op); });
    if (!staysBefore)
      break;
  }
  constexpr double near = 1.25;
  if (!best && chain->launches.size() > 1 && chain->plan.microseconds < near * chain->alone)
    remarkMismatch(first, "chain",
                   {llvm::formatv("one launch for {0} statements is expected to take {1:f1} us, "
                                  "launches of their own {2:f1} us",
                                  chain->launches.size(), chain->plan.microseconds, chain->alone)
                        .str(),
                    "", first});
  return best;
}

//===----------------------------------------------------------------------===//
// Nests over the same points
//===----------------------------------------------------------------------===//

/// Whether the second nest needs of what the first one writes, and the first of what the second
/// writes, the point's own elements alone.
static bool touchOwnPoints(ParallelOp first, ParallelOp second) {
  llvm::SetVector<Value> written = accessesOf(first).writes;
  written.insert_range(accessesOf(second).writes);
  IRMapping toFirst;
  for (auto [own, other] : llvm::zip_equal(second.getAxes(), first.getAxes()))
    toFirst.map(own, other);
  SmallVector<Access> all = accessesIn(first);
  all.append(accessesIn(second));
  llvm::DenseMap<Value, SmallVector<ValueExpr>> places;
  for (const Access &access : all) {
    if (!written.contains(access.tensor))
      continue;
    SmallVector<ValueExpr> place;
    for (const std::optional<ValueExpr> &subscript : access.subscripts) {
      if (!subscript)
        return false;
      place.push_back(subscript->substitute([&](Value value) -> std::optional<ValueExpr> {
        Value mapped = toFirst.lookupOrNull(value);
        return mapped ? std::optional(ValueExpr(mapped)) : std::nullopt;
      }));
    }
    bool isPoint = llvm::all_of(first.getAxes(), [&](Value axis) {
      return llvm::any_of(place,
                          [&](const ValueExpr &subscript) { return subscript.asValue() == axis; });
    });
    auto [known, isNew] = places.try_emplace(access.tensor, place);
    bool isOnlyWritten = false;
    if (isNew) {
      unsigned count =
          llvm::count_if(all, [&](const Access &other) { return other.tensor == access.tensor; });
      isOnlyWritten = count == 1;
    }
    if (!isOnlyWritten && (!isPoint || !llvm::equal(known->second, place)))
      return false;
  }
  return true;
}

/// Whether sums of both read of one tensor.
static bool readAlike(ParallelOp first, ParallelOp second) {
  llvm::DenseSet<Value> read;
  first.walk([&](ReduceOp reduce) { read.insert_range(accessesOf(reduce).reads); });
  return second
      .walk([&](ReduceOp reduce) {
        bool isAlike = llvm::any_of(accessesOf(reduce).reads,
                                    [&](Value tensor) { return read.contains(tensor); });
        return isAlike ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool canMerge(ParallelOp first, ParallelOp second) {
  constexpr size_t mostSums = 4; // whose accumulators a thread has for its tile
  auto sums = [](ParallelOp nest) { return llvm::range_size(nest.getBody().getOps<ReduceOp>()); };
  auto ranges = [](ParallelOp nest) { return getAxisRanges(cast<AxesOp>(nest.getOperation())); };
  if (first.getAxes().size() != second.getAxes().size() ||
      !llvm::equal(ranges(first), ranges(second),
                   [](const AxisRange &one, const AxisRange &other) {
                     return one.lo.asConstant() && one.hi.asConstant() && one.lo == other.lo &&
                            one.hi == other.hi;
                   }) ||
      size_t(sums(first) + sums(second)) > mostSums)
    return false;
  return (conflict(first, second) || readAlike(first, second)) && touchOwnPoints(first, second);
}

/// Makes one nest of neighbouring ones that have the same points and share what they read, or hand
/// values on.
static unsigned mergeNeighbours(Block &body) {
  unsigned merged = 0;
  ParallelOp last;
  for (Operation &op : llvm::make_early_inc_range(body)) {
    auto nest = dyn_cast<ParallelOp>(op);
    if (!nest) {
      if (!isa<TempOp>(op) && !isMemoryEffectFree(&op))
        last = nullptr;
      continue;
    }
    if (!last || !canMerge(last, nest)) {
      last = nest;
      continue;
    }
    // The later of the two: what stands between defines what its body uses.
    for (auto [own, other] : llvm::zip_equal(last.getAxes(), nest.getAxes()))
      own.replaceAllUsesWith(other);
    Block &target = nest.getBody().front();
    target.getOperations().splice(target.begin(), last.getBody().front().getOperations());
    last.erase();
    last = nest;
    ++merged;
  }
  return merged;
}

/// Parts of a warp share nothing in memory: those that have no point repeat another's.
static constexpr int64_t teamOfWarp = 32;

namespace {
struct ChainLaunchesPass : Counted<tegula::impl::ChainLaunchesPassBase<ChainLaunchesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    // A schedule is about the launches that the equations have.
    if (!scheduleSettings(getOperation()).empty())
      return;
    // Whether launches become one depends on how many points there are.
    if (Invariance::of(getOperation()).isFree())
      visit(getOperation().getBody().front());
  }

  void visit(Block &block) {
    for (Operation *op = block.empty() ? nullptr : &block.front(); op;) {
      Operation *next = op->getNextNode();
      if (auto loop = dyn_cast<ForOp>(op))
        visit(loop.getBody().front());
      auto launch = dyn_cast<LaunchOp>(op);
      std::optional<Chain> chain = launch ? chainFrom(launch) : std::nullopt;
      if (chain) {
        while (llvm::is_contained(chain->launches, next)) // what is between them stays before
          next = next->getNextNode();
        putTogether(*chain);
      }
      op = next;
    }
  }

  void putTogether(const Chain &chain) {
    std::string name = cast<LaunchOp>(chain.launches.front()).getName().str();
    count("launches put together", unsigned(chain.launches.size()));
    ParallelOp statement = putIntoPoints(chain.launches, chain.plan.axes);
    Prover prover(sizeFacts(getOperation()));
    count("temporaries made private", privatizeTemps(*statement->getBlock(), prover).privatized);
    Block &body = statement.getBody().front();
    if (unsigned merged = mergeNeighbours(body)) {
      count("nests merged", merged);
      privatizeTemps(body, prover);
    }
    constexpr int64_t bytesOfParts = 64 << 10;
    count("parts of inputs kept", stageInputs(statement, bytesOfParts, prover));
    for (TempOp temp : body.getOps<TempOp>())
      temp.getTensor().setType(typeOfSharedRows(temp.getTensor().getType()));
    OpBuilder builder(statement);
    int64_t team = chain.plan.team;
    Accesses accesses = accessesOf(statement);
    if (llvm::any_of(accesses.writes, [&](Value tensor) {
          auto temp = tensor.getDefiningOp<TempOp>();
          return accesses.reads.contains(tensor) && !(temp && isPrivate(temp));
        }))
      team = std::max(team, teamOfWarp); // a temporary has stayed in memory
    statement->setAttr(teamAttrName, builder.getI64IntegerAttr(team));
    auto launch = LaunchOp::create(builder, statement.getLoc(), name);
    statement->moveBefore(&launch.getBody().front(), launch.getBody().front().end());
    count("launches made");
  }
};
} // namespace
