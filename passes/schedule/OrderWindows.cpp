//===- OrderWindows.cpp - Channels-last order for convolutions, with packed weights ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include "strategies/ContractionStrategy.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_ORDERWINDOWSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Points that are counted through innermost: those of a step of a tile, or a part of them.
static constexpr int64_t shortestRun = 4, longestRun = 64;
/// Products and points for each packed element below which another launch is not worth it.
static constexpr int64_t minWork = int64_t(1) << 25, minUses = 512;
static constexpr int64_t maxPackedElements = int64_t(1) << 26;
/// Elements that a tile's own launch, where it has one, reads out of order in the time that another
/// launch takes: convolutions of up to 37,000 weights took 1.17 to 1.24 times as long with both
/// (H200, `tegula tune dsl/kernels/conv/*.tgl`).
static constexpr int64_t minPackedElements = int64_t(1) << 18;

static AxesOp asAxes(Operation *op) { return cast<AxesOp>(op); }

/// The length of the runs that an axis of so many points falls into.
static int64_t runOf(int64_t extent) {
  int64_t run = 1;
  while (run < longestRun && extent % (2 * run) == 0)
    run *= 2;
  return run;
}

/// Where what the reads of a side say of their places along `axis` is one step in memory.
static bool isPlain(const ContractionSide &side, Value axis, Prover &prover) {
  return llvm::all_of(side.slice, [&](Operation *op) {
    if (!llvm::is_contained(op->getOperands(), axis))
      return true;
    auto read = dyn_cast<ReadOp>(op);
    if (!read || !stepAlong(elementOffset(read.getTensorType(), read.getSubscriptExprs()), axis) ||
        llvm::any_of(read.getExactExprs(), [&](auto &exact) { return exact.first.uses(axis); }))
      return false;
    if (!read.getFill())
      return true;
    AxisScope scope(prover, read);
    for (auto [subscript, dim] :
         llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims()))
      if (subscript.uses(axis) && !scope.provesInBounds(subscript, dim.getExpr()))
        return false;
    return true;
  });
}

/// Whether an element's place is found without divisions and comparisons.
static bool isRegular(const ContractionSide &side) {
  return side.collapsesSum && llvm::none_of(side.slice, [](Operation *op) {
           auto read = dyn_cast<ReadOp>(op);
           return read && (read.getFill() || read.getGuard());
         });
}

/// Whether an element is not just read: what that takes is worth doing once.
static bool isComputed(const ContractionSide &side) {
  return llvm::any_of(side.slice, [](Operation *op) {
    auto read = dyn_cast<ReadOp>(op);
    return read ? read.getGuard() || !read.getExactExprs().empty()
                : op->getNumResults() && isa<FloatType>(op->getResult(0).getType());
  });
}

namespace {
/// A product of which one side is read through windows.
struct Windows {
  ContractionPlan plan;
  bool rowsArePacked;
  unsigned channel; ///< the summed axis that comes last
  int64_t run;      ///< of its points; 1 where the order stays

  ReduceOp reduce() const { return plan.products.front().reduce; }
  const ContractionSide &packed() const {
    return rowsArePacked ? plan.products.front().a : plan.products.front().b;
  }
  const ContractionSide &windowed() const {
    return rowsArePacked ? plan.products.front().b : plan.products.front().a;
  }
  ArrayRef<unsigned> packedGroup() const { return rowsArePacked ? plan.rows : plan.columns; }
};

struct OrderWindowsPass : Counted<tegula::impl::OrderWindowsPassBase<OrderWindowsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    Prover prover(sizeFacts(getOperation()));
    SmallVector<ScheduleSetting> settings = scheduleSettings(getOperation());
    mlir::FailureOr<TargetInfo> machine = parseTarget(getOperation(), target);
    if (failed(machine))
      return signalPassFailure();
    unsigned number = 0; // among those that have tiles
    for (ParallelOp statement : outermostStatements(getOperation())) {
      std::optional<TensorTile> tile =
          chooseTile(statement, settings, *machine, wantedTile(tensorTile, number));
      if (!tile)
        continue;
      ++number;
      std::optional<Windows> windows = findWindows(statement, prover);
      if (!windows || !isWorthIt(*windows, tile->prepacked && machine->hasWgmma) ||
          !canPack(*windows))
        continue;
      if (windows->run > 1) {
        orderSum(*windows);
        count("sums over windows reordered");
      }
      // The same with the axes as they are now.
      std::optional<ContractionPlan> plan = planContraction(statement, /*byVectors=*/false);
      assert(plan && "a product stays one whatever the order of its sum");
      windows->plan = std::move(*plan);
      pack(*windows);
      count("factors packed");
    }
  }

  static std::optional<Windows> findWindows(ParallelOp statement, Prover &prover) {
    std::optional<ContractionPlan> plan = planContraction(statement, /*byVectors=*/false);
    if (!plan || plan->products.size() != 1 || isa<IntegerType>(plan->element))
      return std::nullopt;
    const ContractionProduct &product = plan->products.front();
    if (isRegular(product.a) == isRegular(product.b) && isRegular(product.a))
      return std::nullopt;
    // Of two irregular sides the one of fewer points can be packed.
    AxesOp axes = asAxes(statement);
    std::optional<int64_t> rows = knownPoints(axes, plan->rows),
                           columns = knownPoints(axes, plan->columns);
    if (!rows || !columns || *rows == *columns)
      return std::nullopt;
    Windows windows{std::move(*plan), *rows < *columns, 0, 1};
    if (isRegular(windows.windowed()))
      return std::nullopt;
    AxesOp summed = asAxes(windows.reduce());
    for (auto [number, axis] : llvm::enumerate(summed.getAxes())) {
      std::optional<int64_t> extent = knownPoints(summed, {unsigned(number)});
      if (!extent || getAxisRange(summed, number).lo.asConstant() != 0)
        return std::nullopt;
      int64_t run = runOf(*extent);
      if (run > windows.run && isPlain(windows.windowed(), axis, prover)) {
        windows.run = run;
        windows.channel = number;
      }
    }
    if (windows.run < shortestRun)
      windows.run = 1;
    if (windows.run == 1 && !isComputed(windows.packed()))
      return std::nullopt;
    return windows;
  }

  /// Axes of the statement that the packed side varies along: batches, then its own.
  static SmallVector<Value> ownAxes(const Windows &windows) {
    AxesOp axes = asAxes(ParallelOp(windows.plan.op));
    SmallVector<Value> own;
    for (unsigned axis : windows.plan.batch)
      own.push_back(axes.getAxes()[axis]);
    for (unsigned axis : windows.packedGroup())
      own.push_back(axes.getAxes()[axis]);
    return own;
  }

  /// `isOrdered`: a launch of the tile's own brings both factors into the order of its stages.
  static bool isWorthIt(const Windows &windows, bool isOrdered) {
    AxesOp axes = asAxes(ParallelOp(windows.plan.op));
    std::optional<int64_t> terms = knownPoints(asAxes(windows.reduce())),
                           points = knownPoints(axes);
    if (!terms || !points || *terms == 0)
      return false;
    int64_t packed = *terms;
    for (Value axis : ownAxes(windows))
      packed *= *knownPoints(axes, {cast<BlockArgument>(axis).getArgNumber()});
    if (isOrdered && packed <= minPackedElements)
      return false;
    return *points >= minWork / *terms && packed <= maxPackedElements &&
           *points / minUses >= packed / *terms;
  }

  static bool canPack(const Windows &windows) {
    const ContractionSide &side = windows.packed();
    if (side.factors.size() != 1 || !side.factors.front().getDefiningOp())
      return false;
    llvm::SetVector<Value> written = accessesOf(windows.plan.op).writes;
    return llvm::all_of(side.slice, [&](Operation *op) {
      auto read = dyn_cast<ReadOp>(op);
      return !isa<TempOp>(op) &&
             (!read || (!read.getChecked() && !written.contains(read.getTensor())));
    });
  }

  /// sum (c, r, s) as sum (c_outer, r, s, c), with `run` points of c.
  static void orderSum(const Windows &windows) {
    AxesOp op = asAxes(windows.reduce());
    Value channel = op.getAxes()[windows.channel];
    std::string name = getAxisName(op, windows.channel).str();
    int64_t outer = *knownPoints(op, {windows.channel}) / windows.run;
    BlockArgument inner =
        insertAxis(op, op.getAxes().size(), {name, ValueExpr(int64_t(0)), ValueExpr(windows.run)});
    ValueExpr value(inner);
    if (outer > 1)
      value =
          ValueExpr(insertAxis(op, 0, {name + "_outer", ValueExpr(int64_t(0)), ValueExpr(outer)})) *
              ValueExpr(windows.run) +
          value;
    OpBuilder builder(op);
    replaceAllUsesWithExpr(builder, channel, value);
    eraseAxis(op, cast<BlockArgument>(channel).getArgNumber());
  }

  /// As what it can be kept without loss.
  static Type storedType(Value factor) {
    Type type = factor.getType(), narrow = type;
    if (auto convert = factor.getDefiningOp<ConvertOp>())
      narrow = convert.getTarget();
    else if (auto read = factor.getDefiningOp<ReadOp>(); read && !read.getFill())
      narrow = read.getTensorType().getElementType();
    return narrow.isF16() || narrow.isBF16() ? narrow : type;
  }

  /// The side's factor in the order of axes and sum, computed before.
  void pack(const Windows &windows) {
    const ContractionSide &side = windows.packed();
    Value factor = side.factors.front();
    AxesOp summed = asAxes(windows.reduce());
    SmallVector<Value> axes = ownAxes(windows);
    axes.append(summed.getAxes().begin(), summed.getAxes().end());
    Location loc = factor.getLoc();
    SmallVector<IndexExprAttr> dims;
    SmallVector<ValueExpr> place;
    for (Value axis : axes) {
      dims.push_back(IndexExprAttr::get(&getContext(), *(highOf(axis) - lowOf(axis)).asConstant()));
      place.push_back(ValueExpr(axis) - lowOf(axis));
    }
    OpBuilder before(windows.plan.op);
    auto type = TglTensorType::get(&getContext(), dims, storedType(factor));
    Value temp = TempOp::create(before, loc, type, "packed");
    IRMapping map;
    ParallelOp statement = copyAxes(before, loc, axes, map);
    OpBuilder inside = OpBuilder::atBlockEnd(&statement.getBody().front());
    for (Operation *op : side.slice)
      inside.clone(*op, map);
    SmallVector<ValueExpr> own;
    for (const ValueExpr &subscript : place)
      own.push_back(subscript.substitute(
          [&](Value value) -> std::optional<ValueExpr> { return ValueExpr(map.lookup(value)); }));
    WriteOp::create(inside, loc, map.lookup(factor), temp, own);
    OpBuilder here(factor.getDefiningOp());
    factor.replaceAllUsesWith(ReadOp::create(here, loc, temp, place));
    eraseUnusedOps(windows.plan.op->getRegion(0).front());
  }
};
} // namespace
