//===- MergeNests.cpp - Fuses statements over common outer axes -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/MergeNests.h"
#include "mlir/IR/Dominance.h"
#include "passes/analysis/PrefixLoop.h"
#include "passes/analysis/RowsInside.h"
#include "passes/fuse/Access.h"
#include "passes/fuse/AlignAxes.h"
#include "strategies/contraction/plan/GroupedProduct.h"
#include "strategies/product_reduction/plan/ProductReduction.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Nests do not grow beyond this: code and live values have to stay in proportion.
static constexpr unsigned maxOps = 600;
/// How far back a statement looks for a nest to join.
static constexpr unsigned maxDistance = 24;

//===----------------------------------------------------------------------===//
// What kind of work a statement is
//===----------------------------------------------------------------------===//

/// Whether a reduction reads each element for many points: no read varies along all the axes around
/// it. Tiling such a statement over all its axes is worth more than any fusion that forbids it.
static bool isContraction(ReduceOp reduce, Operation *statement) {
  SmallVector<Value> axes;
  for (Operation *around = reduce;; around = around->getParentOp()) {
    if (auto axesOp = dyn_cast<AxesOp>(around))
      for (Value axis : axesOp.getAxes())
        if (lowOf(axis).asConstant() != 0 || highOf(axis).asConstant() != 1)
          axes.push_back(axis);
    if (around == statement)
      break;
  }
  bool hasReads = false;
  bool complete = reduce
                      ->walk([&](ReadOp read) {
                        hasReads = true;
                        AxisSet varies;
                        for (const ValueExpr &subscript : read.getSubscriptExprs())
                          for (Value operand : subscript.operands()) {
                            AxisSet more = axesOf(operand);
                            varies.insert(more.begin(), more.end());
                          }
                        bool all = llvm::all_of(axes, [&](Value axis) {
                          return varies.contains(cast<BlockArgument>(axis));
                        });
                        return all ? WalkResult::interrupt() : WalkResult::advance();
                      })
                      .wasInterrupted();
  return hasReads && !complete;
}

static bool hasContraction(Operation *statement, const MergeOptions &options) {
  return statement
      ->walk<WalkOrder::PreOrder>([&](ReduceOp reduce) {
        bool contracts = isContraction(reduce, statement) ||
                         (options.groupedProducts && matchGroupedProduct(reduce));
        return contracts ? WalkResult::interrupt() : WalkResult::skip();
      })
      .wasInterrupted();
}

static bool isPointwise(Operation *statement) {
  return !statement
              ->walk([](Operation *op) {
                return isa<ReduceOp, ForOp, TilesOp, SortOp>(op) ? WalkResult::interrupt()
                                                                 : WalkResult::advance();
              })
              .wasInterrupted();
}

/// The write of a statement that says how its results lie in memory: the one of the highest rank.
static std::optional<Access> mainWrite(Operation *statement) {
  std::optional<Access> main;
  for (Access &access : accessesIn(statement))
    if (access.writes && (!main || access.subscripts.size() > main->subscripts.size()))
      main = access;
  return main;
}

/// Whether running `inner` axes in order for each point of the others keeps memory traffic local:
/// not where the inner axes hold the leading dim of the result and the last one both (statistics
/// over a batch: then each point walks through all of memory).
static bool staysLocal(ParallelOp statement, ArrayRef<Value> inner) {
  std::optional<Access> write = mainWrite(statement);
  if (!write || inner.empty())
    return true;
  // Dims of one point decide nothing.
  llvm::erase_if(write->subscripts,
                 [](const auto &subscript) { return subscript && subscript->asConstant(); });
  if (write->subscripts.size() <= 1)
    return true;
  auto holds = [&](const std::optional<ValueExpr> &subscript) {
    return subscript && llvm::any_of(inner, [&](Value axis) { return subscript->uses(axis); });
  };
  return !holds(write->subscripts.front()) || !holds(write->subscripts.back());
}

static unsigned countOps(Operation *op) {
  unsigned count = 0;
  op->walk([&](Operation *) { ++count; });
  return count;
}

//===----------------------------------------------------------------------===//
// Whether to merge
//===----------------------------------------------------------------------===//

/// The axes of a statement that are not shared.
static SmallVector<Value> restOf(ParallelOp statement, ArrayRef<AxisPair> pairs, bool second) {
  SmallVector<Value> rest;
  for (Value axis : statement.getAxes())
    if (llvm::none_of(pairs, [&](const AxisPair &pair) {
          return (second ? pair.second : pair.first) == axis;
        }))
      rest.push_back(axis);
  return rest;
}

/// Whether a nest over `shared` axes of the statement keeps its contractions: they are products of
/// matrices for each point of an axis that all factors vary along (a batch), with rows that the
/// nest can take in blocks (tgl-block-rows), and nothing else stands in the way of blocks.
static bool isBatched(ParallelOp statement, ArrayRef<Value> shared) {
  bool result = true;
  statement->walk([&](Operation *op) {
    if (isa<ForOp, TilesOp, SortOp>(op))
      result = false;
    if (auto axes = dyn_cast<AxesOp>(op))
      for (const AxisRange &range : getAxisRanges(axes))
        result &= range.lo.operands().empty() && range.hi.operands().empty();
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || !isContraction(reduce, statement))
      return;
    std::optional<Contraction> contraction = matchContraction(reduce);
    bool hasBatch = false, hasRows = false;
    for (Value axis : shared) {
      unsigned varying =
          contraction ? llvm::count_if(contraction->factors,
                                       [&](const auto &factor) {
                                         return factor.axes.contains(cast<BlockArgument>(axis));
                                       })
                      : 0;
      hasBatch |= varying && varying == contraction->factors.size();
      hasRows |= varying && varying < contraction->factors.size();
    }
    result &= hasBatch && hasRows;
  });
  return result;
}

/// A loop whose steps later passes cut into tiles or parts.
static bool isScan(ForOp loop) {
  return matchPrefixLoop(loop).has_value() || matchAffineLoop(loop).has_value();
}

/// Elements that a statement goes through for all its points, steps of scans among them, where
/// sizes say; the most of its parts.
static std::optional<int64_t> elementsOf(Operation *op, int64_t points = 1) {
  std::optional<int64_t> own = 1;
  if (auto axes = dyn_cast<AxesOp>(op))
    own = knownPoints(axes);
  else if (auto loop = dyn_cast<ForOp>(op); loop && isScan(loop))
    own = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
  if (!own || llvm::MulOverflow(points, *own, points))
    return std::nullopt;
  int64_t most = points;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps()) {
      if (inner.getNumRegions() == 0)
        continue;
      std::optional<int64_t> elements = elementsOf(&inner, points);
      if (!elements)
        return std::nullopt;
      most = std::max(most, *elements);
    }
  return most;
}

/// Whether neighbours in the statement's result are neighbouring points of a nest over the shared
/// axes: a thread of a GPU takes a point of it then, not a block.
static bool runsAlongShared(ParallelOp statement, const SharedAxes &shared) {
  std::optional<Access> write = mainWrite(statement);
  if (!write || write->subscripts.empty() || !write->subscripts.back())
    return false;
  return llvm::any_of(shared.pairs, [&](const AxisPair &pair) {
    return write->subscripts.back()->uses(pair.first);
  });
}

/// The same of anything that a statement writes: of a scan that stays inside, what is made of it.
static bool writesAlongShared(ParallelOp statement, const SharedAxes &shared) {
  return statement
      ->walk([&](WriteOp write) {
        SmallVector<ValueExpr> place = write.getSubscriptExprs();
        bool isAlong = !place.empty() && llvm::any_of(shared.pairs, [&](const AxisPair &pair) {
          return place.back().uses(pair.first);
        });
        return isAlong ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether memory runs along none of the axes that a statement keeps inside a nest over others.
static bool runsAcross(ParallelOp statement, ArrayRef<Value> rest) {
  std::optional<Access> write = mainWrite(statement);
  if (!write || write->subscripts.empty() || !write->subscripts.back())
    return false;
  return llvm::none_of(rest, [&](Value axis) { return write->subscripts.back()->uses(axis); });
}

/// Whether a statement goes through rows, one for each point of the shared axes, with nothing more
/// at an element of them than values: a block keeps such rows.
static bool goesThroughRows(ParallelOp statement, bool hasRest) {
  auto isPlain = [](Operation *op) {
    return !op->walk([&](AxesOp inner) {
                return inner != op ? WalkResult::interrupt() : WalkResult::advance();
              }).wasInterrupted();
  };
  if (hasRest)
    return isPlain(statement);
  return llvm::all_of(statement.getBody().front().getOps<ParallelOp>(), isPlain);
}

static bool hasSort(ParallelOp statement) { return !statement.getBody().getOps<SortOp>().empty(); }

static bool hasScan(ParallelOp statement) {
  return llvm::any_of(statement.getBody().getOps<ForOp>(), isScan);
}

/// Whether each point of the second statement takes one step of a scan: the scan's loop does it
/// along with its steps, and few long rows are cut later (tgl-split-scans).
static bool takesSteps(ParallelOp first, ParallelOp second, ArrayRef<Value> secondRest) {
  if (secondRest.size() != 1 || !isPointwise(second))
    return false;
  auto loops = first.getBody().getOps<ForOp>();
  if (!llvm::hasSingleElement(loops) || !isScan(*loops.begin())) // of several only the last would
    return false;
  llvm::SetVector<Value> scanned = accessesOf(*loops.begin()).writes;
  return llvm::all_of(second.getBody().getOps<ReadOp>(), [&](ReadOp read) {
    if (!scanned.contains(
            read.getTensor())) // what is computed with it would have to stay in the nest
      return !read.getTensor().getDefiningOp<TempOp>();
    return llvm::all_of(read.getSubscriptExprs(), [&](const ValueExpr &place) {
      return !place.uses(secondRest[0]) || (place - ValueExpr(secondRest[0])).asConstant() == 0;
    });
  });
}

/// Whether a nest over the shared axes leaves most of the machine without work: it has few points,
/// with much to do at each. (Many statements of their own have axes enough; sums of few points are
/// split.)
static bool leavesMachineIdle(ParallelOp first, ParallelOp second, const SharedAxes &shared,
                              int64_t minPoints) {
  constexpr int64_t muchWork = 393216; // elements of a point: more than a cluster of blocks keeps
  // Only rows are kept. What has nests inside, or hands more than values on, reads and writes
  // memory as statements of their own would: a block of that many takes as long as a launch, and so
  // does a thread. And where the elements of a point are more than caches hold, nothing is gained,
  // however many points there are.
  constexpr int64_t muchInside = 65536, muchForThread = 512, moreThanCaches = 1 << 20;
  constexpr int64_t longColumn = 512;
  constexpr int64_t threadsOfBlock = 64; // that read at a time as much as a block of them does
  constexpr int64_t longScan = 16384,
                    longScanOfThread = 256; // statements of their own are cut (tgl-split-scans)
  SmallVector<Value> inside = restOf(second, shared.pairs, true);
  bool firstRest = !restOf(first, shared.pairs, false).empty(), secondRest = !inside.empty();
  bool isKept =
      !firstRest && goesThroughRows(first, firstRest) && goesThroughRows(second, secondRest);
  int64_t much = isKept ? muchWork : muchInside;
  if (hasScan(first)) {
    bool isThreads = writesAlongShared(first, shared);
    much = (isThreads ? longScanOfThread : longScan) - 1;
    minPoints *= isThreads ? threadsOfBlock : 1;
  } else if (firstRest && runsAlongShared(first, shared)) {
    much = muchForThread;
    minPoints *= threadsOfBlock;
  }
  int64_t points = 1;
  for (const AxisPair &pair : shared.pairs) {
    std::optional<int64_t> extent = (highOf(pair.first) - lowOf(pair.first)).asConstant();
    if (!extent || llvm::MulOverflow(points, *extent, points))
      return false;
  }
  std::optional<int64_t> one = elementsOf(first), other = elementsOf(second);
  if (!one || !other)
    return false;
  int64_t elements = std::max(*one, *other) / std::max<int64_t>(points, 1);
  // A thread goes through the column of its point, and keeps no long one.
  if (isKept && secondRest && runsAcross(second, inside) && elements > longColumn)
    return true;
  return elements > (points < minPoints ? much
                     : isKept           ? std::numeric_limits<int64_t>::max()
                                        : moreThanCaches);
}

/// Whether both reduce the columns of a product that they have in common, over the same axes.
static bool reduceOneProduct(ParallelOp first, ParallelOp second, const SharedAxes &shared) {
  Matched<ProductReductionPlan> one = planProductReduction(first),
                                other = planProductReduction(second);
  if (!one || !other)
    return false;
  SmallVector<std::pair<Value, Value>> axes;
  for (const AxisPair &pair : shared.pairs)
    axes.push_back({pair.first, pair.second});
  return llvm::any_of(one->reductions, [&](const ReducedProduct &its) {
    return llvm::any_of(other->reductions, [&](const ReducedProduct &others) {
      return isOneProduct(one->op, its, other->op, others, axes);
    });
  });
}

static bool isWorthwhile(ParallelOp first, ParallelOp second, const SharedAxes &shared,
                         const MergeOptions &options) {
  SmallVector<Value> firstRest = restOf(first, shared.pairs, false),
                     secondRest = restOf(second, shared.pairs, true);
  bool same = firstRest.empty() && secondRest.empty();
  bool steps = options.minPoints && takesSteps(first, second, secondRest);
  if (shared.pairs.empty() && !same && !steps)
    return false;
  if (countOps(first) + countOps(second) > maxOps)
    return false;
  // Rows of a tile loop share what they read: a tensor that is not written beside them.
  if (!second.getBody().getOps<TilesOp>().empty() && first.getBody().getOps<TilesOp>().empty())
    return false;
  bool firstContracts = hasContraction(first, options),
       secondContracts = hasContraction(second, options);
  // A contraction takes pointwise work on its result, nothing else, but for those of a batch: what
  // goes from one to the next (the scores of attention) stays in the cache then.
  if (firstContracts || secondContracts) {
    if (options.reducedProducts && same && reduceOneProduct(first, second, shared))
      return true;
    if (options.batchedProducts && shared.flow) {
      SmallVector<Value> firstShared, secondShared;
      for (const AxisPair &pair : shared.pairs) {
        firstShared.push_back(pair.first);
        secondShared.push_back(pair.second);
      }
      if (isBatched(first, firstShared) && isBatched(second, secondShared))
        return true;
    }
    return same && shared.flow && isPointwise(firstContracts ? second : first);
  }
  // Long scans of few points are cut, each as a statement of its own.
  bool isWide = options.minPoints != 0;
  if (isWide && same && hasScan(first) && hasScan(second) &&
      leavesMachineIdle(first, second, shared, options.minPoints))
    return false;
  // Without a dependence only statements over the same points gain, or over elements of the same
  // rows: they read the same elements.
  if (!shared.flow)
    return same ||
           (isWide &&
            ((firstRest.empty() && isPointwise(second) &&
              isBesideRows(second, secondRest, first)) ||
             (secondRest.empty() && isPointwise(first) && isBesideRows(first, firstRest, second))));
  // Nor does broadcasting a stored value cost enough to give up the order of a pointwise statement.
  if (!same && isPointwise(first) && isPointwise(second))
    return false;
  // A team sorts a row for a point; inside of a nest it would sort one after the other.
  if (isWide &&
      ((hasSort(first) && !firstRest.empty()) || (hasSort(second) && !secondRest.empty())))
    return false;
  if (!same && !steps && isWide &&
      (leavesMachineIdle(first, second, shared, options.minPoints) ||
       hasSumsInside(first, firstRest) || hasSumsInside(second, secondRest)))
    return false;
  return staysLocal(first, firstRest) && staysLocal(second, secondRest);
}

/// Whether everything that `op` uses is defined before `place`.
static bool operandsReach(Operation *op, Operation *place) {
  return llvm::all_of(valuesUsedBy(op), [&](Value value) {
    Operation *def = value.getDefiningOp();
    return !def || def->getBlock() != place->getBlock() || def->isBeforeInBlock(place);
  });
}

/// Whether the second statement can run right after the first one: `second` moves up, or else
/// `first` down (it has no results), past what stands between. The op before which the nest goes,
/// or null.
static Operation *mergePoint(ParallelOp first, ParallelOp second) {
  bool up = true, down = true;
  for (Operation *between = first->getNextNode(); between != second;
       between = between->getNextNode()) {
    up = up && !conflict(between, second);
    down = down && !conflict(first, between);
  }
  if (up && operandsReach(second, first))
    return first;
  return down ? second : nullptr;
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

/// Moves the body of a statement to the end of `nest`, the axes that are not mapped in an inner
/// parallel.
static void moveBody(ParallelOp statement, ParallelOp nest, ArrayRef<Value> rest, IRMapping &map) {
  Block *target = &nest.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(target);
  if (!rest.empty()) {
    ParallelOp inner = copyAxes(builder, statement.getLoc(), rest, map);
    target = &inner.getBody().front();
  }
  target->getOperations().splice(target->end(), statement.getBody().front().getOperations());
  for (Value axis : statement.getAxes())
    axis.replaceAllUsesWith(map.lookup(axis));
  statement.erase();
}

static ParallelOp merge(ParallelOp first, ParallelOp second, ArrayRef<AxisPair> pairs,
                        Operation *place) {
  OpBuilder builder(place);
  SmallVector<Value> outer;
  for (const AxisPair &pair : pairs)
    outer.push_back(pair.first);
  SmallVector<Value> firstRest = restOf(first, pairs, false),
                     secondRest = restOf(second, pairs, true);
  IRMapping firstMap, secondMap;
  ParallelOp nest =
      copyAxes(builder, FusedLoc::get(first.getContext(), {first.getLoc(), second.getLoc()}), outer,
               firstMap);
  for (const AxisPair &pair : pairs)
    secondMap.map(pair.second, firstMap.lookup(pair.first));
  moveBody(first, nest, firstRest, firstMap);
  moveBody(second, nest, secondRest, secondMap);
  return nest;
}

/// Merges two statements of which one goes through a dim in digits and the other at once, the axis
/// of this one split likewise, where they then share more axes and a nest over these is worthwhile.
/// Null where it is not.
static ParallelOp mergeAligned(ParallelOp first, ParallelOp second, const SharedAxes &shared,
                               const MergeOptions &options, AxisSharing &sharing, Prover &prover) {
  if (restOf(first, shared.pairs, false).empty() && restOf(second, shared.pairs, true).empty())
    return nullptr;
  Operation *place = mergePoint(first, second);
  if (!place)
    return nullptr;
  for (ParallelOp statement : {second, first}) {
    SmallVector<AlignedAxis, 1> axes =
        axesToAlign(statement, statement == first ? second : first, prover);
    // A product keeps its axes: tiles are made of them.
    if (axes.empty() || hasContraction(statement, options))
      continue;
    OpBuilder builder(statement);
    auto split = cast<ParallelOp>(builder.clone(*statement));
    alignAxes(split, axes, prover);
    ParallelOp one = statement == first ? split : first,
               other = statement == first ? second : split;
    SharedAxes more = sharing.of(one, other);
    sharing.forget(split);
    if (!more.flow || more.pairs.size() <= shared.pairs.size() ||
        !isWorthwhile(one, other, more, options)) {
      split.erase();
      continue;
    }
    sharing.forget(first);
    sharing.forget(second);
    if (place == statement)
      place = split;
    statement.erase();
    return merge(one, other, more.pairs, place);
  }
  return nullptr;
}

/// The nearest statement before `second` that it joins, as the nest that the two become; null where
/// there is none.
static ParallelOp joinEarlier(ParallelOp second, bool flow, const MergeOptions &options,
                              AxisSharing &sharing, Prover &prover) {
  unsigned distance = 0;
  for (Operation *op = second->getPrevNode(); op && distance < maxDistance;
       op = op->getPrevNode()) {
    distance += op->getNumRegions() != 0;
    auto first = dyn_cast<ParallelOp>(op);
    if (!first)
      continue;
    SharedAxes shared = sharing.of(first, second);
    if (shared.flow != flow)
      continue;
    if (flow)
      if (ParallelOp nest = mergeAligned(first, second, shared, options, sharing, prover))
        return nest;
    if (!isWorthwhile(first, second, shared, options))
      continue;
    if (Operation *place = mergePoint(first, second)) {
      sharing.forget(first); // others say what they said before
      sharing.forget(second);
      return merge(first, second, shared.pairs, place);
    }
  }
  return nullptr;
}

unsigned tegula::mergeNests(Block &block, const MergeOptions &options, Prover &prover) {
  unsigned merges = 0;
  AxisSharing sharing(prover);
  // Producers and consumers first: they decide which axes are outer ones.
  for (bool flow : {true, false})
    for (Operation *op = block.empty() ? nullptr : &block.front(); op;) {
      auto statement = dyn_cast<ParallelOp>(op);
      Operation *next = op->getNextNode();
      // A grown nest may join what its part could not.
      ParallelOp nest;
      if (statement)
        nest = joinEarlier(statement, flow, options, sharing, prover);
      if (nest) {
        ++merges;
        next = nest;
      }
      op = next;
    }
  return merges;
}
