//===- SplitReductions.cpp - Splits long reductions in two steps ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/SameValue.h"
#include "strategies/ScheduleBlock.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "strategies/product_reduction/plan/ProductReduction.h"
#include "strategies/skinny_product/plan/SkinnyProduct.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static bool isSplittable(ReduceOp reduce) {
  switch (reduce.getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
  case ReduceKind::Prod:
  case ReduceKind::Max:
  case ReduceKind::Min:
  case ReduceKind::Any:
  case ReduceKind::All:
  case ReduceKind::LogSumExp:
    return true;
  case ReduceKind::Var:
    return !reduce.getUnbiased() && !reduce.getFiltered();
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin: // of a piece that is filtered away there is no place
    return !reduce.getFiltered();
  default:
    return false;
  }
}

static bool findsAddress(ReduceOp reduce) {
  return reduce.getKind() == ReduceKind::ArgMax || reduce.getKind() == ReduceKind::ArgMin;
}

/// Of the term that a place is of.
static ReduceKind kindOfExtreme(ReduceOp reduce) {
  return reduce.getKind() == ReduceKind::ArgMax ? ReduceKind::Max : ReduceKind::Min;
}

/// The largest or smallest term in place of its place, next to `reduce`.
static ReduceOp addExtreme(ReduceOp reduce) {
  OpBuilder builder(reduce);
  auto axes = cast<AxesOp>(reduce.getOperation());
  auto extreme =
      ReduceOp::create(builder, reduce.getLoc(), reduce.getReduced().getType(),
                       kindOfExtreme(reduce), axes.getLows(), axes.getHighs(), axes.getIndices(),
                       axes.getNames().value_or(ArrayAttr()), /*unbiased=*/false,
                       /*filtered=*/false, /*mapping=*/StringAttr());
  IRMapping map;
  reduce.getBody().cloneInto(&extreme.getBody(), map);
  if (extreme.getBody().getBlocks().size() > 1) // the builder's own
    extreme.getBody().front().erase();
  return extreme;
}

namespace {
/// The axis of a reduction that is cut, into `parts` pieces of `length`.
struct Cut {
  unsigned axis;
  int64_t parts, length;
  bool rows; ///< its terms are neighbours in memory, not its points
};

/// A reduction in parts: over a piece, where such results are kept, and over these.
struct Parts {
  ReduceOp piece;
  Value temp;
  ReduceOp whole;
};

/// A statement whose points are pieces of reductions of another statement.
struct Pieces {
  ParallelOp statement;
  Value piece;
  IRMapping map; ///< from the other statement
  int64_t extent, length, count;
  bool rows;
  SmallVector<Parts> parts;
  bool combines(Operation *op) const {
    return llvm::any_of(parts, [&](Parts each) { return each.whole.getOperation() == op; });
  }
};

struct SplitReductionsPass : Counted<tegula::impl::SplitReductionsPassBase<SplitReductionsPass>> {
  using Base = Counted<tegula::impl::SplitReductionsPassBase<SplitReductionsPass>>;
  using Base::Base;

  void runOnOperation() override {
    FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    bool keepsRows = settingOf(scheduleSettings(getOperation()), "cluster").has_value();
    for (ParallelOp statement : outermostStatements(getOperation())) {
      if (chooseTile(statement) || isSkinnyProduct(statement)) // splits its sums itself
        continue;
      if (keepsRows) // with the rest of the statement, as the program asks
        continue;
      SmallVector<ReduceOp> reductions(statement.getBody().getOps<ReduceOp>());
      std::optional<int64_t> columns = columnsOfPiece(statement, *machine);
      std::optional<Pieces> pieces; // of the reductions before, for others that read the same
      for (ReduceOp reduce : reductions)
        if (std::optional<Cut> cut =
                columns ? cutColumns(reduce, *columns) : chooseCut(statement, reduce))
          if (split(statement, reduce, *cut, pieces))
            count("reductions split");
    }
  }

  static constexpr int64_t waves = 4;
  static constexpr int64_t longPart = 131072; ///< terms

  /// Columns of a piece of the products that the statement reduces; nothing: they are not cut. The
  /// place of a term and the term there share the product's tiles (tile-merge-loops).
  std::optional<int64_t> columnsOfPiece(ParallelOp statement, const TargetInfo &machine) {
    if (!productReductions)
      return std::nullopt;
    Matched<ProductReductionPlan> plan = planProductReduction(statement);
    if (!plan || llvm::any_of(plan->reductions,
                              [](const ReducedProduct &one) { return !isSplittable(one.reduce); }))
      return std::nullopt;
    Matched<ProductReductionShape> shape = chooseProductReductionShape(*plan, machine, tensorTile);
    return shape ? chooseColumnsOfPiece(*plan, *shape, machine) : std::nullopt;
  }

  static std::optional<Cut> cutColumns(ReduceOp reduce, int64_t columns) {
    int64_t pieces = llvm::divideCeil(*knownPoints(reduce, 0), columns);
    return pieces > 1 ? std::optional(Cut{0, pieces, columns, /*rows=*/true}) : std::nullopt;
  }

  /// Whether a reduction of the statement uses the result of another.
  static bool isChained(ParallelOp statement) {
    return llvm::any_of(statement.getBody().getOps<ReduceOp>(), [&](ReduceOp reduce) {
      llvm::SetVector<Operation *> needed;
      collect(statement, reduce, needed);
      return llvm::any_of(needed, [](Operation *op) { return isa<ReduceOp>(op); });
    });
  }

  std::optional<Cut> chooseCut(ParallelOp statement, ReduceOp reduce) {
    std::optional<int64_t> points = knownPoints(cast<AxesOp>(statement.getOperation()));
    std::optional<int64_t> terms = knownPoints(cast<AxesOp>(reduce.getOperation()));
    if (!points || !terms || !*points || !*terms || !isSplittable(reduce))
      return std::nullopt;
    // A team takes a point of a row reduction, a thread one of a column reduction.
    bool rows = runsAlongRows(reduce);
    int64_t perPoint = rows ? std::clamp<int64_t>(*terms / 16, 1, 1024) : 1;
    int64_t shortest = rows ? 16384 : 256; // terms of a part: less is not worth another launch
    // Nor are columns of a chain worth two for each.
    constexpr int64_t shortestOfChain = 2048;
    if (!rows && *terms < shortestOfChain && isChained(statement))
      return std::nullopt;
    int64_t busy, most = *terms / shortest;
    // Very long rows are read twice in any case, and the last of them run while others have nothing
    // left to do: for longer than another launch takes, as long as there are few for each place of
    // the machine.
    int64_t enough = rows && *terms >= veryLongRow ? 2 * waves * threads : threads;
    if (llvm::MulOverflow(*points, perPoint, busy) || busy >= enough)
      return std::nullopt;
    // Once there is a launch more, several blocks for each place of the machine: then the last of
    // them are few.
    int64_t wanted =
        std::min<int64_t>(llvm::divideCeil(waves * std::max<int64_t>(threads, busy), busy), most);
    // Parts that are long all the same may be more: while the last of them run the memory has less
    // to do, and how many blocks have room together is only known once registers are.
    if (rows)
      wanted = std::clamp(*terms / longPart, wanted, 8 * wanted);
    if (wanted < 2)
      return std::nullopt;
    for (unsigned axis = 0; axis < reduce.getAxes().size(); ++axis) {
      int64_t extent = *knownPoints(reduce, axis);
      bool usedInBounds = llvm::any_of(getAxisRanges(reduce), [&](const AxisRange &range) {
        return range.lo.uses(reduce.getAxes()[axis]) || range.hi.uses(reduce.getAxes()[axis]);
      });
      if (extent < 2 || usedInBounds)
        continue;
      int64_t parts = std::min(wanted, extent);
      return Cut{axis, parts, pieceLength(extent, parts), rows};
    }
    return std::nullopt;
  }

  /// What `reduce` needs of the ops before it in the statement, in order. False where it cannot be
  /// computed before the statement.
  static bool collect(ParallelOp statement, ReduceOp reduce, llvm::SetVector<Operation *> &needed) {
    Block &block = statement.getBody().front();
    SmallVector<Operation *> work{reduce};
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      for (Value value : valuesUsedBy(op)) {
        Operation *definition = value.getDefiningOp();
        if (!definition || definition->getBlock() != &block)
          continue;
        if (isa<TempOp>(definition))
          return false;
        if (needed.insert(definition))
          work.push_back(definition);
      }
    }
    llvm::SetVector<Value> written = accessesOf(statement).writes;
    auto reads = [&](Operation *op) {
      return llvm::any_of(accessesOf(op).reads,
                          [&](Value tensor) { return written.contains(tensor); });
    };
    return !reads(reduce) && llvm::none_of(needed, reads);
  }

  /// A statement over the axes of `statement` and the pieces of `extent`: where terms are
  /// neighbours pieces vary fastest, else points do.
  Pieces makePieces(ParallelOp statement, Location loc, const Cut &cut, int64_t extent) {
    Pieces made;
    OpBuilder before(statement);
    auto axes = cast<AxesOp>(statement.getOperation());
    SmallVector<Value> all(axes.getAxes().begin(), axes.getAxes().end());
    made.statement = copyAxes(before, loc, all, made.map);
    made.extent = extent;
    made.length = cut.length;
    made.count = llvm::divideCeil(extent, cut.length);
    made.rows = cut.rows;
    made.piece = insertAxis(cast<AxesOp>(made.statement.getOperation()), cut.rows ? all.size() : 0,
                            AxisSpec{"part", ValueExpr(int64_t(0)), ValueExpr(made.count)});
    return made;
  }

  /// Where the part of a point and a piece is kept. Axes may be mapped to the pieces' statement.
  static SmallVector<ValueExpr> placeOf(AxesOp axes, Value piece, const Pieces &pieces,
                                        const IRMapping &map) {
    SmallVector<ValueExpr> place;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      place.push_back(ValueExpr(map.lookupOrDefault(axes.getAxes()[axis])) -
                      getAxisRange(axes, axis).lo);
    place.insert(pieces.rows ? place.end() : place.begin(), ValueExpr(piece));
    return place;
  }

  /// Whether these parts are of the terms that `reduce` reduces.
  static bool areOf(Parts &sums, ReduceOp reduce, const Pieces &pieces) {
    // Both over the same piece: the other reduction as it will be there.
    OpBuilder inside = OpBuilder::atBlockEnd(sums.piece->getBlock());
    IRMapping map(pieces.map);
    auto copy = cast<ReduceOp>(inside.clone(*reduce, map));
    for (unsigned axis = 0; axis < copy.getAxes().size(); ++axis) {
      AxisRange range = getAxisRange(sums.piece, axis);
      setAxisRange(copy, axis, range.lo, range.hi);
    }
    bool same = sameTerms(sums.piece, sums.piece.getReduced(), copy, copy.getReduced());
    copy.erase();
    return same;
  }

  /// The parts of the extreme whose place `reduce` finds; null: there are none.
  static const Parts *extremeOf(ReduceOp reduce, Pieces &pieces) {
    if (findsAddress(reduce))
      for (Parts &each : pieces.parts)
        if (each.piece.getKind() == kindOfExtreme(reduce) && areOf(each, reduce, pieces))
          return &each;
    return nullptr;
  }

  bool split(ParallelOp statement, ReduceOp reduce, const Cut &cut, std::optional<Pieces> &pieces) {
    llvm::SetVector<Operation *> needed;
    if (!collect(statement, reduce, needed))
      return false;
    int64_t extent = *knownPoints(reduce, cut.axis);
    bool shares = pieces && pieces->extent == extent && pieces->length == cut.length &&
                  pieces->rows == cut.rows &&
                  llvm::none_of(needed, [&](Operation *op) { return pieces->combines(op); });
    // A variance needs the sums of the pieces over the same terms.
    Parts *sums = nullptr;
    if (reduce.getKind() == ReduceKind::Var) {
      for (Parts &each : shares ? MutableArrayRef<Parts>(pieces->parts) : MutableArrayRef<Parts>())
        if (each.piece.getKind() == ReduceKind::Sum && areOf(each, reduce, *pieces))
          sums = &each;
      if (!sums)
        return false;
    }
    Location loc = reduce.getLoc();
    if (!shares)
      pieces = makePieces(statement, loc, cut, extent);
    auto axes = cast<AxesOp>(statement.getOperation());
    SmallVector<IndexExprAttr> dims;
    for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
      dims.push_back(IndexExprAttr::get(&getContext(), *knownPoints(axes, axis)));
    dims.insert(cut.rows ? dims.end() : dims.begin(),
                IndexExprAttr::get(&getContext(), pieces->count));
    OpBuilder before(pieces->statement),
        inside = OpBuilder::atBlockEnd(&pieces->statement.getBody().front());
    for (Operation &op : statement.getBody().front())
      if (needed.contains(&op) && (!op.getNumResults() || !pieces->map.contains(op.getResult(0))))
        inside.clone(op, pieces->map);
    // part[p, c] = the reduction over the c-th piece
    auto keepPart = [&](ReduceOp of) {
      auto temp = TempOp::create(before, loc, TglTensorType::get(&getContext(), dims, of.getType()),
                                 "part");
      IRMapping own(pieces->map); // `of` will be gone, and others may come to where its values were
      auto partial = cast<ReduceOp>(inside.clone(*of, own));
      AxisRange whole = getAxisRange(partial, cut.axis);
      ValueExpr low = whole.lo + ValueExpr(pieces->piece) * ValueExpr(cut.length);
      ValueExpr high = low + ValueExpr(cut.length);
      if (extent % cut.length)
        high = ValueExpr::min(high, whole.hi);
      setAxisRange(partial, cut.axis, low, high);
      return std::pair(partial, temp.getTensor());
    };
    auto writePart = [&](std::pair<ReduceOp, Value> part) {
      WriteOp::create(inside, loc, part.first.getResult(), part.second,
                      placeOf(axes, pieces->piece, *pieces, pieces->map));
    };
    // Of places: those of pieces, and the terms that are there, by which pieces are compared: those
    // of an extreme of the same terms, where the statement has it.
    std::pair<ReduceOp, Value> part = keepPart(reduce), compared = part;
    if (const Parts *known = shares ? extremeOf(reduce, *pieces) : nullptr) {
      compared = {known->piece, known->temp};
    } else if (findsAddress(reduce)) {
      ReduceOp extreme = addExtreme(reduce);
      compared = keepPart(extreme);
      extreme.erase();
      writePart(compared);
    }
    writePart(part);
    auto [partial, temp] = part;

    // The statement combines the pieces.
    OpBuilder here(reduce);
    ReduceKind kind = reduce.getKind() == ReduceKind::Count || reduce.getKind() == ReduceKind::Var
                          ? ReduceKind::Sum
                          : reduce.getKind();
    auto number = [&](OpBuilder &builder, double value) {
      return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(reduce.getType(), value));
    };
    int64_t terms = *knownPoints(cast<AxesOp>(reduce.getOperation()));
    Value mean;
    if (sums)
      mean = arith::DivFOp::create(here, loc, sums->whole.getResult(), number(here, double(terms)));
    auto combined =
        ReduceOp::create(here, loc, reduce.getType(), kind,
                         {AxisSpec{"part", ValueExpr(int64_t(0)), ValueExpr(pieces->count)}});
    Block &body = combined.getBody().front();
    OpBuilder last = OpBuilder::atBlockBegin(&body);
    Value piece = combined.getAxes()[0];
    SmallVector<ValueExpr> place = placeOf(axes, piece, *pieces, IRMapping());
    Value value = ReadOp::create(last, loc, compared.second, place);
    if (sums) {
      // A piece's squared distances from the mean of all: those from its own mean, and its mean's
      // for each term.
      int64_t others = terms / extent;
      Value size = number(last, double(cut.length * others));
      if (extent % cut.length) {
        ValueExpr rest = ValueExpr::min(
            ValueExpr(cut.length), ValueExpr(extent) - ValueExpr(piece) * ValueExpr(cut.length));
        Value index = materialize(last, loc, rest * ValueExpr(others));
        index = arith::IndexCastOp::create(last, loc, last.getI64Type(), index);
        size = arith::SIToFPOp::create(last, loc, reduce.getType(), index);
      }
      Value sum = ReadOp::create(last, loc, sums->temp, place);
      Value apart =
          arith::SubFOp::create(last, loc, arith::DivFOp::create(last, loc, sum, size), mean);
      apart = arith::MulFOp::create(last, loc, apart, apart);
      value =
          arith::MulFOp::create(last, loc, arith::AddFOp::create(last, loc, value, apart), size);
    }
    if (!body.empty() && isa<YieldOp>(body.back()))
      body.back().erase();
    last.setInsertionPointToEnd(&body);
    YieldOp::create(last, loc, SmallVector<Value>{value});
    Value result = combined.getResult();
    if (sums)
      result = arith::DivFOp::create(here, loc, result, number(here, double(terms)));
    if (findsAddress(reduce)) {
      Value winner = arith::IndexCastOp::create(here, loc, here.getIndexType(), result);
      result = ReadOp::create(here, loc, temp, placeOf(axes, winner, *pieces, IRMapping()));
    }
    pieces->parts.push_back({partial, temp, combined});
    reduce.replaceAllUsesWith(result);
    reduce.erase();
    return true;
  }
};
} // namespace
