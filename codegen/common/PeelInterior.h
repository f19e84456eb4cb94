//===- PeelInterior.h - Points of reductions whose reads need no bounds check -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_PEELINTERIOR_H
#define TEGULA_CODEGEN_COMMON_PEELINTERIOR_H

#include "ir/tgl/Tgl.h"
#include "llvm/IR/Value.h"

namespace tegula {

class ScalarEmitter;

/// A bit that says that the present point is one of the interior, where the reads that are put into
/// `free` need no check; null where that cannot be said, or is not worth it.
llvm::Value *emitPeeledInterior(ScalarEmitter &e, tgl::ReduceOp op,
                                llvm::SmallVectorImpl<mlir::Operation *> &free);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_PEELINTERIOR_H
