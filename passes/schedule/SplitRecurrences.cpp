//===- SplitRecurrences.cpp - Long linear recurrences in parts --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/PrefixLoop.h"
#include <cmath>

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
    llvm::SetVector<Value> written = accessesOf(loop).writes;
    for (Operation &op : statement.getBody().front()) {
      if (&op == loop)
        continue;
      auto read = dyn_cast<ReadOp>(op);
      if (op.getNumRegions() || isa<TempOp, WriteOp>(op) ||
          (read && written.contains(read.getTensor())))
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
    if (!points || !steps || !loop.getLowExpr().asConstant() || *points < 1 ||
        *points * fewest > threads)
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

  //===--- What the parts do ---===//

  /// What the statements tell each other, each for a point and a part.
  struct Kept {
    Value factors, sums; ///< f64: a part makes factor*h + sum of the state that it begins with
    Value reaches;       ///< f32: how far from 0 its steps come from 0; inf: nothing is known
    Value starts;        ///< f32: the state that it begins with
  };

  /// The most that steps of a part may make of a difference. What f64 rounds off in a step then
  /// stays less than what f32 does: 2^-53 * 2^16 < 2^-24.
  static constexpr double mostGrowth = 65536;

  /// A part makes factor*h + sum of any h.
  static void makeSums(OpBuilder &builder, const Recurrence &of, const Kept &kept) {
    ForOp loop = of.loop();
    Location loc = loop.getLoc();
    Made made = makeStatement(builder, of, true);
    OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
    auto number = [&](Type type, double value) -> Value {
      return arith::ConstantOp::create(inside, loc, builder.getFloatAttr(type, value));
    };
    Type wide = builder.getF64Type(), narrow = builder.getF32Type();
    Value one = number(narrow, 1), most = number(narrow, mostGrowth),
          unknown = number(narrow, std::numeric_limits<double>::infinity());
    ForOp steps = makeLoop(inside, of, made.part,
                           {number(wide, 1), number(wide, -0.0), one, number(narrow, 0)});
    OpBuilder body = bodyOf(steps);
    IRMapping map(made.map);
    map.map(loop.getLoopVar(), steps.getLoopVar());
    for (Operation *op : of.affine.before)
      body.clone(*op, map);
    Value factor = map.lookupOrDefault(of.affine.factor);
    Value wideFactor = arith::ExtFOp::create(body, loc, wide, factor);
    Value added = arith::ExtFOp::create(body, loc, wide, map.lookupOrDefault(of.affine.added));
    Value product = arith::MulFOp::create(body, loc, wideFactor, steps.getIterArgs()[0]);
    Value scaled = arith::MulFOp::create(body, loc, wideFactor, steps.getIterArgs()[1]);
    Value sum = arith::AddFOp::create(body, loc, scaled, added);
    // What any steps up to this one may make of a difference.
    Value growth = arith::MaximumFOp::create(
        body, loc, one,
        arith::MulFOp::create(body, loc, math::AbsFOp::create(body, loc, factor),
                              steps.getIterArgs()[2]));
    auto distanceOf = [&](Value value) -> Value {
      return math::AbsFOp::create(body, loc, arith::TruncFOp::create(body, loc, narrow, value));
    };
    Value distance = arith::MaximumFOp::create(body, loc, distanceOf(scaled), distanceOf(sum));
    Value reach = arith::SelectOp::create(
        body, loc, arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OLE, growth, most),
        arith::MaximumFOp::create(body, loc, steps.getIterArgs()[3], distance), unknown);
    YieldOp::create(body, loc, SmallVector<Value>{product, sum, growth, reach});
    SmallVector<ValueExpr> place = placeOf(of, made.map, made.part);
    WriteOp::create(inside, loc, steps.getResults()[0], kept.factors, place);
    WriteOp::create(inside, loc, steps.getResults()[1], kept.sums, place);
    WriteOp::create(inside, loc, steps.getResults()[3], kept.reaches, place);
  }

  /// The state after a part's steps as the program wrote them, if `isWalked`, without what they
  /// write.
  static Value walkPart(OpBuilder &builder, const Recurrence &of, const IRMapping &outer,
                        Value part, Value start, Value isWalked) {
    ForOp loop = of.loop();
    Location loc = loop.getLoc();
    Value number = arith::IndexCastOp::create(
        builder, loc, builder.getIndexType(),
        arith::ExtUIOp::create(builder, loc, builder.getI64Type(), isWalked));
    ValueExpr low = loop.getLowExpr() + ValueExpr(part) * ValueExpr(of.parts.length);
    ValueExpr high =
        ValueExpr::min(low + ValueExpr(number) * ValueExpr(of.parts.length), loop.getHighExpr());
    ForOp steps = ForOp::create(builder, loc, StringRef("step"), low, high, ValueRange{start},
                                loop.getReverse());
    steps->setAttr(seldomAttribute, builder.getUnitAttr());
    OpBuilder body = bodyOf(steps);
    IRMapping map(outer);
    map.map(loop.getLoopVar(), steps.getLoopVar());
    map.map(loop.getIterArgs()[0], steps.getIterArgs()[0]);
    for (Operation &op : loop.getBody().front())
      if (!isa<WriteOp>(op))
        body.clone(op, map);
    eraseUnusedOps(steps.getBody().front());
    return steps.getResults()[0];
  }

  /// What each part begins with.
  static void makeStarts(OpBuilder &builder, const Recurrence &of, const Kept &kept) {
    ForOp loop = of.loop();
    Location loc = loop.getLoc();
    Made made = makeStatement(builder, of, false);
    OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
    Type wide = builder.getF64Type(), narrow = builder.getF32Type();
    Value first = made.map.lookupOrDefault(loop.getInits()[0]);
    ForOp parts = ForOp::create(inside, loc, StringRef("part"), ValueExpr(int64_t(0)),
                                ValueExpr(of.parts.count), ValueRange{first}, loop.getReverse());
    OpBuilder body = bodyOf(parts);
    Value h = parts.getIterArgs()[0];
    SmallVector<ValueExpr> place = placeOf(of, made.map, parts.getLoopVar());
    WriteOp::create(body, loc, h, kept.starts, place);
    auto read = [&](Value tensor) -> Value { return ReadOp::create(body, loc, tensor, place); };
    Value scaled = arith::MulFOp::create(body, loc, read(kept.factors),
                                         arith::ExtFOp::create(body, loc, wide, h));
    Value after = arith::TruncFOp::create(
        body, loc, narrow, arith::AddFOp::create(body, loc, scaled, read(kept.sums)));
    // Steps that may leave the range of f32, or enlarge what is rounded off, are walked.
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(body, loc, builder.getFloatAttr(narrow, value));
    };
    Value farthest = arith::AddFOp::create(
        body, loc,
        arith::MulFOp::create(body, loc, math::AbsFOp::create(body, loc, h), number(mostGrowth)),
        read(kept.reaches));
    Value isWalked = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::UGT, farthest,
                                           number(std::ldexp(1.0, 127)));
    Value walked = walkPart(body, of, made.map, parts.getLoopVar(), h, isWalked);
    YieldOp::create(
        body, loc, SmallVector<Value>{arith::SelectOp::create(body, loc, isWalked, walked, after)});
  }

  /// The steps as the program wrote them, of all parts side by side.
  static void makeSteps(OpBuilder &builder, const Recurrence &of, const Kept &kept) {
    ForOp loop = of.loop();
    Made made = makeStatement(builder, of, true);
    OpBuilder inside = OpBuilder::atBlockEnd(&made.statement.getBody().front());
    Value start =
        ReadOp::create(inside, loop.getLoc(), kept.starts, placeOf(of, made.map, made.part));
    ForOp steps = makeLoop(inside, of, made.part, {start});
    OpBuilder body = bodyOf(steps);
    IRMapping map(made.map);
    map.map(loop.getLoopVar(), steps.getLoopVar());
    map.map(loop.getIterArgs()[0], steps.getIterArgs()[0]);
    for (Operation &op : loop.getBody().front())
      body.clone(op, map);
  }

  static void split(const Recurrence &of) {
    ParallelOp statement = of.statement;
    OpBuilder builder(statement);
    Type wide = builder.getF64Type(), narrow = builder.getF32Type();
    Kept kept{makeTemp(builder, of, wide, "factor"), makeTemp(builder, of, wide, "sum"),
              makeTemp(builder, of, narrow, "reach"), makeTemp(builder, of, narrow, "start")};
    makeSums(builder, of, kept);
    makeStarts(builder, of, kept);
    makeSteps(builder, of, kept);
    statement.erase();
  }
};
} // namespace
