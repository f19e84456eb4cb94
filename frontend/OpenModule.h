//===- OpenModule.h - Text to a module, with advice on its mistakes --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_OPENMODULE_H
#define TEGULA_FRONTEND_OPENMODULE_H

#include "frontend/parse/Module.h"

namespace tegula {

/// Parses `file`. Errors are reported with what the wrong statement would say in this language; the
/// module holds what could be understood.
std::unique_ptr<Module> openModule(SourceManager &sources, uint32_t file, Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_FRONTEND_OPENMODULE_H
