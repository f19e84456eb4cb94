//===- EpiloguePlan.cpp - What the epilogue of a tile has to do -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/EpiloguePlan.h"

#include "codegen/common/AccessShape.h"
#include "codegen/nvgpu/Fragments.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/Nest.h"

using namespace llvm;
using namespace tegula;

/// Columns of the L2 cache's line, of which bulk stores should have all.
static constexpr int64_t lineElements = 32;

EpiloguePlan::EpiloguePlan(const ContractionPlan &plan, const TensorTile &tile,
                           const TileMemory &memory, const EmitterOptions &options,
                           ArrayRef<int64_t> paddedColumns)
    : plan(plan), tile(tile), memory(memory), options(options), isPadded(!paddedColumns.empty()),
      axes(cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation())) {
  tgl::Accesses accesses = tgl::accessesOf(tgl::ParallelOp(plan.op));
  DenseSet<mlir::Value> waiting;
  for (const ContractionProduct &product : plan.products)
    waiting.insert(tgl::ReduceOp(product.reduce).getResult());
  auto varies = [&](tgl::ReadOp read, ArrayRef<unsigned> group) {
    return any_of(group, [&](unsigned axis) {
      return tgl::knownPoints(axes, {axis}) != 1 &&
             any_of(read.getSubscriptExprs(),
                    [&](const tgl::ValueExpr &expr) { return expr.uses(axes.getAxes()[axis]); });
    });
  };
  for (mlir::Operation *op : plan.epilogue) {
    auto read = dyn_cast<tgl::ReadOp>(op);
    bool isEarly = read ? !read.getChecked() && !accesses.writes.contains(read.getTensor())
                        : op->getNumRegions() == 0 && mlir::isMemoryEffectFree(op);
    isEarly &=
        none_of(op->getOperands(), [&](mlir::Value value) { return waiting.contains(value); });
    if (isEarly) {
      early.push_back(op);
      readsElements |= read && varies(read, plan.rows) && varies(read, plan.columns);
    } else {
      effects.push_back(op);
      waiting.insert_range(op->getResults());
    }
  }
  findRecomputeOps();
  takePartialWrites(paddedColumns);
  separateEffects();
}

/// What makes of the only product's sum the value that all else uses, where there are loops in
/// that: sums of a transposed convolution that are not finite are added up again. Nearly no sum
/// needs it.
void EpiloguePlan::findRecomputeOps() {
  bool hasLoops = any_of(effects, [](mlir::Operation *op) { return op->getNumRegions() != 0; });
  if (!hasLoops || plan.products.size() != 1)
    return;
  mlir::Value sum = tgl::ReduceOp(plan.products.front().reduce).getResult();
  for (mlir::Operation *last : effects) {
    if (last->getNumResults() != 1 || !last->getResult(0).getType().isF32() ||
        last->getNumRegions())
      continue;
    SetVector<mlir::Operation *> needed;
    needed.insert(last);
    for (unsigned n = 0; n < needed.size(); ++n)
      for (mlir::Value value : valuesUsedBy(needed[n]))
        if (mlir::Operation *definition = value.getDefiningOp();
            definition && is_contained(plan.epilogue, definition))
          needed.insert(definition);
    auto isNeeded = [&](mlir::Operation *op) { return needed.contains(op); };
    // All loops are there, and others know the sum and what it was made of by the result alone.
    bool all = all_of(effects, [&](mlir::Operation *op) {
      if (isNeeded(op))
        return !isa<tgl::WriteOp>(op);
      return op->getNumRegions() == 0 && none_of(valuesUsedBy(op), [&](mlir::Value value) {
               return value == sum || (value != last->getResult(0) &&
                                       is_contained(effects, value.getDefiningOp()) &&
                                       isNeeded(value.getDefiningOp()));
             });
    });
    if (!all)
      continue;
    copy_if(plan.epilogue, std::back_inserter(recomputeOps), isNeeded);
    erase_if(effects, isNeeded);
    recomputed = last->getResult(0);
    return;
  }
}

/// Moves writes of parts, and what only they need, out of the rest.
void EpiloguePlan::takePartialWrites(ArrayRef<int64_t> paddedColumns) {
  auto neededBy = [&](function_ref<bool(tgl::WriteOp)> isRoot) {
    SetVector<mlir::Operation *> needed;
    for (mlir::Operation *op : plan.epilogue)
      if (auto write = dyn_cast<tgl::WriteOp>(op); write && isRoot(write))
        needed.insert(op);
    for (unsigned n = 0; n < needed.size(); ++n)
      for (mlir::Value value : valuesUsedBy(needed[n]))
        if (mlir::Operation *definition = value.getDefiningOp();
            definition && is_contained(plan.epilogue, definition) &&
            !is_contained(recomputeOps, definition))
          needed.insert(definition);
    return needed;
  };
  for (tgl::WriteOp write : partialWrites(plan.op)) {
    std::optional<TileReductions> lines = tileReductionsOf(write, plan, tile, paddedColumns);
    if (!lines) {
      misfit = write;
      return;
    }
    SetVector<mlir::Operation *> needed =
        neededBy([&](tgl::WriteOp other) { return other == write; });
    PartialWrite partial{write, {}, *lines};
    copy_if(plan.epilogue, std::back_inserter(partial.made),
            [&](mlir::Operation *op) { return op != write && needed.contains(op); });
    partials.push_back(std::move(partial));
  }
  if (partials.empty())
    return;
  SetVector<mlir::Operation *> others =
      neededBy([](tgl::WriteOp write) { return !write->hasAttr(partialAttrName); });
  for (SmallVector<mlir::Operation *> *ops : {&early, &effects})
    erase_if(*ops, [&](mlir::Operation *op) { return !others.contains(op); });
}

/// Of what waits for sums, what only makes values of them is no part of a branch.
void EpiloguePlan::separateEffects() {
  DenseSet<mlir::Value> waiting; // for what has an effect
  SmallVector<mlir::Operation *> others;
  for (mlir::Operation *op : effects) {
    bool isValue =
        op->getNumRegions() == 0 && mlir::isMemoryEffectFree(op) && !isa<tgl::ReadOp>(op) &&
        none_of(op->getOperands(), [&](mlir::Value value) { return waiting.contains(value); });
    if (isValue) {
      values.push_back(op);
      continue;
    }
    others.push_back(op);
    waiting.insert_range(op->getResults());
  }
  effects = std::move(others);
}

unsigned EpiloguePlan::interleavedRows(const ContractionPlan &plan) {
  if (plan.rows.empty() || plan.columns.empty() || plan.epilogueCollapsesRows ||
      plan.epilogueCollapsesColumns)
    return 1;
  auto own = cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation());
  std::optional<int64_t> phases = tgl::knownPoints(own, {plan.rows.back()});
  if (phases != 2 && phases != 4)
    return 1;
  for (mlir::Operation *op : plan.epilogue) {
    auto write = dyn_cast<tgl::WriteOp>(op);
    if (!write || write->hasAttr(partialAttrName))
      continue;
    tgl::ValueExpr offset =
        tgl::elementOffset(write.getTensor().getType(), write.getSubscriptExprs());
    auto along = [&](unsigned axis) {
      return stepAlong(offset, own.getAxes()[axis], [](mlir::Value) { return false; });
    };
    if (along(plan.rows.back()) != 1 || along(plan.columns.back()) != phases)
      return 1;
  }
  return *phases;
}

/// The guard `row < n` of all writes, with an n of the tile; null: there is none.
mlir::arith::CmpIOp EpiloguePlan::guardOfRows() const {
  tgl::AxesOp axes = this->axes;
  mlir::arith::CmpIOp guard;
  for (mlir::Operation *op : plan.epilogue) {
    auto write = dyn_cast<tgl::WriteOp>(op);
    if (!write)
      continue;
    auto its = write.getGuard() ? write.getGuard().getDefiningOp<mlir::arith::CmpIOp>()
                                : mlir::arith::CmpIOp();
    if (!its || (guard && its != guard))
      return nullptr;
    guard = its;
  }
  if (!guard || guard.getPredicate() != mlir::arith::CmpIPredicate::slt || plan.rows.size() != 1 ||
      guard.getLhs() != axes.getAxes()[plan.rows.front()])
    return nullptr;
  bool isOfTile = all_of(tgl::axesOf(guard.getRhs()), [&](mlir::BlockArgument axis) {
    return axis.getOwner() == axes.getAxesBlock() && is_contained(plan.batch, axis.getArgNumber());
  });
  return isOfTile ? guard : nullptr;
}

/// Whether four columns from a multiple of four on are neighbours of the written tensor that begin
/// at a multiple of four.
bool EpiloguePlan::writesVectors(tgl::WriteOp write) const {
  tgl::AxesOp op = axes;
  mlir::Value axis = op.getAxes()[plan.columns.back()];
  tgl::TglTensorType type = write.getTensor().getType();
  if (write.getGuard() || type.getElementType().isInteger(4))
    return false;
  bool isArgument = isa<mlir::BlockArgument>(write.getTensor());
  if (isArgument && options.tensorAlignment < laneColumns * 4)
    return false;
  return tgl::stepAlong(tgl::elementOffset(type, write.getSubscriptExprs()), axis) == 1 &&
         areAligned(write, laneColumns);
}

/// Whether columns that begin at a multiple of `count` do so in the written tensor.
bool EpiloguePlan::areAligned(tgl::WriteOp write, int64_t count) const {
  tgl::AxesOp op = axes;
  tgl::ValueExpr offset =
      tgl::elementOffset(write.getTensor().getType(), write.getSubscriptExprs());
  offset = offset.substitute(op.getAxes()[plan.columns.back()], tgl::ValueExpr(int64_t(0)));
  return all_of(offset.expr().terms(),
                [&](const IndexExpr::Term &term) { return term.coefficient % count == 0; });
}

bool EpiloguePlan::fitsWarpEpilogue() const {
  if (!options.warpEpilogue || !memory.isPersistent() || isPadded)
    return false;
  if (recomputed || !partials.empty() || plan.columns.empty())
    return false;
  tgl::AxesOp op = axes;
  std::optional<int64_t> total = tgl::knownPoints(op, plan.columns),
                         last = tgl::knownPoints(op, {plan.columns.back()}),
                         low = tgl::getAxisRange(op, plan.columns.back()).lo.asConstant();
  if (!total || !low || *low % laneColumns ||
      (plan.epilogueCollapsesColumns ? *total : last.value_or(1)) % laneColumns)
    return false;
  tgl::Accesses accesses = tgl::accessesOf(tgl::ParallelOp(plan.op));
  return all_of(plan.epilogue, [&](mlir::Operation *each) {
    if (auto write = dyn_cast<tgl::WriteOp>(each))
      return writesVectors(write);
    if (auto read = dyn_cast<tgl::ReadOp>(each)) // of what is written: a tile may be done again
      return !read.getChecked() && !accesses.writes.contains(read.getTensor());
    return each->getNumRegions() == 0 && mlir::isMemoryEffectFree(each);
  });
}

/// Whether a tile's columns, from a multiple of `count` on, are neighbours in what is written.
bool EpiloguePlan::areRuns(tgl::WriteOp write, int64_t count) const {
  tgl::AxesOp op = axes;
  tgl::ValueExpr offset =
      tgl::elementOffset(write.getTensor().getType(), write.getSubscriptExprs());
  int64_t run = 1;
  for (unsigned axis : reverse(plan.columns)) {
    std::optional<int64_t> points = tgl::knownPoints(op, {axis});
    if (points == 1)
      continue;
    if (!points || tgl::stepAlong(offset, op.getAxes()[axis]) != run)
      return run % count == 0;
    run *= *points;
  }
  return true;
}

/// The only write, where its place is of the statement's axes alone and no elementary function is
/// on the way to it.
tgl::WriteOp EpiloguePlan::onlyWrite() const {
  if (any_of(plan.epilogue, [](mlir::Operation *each) {
        return isa<mlir::math::MathDialect>(each->getDialect());
      }))
    return nullptr;
  tgl::AxesOp op = axes;
  tgl::WriteOp only;
  for (mlir::Operation *each : plan.epilogue)
    if (auto write = dyn_cast<tgl::WriteOp>(each)) {
      bool isOfAxes = all_of(write.getSubscriptExprs(), [&](const tgl::ValueExpr &expr) {
        return all_of(expr.operands(), [&](mlir::Value value) {
          auto axis = dyn_cast<mlir::BlockArgument>(value);
          return axis && axis.getOwner() == op.getAxesBlock();
        });
      });
      if (only || !isOfAxes)
        return nullptr;
      only = write;
    }
  return only;
}

/// The only write, where a warp's part of a row is one run of numbers of 32 bits that it writes.
/// Stores of lanes are hidden by elementary functions, of which bulk stores would only wait for the
/// last (gelu 6 % slower on an H200).
tgl::WriteOp EpiloguePlan::lineWrite() const {
  tgl::WriteOp only =
      memory.epilogueColumns() == tile.statementColumns() ? onlyWrite() : tgl::WriteOp();
  if (!only || !options.bulkStores)
    return nullptr;
  mlir::Type element = only.getTensor().getType().getElementType();
  bool isWord = element.isIntOrFloat() && element.getIntOrFloatBitWidth() == 32;
  return isWord && areRuns(only, warpgroupColumns(tile) / tile.joint) &&
                 areAligned(only, lineElements)
             ? only
             : nullptr;
}

/// The only write, where it is of 16-bit numbers that can be stored eight at a time. Elementary
/// functions would be written out for each pair, and elements are read in better order by whole
/// rows.
tgl::WriteOp EpiloguePlan::registerWrite() const {
  tgl::WriteOp write = onlyWrite();
  if (!options.registerEpilogue || !write || readsElements ||
      warpgroupColumns(tile) / tile.joint % lineColumns ||
      memory.jointAccumulatorsBytes() < tile.threads() / warpThreads * warpRows * linePitch)
    return nullptr;
  tgl::AxesOp op = axes;
  mlir::Type element = write.getTensor().getType().getElementType();
  std::optional<int64_t> low = tgl::getAxisRange(op, plan.columns.back()).lo.asConstant();
  bool isStored = (element.isF16() || element.isBF16()) && !write.getCombine() && low &&
                  *low % storedColumns == 0 && areRuns(write, storedColumns) &&
                  areAligned(write, storedColumns);
  return isStored ? write : nullptr;
}
