//===- Harness.h - Kernels held against their references --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the cases of a reference and reports each as one JSON object on a line. It is meant to run
// in a child process (Child.h): the parent counts the cases, prints them, and starts a new child
// behind the case in which one died.
//
// Events, by their "event":
//   begin  index, kernel, case     a case has begun
//   launch text                    of the case, on a device: it has been queued; empty: it is done
//   case   index, kernel, case, passed, reason, outputs, timing...   it has ended; of a gradient
//          the kernel is NAME_grad, and `backwardOf` is NAME
//   error  exit, message           nothing more comes; `exit` is the exit code it calls for
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_HARNESS_H
#define TEGULA_BENCH_HARNESS_H

#include "bench/Timing.h"
#include "bench/reference/RefFile.h"
#include "bench/report/Expectations.h"
#include "frontend/check/Signature.h"
#include "frontend/parse/Module.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace tegula::bench {

struct HarnessOptions {
  std::string kernel;    // empty: those that the reference has a function for
  std::string reference; // path; empty: beside the program
  Settings settings;     // from the command line; with sizes in it, the one case to run
  std::string target = "cpu";
  bool checkOnly = false;  // leave timed cases out
  bool gradient = false;   // the kernels' gradients beside autograd's
  bool checked = false;    // verify every access while running
  unsigned graphCalls = 0; // timed calls are captured in graphs of so many (devices); 0: none are
  bool dependentLaunches = false; // see CompileOptions
  std::string tensorTile;         // see PipelineOptions
  bool tuned = false;             // see CompileOptions
  std::string precision;          // see InstanceOptions
  unsigned threads = 0;           // 0: as many as the process may use
  uint64_t seed = 0;
  TimingLimits limits;
  /// Times of which none may be slower than before; with `takesLock`, new ones are taken instead.
  std::vector<LockedTime> lock;
  bool takesLock = false;
  bool takesTimeline = false; // of a run of the first case, on a device
};

/// Sends the events of all cases from number `firstCase` on. `module` is the program at `path`.
/// False where the device is lost to this process: a case, which has no event of its own then, did
/// what the device forbids (event `lost` with the `reason`), and those after it need another
/// process.
bool runCases(const std::string &path, const Module &module, Diagnostics &diagnostics,
              const HarnessOptions &options, unsigned firstCase,
              llvm::function_ref<void(llvm::json::Object)> send);

} // namespace tegula::bench

#endif // TEGULA_BENCH_HARNESS_H
