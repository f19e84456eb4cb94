//===- SplitRecurrences.cpp - Long linear recurrences in parts --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/PrefixLoop.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITRECURRENCESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

namespace {
/// Parts of a loop's steps.
struct StepParts {
  int64_t count, length;
};

/// What the statements of a split loop share.
struct Recurrence {
  ParallelOp statement;
  AffineLoop affine;
  StepParts parts;
  SmallVector<Operation *> again; ///< of the statement, that each computes for itself
  bool areRows;                   ///< steps are neighbours in memory, not points

  ForOp loop() const { return affine.loop; }
};

struct SplitRecurrencesPass
    : Counted<tegula::impl::SplitRecurrencesPassBase<SplitRecurrencesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    for (ParallelOp statement : outermostStatements(getOperation()))
      if (std::optional<Recurrence> found = match(statement)) {
        split(*found);
        count("recurrences split");
      }
  }

private:
  std::optional<Recurrence> match(ParallelOp statement) {
    auto loops = statement.getBody().getOps<ForOp>();
    if (!llvm::hasSingleElement(loops))
      return std::nullopt;
    ForOp loop = *loops.begin();
    std::optional<AffineLoop> affine = matchAffineLoop(loop);
    if (!affine || !loop.getResults()[0].use_empty())
      return std::nullopt;
    SmallVector<Operation *> again;
    for (Operation &op : statement.getBody().front()) {
      if (&op == loop)
        continue;
      if (op.getNumRegions() || isa<TempOp, WriteOp>(op))
        return std::nullopt;
      again.push_back(&op);
    }
    bool areRows = llvm::any_of(loop.getBody().getOps<WriteOp>(), [&](WriteOp write) {
      return strideAlong(write.getTensorType(), write.getSubscriptExprs(), loop.getLoopVar()) == 1;
    });
    std::optional<StepParts> parts = chooseParts(statement, loop, areRows);
    if (!parts)
      return std::nullopt;
    return Recurrence{statement, std::move(*affine), *parts, again, areRows};
  }

  /// Parts that give the machine work, where the points alone do not.
  std::optional<StepParts> chooseParts(ParallelOp statement, ForOp loop, bool areRows) const {
    constexpr int64_t shortest = 32, most = 256, fewest = 4;
    // Threads that each walk a part of a row read lines that they do not share.
    constexpr int64_t longRow = 8192;
    std::optional<int64_t> points = knownPoints(cast<AxesOp>(statement.getOperation()));
    std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (!points || !steps || *points < 1 || *points * fewest > threads)
      return std::nullopt;
    int64_t wanted = std::min({2 * threads / *points, *steps / shortest, most});
    if (wanted < fewest || (areRows && *steps < longRow))
      return std::nullopt;
    int64_t length = llvm::divideCeil(*steps, wanted);
    return StepParts{int64_t(llvm::divideCeil(*steps, length)), length};
  }

  //===--- The three statements ---===//

  /// A statement over the points and, where there is one, the axis of parts.
  struct Made {
    ParallelOp statement;
    IRMapping map;
    Value part;
  };

  static Made makeStatement(OpBuilder &builder, const Recurrence &of, bool hasParts) {
    Made made;
    ParallelOp statement = of.statement;
    auto axes = cast<AxesOp>(statement.getOperation());
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    made.statement = copyAxes(builder, of.loop().getLoc(), all, made.map);
    if (hasParts)
      made.part =
          insertAxis(cast<AxesOp>(made.statement.getOperation()), of.areRows ? all.size() : 0,
                     AxisSpec{"part", ValueExpr(int64_t(0)), ValueExpr(of.parts.count)});
    OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
    for (Operation *op : of.again)
      inside.clone(*op, made.map);
    return made;
  }

  /// Where what belongs to a point and a part is kept.
  static SmallVector<ValueExpr> placeOf(const Recurrence &of, const IRMapping &map, Value part) {
    ParallelOp statement = of.statement;
    auto axes = cast<AxesOp>(statement.getOperation());
    SmallVector<ValueExpr> place;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      place.push_back(ValueExpr(map.lookup(axes.getAxes()[axis])) - getAxisRange(axes, axis).lo);
    place.insert(of.areRows ? place.end() : place.begin(), ValueExpr(part));
    return place;
  }

  static Value makeTemp(OpBuilder &builder, const Recurrence &of, Type element, StringRef name) {
    ParallelOp statement = of.statement;
    auto axes = cast<AxesOp>(statement.getOperation());
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(builder.getContext(), *knownPoints(axes, {axis})));
    dims.insert(of.areRows ? dims.end() : dims.begin(),
                IndexExprAttr::get(builder.getContext(), of.parts.count));
    auto type = TglTensorType::get(builder.getContext(), dims, element);
    return TempOp::create(builder, of.loop().getLoc(), type, name).getTensor();
  }

  /// The loop over the steps of a part, without its body.
  static ForOp makeLoop(OpBuilder &builder, const Recurrence &of, Value part, ValueRange inits) {
    ForOp loop = of.loop();
    ValueExpr low = loop.getLowExpr() + ValueExpr(part) * ValueExpr(of.parts.length);
    ValueExpr high = low + ValueExpr(of.parts.length);
    int64_t steps = *(loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (steps % of.parts.length)
      high = ValueExpr::min(high, loop.getHighExpr());
    StringRef name = "step";
    return ForOp::create(builder, loop.getLoc(), name, low, high, inits, loop.getReverse());
  }

  static OpBuilder bodyOf(ForOp loop) {
    Block &body = loop.getBody().front();
    if (!body.empty() && isa<YieldOp>(body.back()))
      body.back().erase();
    return OpBuilder::atBlockEnd(&body);
  }

  static void split(const Recurrence &of) {
    ForOp loop = of.loop();
    Location loc = loop.getLoc();
    ParallelOp statement = of.statement;
    OpBuilder builder(statement);
    Type wide = builder.getF64Type(), narrow = loop.getIterArgs()[0].getType();
    auto number = [&](double value) {
      return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(wide, value));
    };
    Value one = number(1), zero = number(0);
    Value factors = makeTemp(builder, of, wide, "factor"),
          sums = makeTemp(builder, of, wide, "sum"),
          starts = makeTemp(builder, of, narrow, "start");

    // Each part makes of any h: factor*h + sum.
    {
      Made made = makeStatement(builder, of, true);
      OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
      ForOp steps = makeLoop(inside, of, made.part, {one, zero});
      OpBuilder body = bodyOf(steps);
      IRMapping map(made.map);
      map.map(loop.getLoopVar(), steps.getLoopVar());
      for (Operation *op : of.affine.before)
        body.clone(*op, map);
      Value factor = arith::ExtFOp::create(body, loc, wide, map.lookupOrDefault(of.affine.factor));
      Value added = arith::ExtFOp::create(body, loc, wide, map.lookupOrDefault(of.affine.added));
      Value product = arith::MulFOp::create(body, loc, factor, steps.getIterArgs()[0]);
      Value sum = arith::AddFOp::create(
          body, loc, arith::MulFOp::create(body, loc, factor, steps.getIterArgs()[1]), added);
      YieldOp::create(body, loc, SmallVector<Value>{product, sum});
      SmallVector<ValueExpr> place = placeOf(of, made.map, made.part);
      WriteOp::create(inside, loc, steps.getResults()[0], factors, place);
      WriteOp::create(inside, loc, steps.getResults()[1], sums, place);
    }
    // What each part begins with.
    {
      Made made = makeStatement(builder, of, false);
      OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
      Value first =
          arith::ExtFOp::create(inside, loc, wide, made.map.lookupOrDefault(loop.getInits()[0]));
      ForOp steps = ForOp::create(inside, loc, StringRef("part"), ValueExpr(int64_t(0)),
                                  ValueExpr(of.parts.count), ValueRange{first}, loop.getReverse());
      OpBuilder body = bodyOf(steps);
      Value h = steps.getIterArgs()[0];
      SmallVector<ValueExpr> place = placeOf(of, made.map, steps.getLoopVar());
      WriteOp::create(body, loc, arith::TruncFOp::create(body, loc, narrow, h), starts, place);
      Value factor = ReadOp::create(body, loc, factors, place);
      Value sum = ReadOp::create(body, loc, sums, place);
      // A product of factors may leave the range of numbers where h does not: 0 stays 0.
      Value isZero = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ, h, zero);
      Value scaled = arith::SelectOp::create(body, loc, isZero, zero,
                                             arith::MulFOp::create(body, loc, factor, h));
      YieldOp::create(body, loc, SmallVector<Value>{arith::AddFOp::create(body, loc, scaled, sum)});
    }
    // The steps as the program wrote them.
    {
      Made made = makeStatement(builder, of, true);
      OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
      Value start = ReadOp::create(inside, loc, starts, placeOf(of, made.map, made.part));
      ForOp steps = makeLoop(inside, of, made.part, {start});
      OpBuilder body = bodyOf(steps);
      IRMapping map(made.map);
      map.map(loop.getLoopVar(), steps.getLoopVar());
      map.map(loop.getIterArgs()[0], steps.getIterArgs()[0]);
      for (Operation &op : loop.getBody().front())
        body.clone(op, map);
    }
    statement.erase();
  }
};
} // namespace
