//===- Strategy.h - The interface of strategies -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strategy says when it applies and writes its decisions into the launch. Each lives in a file of
// its own here; Strategy.cpp lists them, special ones first. `general` applies to everything.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_STRATEGY_H
#define TEGULA_STRATEGIES_STRATEGY_H

#include "ir/tgl/Tgl.h"
#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"
#include <string>

namespace tegula {

/// Over the launches of a kernel so far.
struct ScheduleCounts {
  unsigned axesReordered = 0;
  unsigned tiled = 0;    // statements that tensor cores compute
  unsigned resident = 0; // loops that keep their weights
};

struct ScheduleRequest {
  TargetInfo target;
  std::string tensorTile; // PipelineOptions::tensorTile
  bool usesAsyncStores;   // a recurrence sends its states by st.async; else clusters synchronise at
                          // barriers
};

class Strategy {
public:
  virtual ~Strategy() = default;
  virtual llvm::StringRef name() const = 0;
  /// Whether it computes a statement of the launch. Where it does not, and somebody listens,
  /// remarks say why.
  virtual bool applies(tgl::LaunchOp launch, const ScheduleRequest &request) const = 0;
  /// Orders axes and sets `mapping`s and parameters; changes nothing but the order of computation.
  virtual void schedule(tgl::LaunchOp launch, const ScheduleRequest &request,
                        ScheduleCounts &counts) const = 0;
};

/// A strategy whose decision about a statement is one attribute. General code stands beside it, for
/// what the statement's own does not take at a launch, such as addresses.
class StatementStrategy : public Strategy {
public:
  StatementStrategy(llvm::StringRef strategy, llvm::StringRef attribute)
      : strategy(strategy), attribute(attribute) {}

  llvm::StringRef name() const final { return strategy; }
  bool applies(tgl::LaunchOp launch, const ScheduleRequest &request) const final;
  void schedule(tgl::LaunchOp launch, const ScheduleRequest &request,
                ScheduleCounts &counts) const final;
  /// Whether the strategy computes the scheduled statement.
  bool computes(tgl::ParallelOp op) const { return op->hasAttr(attribute); }

protected:
  template <typename Shape>
  static Matched<mlir::Attribute> attributeOf(Matched<Shape> shape, tgl::ParallelOp op) {
    if (!shape)
      return shape.mismatch();
    return shape->toAttribute(op.getContext());
  }
  /// The attribute of a statement that it computes.
  virtual Matched<mlir::Attribute> match(tgl::ParallelOp op,
                                         const ScheduleRequest &request) const = 0;
  /// The attribute once general code has ordered the axes; `count`: of statements that were counted
  /// before (counterIn).
  virtual Matched<mlir::Attribute> matchOrdered(tgl::ParallelOp op, const ScheduleRequest &request,
                                                unsigned) const {
    return match(op, request);
  }
  virtual unsigned &counterIn(ScheduleCounts &counts) const { return counts.tiled; }

private:
  llvm::StringRef strategy, attribute;
};

/// The strategy, but the general one, that computes the scheduled statement; null: general code.
const StatementStrategy *strategyOf(tgl::ParallelOp op);

/// All strategies in order of preference.
llvm::ArrayRef<const Strategy *> strategies();

/// Matrix products on tensor cores.
const StatementStrategy &contractionStrategy();
/// Tile loops with matrix products inside on tensor cores.
const StatementStrategy &tileLoopStrategy();
/// Loops over time with weights in registers.
const StatementStrategy &recurrenceStrategy();
/// Reductions over the columns of products on tensor cores.
const StatementStrategy &productReductionStrategy();
/// The strategy of last resort.
const Strategy &generalStrategy();

} // namespace tegula

#endif // TEGULA_STRATEGIES_STRATEGY_H
