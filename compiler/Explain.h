//===- Explain.h - What each launch does, what bounds it, and what was not possible -----*- C++
//-*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `tegula compile --why`. Passes report as remarks which strategies do not compute a statement, and
// why (passes/analysis/Matched.h); collectMismatches keeps them while passes run, and
// explainLaunches puts them to the launches of the scheduled kernel, with what each launch moves
// and computes.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_EXPLAIN_H
#define TEGULA_COMPILER_EXPLAIN_H

#include "strategies/StatementMatches.h"
#include "strategies/expected/LaunchWork.h"
#include <optional>
#include <string>
#include <vector>

namespace tegula {

/// Why a strategy does not compute a launch.
struct StrategyMismatch {
  std::string strategy; ///< as after --disable
  std::string reason;   ///< lower case, no full stop
  std::string edit;     ///< what in the program would make it match; may be empty
  std::string place;    ///< file:line:column of what is in the way
  bool isOther = false; ///< the launch has nothing of what the strategy computes
};

llvm::StringRef toString(LaunchUnit unit); ///< "tensor cores, f16 or bf16"

struct LaunchExplanation {
  std::string name, place;
  std::string strategy; ///< as after --disable
  std::string tile;     ///< of the strategy, for people; empty where it has none
  LaunchUnit unit = LaunchUnit::Lanes32;
  /// Of all points, each tensor read and written once; nothing where sizes are not known.
  std::optional<double> bytes, operations;
  /// What each of its statements asks of the device; nothing where sizes are not known.
  std::optional<std::vector<LaunchWork>> work;
  std::vector<StrategyMismatch> mismatches;
};

/// A remark as passes report it.
struct CollectedRemark {
  mlir::Location location;
  std::string strategy, launch, reason, edit;
  bool isOther;
};

/// Hears the remarks of the passes that run in this context from now on. Once for a context.
std::shared_ptr<std::vector<CollectedRemark>> collectMismatches(mlir::MLIRContext &context);

/// `file:line:column` of the program; empty where the location tells none.
std::string placeOf(mlir::Location location);

/// The launches of a scheduled kernel, in order.
std::vector<LaunchExplanation> explainLaunches(tgl::KernelOp kernel, StatementMatches &matches,
                                               llvm::ArrayRef<CollectedRemark> remarks);

} // namespace tegula

#endif // TEGULA_COMPILER_EXPLAIN_H
