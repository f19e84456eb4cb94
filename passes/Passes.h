//===- Passes.h - The passes --------------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes.td describes each pass; Pipeline.cpp puts them in order (tile/: those of the dialect
// `tile`).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_PASSES_H
#define TEGULA_PASSES_PASSES_H

#include "ir/tgl/Tgl.h"
#include "mlir/Pass/Pass.h"
#include "support/Counters.h"
#include "target/TargetInfo.h"

namespace tegula {
#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// The target that an option of a pass names; an error at `op` where it names none.
inline mlir::FailureOr<TargetInfo> parseTarget(mlir::Operation *op, llvm::StringRef text) {
  if (std::optional<TargetInfo> target = TargetInfo::parse(text))
    return *target;
  return op->emitError() << "'" << text << "' is no target such as sm_90a or cpu";
}
} // namespace tegula

#endif // TEGULA_PASSES_PASSES_H
