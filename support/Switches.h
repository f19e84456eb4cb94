//===- Switches.h - Names that --disable takes beside those of passes --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_SWITCHES_H
#define TEGULA_SUPPORT_SWITCHES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tegula {

/// A row of Switches.def.
struct Switch {
  bool isStrategy;
  llvm::StringRef name;     // as written after --disable=
  llvm::StringRef sentence; // what it does where it is not left out
};

/// Names that passes and strategies ask for.
inline constexpr llvm::StringLiteral shortFunctions = "short-functions";

/// Strategies in order of preference, then mechanisms by name.
llvm::ArrayRef<Switch> switches();

/// The name of a pass, strategy or switch today: `name`, or what replaced it.
llvm::StringRef currentName(llvm::StringRef name);

} // namespace tegula

#endif // TEGULA_SUPPORT_SWITCHES_H
