//===- FixUntilStable.h - Fixes applied until none is left -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_DIAGNOSTICS_FIXUNTILSTABLE_H
#define TEGULA_FRONTEND_DIAGNOSTICS_FIXUNTILSTABLE_H

#include "frontend/diagnostics/Diagnostics.h"

namespace tegula {

/// Checks a text and shows what was found to `visit`.
using CheckText = llvm::function_ref<void(
    llvm::StringRef text, llvm::function_ref<void(const Diagnostics &, uint32_t file)> visit)>;

struct FixedText {
  std::string text;
  /// The fixes that were applied, `3:11: fixed E0111: write '='`, with positions in the text of
  /// their round.
  std::vector<std::string> done;
};

/// Applies the safe fixes of a text, with `maybe` the first suggestions too, and checks the result
/// again until it has none. Leaves out fixes that undo each other or grow without an end, so that a
/// second call changes nothing.
FixedText fixUntilStable(llvm::StringRef text, bool maybe, CheckText check);

} // namespace tegula

#endif // TEGULA_FRONTEND_DIAGNOSTICS_FIXUNTILSTABLE_H
