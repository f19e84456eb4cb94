//===- Phases.cpp - The phases of a compilation, named once -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Phases.h"

using namespace tegula;

static constexpr PhaseInfo table[] = {
    {Phase::Parse, "parse", "text becomes a syntax tree"},
    {Phase::Check, "check", "names, sizes, types and bounds of one kernel are settled"},
    {Phase::Emit, "emit", "the checked kernel becomes tgl IR, one to one"},
    {Phase::Simplify, "simplify",
     "calls are inlined, accesses made canonical, dead and repeated equations removed"},
    {Phase::Fuse, "fuse",
     "each value is computed once per point of its own axes; statements are grouped into launches"},
    {Phase::Schedule, "schedule", "each launch gets a strategy, sizes and an order of its axes"},
    {Phase::Lower, "lower",
     "the IR becomes LLVM IR: a host function, or device functions and a plan of launches"},
    {Phase::EmitPtx, "emit-ptx", "device functions become PTX"},
    {Phase::Assemble, "assemble", "code becomes a cubin, or host code in memory"},
};

llvm::ArrayRef<PhaseInfo> tegula::phases() { return table; }

llvm::StringRef tegula::toString(Phase phase) { return table[static_cast<unsigned>(phase)].name; }

std::optional<Phase> tegula::parsePhase(llvm::StringRef name) {
  for (const PhaseInfo &info : table)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}
