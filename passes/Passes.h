//===- Passes.h - The passes --------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td describes each pass; Pipeline.cpp puts them in order.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PASSES_H
#define TEGULA_PASSES_PASSES_H

#include "ir/tgl/Tgl.h"
#include "mlir/Pass/Pass.h"
#include "support/Counters.h"
#include "target/DeviceFacts.h"

namespace tegula {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
} // namespace tegula

#endif // TEGULA_PASSES_PASSES_H
