//===- HoistStepValues.cpp - Values of all steps before the loop over them --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Outline.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_HOISTSTEPVALUESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Points of a step that share a value, at least: it is written once and read by each, four bytes,
/// where a costly function takes twenty operations or more. A card does some ten operations in the
/// time of a byte.
static constexpr int64_t fewestSharers = 8;
/// Bytes of a temporary, at most.
static constexpr int64_t maxBytes = int64_t(1) << 30;

/// Points of axes whose bounds are numbers.
static std::optional<int64_t> pointsOf(ArrayRef<Value> axes) {
  int64_t points = 1;
  for (Value axis : axes) {
    std::optional<int64_t> extent = (highOf(axis) - lowOf(axis)).asConstant();
    if (!extent || *extent <= 0 || llvm::MulOverflow(points, *extent, points))
      return std::nullopt;
  }
  return points;
}

namespace {
struct HoistStepValuesPass : Counted<tegula::impl::HoistStepValuesPassBase<HoistStepValuesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    Prover prover(sizeFacts(getOperation()));
    SmallVector<ForOp> loops; // around statements; what they hoist stands before the loop
    getOperation().walk([&](ForOp loop) {
      if (!loop->getParentOfType<ParallelOp>())
        loops.push_back(loop);
    });
    for (ForOp loop : loops)
      hoistFrom(loop, prover);
  }

private:
  void hoistFrom(ForOp loop, Prover &prover) {
    std::optional<int64_t> steps = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (!steps || *steps <= 0)
      return;
    SmallVector<Operation *> costly;
    for (ParallelOp statement : loop.getBody().front().getOps<ParallelOp>())
      statement.walk([&](Operation *op) {
        if (isCostly(op) && !isa<RandomOp>(op))
          costly.push_back(op);
      });
    // The outermost first: what it is made of goes with it.
    DenseSet<Operation *> gone;
    for (Operation *op : llvm::reverse(costly)) {
      bool isNeeded =
          llvm::any_of(op->getUsers(), [&](Operation *user) { return !gone.contains(user); });
      if (isNeeded && tryHoist(loop, *steps, op, prover, gone))
        count("values hoisted");
    }
    for (ParallelOp statement : loop.getBody().front().getOps<ParallelOp>())
      eraseUnusedOps(statement.getBody().front());
  }

  /// Whether the value is the same whatever the loop does: it reads nothing that steps write, and
  /// knows of the loop which step it is.
  static bool isOfStep(ForOp loop, Operation *op, const Outline &where) {
    SetVector<Value> written = accessesOf(loop).writes;
    SmallVector<Operation *> all(where.ops.begin(), where.ops.end());
    all.push_back(op);
    return llvm::all_of(all, [&](Operation *each) {
      if (each->getNumRegions() || !isMemoryEffectFreeOrRead(each))
        return false;
      auto read = dyn_cast<ReadOp>(each);
      if (read && (read.getChecked() || written.contains(read.getTensor())))
        return false;
      return llvm::all_of(valuesUsedBy(each), [&](Value used) {
        auto argument = dyn_cast<BlockArgument>(used);
        Operation *owner = argument ? argument.getOwner()->getParentOp() : used.getDefiningOp();
        bool isInside = owner && loop->isAncestor(owner);
        return !isInside || used == loop.getLoopVar() || llvm::is_contained(where.axes, used) ||
               where.ops.contains(used.getDefiningOp());
      });
    });
  }

  static bool isMemoryEffectFreeOrRead(Operation *op) {
    return isa<ReadOp>(op) || isMemoryEffectFree(op);
  }

  static ParallelOp statementOf(ForOp loop, Operation *op) {
    return cast<ParallelOp>(loop.getBody().front().findAncestorOpInBlock(*op));
  }

  bool tryHoist(ForOp loop, int64_t steps, Operation *op, Prover &prover,
                DenseSet<Operation *> &gone) {
    ParallelOp statement = statementOf(loop, op);
    auto outlineOf = [&](Operation *value) {
      return outlineTo(statement, value, valuesUsedBy(value).getArrayRef());
    };
    std::optional<Outline> where = outlineOf(op);
    if (!where)
      return false;
    op = largestAlike(op, where->axes.size());
    where = outlineOf(op);
    bool isFixed = where && llvm::all_of(where->axes, [](Value axis) {
                     return lowOf(axis).operands().empty() && highOf(axis).operands().empty();
                   });
    if (!isFixed || !isOfStep(loop, op, *where))
      return false;
    std::optional<int64_t> own = pointsOf(where->axes), sharers = pointsOf(where->left);
    Type type = op->getResult(0).getType();
    if (!own || !sharers || *sharers < fewestSharers || !isa<FloatType>(type) ||
        double(*own) * double(steps) * (double(*sharers) - 1) < double(fewestSaved) ||
        double(*own) * double(steps) * type.getIntOrFloatBitWidth() / 8 > double(maxBytes))
      return false;
    store(loop, op, *where, prover);
    gone.insert(op);
    for (Operation *made : llvm::reverse(where->ops))
      if (llvm::all_of(made->getUsers(), [&](Operation *user) { return gone.contains(user); }))
        gone.insert(made);
    return true;
  }

  /// Where the values can be computed: not between the loop and the equations before it that begin
  /// its state, which are to be one launch.
  static Operation *earliest(ForOp loop, Operation *op, const Outline &where) {
    SetVector<Value> read;
    SmallVector<Operation *> moved(where.ops.begin(), where.ops.end());
    moved.push_back(op);
    DenseSet<Operation *> needed;
    for (const ValueExpr &bound : {loop.getLowExpr(), loop.getHighExpr()})
      for (Value used : bound.operands())
        needed.insert(used.getDefiningOp());
    for (Operation *each : moved) {
      read.insert_range(accessesOf(each).reads);
      for (Value used : valuesUsedBy(each))
        needed.insert(used.getDefiningOp());
    }
    Operation *place = loop;
    while (Operation *before = place->getPrevNode()) {
      SetVector<Value> written = accessesOf(before).writes;
      if (needed.contains(before) ||
          llvm::any_of(read, [&](Value tensor) { return written.contains(tensor); }))
        break;
      place = before;
    }
    return place;
  }

  static void store(ForOp loop, Operation *op, const Outline &where, Prover &prover) {
    OpBuilder before(earliest(loop, op, where));
    Location loc = op->getLoc();
    SmallVector<AxisSpec> specs{{"step", loop.getLowExpr(), loop.getHighExpr()}};
    SmallVector<IndexExprAttr> dims;
    SmallVector<ValueExpr> reading{ValueExpr(Value(loop.getLoopVar())) - loop.getLowExpr()};
    auto addDim = [&](const ValueExpr &extent) {
      dims.push_back(IndexExprAttr::get(before.getContext(), extent.expr()));
    };
    addDim(loop.getHighExpr() - loop.getLowExpr());
    for (Value axis : where.axes) {
      specs.push_back({nameOf(axis).str(), lowOf(axis), highOf(axis)});
      addDim(highOf(axis) - lowOf(axis));
      reading.push_back(ValueExpr(axis) - lowOf(axis));
    }
    Value temp = TempOp::create(
        before, loc, TglTensorType::get(before.getContext(), dims, op->getResult(0).getType()),
        "of_steps");
    auto made = ParallelOp::create(before, loc, specs);
    IRMapping map;
    map.map(loop.getLoopVar(), Value(made.getAxes()[0]));
    for (auto [axis, own] : llvm::zip_equal(where.axes, made.getAxes().drop_front()))
      map.map(axis, Value(own));
    OpBuilder inside = OpBuilder::atBlockEnd(&made.getBody().front());
    for (Operation *needed : where.ops)
      inside.clone(*needed, map);
    Value value = inside.clone(*op, map)->getResult(0);
    SmallVector<ValueExpr> writing;
    for (const ValueExpr &subscript : reading)
      writing.push_back(subscript.substitute([&](Value used) -> std::optional<ValueExpr> {
        return ValueExpr(map.lookupOrDefault(used));
      }));
    WriteOp::create(inside, loc, value, temp, writing);
    eraseUnusedOps(made.getBody().front());
    accessOnlyWithin(made, where.left, map, prover);
    OpBuilder here(op);
    op->getResult(0).replaceAllUsesWith(ReadOp::create(here, loc, temp, reading));
  }
};
} // namespace
