//===- Inventions.h - Names and forms of other languages ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_DIAGNOSTICS_INVENTIONS_H
#define TEGULA_FRONTEND_DIAGNOSTICS_INVENTIONS_H

#include "frontend/diagnostics/Diagnostics.h"
#include <string>

namespace tegula {

/// An entry of dsl/Inventions.def.
struct Invention {
  enum Kind { Type, Function, Keyword, Value, Member, Statement } kind;
  llvm::StringRef name;
  llvm::StringRef replacement; // empty: no single name means the same
  llvm::StringRef rewrite;
  /// "write 'silu'": what the message says after the name.
  std::string advice() const;
  /// What it says goes without saying here: it is left out.
  bool isVoid() const { return rewrite.contains("leave it out"); }
};

llvm::ArrayRef<Invention> allInventions();

/// The entry for a name that stands at such a place, or null.
const Invention *findInvention(Invention::Kind kind, llvm::StringRef name);

/// Reports E0206 for a known invention at `span` (whose text is the name), with the rewrite and,
/// where one name replaces it, the edit. False: not a known invention.
bool reportInvention(Diagnostics &diagnostics, Invention::Kind kind, llvm::StringRef name,
                     Span span);

} // namespace tegula

#endif // TEGULA_FRONTEND_DIAGNOSTICS_INVENTIONS_H
