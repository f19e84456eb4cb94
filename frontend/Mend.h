//===- Mend.h - Fixes made until there are none to make ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_MEND_H
#define TEGULA_FRONTEND_MEND_H

#include "frontend/Diagnostics.h"

namespace tegula {

/// Checks a text and shows what was found to `visit`.
using CheckText =
    llvm::function_ref<void(llvm::StringRef text, llvm::function_ref<void(const Diagnostics &, uint32_t file)> visit)>;

struct Mended {
  std::string text;
  /// What was done, `3:11: fixed E0111: write '='`; places are those of the round that did it.
  std::vector<std::string> done;
};

/// Makes the safe fixes of a text, with `maybe` the first suggestions too, and checks again until there
/// are none. Fixes that undo each other, or that ask for the same again without an end, are not made, so
/// that mending the result changes nothing.
Mended mend(llvm::StringRef text, bool maybe, CheckText check);

} // namespace tegula

#endif // TEGULA_FRONTEND_MEND_H
