//===- SplitPolyphase.cpp - Polyphase decomposition of transposed convolutions (GPU) ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/contraction/plan/TensorTile.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITPOLYPHASEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static AxesOp asAxes(Operation *op) { return cast<AxesOp>(op); }

static ValueExpr ceilDiv(const ValueExpr &value, int64_t divisor) {
  return ValueExpr::floorDiv(value + ValueExpr(divisor - 1), ValueExpr(divisor));
}

/// a and b; either may be null.
static Value both(OpBuilder &builder, Location loc, Value a, Value b) {
  return a && b ? arith::AndIOp::create(builder, loc, a, b).getResult() : (a ? a : b);
}

static Value compare(OpBuilder &builder, Location loc, arith::CmpIPredicate predicate,
                     const ValueExpr &left, const ValueExpr &right) {
  return arith::CmpIOp::create(builder, loc, predicate, materialize(builder, loc, left),
                               materialize(builder, loc, right));
}

namespace {
/// The read of a sum needs `(b*p + a*r + k) / s` to be whole: p an axis of the statement, r one of
/// the sum, b 1 or -1.
struct Division {
  unsigned number, point, tap; // which of the read's; which axes
  int64_t pointWeight, tapWeight, divisor;
  ValueExpr shift; ///< k
};

/// A statement of one sum, over the product of a read with such divisions and others.
class PhaseSplitter {
public:
  /// Nothing where the statement is none.
  static std::optional<PhaseSplitter> match(ParallelOp statement) {
    PhaseSplitter splitter(statement);
    SmallVector<ReduceOp> sums(statement.getBody().getOps<ReduceOp>());
    if (sums.size() != 1 || sums[0].getKind() != ReduceKind::Sum || sums[0].getFiltered() ||
        !sums[0].getType().isF32())
      return std::nullopt;
    splitter.reduce = sums[0];
    for (ReadOp read : sums[0].getBody().front().getOps<ReadOp>())
      if (!read.getExactExprs().empty()) {
        if (splitter.image)
          return std::nullopt;
        splitter.image = read;
      }
    ReadOp image = splitter.image;
    if (!image || image.getGuard() || image.getChecked() || !image.getFill() ||
        !isZero(image.getFill()) || !vanishesWith(splitter.reduce.getReduced(), image))
      return std::nullopt;
    for (unsigned number = 0; number < image.getExactExprs().size(); ++number)
      if (!splitter.findDivision(number))
        return std::nullopt;
    return splitter;
  }

  /// The sum in terms of offsets into the image, phases as axes of the statement. `apart`: of all
  /// divisions but the last each phase has its own offsets, where they can be counted.
  void split(bool apart) {
    SmallVector<Value> conditions;
    while (!image.getExactExprs().empty()) {
      std::optional<Division> division = findDivision(0);
      assert(division && "divisions do not depend on each other");
      bool isLast = image.getExactExprs().size() == 1;
      conditions.push_back(apart && !isLast && std::abs(division->tapWeight) == 1
                               ? splitApart(*division)
                               : splitDivision(*division));
    }
    repair(conditions);
  }

private:
  explicit PhaseSplitter(ParallelOp statement) : statement(statement) {}

  std::optional<Division> findDivision(unsigned number) {
    auto [numerator, denominator] = image.getExactExprs()[number];
    std::optional<int64_t> divisor = denominator.asConstant();
    if (!divisor || *divisor < 2 || *divisor > 64 || numerator.operands().size() != 2)
      return std::nullopt;
    Division result{number, 0, 0, 0, 0, *divisor, numerator};
    for (Value operand : numerator.operands()) {
      auto axis = dyn_cast<BlockArgument>(operand);
      std::optional<int64_t> weight = stepAlong(numerator, operand);
      if (!axis || !weight || *weight == 0 || std::abs(*weight) > 64)
        return std::nullopt;
      bool isTap = axis.getOwner() == &reduce.getBody().front();
      if (!isTap && axis.getOwner() != &statement.getBody().front())
        return std::nullopt;
      (isTap ? result.tap : result.point) = axis.getArgNumber();
      (isTap ? result.tapWeight : result.pointWeight) = *weight;
      AxisRange range = getAxisRange(asAxes(axis.getOwner()->getParentOp()), axis.getArgNumber());
      if (range.lo.asConstant() != 0 || !range.hi.operands().empty())
        return std::nullopt;
      result.shift = result.shift.substitute(operand, ValueExpr(int64_t(0)));
    }
    if (!result.tapWeight || std::abs(result.pointWeight) != 1 || !canReplace(result))
      return std::nullopt;
    return result;
  }

  /// Nothing but reads uses the tap, and the point inside the sum the image alone; a read that uses
  /// the tap makes the product 0 where it is 0.
  bool canReplace(const Division &division) {
    Value point = statement.getBody().getArgument(division.point);
    Value tap = reduce.getBody().getArgument(division.tap);
    bool vanishes = false;
    for (Operation &op : reduce.getBody().front()) {
      bool usesTap = llvm::is_contained(op.getOperands(), tap),
           usesPoint = llvm::is_contained(op.getOperands(), point);
      if (!usesTap && !usesPoint)
        continue;
      auto read = dyn_cast<ReadOp>(op);
      if (!read || (read != image && usesPoint))
        return false;
      if (read != image)
        vanishes |=
            vanishesWith(reduce.getReduced(), read) && (!read.getFill() || isZero(read.getFill()));
    }
    for (AxesOp owner : {asAxes(statement), asAxes(reduce)})
      for (const AxisRange &range : getAxisRanges(owner))
        if (range.lo.uses(point) || range.hi.uses(point) || range.lo.uses(tap) ||
            range.hi.uses(tap))
          return false;
    for (auto [number, exact] : llvm::enumerate(image.getExactExprs()))
      if (number != division.number && (exact.first.uses(point) || exact.first.uses(tap)))
        return false;
    SmallVector<std::optional<ValueExpr>> rests = restsOf(division);
    return vanishes && llvm::count_if(rests, [](auto &rest) { return rest.has_value(); }) == 1 &&
           llvm::none_of(
               rests, [&](auto &rest) { return rest && (rest->uses(point) || rest->uses(tap)); });
  }

  /// What subscripts add to the division; nothing for those that do not use it.
  SmallVector<std::optional<ValueExpr>> restsOf(const Division &division) {
    Value point = statement.getBody().getArgument(division.point);
    Value tap = reduce.getBody().getArgument(division.tap);
    // Where the division is whole and gives m, p = (s*m - a*r - k) / b. Here p stands for m.
    ValueExpr whole = ValueExpr(division.divisor) * ValueExpr(point) -
                      ValueExpr(division.tapWeight) * ValueExpr(tap) - division.shift;
    ValueExpr place = ValueExpr(division.pointWeight) * whole;
    SmallVector<std::optional<ValueExpr>> rests;
    for (const ValueExpr &subscript : image.getSubscriptExprs()) {
      bool isDivided = subscript.uses(point) || subscript.uses(tap);
      rests.push_back(isDivided
                          ? std::optional(subscript.substitute(point, place) - ValueExpr(point))
                          : std::nullopt);
    }
    return rests;
  }

  /// p = s*q + phase, and the sum runs over `offset = (b*phase + a*r + k) / s`: the image is read
  /// at `b*q + offset`. Gives what holds where there is a tap for phase and offset.
  Value splitDivision(const Division &division) {
    int64_t s = division.divisor, a = division.tapWeight, b = division.pointWeight;
    ValueExpr divisor(s);
    // What subscripts add to the division, before its axes go.
    SmallVector<std::optional<ValueExpr>> rests = restsOf(division);
    BlockArgument phase = splitPoint(division.point, s);
    unsigned pointNumber = phase.getArgNumber() - 1;
    ValueExpr place(statement.getBody().getArgument(pointNumber));

    AxesOp sum = asAxes(reduce);
    ValueExpr taps = getAxisRange(sum, division.tap).hi;
    auto least = [](int64_t weight, const ValueExpr &last) {
      return weight > 0 ? ValueExpr(int64_t(0)) : ValueExpr(weight) * last;
    };
    auto most = [](int64_t weight, const ValueExpr &last) {
      return weight > 0 ? ValueExpr(weight) * last : ValueExpr(int64_t(0));
    };
    ValueExpr lastTap = taps - 1, lastPhase(s - 1);
    ValueExpr first = ceilDiv(least(a, lastTap) + least(b, lastPhase) + division.shift, s);
    ValueExpr last =
        ValueExpr::floorDiv(most(a, lastTap) + most(b, lastPhase) + division.shift, divisor);
    std::string name = getAxisName(sum, division.tap).str();
    BlockArgument counter =
        insertAxis(sum, division.tap, {name, ValueExpr(int64_t(0)), last - first + 1});
    Value tap = sum.getAxes()[division.tap + 1];
    ValueExpr offset = first + ValueExpr(counter);

    // r = (s*offset - b*phase - k) / a
    ValueExpr numerator = divisor * offset - ValueExpr(b) * ValueExpr(phase) - division.shift;
    ValueExpr magnitude(std::abs(a));
    if (a < 0)
      numerator = ValueExpr(int64_t(0)) - numerator;
    ValueExpr tapValue = ValueExpr::floorDiv(numerator, magnitude);
    OpBuilder builder = OpBuilder::atBlockBegin(&reduce.getBody().front());
    Location loc = image.getLoc();
    Value exists =
        both(builder, loc,
             compare(builder, loc, arith::CmpIPredicate::sge, tapValue, ValueExpr(int64_t(0))),
             compare(builder, loc, arith::CmpIPredicate::slt, tapValue, taps));
    if (std::abs(a) > 1)
      exists = both(builder, loc, exists,
                    compare(builder, loc, arith::CmpIPredicate::eq,
                            ValueExpr::mod(numerator, magnitude), ValueExpr(int64_t(0))));

    replaceImage(division.number, rests, ValueExpr(b) * place + offset);
    replaceTap(tap, tapValue, exists);
    return exists;
  }

  /// p = s*q + phase, and the sum runs over the taps of the phase, `r = first + s*j` with the first
  /// one that makes the division whole: the image is read at `b*q + (b*phase + a*first + k) / s +
  /// a*j`. Nothing is multiplied by 0 but where a phase has a tap less than others. In return the
  /// image is read for each phase. Gives what holds where there is a tap; null: everywhere.
  Value splitApart(const Division &division) {
    ValueExpr divisor(division.divisor), taps = getAxisRange(asAxes(reduce), division.tap).hi;
    SmallVector<std::optional<ValueExpr>> rests = restsOf(division);
    BlockArgument phase = splitPoint(division.point, division.divisor);
    ValueExpr place(statement.getBody().getArgument(phase.getArgNumber() - 1));
    AxesOp sum = asAxes(reduce);
    std::string name = getAxisName(sum, division.tap).str();
    ValueExpr counter(insertAxis(sum, division.tap,
                                 {name, ValueExpr(int64_t(0)), ceilDiv(taps, division.divisor)}));
    Value tap = sum.getAxes()[division.tap + 1];

    // b*phase + k less its rest, or with what it lacks
    ValueExpr whole = ValueExpr(division.pointWeight) * ValueExpr(phase) + division.shift;
    bool isDown = division.tapWeight < 0;
    ValueExpr first = ValueExpr::mod(isDown ? whole : ValueExpr(int64_t(0)) - whole, divisor);
    ValueExpr offset = isDown ? ValueExpr::floorDiv(whole, divisor) - counter
                              : ceilDiv(whole, division.divisor) + counter;
    ValueExpr tapValue = first + divisor * counter;
    OpBuilder builder = OpBuilder::atBlockBegin(&reduce.getBody().front());
    Value exists;
    if (std::optional<int64_t> known = taps.asConstant(); !known || *known % division.divisor)
      exists = compare(builder, image.getLoc(), arith::CmpIPredicate::slt, tapValue, taps);
    replaceImage(division.number, rests, ValueExpr(division.pointWeight) * place + offset);
    replaceTap(tap, tapValue, exists);
    return exists;
  }

  /// The sum's axis `tap` by its value, at points where that exists (null: all).
  void replaceTap(Value tap, const ValueExpr &value, Value exists) {
    if (exists)
      for (ReadOp read : reduce.getBody().front().getOps<ReadOp>())
        if (llvm::is_contained(read->getOperands(), tap)) {
          OpBuilder before(read);
          read.getGuardMutable().assign(both(before, image.getLoc(), read.getGuard(), exists));
        }
    OpBuilder builder = OpBuilder::atBlockBegin(&reduce.getBody().front());
    if (exists)
      builder.setInsertionPointAfterValue(exists);
    replaceAllUsesWithExpr(builder, tap, value);
    eraseAxis(asAxes(reduce), cast<BlockArgument>(tap).getArgNumber());
  }

  /// The image with the division replaced by `value` in the subscript that has a rest.
  void replaceImage(unsigned number, ArrayRef<std::optional<ValueExpr>> rests,
                    const ValueExpr &value) {
    SmallVector<std::pair<ValueExpr, ValueExpr>> exact = image.getExactExprs();
    exact.erase(exact.begin() + number);
    SmallVector<ValueExpr> subscripts = image.getSubscriptExprs();
    for (auto [subscript, rest] : llvm::zip_equal(subscripts, rests))
      if (rest)
        subscript = *rest + value;
    OpBuilder builder(image);
    auto read = ReadOp::create(builder, image.getLoc(), image.getTensor(), subscripts,
                               image.getFill(), Value(), exact);
    image.replaceAllUsesWith(read.getResult());
    image.erase();
    image = read;
  }

  /// Splits an axis of the statement; gives the phase, which stands after the place.
  BlockArgument splitPoint(unsigned number, int64_t divisor) {
    AxesOp op = asAxes(statement);
    std::string name = getAxisName(op, number).str();
    ValueExpr high = getAxisRange(op, number).hi;
    BlockArgument place =
        insertAxis(op, number, {name, ValueExpr(int64_t(0)), ceilDiv(high, divisor)});
    BlockArgument phase =
        insertAxis(op, number + 1, {name + "_phase", ValueExpr(int64_t(0)), ValueExpr(divisor)});
    Value old = op.getAxes()[number + 2];
    ValueExpr value = ValueExpr(divisor) * ValueExpr(place) + ValueExpr(phase);
    std::optional<int64_t> extent = high.asConstant();
    if (!extent || *extent % divisor) {
      OpBuilder builder = OpBuilder::atBlockBegin(&statement.getBody().front());
      Location loc = statement.getLoc();
      Value inside = compare(builder, loc, arith::CmpIPredicate::slt, value, high);
      for (Operation &access : statement.getBody().front()) {
        OpBuilder before(&access);
        if (auto read = dyn_cast<ReadOp>(access);
            read && axesOf(read).contains(cast<BlockArgument>(old)))
          read.getGuardMutable().assign(both(before, loc, read.getGuard(), inside));
        else if (auto write = dyn_cast<WriteOp>(access))
          write.getGuardMutable().assign(both(before, loc, write.getGuard(), inside));
      }
    }
    OpBuilder builder(statement.getContext());
    replaceAllUsesWithExpr(builder, old, value);
    eraseAxis(op, number + 2);
    return phase;
  }

  /// Elements that have no tap are multiplied by 0, which infinities and nan do not survive: a sum
  /// that is not finite is added up once more, over taps alone.
  void repair(ArrayRef<Value> conditions) {
    OpBuilder builder(reduce);
    builder.setInsertionPointAfter(reduce);
    Location loc = reduce.getLoc();
    Value fast = reduce.getResult();
    Value finite = math::IsFiniteOp::create(builder, loc, fast);
    Value none = arith::ConstantIndexOp::create(builder, loc, 0),
          one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value times = arith::SelectOp::create(builder, loc, finite, none, one);
    IRMapping map;
    auto again = cast<ReduceOp>(builder.clone(*reduce, map));
    insertAxis(asAxes(again), 0, {"again", ValueExpr(int64_t(0)), ValueExpr(times)});
    again.setFiltered(true);
    YieldOp yield = again.getYield();
    OpBuilder inside(yield);
    Value exists;
    for (Value condition : conditions)
      exists = both(inside, loc, exists, condition ? map.lookup(condition) : Value());
    yield->insertOperands(1, exists);
    auto result = arith::SelectOp::create(builder, loc, finite, fast, again.getResult());
    SmallPtrSet<Operation *, 2> own{finite.getDefiningOp(), result};
    fast.replaceAllUsesExcept(result, own);
  }

  ParallelOp statement;
  ReduceOp reduce;
  ReadOp image;
};

struct SplitPolyphasePass : Counted<tegula::impl::SplitPolyphasePassBase<SplitPolyphasePass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation())) {
      if (!PhaseSplitter::match(statement))
        continue;
      // Only tensor cores are fast enough for the products with 0. Phases that have their own
      // offsets may be rows that do not fill a tile.
      ParallelOp best;
      double clocks = 0;
      for (bool apart : {false, true}) {
        OpBuilder builder(statement);
        auto copy = cast<ParallelOp>(builder.clone(*statement));
        PhaseSplitter::match(copy)->split(apart);
        SmallVector<RankedTile> tiles = rankTiles(copy);
        bool isBetter = !tiles.empty() && (!best || tiles.front().clocks < clocks);
        ParallelOp worse = isBetter ? best : copy;
        if (isBetter) {
          best = copy;
          clocks = tiles.front().clocks;
        }
        if (worse)
          worse.erase();
      }
      bool isTaken = best != nullptr;
      if (isTaken)
        statement.erase();
      if (isTaken)
        count("transposed convolutions made of phases");
    }
  }
};
} // namespace
