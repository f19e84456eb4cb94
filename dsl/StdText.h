//===- StdText.h - The standard library's text -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DSL_STDTEXT_H
#define TEGULA_DSL_STDTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tegula {

struct StdFile {
  llvm::StringRef name, text; // "std/norm.tgl"
};

/// The files of dsl/std in order of name, as they were when the compiler was built.
llvm::ArrayRef<StdFile> stdFiles();

} // namespace tegula

#endif // TEGULA_DSL_STDTEXT_H
