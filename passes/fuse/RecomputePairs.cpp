//===- RecomputePairs.cpp - Values of pairs made again in the sums over them ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value of a pair, `r[i, j] = rsqrt(sum(square(x[j, c] - x[i, c]) for c) + e)`, is made of a few
// numbers of i and a few of j, and there are as many as pairs. In memory they are written once and
// read by each sum over j: for `a[i, c] = sum(... r[i, j] ... for j)` once for each c. Here the sum
// makes the value again: the short axis c is written out, so that the sums of all c stand beside
// each other, which a thread walks together, and each holds the value, which is the same there.
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/fuse/InlineProducers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_RECOMPUTEPAIRSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Terms of a sum in a pair's value, and points of an axis that is written out.
static constexpr int64_t maxTerms = 8, maxShort = 4;
/// What a multiprocessor of an H200 computes while a byte comes from memory: 128 lanes a clock
/// beside 18 bytes (4.2 TB/s, 132 multiprocessors, 1.75 GHz).
static constexpr int64_t operationsOfByte = 7;
/// Fewer values stay in the second-level cache (4 bytes each).
static constexpr int64_t fewestPairs = 1 << 22;

static AxesOp nestOf(Operation *op) { return cast<AxesOp>(op); }

namespace {
/// A temporary of pairs, the statement that makes it, and the sums that read it.
struct Pairs {
  TempOp temp;
  ParallelOp statement;
  WriteOp write;
  SmallVector<ReadOp> reads;

  /// The statement's axis that is the dim.
  Value axisOf(unsigned dim) { return write.getSubscriptExprs()[dim].asValue(); }
};
} // namespace

/// A sum of few terms, which are no sums.
static bool isShortSum(ReduceOp reduce) {
  std::optional<int64_t> terms = knownPoints(nestOf(reduce));
  return terms && *terms > 0 && *terms <= maxTerms && reduce.getKind() == ReduceKind::Sum &&
         !reduce.getFilter() && llvm::all_of(reduce.getBody().front(), [](Operation &op) {
           return op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isa<ReadOp>(op));
         });
}

/// Operations of the value; nothing where it is made of anything but plain reads of what fewer
/// axes say than it has itself, arithmetic, and short sums.
static std::optional<unsigned> operationsOf(Pairs &pairs) {
  unsigned operations = 0;
  auto take = [&](Operation &op, unsigned times) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      AxisSet varies = tgl::axesOf(read.getResult());
      unsigned own = llvm::count_if(pairs.statement.getBody().getArguments(),
                                    [&](BlockArgument axis) { return varies.contains(axis); });
      return !read.getGuard() && !read.getFill() && !read.getChecked() &&
             read.getExactExprs().empty() && own < pairs.statement.getBody().getNumArguments();
    }
    constexpr unsigned ofFunction = 12;
    operations += times * (isa<math::MathDialect>(op.getDialect()) ? ofFunction : 1);
    return op.getNumRegions() == 0 && isMemoryEffectFree(&op);
  };
  for (Operation &op : pairs.statement.getBody().front()) {
    if (&op == pairs.write.getOperation())
      continue;
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce) {
      if (!take(op, 1))
        return std::nullopt;
      continue;
    }
    if (!isShortSum(reduce))
      return std::nullopt;
    for (Operation &inner : reduce.getBody().front().without_terminator())
      if (!take(inner, unsigned(*knownPoints(nestOf(reduce)))))
        return std::nullopt;
  }
  return operations;
}

static int64_t pointsOf(ArrayRef<BlockArgument> axes) {
  int64_t points = 1;
  for (BlockArgument axis : axes)
    points *= *(highOf(axis) - lowOf(axis)).asConstant();
  return points;
}

/// The axes of a reader's statement that its read does not use; nothing where they are not short.
static std::optional<SmallVector<BlockArgument>> shortAxes(ReadOp read, ParallelOp statement) {
  SmallVector<BlockArgument> found;
  int64_t points = 1;
  for (BlockArgument axis : nestOf(statement).getAxes()) {
    bool isUsed = llvm::any_of(read.getSubscriptExprs(),
                               [&](const ValueExpr &expr) { return expr.uses(axis); });
    if (isUsed)
      continue;
    std::optional<int64_t> extent = (highOf(axis) - lowOf(axis)).asConstant();
    if (!extent || !lowOf(axis).asConstant() || llvm::MulOverflow(points, *extent, points))
      return std::nullopt;
    found.push_back(axis);
  }
  return points >= 1 && points <= maxShort ? std::optional(std::move(found)) : std::nullopt;
}

/// Whether the read is in a sum over axes of the value, of a statement with nothing but such sums
/// and what is made of them, and at each point of which short axes alone repeat it.
static bool isSummed(ReadOp read, ParallelOp producer) {
  auto reduce = dyn_cast<ReduceOp>(read->getParentOp());
  auto statement = reduce ? dyn_cast<ParallelOp>(reduce->getParentOp()) : ParallelOp();
  if (!statement || statement->getBlock() != producer->getBlock() ||
      !producer->isBeforeInBlock(statement) || !shortAxes(read, statement) ||
      reduce.getKind() != ReduceKind::Sum || read.getGuard() || read.getFill() ||
      read.getChecked() || !read.getExactExprs().empty())
    return false;
  DenseSet<Value> seen;
  for (const ValueExpr &subscript : read.getSubscriptExprs()) {
    Value axis = subscript.asValue();
    bool isOwn = axis && (axesOpOf(axis) == nestOf(reduce) || axesOpOf(axis) == nestOf(statement));
    if (!isOwn || !seen.insert(axis).second)
      return false;
  }
  bool overPairs = llvm::all_of(reduce.getAxes(), [&](Value axis) { return seen.contains(axis); });
  return overPairs && llvm::all_of(statement.getBody().front(), [&](Operation &op) {
           return isa<ReduceOp, WriteOp, ReadOp>(op) ||
                  (!op.getNumRegions() && isMemoryEffectFree(&op));
         });
}

/// Whether something between a statement and a later one writes what the first one reads.
static bool inputsChange(ParallelOp from, Operation *to) {
  llvm::SetVector<Value> inputs = accessesOf(from).reads;
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    for (Value tensor : accessesOf(op).writes)
      if (inputs.contains(tensor))
        return true;
  llvm::SetVector<Value> written = accessesOf(to).writes;
  return llvm::any_of(written, [&](Value tensor) { return inputs.contains(tensor); });
}

/// Whether each statement that reads the value makes it sooner than memory takes it and gives it
/// back, once for each point of short axes.
static bool isFaster(Pairs &pairs, unsigned operations) {
  constexpr int64_t elementBytes = 4;
  DenseSet<Operation *> readers;
  int64_t accesses = 1;
  for (ReadOp read : pairs.reads) {
    auto statement = cast<ParallelOp>(read->getParentOp()->getParentOp());
    if (readers.insert(statement).second)
      accesses += pointsOf(*shortAxes(read, statement));
  }
  return int64_t(operations) * int64_t(readers.size()) <=
         operationsOfByte * elementBytes * accesses;
}

static std::optional<Pairs> matchPairs(TempOp temp) {
  Pairs pairs{temp, {}, {}, {}};
  for (Operation *user : temp->getUsers()) {
    if (auto write = dyn_cast<WriteOp>(user); write && !pairs.write)
      pairs.write = write;
    else if (auto read = dyn_cast<ReadOp>(user))
      pairs.reads.push_back(read);
    else
      return std::nullopt;
  }
  if (!pairs.write || pairs.reads.empty() || pairs.write.getCombine() || pairs.write.getGuard() ||
      pairs.write.getChecked())
    return std::nullopt;
  pairs.statement = dyn_cast<ParallelOp>(pairs.write->getParentOp());
  if (!pairs.statement || !isa<KernelOp>(pairs.statement->getParentOp()) ||
      pairs.statement.getAxes().size() < 2 ||
      pairs.write.getSubscriptExprs().size() != pairs.statement.getAxes().size() ||
      !temp.getType().getElementType().isF32())
    return std::nullopt;
  std::optional<int64_t> points = knownPoints(nestOf(pairs.statement));
  DenseSet<Value> axes;
  for (unsigned dim = 0; dim < pairs.write.getSubscriptExprs().size(); ++dim) {
    Value axis = pairs.axisOf(dim);
    if (!axis || axesOpOf(axis) != nestOf(pairs.statement) || !axes.insert(axis).second)
      return std::nullopt;
  }
  std::optional<unsigned> operations = operationsOf(pairs);
  if (!points || *points < fewestPairs || !operations)
    return std::nullopt;
  bool isSafe = llvm::all_of(pairs.reads, [&](ReadOp read) {
    return isSummed(read, pairs.statement) &&
           !inputsChange(pairs.statement, read->getParentOp()->getParentOp());
  });
  return isSafe && isFaster(pairs, *operations) ? std::optional(std::move(pairs)) : std::nullopt;
}

/// The sum's terms, one after the other.
static Value writeOut(OpBuilder &builder, ReduceOp reduce, IRMapping &outside) {
  AxesOp axes = nestOf(reduce);
  SmallVector<AxisRange> ranges = getAxisRanges(axes);
  SmallVector<int64_t> at;
  for (const AxisRange &range : ranges)
    at.push_back(*range.lo.asConstant());
  Value sum;
  for (int64_t left = *knownPoints(axes); left > 0; --left) {
    IRMapping map = outside;
    for (auto [axis, place] : llvm::zip_equal(reduce.getAxes(), at))
      map.map(axis, arith::ConstantIndexOp::create(builder, reduce.getLoc(), place));
    for (Operation &op : reduce.getBody().front().without_terminator())
      if (auto indexed = dyn_cast<IndexedOp>(builder.clone(op, map)))
        foldIndices(indexed);
    Value term = map.lookupOrDefault(reduce.getReduced());
    sum = sum ? arith::AddFOp::create(builder, reduce.getLoc(), sum, term,
                                      arith::FastMathFlags::contract)
              : term;
    for (unsigned axis = at.size(); axis-- > 0;) {
      if (++at[axis] < *ranges[axis].hi.asConstant())
        break;
      at[axis] = *ranges[axis].lo.asConstant();
    }
  }
  return sum;
}

/// The pair's value in place of the read.
static void makeAgain(Pairs &pairs, ReadOp read) {
  OpBuilder builder(read);
  IRMapping map;
  for (auto [dim, subscript] : llvm::enumerate(read.getSubscriptExprs()))
    map.map(pairs.axisOf(dim), subscript.asValue());
  for (Operation &op : pairs.statement.getBody().front()) {
    if (&op == pairs.write.getOperation())
      continue;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      map.map(reduce.getResult(), writeOut(builder, reduce, map));
    else if (auto indexed = dyn_cast<IndexedOp>(builder.clone(op, map)))
      foldIndices(indexed);
  }
  Value value = map.lookupOrDefault(pairs.write.getValue());
  read.replaceAllUsesWith(roundToStorage(builder, read.getLoc(), value, builder.getF32Type()));
  read.erase();
}

/// The statement's body once for each point of the short axes, which go.
static void writeOutAxes(ParallelOp statement, ArrayRef<BlockArgument> axes) {
  OpBuilder builder(statement);
  SmallVector<Value> kept;
  for (BlockArgument axis : nestOf(statement).getAxes())
    if (!llvm::is_contained(axes, axis))
      kept.push_back(axis);
  IRMapping outer;
  ParallelOp made = copyAxes(builder, statement.getLoc(), kept, outer);
  builder.setInsertionPointToEnd(&made.getBody().front());
  SmallVector<int64_t> at;
  for (BlockArgument axis : axes)
    at.push_back(*lowOf(axis).asConstant());
  for (int64_t point = 0, points = pointsOf(axes); point < points; ++point) {
    IRMapping map = outer;
    for (auto [axis, place] : llvm::zip_equal(axes, at))
      map.map(axis, arith::ConstantIndexOp::create(builder, statement.getLoc(), place));
    for (Operation &op : statement.getBody().front())
      builder.clone(op, map);
    for (unsigned axis = at.size(); axis-- > 0;) {
      if (++at[axis] < *highOf(axes[axis]).asConstant())
        break;
      at[axis] = *lowOf(axes[axis]).asConstant();
    }
  }
  made.walk([](IndexedOp op) { foldIndices(op); });
  statement.erase();
}

namespace {
struct RecomputePairsPass : Counted<tegula::impl::RecomputePairsPassBase<RecomputePairsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (TempOp temp :
         llvm::make_early_inc_range(getOperation().getBody().front().getOps<TempOp>())) {
      std::optional<Pairs> pairs = matchPairs(temp);
      if (!pairs)
        continue;
      llvm::SetVector<Operation *> readers;
      DenseMap<Operation *, SmallVector<BlockArgument>> axes;
      for (ReadOp read : pairs->reads) {
        auto statement = cast<ParallelOp>(read->getParentOp()->getParentOp());
        if (readers.insert(statement))
          axes[statement] = *shortAxes(read, statement);
        makeAgain(*pairs, read);
        count("values made again");
      }
      for (Operation *reader : readers)
        if (!axes[reader].empty())
          writeOutAxes(cast<ParallelOp>(reader), axes[reader]);
      pairs->statement->erase();
      temp->erase();
    }
  }
};
} // namespace
