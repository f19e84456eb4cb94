//===- ReduceInTiles.cpp - Starts reductions in the epilogue of a product -===//
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
#include "strategies/contraction/plan/TileReductions.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_REDUCEINTILESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

static AxesOp asAxes(Operation *op) { return cast<AxesOp>(op); }

/// What changes nothing; nothing of kinds that tiles do not begin.
static std::optional<double> startOf(ReduceKind kind) {
  double infinity = std::numeric_limits<double>::infinity();
  switch (kind) {
  case ReduceKind::Sum:
    return 0;
  case ReduceKind::Max:
    return -infinity;
  case ReduceKind::Min:
    return infinity;
  default:
    return std::nullopt;
  }
}

namespace {
/// A reduction of what a product writes.
struct Reduction {
  ReduceOp reduce;
  ReadOp read; ///< of the product's results
  SmallVector<Value>
      axisOfDim; ///< of the results: an axis of the reduction or of its statement; null: 0
  llvm::SetVector<Operation *> before; ///< what the reduction uses of its statement
  TileReductions parts;

  ParallelOp statement() { return cast<ParallelOp>(reduce->getParentOp()); }
};

struct ReduceInTilesPass : Counted<tegula::impl::ReduceInTilesPassBase<ReduceInTilesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
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
      for (WriteOp write : llvm::to_vector(statement.getBody().getOps<WriteOp>()))
        fuseReductions(statement, write, *tile, machine->hasWgmma);
    }
  }

  /// The only write to a temporary of f32, of all its elements.
  bool isWhole(WriteOp write) {
    auto temp = write.getTensor().getDefiningOp<TempOp>();
    if (!temp || isPrivate(temp) || write.getCombine() || write.getGuard() || write.getChecked() ||
        !write.getTensorType().getElementType().isF32())
      return false;
    int64_t elements = 1;
    for (IndexExprAttr dim : write.getTensorType().getDims()) {
      std::optional<int64_t> extent = dim.getExpr().asConstant();
      if (!extent || llvm::MulOverflow(elements, *extent, elements))
        return false;
    }
    return knownPoints(asAxes(write->getParentOp())) == elements &&
           llvm::all_of(write.getTensor().getUsers(),
                        [&](Operation *user) { return user == write || isa<ReadOp>(user); });
  }

  void fuseReductions(ParallelOp statement, WriteOp write, const TensorTile &tile, bool hasWgmma) {
    if (!isWhole(write))
      return;
    Matched<TensorProduct> product = matchTensorProduct(statement);
    if (!product || product->plan.columns.back() != laneAxisOfPartials(statement))
      return;
    ContractionPlan *plan = &product->plan;
    SmallVector<int64_t> counted = paddedColumns(*plan, product->operands, tile, hasWgmma);
    SmallVector<Reduction, 0> reductions;
    for (Operation *user : write.getTensor().getUsers()) {
      if (user == write)
        continue;
      std::optional<Reduction> reduction = match(statement, cast<ReadOp>(user));
      if (!reduction)
        return; // the results are needed in memory all the same
      std::optional<llvm::BitVector> reduced = reducedAxes(write, *reduction);
      std::optional<TileReductions> parts =
          reduced ? planTileReductions(*plan, tile, *reduced, counted) : std::nullopt;
      if (!parts)
        return;
      reduction->parts = *parts;
      reductions.push_back(std::move(*reduction));
    }
    for (Reduction &reduction : reductions)
      fuse(statement, write, reduction);
    count("reductions begun in tiles", reductions.size());
    Operation *temp = write.getTensor().getDefiningOp();
    if (reductions.empty())
      return;
    write.erase();
    temp->erase();
  }

  /// The reduction that the read is in, where it can be computed behind the product.
  static std::optional<Reduction> match(ParallelOp product, ReadOp read) {
    Reduction result;
    result.read = read;
    result.reduce = dyn_cast<ReduceOp>(read->getParentOp());
    auto statement =
        result.reduce ? dyn_cast<ParallelOp>(result.reduce->getParentOp()) : ParallelOp();
    if (!statement || !isa<LaunchOp>(statement->getParentOp()) || read.getFill() ||
        read.getGuard() || read.getChecked() || !read.getExactExprs().empty() ||
        result.reduce.getFilter() || !startOf(result.reduce.getKind()) ||
        !result.reduce.getType().isF32())
      return std::nullopt;
    // Each of their axes is a dim of the results.
    llvm::SetVector<Value> axes;
    for (auto [subscript, dim] :
         llvm::zip_equal(read.getSubscriptExprs(), read.getTensorType().getDims())) {
      Value axis = subscript.asValue();
      result.axisOfDim.push_back(axis);
      if (!axis && subscript.asConstant() == 0 && dim.getExpr().asConstant() == 1)
        continue;
      AxesOp owner = axis ? axesOpOf(axis) : AxesOp();
      if (!owner || (owner != asAxes(result.reduce) && owner != asAxes(statement)) ||
          !axes.insert(axis) || lowOf(axis).asConstant() != 0 ||
          highOf(axis).asConstant() != dim.getExpr().asConstant())
        return std::nullopt;
    }
    if (axes.size() != result.reduce.getAxes().size() + statement.getAxes().size())
      return std::nullopt;
    // What else it needs is there before the product.
    SmallVector<Operation *> work;
    for (Operation &op : result.reduce.getBody().front())
      work.push_back(&op);
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      auto other = dyn_cast<ReadOp>(op);
      if (op->getNumRegions() || isa<WriteOp, TempOp>(op) ||
          (other && other != read && !isWrittenBefore(other.getTensor(), product)))
        return std::nullopt;
      for (Value operand : op->getOperands())
        if (Operation *definition = operand.getDefiningOp();
            definition && definition->getBlock() == &statement.getBody().front() &&
            result.before.insert(definition))
          work.push_back(definition);
    }
    return result;
  }

  /// Whether all that writes to the tensor stands before `statement`, at the top of the kernel.
  static bool isWrittenBefore(Value tensor, ParallelOp statement) {
    Operation *launch = statement->getParentOp();
    if (auto temp = tensor.getDefiningOp<TempOp>(); temp && temp->getBlock() != launch->getBlock())
      return false;
    return llvm::all_of(tensor.getUsers(), [&](Operation *user) {
      auto read = dyn_cast<ReadOp>(user);
      Operation *around = launch->getBlock()->findAncestorOpInBlock(*user);
      return read || (around && around->isBeforeInBlock(launch));
    });
  }

  /// The axes of the product's statement that the reduction reduces.
  static std::optional<llvm::BitVector> reducedAxes(WriteOp write, Reduction &reduction) {
    AxesOp axes = asAxes(write->getParentOp());
    llvm::BitVector reduced(axes.getAxes().size()), kept(axes.getAxes().size());
    for (auto [subscript, axis] : llvm::zip_equal(write.getSubscriptExprs(), reduction.axisOfDim))
      for (Value used : subscript.operands()) {
        auto its = dyn_cast<BlockArgument>(used);
        if (!its || its.getOwner() != axes.getAxesBlock())
          return std::nullopt;
        bool isReduced = axis && axesOpOf(axis) == asAxes(reduction.reduce);
        (isReduced ? reduced : kept).set(its.getArgNumber());
      }
    if (reduced.anyCommon(kept) || reduced.count() + kept.count() != reduced.size())
      return std::nullopt;
    return reduced;
  }

  /// The reduction's terms behind the product, added to parts; the reduction over these.
  void fuse(ParallelOp product, WriteOp write, Reduction &reduction) {
    ParallelOp statement = reduction.statement();
    ReduceOp reduce = reduction.reduce;
    Location loc = reduce.getLoc();
    // What the axes of the reduction and its statement are at a point of the product.
    DenseMap<Value, ValueExpr> exprOfAxis;
    for (auto [subscript, axis] : llvm::zip_equal(write.getSubscriptExprs(), reduction.axisOfDim))
      if (axis)
        exprOfAxis[axis] = subscript;
    // Parts of a result side by side where a result has many of them; else results, as they are in
    // memory.
    bool partsLast = reduction.parts.columns.isReduced();
    SmallVector<ValueExpr> place;
    SmallVector<IndexExprAttr> dims;
    SmallVector<AxisSpec> overParts, overAll;
    auto append = [&](const ValueExpr &subscript, int64_t extent, StringRef name) {
      place.push_back(subscript);
      dims.push_back(IndexExprAttr::get(&getContext(), extent));
      overAll.push_back({name.str(), ValueExpr(int64_t(0)), ValueExpr(extent)});
    };
    auto appendParts = [&] {
      for (auto &[number, extent] : reduction.parts.numbers(product)) {
        append(number, extent, "part");
        overParts.push_back(overAll.back());
      }
    };
    if (!partsLast)
      appendParts();
    for (auto [number, axis] : llvm::enumerate(statement.getAxes()))
      append(exprOfAxis.lookup(axis), *knownPoints(asAxes(statement), {unsigned(number)}),
             getAxisName(asAxes(statement), number));
    if (partsLast)
      appendParts();
    OpBuilder beforeLaunch(product->getParentOp());
    auto type = TglTensorType::get(&getContext(), dims, reduce.getType());
    Value temp = TempOp::create(beforeLaunch, loc, type, "part");

    OpBuilder beforeProduct(product);
    auto start = ParallelOp::create(beforeProduct, loc, overAll);
    OpBuilder inStart = OpBuilder::atBlockEnd(&start.getBody().front());
    Value neutral = arith::ConstantOp::create(inStart, loc,
                                              inStart.getF32FloatAttr(*startOf(reduce.getKind())));
    SmallVector<ValueExpr> all;
    for (Value axis : start.getAxes())
      all.push_back(ValueExpr(axis));
    WriteOp::create(inStart, loc, neutral, temp, all);

    OpBuilder inProduct = OpBuilder::atBlockEnd(&product.getBody().front());
    IRMapping map;
    for (Value axis : reduction.axisOfDim)
      if (axis)
        map.map(axis, materialize(inProduct, loc, exprOfAxis.lookup(axis)));
    auto copy = [&](Operation &op) {
      if (auto indexed = dyn_cast<IndexedOp>(inProduct.clone(op, map)))
        foldIndices(indexed);
    };
    for (Operation &op : statement.getBody().front())
      if (reduction.before.contains(&op))
        copy(op);
    for (Operation &op : reduce.getBody().front().without_terminator())
      if (&op == reduction.read.getOperation())
        map.map(reduction.read.getResult(), write.getValue());
      else
        copy(op);
    auto part = WriteOp::create(inProduct, loc, map.lookupOrDefault(reduce.getReduced()), temp,
                                place, /*guard=*/Value(), reduce.getKind());
    part->setAttr(partialAttrName, inProduct.getDenseI64ArrayAttr(reduction.parts.reducedAxes()));

    OpBuilder here(reduce);
    auto whole = ReduceOp::create(here, loc, reduce.getType(), reduce.getKind(), overParts);
    Block &body = whole.getBody().front();
    OpBuilder last = OpBuilder::atBlockBegin(&body);
    SmallVector<ValueExpr> from;
    for (Value axis : statement.getAxes())
      from.push_back(ValueExpr(axis));
    SmallVector<ValueExpr> ofParts;
    for (Value axis : whole.getAxes())
      ofParts.push_back(ValueExpr(axis));
    from.insert(partsLast ? from.end() : from.begin(), ofParts.begin(), ofParts.end());
    Value value = ReadOp::create(last, loc, temp, from);
    if (!body.empty() && isa<YieldOp>(body.back()))
      body.back().erase();
    last.setInsertionPointToEnd(&body);
    YieldOp::create(last, loc, SmallVector<Value>{value});
    reduce.replaceAllUsesWith(whole.getResult());
    reduce.erase();
    eraseUnusedOps(product.getBody().front());
    eraseUnusedOps(statement.getBody().front());
  }
};
} // namespace
