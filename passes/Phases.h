//===- Phases.h - The phases of a compilation, named once ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--stop-after=PHASE`, the documentation and the tests take names and sentences from here.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PHASES_H
#define TEGULA_PASSES_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace tegula {

enum class Phase {
  Parse,    // text to syntax tree
  Check,    // names, sizes, types and bounds of one kernel; what sizes decide becomes a guard
  Emit,     // checked kernel to tgl IR, one to one; called kernels are private kernels
  Simplify, // calls inlined, accesses canonical, dead and repeated equations gone
  Fuse,     // each value computed once per point of its own axes; statements grouped into launches
  Schedule, // a strategy, sizes and an order of axes for each launch
  Lower,    // LLVM IR: a host function, or device functions and a plan of launches
  EmitPtx,  // PTX text
  Assemble, // machine code: a cubin, or host code in memory
};

struct PhaseInfo {
  Phase phase;
  llvm::StringRef name;     // as written after --stop-after=
  llvm::StringRef sentence; // what the phase does
};

/// All phases in order.
llvm::ArrayRef<PhaseInfo> phases();
llvm::StringRef toString(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);

} // namespace tegula

#endif // TEGULA_PASSES_PHASES_H
