//===- StrategyLowering.h - How strategies make device code -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The other half of a strategy (strategies/Strategy.h), in code generation: `lower` makes device
// functions of a match, and lists their launches in the statement's step of the plan.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_LOWER_STRATEGYLOWERING_H
#define TEGULA_STRATEGIES_LOWER_STRATEGYLOWERING_H

#include "codegen/simt/DeviceEmitter.h"
#include "strategies/Strategy.h"

namespace tegula {

/// The device code of a kernel.
struct DeviceCode {
  Plan plan;
  std::vector<ErrorSite> sites;
  std::vector<TileLayout> layouts;     // of functions in which a block computes a tile
  std::vector<RowLayout> rows;         // of those that keep a row in shared memory
  std::vector<ClusterAnswer> clusters; // to the kernel's schedule
};

/// Code generation for a kernel: where functions go, and the first failure.
struct KernelLowering {
  llvm::Module &module;
  const EmitterOptions &options;
  DeviceCode code;
  std::string prefix; ///< of functions' names
  unsigned numFunctions = 0;
  std::string failure;

  std::string newName() { return prefix + std::to_string(numFunctions++); }
  void fail(mlir::Operation *op, const llvm::Twine &why);
  DeviceEmitter newEmitter() { return DeviceEmitter(module, options, code.sites); }
  /// Keeps the failure of an emitter that has finished.
  void finish(const Emitter &emitter) {
    if (failure.empty())
      failure = emitter.error();
  }
};

/// A statement whose code is made.
struct StatementLowering {
  KernelLowering &kernel;
  tgl::ParallelOp op;      ///< as it was matched
  tgl::ParallelOp ordered; ///< for general code: where parts are added up, in one order
  std::string name;        ///< with which the names of its functions begin
  DeviceEmitter::Inputs inputs;
  llvm::SmallVector<unsigned> outer; ///< axes whose extents the host can tell
  PlanStep step;
  DeviceShape team; ///< of general code: who does a point

  const EmitterOptions &options() const { return kernel.options; }
  /// Positions among the arguments of tensors whose addresses must be multiples of 16.
  void align(llvm::ArrayRef<mlir::Value> tensors);
  /// A function of `launch` that `body` fills, given the workspace.
  void emitTileLaunch(PlanTileLaunch launch,
                      llvm::function_ref<void(DeviceEmitter &, llvm::Value *workspace)> body);
};

class StrategyLowering {
public:
  virtual ~StrategyLowering() = default;

  /// What the device computes of a match by the strategy's own code: nothing, so that general code
  /// does it all; what general code stands beside, for addresses and numbers for which its own is
  /// not; or all of it.
  enum class Coverage { None, WithGeneral, Whole };
  virtual Coverage coverage(const StatementMatch &match, const EmitterOptions &options) const = 0;
  /// Makes the functions, after those of general code where that stands beside.
  virtual void lower(StatementLowering &statement, const StatementMatch &match) const = 0;
};

/// The statement in the form that general code is made of, beside it; null: as it is.
mlir::OwningOpRef<tgl::ParallelOp> orderedForm(tgl::ParallelOp op);
/// Makes the functions of general code, the last strategy's.
void lowerGenerally(StatementLowering &statement);

#define STRATEGY(function) const StrategyLowering &function##Lowering();
#include "strategies/Strategies.def"

const StrategyLowering &loweringOf(const Strategy &strategy);

} // namespace tegula

#endif // TEGULA_STRATEGIES_LOWER_STRATEGYLOWERING_H
