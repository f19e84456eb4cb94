//===- Work.cpp - Counts the operations of a kernel -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "compiler/Work.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/DenseMap.h"

using namespace llvm;

namespace tegula {

class WorkCounter {
public:
  explicit WorkCounter(KernelWork &work) : work(work) {}

  void visit(mlir::Block &block) {
    for (mlir::Operation &op : block)
      visit(op);
  }

private:
  /// The expression in the dims of KernelWork; what is no axis (data) counts as 0.
  IndexExpr translate(const tgl::ValueExpr &expr) {
    return expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      auto known = values.find(expr.operands()[var.position()]);
      return known == values.end() ? IndexExpr(0) : known->second;
    });
  }

  void enter(mlir::Value axis, const tgl::ValueExpr &low, const tgl::ValueExpr &high) {
    unsigned position = work.ranges.size();
    work.ranges.push_back({translate(low), translate(high)});
    values[axis] = IndexExpr::dim(position);
    around.push_back(position);
  }

  /// What a device loses of products of f8 (dsl/SPEC.md, 6.4), as the terms of a sum in f32 that
  /// loses as much: 2^-11.
  void countSmallProducts(tgl::ReduceOp reduce) {
    constexpr int64_t terms = 1 << 26;
    std::optional<tgl::Contraction> contraction = tgl::matchContraction(reduce);
    auto isSmall = [](const tgl::Contraction::Factor &factor) {
      auto read = factor.value.getDefiningOp<tgl::ReadOp>();
      return read && isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(
                         read.getTensorType().getElementType());
    };
    if (!contraction || !all_of(contraction->factors, isSmall))
      return;
    work.depths.push_back({unsigned(work.ranges.size())});
    work.ranges.push_back({IndexExpr(0), IndexExpr(terms)});
  }

  void add(double operations) {
    if (operations > 0)
      work.terms.push_back({around, operations});
  }

  /// The body of an op whose ranges have been entered since there were `outer` of them.
  void body(mlir::Operation &op, size_t outer, bool combines) {
    size_t folded = folding.size();
    if (combines) {
      append_range(folding, ArrayRef(around).drop_front(outer));
      work.depths.push_back(folding);
    }
    for (mlir::Region &region : op.getRegions())
      for (mlir::Block &block : region)
        visit(block);
    folding.truncate(folded);
    around.truncate(outer);
  }

  void visit(mlir::Operation &op) {
    size_t outer = around.size();
    if (auto scan = dyn_cast<tgl::ScanOp>(op)) {
      // One step for each point of the equation around it: the row is not walked anew for each.
      for (auto [axis, range] : zip(scan.getAxes(), tgl::getAxisRanges(scan))) {
        unsigned position = work.ranges.size();
        work.ranges.push_back({translate(range.lo), translate(range.hi)});
        values[axis] = IndexExpr::dim(position);
        folding.push_back(position);
      }
      work.depths.push_back(folding);
      add(2);
      for (mlir::Block &block : scan->getRegion(0))
        visit(block);
      folding.truncate(folding.size() - scan.getAxes().size());
      return;
    }
    if (auto axes = dyn_cast<tgl::AxesOp>(op)) {
      for (auto [axis, range] : zip(axes.getAxes(), tgl::getAxisRanges(axes)))
        enter(axis, range.lo, range.hi);
      if (auto reduce = dyn_cast<tgl::ReduceOp>(op)) {
        add(1);
        countSmallProducts(reduce);
      }
      return body(op, outer, isa<tgl::ReduceOp>(op));
    }
    if (auto loop = dyn_cast<tgl::ForOp>(op)) {
      enter(loop.getLoopVar(), loop.getLowExpr(), loop.getHighExpr());
      return body(op, outer, true);
    }
    if (auto tiles = dyn_cast<tgl::TilesOp>(op)) {
      // As if there were a single tile.
      values[tiles.getTileLow()] = translate(tiles.getLowExpr());
      values[tiles.getTileHigh()] = translate(tiles.getHighExpr());
      return body(op, outer, false);
    }
    if (auto write = dyn_cast<tgl::WriteOp>(op); write && write.getCombine()) {
      add(1);
      work.depths.push_back(around);
    }
    if (isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(op.getDialect()) &&
        op.getNumResults() == 1 && op.getNumOperands() > 0 &&
        isa<mlir::FloatType>(op.getOperand(op.getNumOperands() - 1).getType()) &&
        !isa<mlir::CastOpInterface, mlir::arith::SelectOp>(op))
      add(1);
    for (mlir::Region &region : op.getRegions())
      for (mlir::Block &block : region)
        visit(block);
  }

  KernelWork &work;
  DenseMap<mlir::Value, IndexExpr> values;
  SmallVector<unsigned> around, folding;
};

KernelWork KernelWork::count(mlir::ModuleOp module) {
  KernelWork work;
  WorkCounter(work).visit(*module.getBody());
  module.walk([&](tgl::TempOp temp) {
    mlir::Type element = cast<tgl::TglTensorType>(temp.getTensor().getType()).getElementType();
    work.narrowTemporaries += isa<mlir::FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  });
  return work;
}

std::vector<double> KernelWork::extents(const SizeOf &sizeOf) const {
  std::vector<double> extents;
  std::vector<int64_t> middles;
  for (const Range &range : ranges) {
    auto value = [&](const IndexExpr &expr) {
      return expr
          .evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
            if (var.isSymbol())
              return sizeOf(var.name());
            return var.position() < middles.size() ? std::optional(middles[var.position()])
                                                   : std::nullopt;
          })
          .value_or(0);
    };
    int64_t low = value(range.low), high = std::max(low, value(range.high));
    extents.push_back(double(high) - double(low));
    middles.push_back(low + (high - low) / 2);
  }
  return extents;
}

double KernelWork::operations(const SizeOf &sizeOf) const {
  std::vector<double> extent = extents(sizeOf);
  double total = 0;
  for (const Term &term : terms) {
    double points = term.operations;
    for (unsigned range : term.ranges)
      points *= extent[range];
    total += points;
  }
  return total;
}

double KernelWork::depth(const SizeOf &sizeOf) const {
  std::vector<double> extent = extents(sizeOf);
  double deepest = 1;
  for (ArrayRef<unsigned> nest : depths) {
    double points = 1;
    for (unsigned range : nest)
      points *= extent[range];
    deepest = std::max(deepest, points);
  }
  return deepest;
}

} // namespace tegula
