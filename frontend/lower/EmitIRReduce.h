//===- EmitIRReduce.h - Reductions and scans --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRREDUCE_H
#define TEGULA_FRONTEND_LOWER_EMITIRREDUCE_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

mlir::Value computeReduce(Emitter &emitter, const Expr *expr);
/// What `precision`, which is set, means for a sum; IR knows no precision of convolutions alone.
llvm::StringRef precisionOf(const Emitter &emitter, bool isConvolution);
mlir::Value computeScan(Emitter &emitter, const Expr *expr);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRREDUCE_H
