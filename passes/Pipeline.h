//===- Pipeline.h - The passes in order -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PIPELINE_H
#define TEGULA_PASSES_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "passes/PassTrace.h"
#include "passes/Phases.h"
#include "support/Counters.h"
#include "support/PassRuns.h"
#include "target/TargetInfo.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tegula {
class StatementMatches;

struct PipelineOptions {
  TargetInfo target = TargetInfo::host();
  /// Sizes that are known, by symbol: the code is for these alone.
  std::map<std::string, int64_t> sizes;
  /// Passes left out, by flag (`tgl-fuse`), strategies of schedules and passes of LLVM by name
  /// (`contraction`, `licm`). A pass that later stages need is missed by the verifier of its phase,
  /// which says so.
  std::vector<std::string> disabled;
  /// Spare passes (PassRuns::shouldAdd) that are to run, by name: `slsr`.
  std::vector<std::string> enabled;
  /// On GPUs: the tile of matrix products on tensor cores (tensorTileNames), where a statement can
  /// have it; empty: the one that the model of cost expects to be fastest. A list, with commas,
  /// goes by statement.
  std::string tensorTile;
  /// Where it is given, decides too which of the passes that can be left out run, and notes them.
  std::shared_ptr<PassRuns> runs;
  /// Passes after which the IR is printed, by flag; `all` for every pass.
  std::vector<std::string> printAfter;
  /// Where the text of the IR after each pass that changed it goes, if anywhere.
  std::shared_ptr<PassTrace> trace;
  /// Run the verifier passes that stand between phases.
  bool checkInvariants = true;
  /// Where passes count what they do, if anywhere.
  std::shared_ptr<Counters> counters;
  /// Where the schedule keeps its matches, and later passes read them; null: each pass for itself.
  std::shared_ptr<StatementMatches> matches;
  /// Print the times of all passes when the pass manager has run.
  bool timing = false;
};

/// Adds the passes of the phases simplify, fuse and schedule, up to `stopAfter`, to a pass manager
/// for modules.
void buildPipeline(mlir::OpPassManager &manager, const PipelineOptions &options,
                   Phase stopAfter = Phase::Schedule);

/// Turns on what `options` ask to be printed or kept (printAfter, timing, trace); call before
/// running.
void instrument(mlir::PassManager &manager, const PipelineOptions &options,
                llvm::raw_ostream &stream = llvm::errs());

/// A pass of the pipeline: once, where it runs first.
struct PipelinePass {
  std::string name;     // as `disabled` and `printAfter` take it
  std::string sentence; // what it does
  Phase phase;
  bool onCpu, onGpu;
};

/// All passes in pipeline order.
std::vector<PipelinePass> pipelinePasses();

/// Registers every pass and the pipeline `tgl-pipeline` with command lines (tegula-opt). Passes
/// made from a command line count into `counters`.
void registerTegulaPasses(const std::shared_ptr<Counters> &counters = nullptr);

} // namespace tegula

#endif // TEGULA_PASSES_PIPELINE_H
