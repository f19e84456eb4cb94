//===- OpenModule.cpp - Text to a module, with advice on its mistakes -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/OpenModule.h"

#include "frontend/suggest/Rewrite.h"

std::unique_ptr<tegula::Module> tegula::openModule(SourceManager &sources, uint32_t file,
                                                   Diagnostics &diagnostics) {
  size_t first = diagnostics.all().size();
  auto module = std::make_unique<Module>(sources, file, diagnostics);
  suggestRewrites(diagnostics, first, file, *module);
  return module;
}
