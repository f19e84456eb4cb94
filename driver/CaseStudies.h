//===- CaseStudies.h - Trials with each case of a file ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is tried may hang or fall, so a child does it: it says which trial begins and how it ended,
// and when it dies the next one goes on behind the trial that it died of.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_CASESTUDIES_H
#define TEGULA_DRIVER_CASESTUDIES_H

#include "bench/Study.h"
#include "driver/ExitCode.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"

namespace tegula {

/// What a command does with the cases of its files.
class CaseStudies {
public:
  using Send = llvm::function_ref<void(llvm::json::Object)>;
  ExitCode exit = ExitSuccess;

  virtual ~CaseStudies() = default;

  /// Runs in a child: all trials that `add` has not been told of. Sends `begin` before a trial and
  /// `trialName()` after it, as events with a field `event`, and others as it likes but `case`,
  /// `done`, `end` and `error`. False where the rest needs another process.
  virtual llvm::Expected<bool> runTrials(bench::Study &study, const bench::StudyCase &one,
                                         Send send) = 0;
  virtual llvm::StringRef trialName() const = 0;

  /// Forgets the case before: the children of the next one are copies of this process.
  virtual void forgetCase() = 0;
  virtual void beginCase(llvm::StringRef path, llvm::StringRef text) = 0;
  /// What a child sent; a trial that it died of is its `begin` with `outcome` = `failed` and a
  /// `reason`.
  virtual void add(llvm::json::Object event) = 0;
  virtual void endCase() = 0;

  /// All cases of the files. `deadline`: seconds of silence after which a child is killed.
  void run(llvm::ArrayRef<std::string> paths, const bench::StudyOptions &options, double deadline);

private:
  bool runCase(const std::string &path, const bench::StudyOptions &options, size_t index,
               double deadline);
  void work(const std::string &path, const bench::StudyOptions &options, size_t index, Send send);
  void fail(ExitCode code, llvm::StringRef path, llvm::StringRef message);
};

} // namespace tegula

#endif // TEGULA_DRIVER_CASESTUDIES_H
