//===- PromptText.h - The page that teaches, and its examples -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DSL_PROMPT_PROMPTTEXT_H
#define TEGULA_DSL_PROMPT_PROMPTTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tegula {

/// dsl/prompt/page.md as it was when the compiler was built.
llvm::StringRef promptPage();

/// A PyTorch module and the program for it (dsl/prompt/examples), judged like any other task by a
/// test.
struct PromptExample {
  llvm::StringRef name, task, program;
};

/// In order of name.
llvm::ArrayRef<PromptExample> promptExamples();

} // namespace tegula

#endif // TEGULA_DSL_PROMPT_PROMPTTEXT_H
