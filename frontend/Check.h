//===- Check.h - Names, sizes, types and bounds of a kernel ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_H
#define TEGULA_FRONTEND_CHECK_H

#include "frontend/check/InstanceOptions.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"
#include <memory>

namespace tegula {

/// Checks one kernel. Null, with errors in `diagnostics`, where the program is wrong.
std::unique_ptr<checked::Program> check(const Module &module, const InstanceOptions &options,
                                        Diagnostics &diagnostics);

/// Checks all kernels of the file, or the one named, as their declarations stand: the right ones,
/// in the order of the text, as are diagnostics. Of a file with syntax errors, what could be
/// understood.
std::vector<std::unique_ptr<checked::Program>> checkAll(const Module &module, llvm::StringRef only,
                                                        bool remarks, Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_H
