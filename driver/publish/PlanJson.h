//===- PlanJson.h - A kernel's launch plan as data -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_PUBLISH_PLANJSON_H
#define TEGULA_DRIVER_PUBLISH_PLANJSON_H

#include "compiler/Compiler.h"
#include "llvm/Support/JSON.h"

namespace tegula {

/// What driver/publish/_plan.py needs to launch the kernel: arguments, sizes, guards, the plan,
/// what data-dependent subscripts are called. An expression of sizes is a number, a name, or a list
/// that begins with what it does; the n-th loop around is `["loop", n]`.
llvm::json::Object planJson(const CompiledKernel &kernel);

} // namespace tegula

#endif // TEGULA_DRIVER_PUBLISH_PLANJSON_H
