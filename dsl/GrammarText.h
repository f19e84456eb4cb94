//===- GrammarText.h - The grammar's text --------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DSL_GRAMMARTEXT_H
#define TEGULA_DSL_GRAMMARTEXT_H

#include "llvm/ADT/StringRef.h"

namespace tegula {

/// Tegula.g4 as it was when the compiler was built.
llvm::StringRef grammarText();

} // namespace tegula

#endif // TEGULA_DSL_GRAMMARTEXT_H
