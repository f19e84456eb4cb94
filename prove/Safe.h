//===- Safe.h - A record of why accesses stay inside --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each access of a kernel's IR with the reason why it stays inside its tensor for all sizes that
// the guards admit: a proof (Witness.h), a guard of the launch, a fill, or a check while it runs.
// docs/prove.md says what the record holds; test/prove/replay_safe.py repeats its proofs.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_SAFE_H
#define TEGULA_PROVE_SAFE_H

#include "ir/tgl/Tgl.h"
#include "llvm/Support/JSON.h"

namespace tegula::prove {

/// What the record says, counted.
struct SafeCounts {
  unsigned proved = 0, filled = 0, runtime = 0, open = 0; // accesses
  unsigned guards = 0;
  std::vector<std::string> openPlaces;
};

/// The record of the module's entry kernel and the kernels that it calls.
llvm::json::Object recordSafety(tgl::KernelOp entry, SafeCounts &counts);

/// The counts in words, for a person.
std::string toText(const SafeCounts &counts);

} // namespace tegula::prove

#endif // TEGULA_PROVE_SAFE_H
