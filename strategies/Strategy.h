//===- Strategy.h - The interface of strategies -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strategy is a way to compute the statements of a launch. It
//
//   match   finds the form that it computes in a statement, and chooses a shape for it
//   cost    tells what its model says of the match: the shape, the unit, the clocks
//   lower   makes device code of the match
//
// `lower` needs code generation, of which passes know nothing: it is in the strategy's other half,
// strategies/lower/StrategyLowering.h. Strategies.def lists both halves, special ones first.
//
// A statement is matched once. The match is kept in StatementMatches.h, where all phases after the
// schedule read it; the statement's attribute has the shape, as text.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_STRATEGY_H
#define TEGULA_STRATEGIES_STRATEGY_H

#include "ir/tgl/Tgl.h"
#include "passes/analysis/Matched.h"
#include "strategies/ScheduleBlock.h"
#include "target/TargetInfo.h"
#include <memory>
#include <string>

namespace tegula {
class Strategy;

/// Over the launches of a kernel so far.
struct ScheduleCounts {
  unsigned axesReordered = 0;
  unsigned tiled = 0;    // statements that tensor cores compute
  unsigned resident = 0; // loops that keep their weights
  unsigned scans = 0;    // in tiles
  unsigned sorts = 0;    // of long rows
  unsigned general = 0;  // statements
};

struct ScheduleRequest {
  TargetInfo target;
  llvm::StringRef tensorTile;               // PipelineOptions::tensorTile
  llvm::ArrayRef<std::string> without;      // strategies and switches that are off
  llvm::ArrayRef<ScheduleSetting> settings; // of the kernel
  unsigned tiledBefore = 0;                 // statements with tiles before this one

  bool isOff(llvm::StringRef name) const { return llvm::is_contained(without, name); }
};

/// The units that do the operations of a launch.
enum class LaunchUnit { Lanes32, Lanes64, TensorHalf, TensorSingle, TensorBytes };

/// What a strategy's model says of a match.
struct StatementCost {
  std::string tile;               ///< the shape, for people
  std::optional<LaunchUnit> unit; ///< nothing: lanes
  /// A shape that the statement can have, and the clocks that the model expects it to take.
  struct Choice {
    std::string name;
    double clocks;
  };
  std::vector<Choice> choices; ///< the fastest first; empty: none is chosen by name
};

/// What a strategy found in a scheduled statement, and the shape that it chose. Each strategy
/// derives its own, for which its other methods and its lowering cast.
class StatementMatch {
public:
  virtual ~StatementMatch() = default;
  const Strategy &strategy;
  const tgl::ParallelOp op;
  /// The shape, for the statement's attribute.
  virtual mlir::Attribute attribute() const = 0;

protected:
  StatementMatch(const Strategy &strategy, tgl::ParallelOp op) : strategy(strategy), op(op) {}
};

/// The match of a strategy whose plan of a statement is one type, and its shape another.
template <typename Plan, typename Shape, const Strategy &(*Of)()>
class PlanMatch final : public StatementMatch {
public:
  Plan plan;
  Shape shape;

  PlanMatch(tgl::ParallelOp op, Plan plan, Shape shape)
      : StatementMatch(Of(), op), plan(std::move(plan)), shape(std::move(shape)) {}

  mlir::Attribute attribute() const override {
    return shape.toAttribute(tgl::ParallelOp(op).getContext());
  }
  static bool classof(const StatementMatch *match) { return &match->strategy == &Of(); }

  /// With the shape that `choose` gives for the plan.
  static Matched<std::unique_ptr<StatementMatch>>
  make(tgl::ParallelOp op, Matched<Plan> plan,
       llvm::function_ref<Matched<Shape>(const Plan &)> choose) {
    if (!plan)
      return plan.mismatch();
    Matched<Shape> shape = choose(*plan);
    if (!shape)
      return shape.mismatch();
    return std::unique_ptr<StatementMatch>(
        std::make_unique<PlanMatch>(op, std::move(*plan), *shape));
  }
  /// With the shape of the statement's attribute.
  static Matched<std::unique_ptr<StatementMatch>> restore(tgl::ParallelOp op, Matched<Plan> plan,
                                                          std::optional<Shape> shape) {
    if (plan && !shape)
      return Mismatch{"the attribute describes no shape", "", op};
    return make(op, std::move(plan), [&](const Plan &) { return *shape; });
  }
};

class Strategy {
public:
  using Match = Matched<std::unique_ptr<StatementMatch>>;

  virtual ~Strategy() = default;
  /// As after --disable, and in `strategy` of a launch.
  virtual llvm::StringRef name() const = 0;
  /// The attribute of statements that it computes.
  virtual llvm::StringRef attributeName() const = 0;
  /// Whether --disable takes its name. The one that cannot be left out takes what is left.
  virtual bool isOptional() const { return true; }
  virtual bool isFor(const TargetInfo &target) const { return target.isGpu(); }
  /// Passes that serve this strategy alone, by flag.
  virtual llvm::SmallVector<llvm::StringRef> preparations(const TargetInfo &) const { return {}; }
  /// What --disable can take away of it, by name (ScheduleRequest::isOff).
  virtual llvm::SmallVector<llvm::StringRef> switches() const { return {}; }

  /// Of a statement whose axes are in the order of general code.
  virtual Match match(tgl::ParallelOp op, const ScheduleRequest &request) const = 0;
  /// Of a statement that has the attribute: of IR that was read as text.
  virtual Match restore(tgl::ParallelOp op) const = 0;
  virtual unsigned &counterIn(ScheduleCounts &counts) const { return counts.tiled; }

  virtual StatementCost cost(const StatementMatch &match) const = 0;

  /// The keywords of `schedule { }` that it takes, for people.
  virtual llvm::StringRef settings() const { return "nothing"; }
  /// What the match has of what the setting sets; nothing where that does not concern it.
  virtual std::optional<int64_t> valueIn(const ScheduleSetting &, const StatementMatch &,
                                         const TargetInfo &) const {
    return std::nullopt;
  }
  /// The nearest to a setting that the match does not have; nothing where the setting is not
  /// refused, as its sizes are not known.
  virtual std::optional<NearestShape> nearestTo(const ScheduleSetting &, const StatementMatch &,
                                                const TargetInfo &) const {
    return std::nullopt;
  }
};

/// All strategies in order of preference.
llvm::ArrayRef<const Strategy *> strategies();
/// Null: no strategy has the name.
const Strategy *strategyNamed(llvm::StringRef name);
/// The first strategy whose attribute the statement has; null: it is not scheduled.
const Strategy *strategyOf(tgl::ParallelOp op);

#define STRATEGY(function) const Strategy &function##Strategy();
#include "strategies/Strategies.def"

/// Orders axes for general code, and sets `mapping`s.
void orderAxes(tgl::LaunchOp launch, ScheduleCounts &counts);

} // namespace tegula

#endif // TEGULA_STRATEGIES_STRATEGY_H
