//===- PassRuns.h - Which passes run, and which ran -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A compilation asks before each run of a pass that can be left out: ours by flag (`tgl-fuse`),
// LLVM's by the names of its own tools (`licm`, `gvn`). A run is one pass over the kernel, a
// function or a loop. What is left out is chosen by name, or by the number of the run: `tegula
// bench --ablate` does the one, `tegula bisect` the other.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_PASSRUNS_H
#define TEGULA_SUPPORT_PASSRUNS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tegula {

/// For one compilation at a time; its threads may ask at once.
class PassRuns {
public:
  struct Run {
    std::string pass;
    std::string where; // the function, or empty for the whole kernel
  };
  static constexpr uint64_t all = ~uint64_t(0);

  /// `disabled`: passes left out, by name. Of the others the first `most` runs are made, and those
  /// of `needed` passes, which are not counted. `enabled`: spare passes that are to run.
  explicit PassRuns(const std::vector<std::string> &disabled = {}, uint64_t most = all,
                    const std::vector<std::string> &needed = {},
                    const std::vector<std::string> &enabled = {});

  /// Called when a compilation begins: forgets what the last one did.
  void begin();
  bool shouldRun(llvm::StringRef pass, llvm::StringRef where);
  /// Whether a spare pass, one that compilations leave out by themselves, is to be there. Its runs
  /// ask as all others.
  bool shouldAdd(llvm::StringRef pass);

  /// The runs that were made and counted, in order.
  std::vector<Run> runs() const;
  /// Every pass that was asked for, also those left out, in order of the first time.
  std::vector<std::string> passes() const;
  /// The spare passes that could have been there.
  std::vector<std::string> spares() const;
  /// Whether some run was left out for its number.
  bool hasMore() const;

private:
  llvm::StringSet<> disabled, needed, enabled, seen;
  uint64_t most;
  std::vector<Run> made;
  std::vector<std::string> asked, spare;
  bool leftOut = false;
  mutable std::mutex mutex;
};

} // namespace tegula

#endif // TEGULA_SUPPORT_PASSRUNS_H
