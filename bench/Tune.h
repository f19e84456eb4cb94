//===- Tune.h - The schedule that is fastest when timed ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `tegula tune` does for one case. Each alternative changes one thing of the default schedule
// and is timed against it in turns; the changes that are faster beyond doubt are then tried
// together, and what is chosen is timed once more: of many alternatives the one that looks best
// partly is so by luck. In the order of what the model of cost expects; what can be wrong with an
// alternative (no code, spills, another result) takes it out.
//
// Events go to `send`, one JSON object each:
//   base    seconds, spillBytes                      the default schedule
//   begin   index, choice, phase                     what comes next: `alone`, `together`, `again`
//   tried   index, choice, phase, outcome, reason; ratio, lower, upper, seconds   of the default's
//   time tuned   choice, ratio, lower, upper; program, sizes, target, device    nothing comes after
//   it
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_TUNE_H
#define TEGULA_BENCH_TUNE_H

#include "bench/Study.h"
#include "compiler/ScheduleChoice.h"
#include "llvm/Support/JSON.h"

namespace tegula::bench {

/// One configuration, timed.
struct Tried {
  ScheduleChoice choice;
  std::string outcome;                    // timed, same, dropped, wrong, failed
  double ratio = 1, lower = 1, upper = 1; // of its time to the default's
  bool isFaster() const { return outcome == "timed" && upper < 1; }
};

/// What the schedule could have been otherwise, the most promising first, each with one change.
std::vector<ScheduleChoice> alternatives(const CompiledKernel &code, const CudaDeviceInfo &device,
                                         unsigned most);

/// The changes worth trying together: of those that are faster the best for each thing that they
/// change.
ScheduleChoice combine(llvm::ArrayRef<Tried> tried);

/// Why code is not worth timing: spills that the default does not have, products that ptxas runs
/// one after the other. Empty: it is.
std::string whyDropped(const CodeFacts &facts, const CodeFacts &base);

/// Goes on behind what has been `tried`. False where the device is lost.
llvm::Expected<bool> tune(Study &study, const StudyCase &one, unsigned most,
                          std::vector<Tried> tried,
                          llvm::function_ref<void(llvm::json::Object)> send);

} // namespace tegula::bench

#endif // TEGULA_BENCH_TUNE_H
