//===- EmitDevice.cpp - Device code of a scheduled kernel -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the kernel's statements: each parallel one outside of others becomes a step of the plan, of
// which its strategy makes the device functions (strategies/lower/StrategyLowering.h).
//
//===----------------------------------------------------------------------===//
#include "compiler/EmitDevice.h"

#include "codegen/async/Timeline.h"
#include "codegen/common/AccessShape.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tile/Tile.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <optional>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {

/// Walks the kernel's statements, makes a device function of each parallel one and a step for it.
class PlanBuilder {
public:
  PlanBuilder(tgl::KernelOp kernel, Module &module, const EmitterOptions &options,
              StatementMatches &matches)
      : kernel(kernel), matches(matches),
        lowering{module, options, {}, ("tegula_" + kernel.getSymName() + "_").str(), 0, ""} {}

  Expected<DeviceCode> run() {
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments())) {
      if (isa<tgl::TglTensorType>(argument.getType())) {
        PlanBuffer buffer;
        buffer.name = kernel.getArgName(index).str();
        buffer.argument = code.plan.buffers.size();
        addBuffer(argument, buffer);
      } else {
        scalarIndex[argument] = scalarIndex.size();
      }
    }
    kernel.walk([&](tgl::TempOp temp) {
      if (tgl::isPrivate(temp))
        return;
      PlanBuffer buffer;
      buffer.name = temp.getName().str();
      buffer.bytes = tensorBytes(temp.getTensor().getType(), temporaryAlignment);
      addBuffer(temp.getTensor(), buffer);
    });
    for (mlir::Attribute size : kernel.getSizeAttrs())
      symbols.push_back(cast<tgl::SizeAttr>(size).getName().str());
    code.plan.steps = stepsOf(kernel.getBody().front());
    if (!lowering.failure.empty())
      return createStringError(inconvertibleErrorCode(), lowering.failure);
    return std::move(code);
  }

private:
  tgl::KernelOp kernel;
  StatementMatches &matches;
  KernelLowering lowering;
  DeviceCode &code = lowering.code;
  DenseMap<mlir::Value, unsigned> bufferIndex, scalarIndex;
  SmallVector<mlir::Value> loopVars; // of the host loops around the current statement
  std::vector<std::string> symbols;

  void addBuffer(mlir::Value tensor, const PlanBuffer &buffer) {
    bufferIndex[tensor] = code.plan.buffers.size();
    code.plan.buffers.push_back(buffer);
  }

  /// An expression over sizes and host loop variables, in the plan's own dims; nothing where it is
  /// more.
  std::optional<IndexExpr> onHost(const ValueExpr &expr) {
    bool known = true;
    IndexExpr result = expr.expr().substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol())
        return std::nullopt;
      auto *found = llvm::find(loopVars, expr.operands()[var.position()]);
      known &= found != loopVars.end();
      return IndexExpr::dim(found - loopVars.begin());
    });
    return known ? std::optional(result) : std::nullopt;
  }

  std::vector<PlanStep> stepsOf(mlir::Block &block) {
    std::vector<PlanStep> steps;
    auto append = [&](std::vector<PlanStep> more) { llvm::move(more, std::back_inserter(steps)); };
    for (mlir::Operation &op : block) {
      if (auto launch = dyn_cast<tgl::LaunchOp>(op))
        append(stepsOf(launch.getBody().front()));
      else if (auto loop = dyn_cast<tgl::ForOp>(op))
        steps.push_back(loopStep(loop));
      else if (auto parallel = dyn_cast<tgl::ParallelOp>(op))
        steps.push_back(launchStep(parallel));
      else if (auto tiled = dyn_cast<tile::KernelOp>(op))
        append(stepsOf(tiled.getOtherwise().front()));
      else if (op.getNumRegions() || isa<tgl::WriteOp>(op))
        lowering.fail(&op, op.getName().getStringRef() + " outside of a parallel statement");
      // Temporaries are buffers; scalars are computed anew where they are used.
    }
    return steps;
  }

  PlanStep loopStep(tgl::ForOp op) {
    PlanStep step;
    step.kind = PlanStep::Loop;
    std::optional<IndexExpr> low = onHost(op.getLowExpr()), high = onHost(op.getHighExpr());
    if (!low || !high || !op.getInits().empty()) {
      lowering.fail(op, "a host loop with bounds or values from data");
      return step;
    }
    step.low = *low;
    step.high = *high;
    step.reverse = op.getReverse();
    loopVars.push_back(op.getLoopVar());
    step.body = stepsOf(op.getBody().front());
    loopVars.pop_back();
    return step;
  }

  /// All that the statement uses: scalars computed outside are repeated in the function, down to
  /// kernel arguments, loop variables and constants.
  void collect(mlir::Value value, mlir::Region &inside, SetVector<mlir::Value> &leaves,
               SetVector<mlir::Operation *> &prologue) {
    if (inside.isAncestor(value.getParentRegion()))
      return;
    mlir::Operation *definition = value.getDefiningOp();
    if (!definition || isa<tgl::TempOp>(definition)) {
      leaves.insert(value);
      return;
    }
    for (mlir::Value operand : definition->getOperands())
      collect(operand, inside, leaves, prologue);
    if (definition->getNumRegions())
      lowering.fail(definition,
                    "a value of a statement with a region is not available on the device");
    prologue.insert(definition);
  }

  /// What a function for the statement is given; `arguments`: the same for the plan.
  void inputsOf(tgl::ParallelOp op, DeviceEmitter::Inputs &inputs,
                std::vector<PlanArgument> &arguments) {
    SetVector<mlir::Value> leaves;
    SetVector<mlir::Operation *> prologue;
    auto visit = [&](mlir::Operation *inner) {
      for (mlir::Value operand : inner->getOperands())
        collect(operand, op.getBody(), leaves, prologue);
    };
    visit(op);
    op.getBody().walk(visit);

    inputs.sizes.assign(symbols.begin(), symbols.end());
    inputs.prologue.assign(prologue.begin(), prologue.end());
    for (mlir::Value leaf : leaves) {
      if (isa<tgl::TglTensorType>(leaf.getType()))
        inputs.tensors.push_back(leaf);
      else if (scalarIndex.contains(leaf))
        inputs.scalars.push_back(leaf);
      else
        inputs.loopVars.push_back(leaf);
    }
    // No statement uses the tensor that takes marks in time.
    for (auto [index, argument] : enumerate(kernel.getBody().getArguments()))
      if (kernel.getArgName(index) == async::Timeline::tensorName)
        inputs.tensors.push_back(argument);
    auto add = [&](PlanArgument::Kind kind, unsigned index, IndexExpr size = 0) {
      PlanArgument argument;
      argument.kind = kind;
      argument.index = index;
      argument.size = std::move(size);
      arguments.push_back(argument);
    };
    for (mlir::Value tensor : inputs.tensors)
      add(PlanArgument::Buffer, bufferIndex.lookup(tensor));
    for (mlir::Value scalar : inputs.scalars)
      add(PlanArgument::Scalar, scalarIndex.lookup(scalar));
    for (mlir::Value loopVar : inputs.loopVars) {
      auto *found = llvm::find(loopVars, loopVar);
      if (found == loopVars.end())
        lowering.fail(op, "a value that is neither an argument nor a host loop's variable");
      add(PlanArgument::Size, 0, IndexExpr::dim(found - loopVars.begin()));
    }
    for (StringRef size : inputs.sizes)
      add(PlanArgument::Size, 0, IndexExpr::symbol(size));
    add(PlanArgument::Errors, 0);
    add(PlanArgument::Workspace, 0);
  }

  PlanStep launchStep(tgl::ParallelOp op) {
    Matched<const StatementMatch *> match = matches.of(op);
    if (!match)
      lowering.fail(op, "the schedule has a strategy for a statement of which " +
                            match.mismatch().reason);
    mlir::OwningOpRef<tgl::ParallelOp> ordered = orderedForm(op);
    return launchStep(op, ordered ? *ordered : op, match ? *match : nullptr);
  }

  /// `ordered`: the same statement, for general code.
  PlanStep launchStep(tgl::ParallelOp op, tgl::ParallelOp ordered, const StatementMatch *match) {
    StatementLowering statement{lowering, op, ordered, "", {}, {}, {}, {}};
    inputsOf(ordered, statement.inputs, statement.step.arguments);
    // Axes whose extents the host can tell are numbered.
    auto axes = cast<tgl::AxesOp>(ordered.getOperation());
    PlanStep &step = statement.step;
    step.points = 1;
    for (unsigned axis = 0; axis < ordered.getAxes().size(); ++axis) {
      tgl::AxisRange range = getAxisRange(axes, axis);
      std::optional<IndexExpr> low = onHost(range.lo), high = onHost(range.hi);
      if (!low || !high)
        continue;
      statement.outer.push_back(axis);
      step.points = step.points * IndexExpr::max(*high - *low, 0);
    }
    statement.name = lowering.newName();
    lower(statement, match);
    return std::move(statement.step);
  }

  /// By its strategy, by general code, or by both.
  void lower(StatementLowering &statement, const StatementMatch *match) {
    using Coverage = StrategyLowering::Coverage;
    const StrategyLowering *own = match ? &loweringOf(match->strategy) : nullptr;
    Coverage covered = own ? own->coverage(*match, lowering.options) : Coverage::None;
    if (covered != Coverage::Whole)
      lowerGenerally(statement);
    if (covered != Coverage::None)
      own->lower(statement, *match);
  }
};

} // namespace

std::optional<Refusal> tegula::whyRefused(tgl::KernelOp kernel, const ScheduleSetting &setting,
                                          const TargetInfo &target, StatementMatches &matches,
                                          ArrayRef<ClusterAnswer> answers) {
  if (!isOfRowClusters(kernel, setting, target, matches))
    return std::nullopt;
  if (answers.empty())
    return refuseEverywhere(kernel, setting);
  const ClusterAnswer *refused =
      find_if(answers, [](const ClusterAnswer &one) { return !one.holds; });
  if (refused == answers.end())
    return std::nullopt;
  return Refusal{"no row that this kernel keeps can have '" + setting.text() + "'",
                 "the nearest that fits is " + refused->nearest};
}

Expected<DeviceCode> tegula::emitDevice(tgl::KernelOp kernel, Module &module,
                                        const EmitterOptions &options, StatementMatches &matches) {
  return PlanBuilder(kernel, module, options, matches).run();
}
