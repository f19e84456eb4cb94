//===- PassTrace.h - The IR after each pass that changed it -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PASSTRACE_H
#define TEGULA_PASSES_PASSTRACE_H

#include "mlir/Pass/PassInstrumentation.h"
#include <memory>
#include <string>
#include <vector>

namespace tegula {

/// What a pass manager did to a module, as text.
struct PassTrace {
  struct Change {
    std::string pass;     ///< its flag, such as `tgl-fuse`
    std::string sentence; ///< what it does
    std::string after;    ///< the module when it had run
  };

  std::string initial;         ///< the module before the first pass
  std::vector<Change> changes; ///< in the order of their runs
  unsigned runs = 0;           ///< of passes, those that changed nothing included
};

/// Fills `trace` while a pass manager runs. Verifier passes between phases are left out: they
/// change nothing.
std::unique_ptr<mlir::PassInstrumentation> tracePasses(std::shared_ptr<PassTrace> trace);

} // namespace tegula

#endif // TEGULA_PASSES_PASSTRACE_H
