//===- ColumnsTogether.h - Reductions of a thread that read the same -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_COLUMNSTOGETHER_H
#define TEGULA_CODEGEN_SIMT_COLUMNSTOGETHER_H

#include "ir/tgl/Tgl.h"

namespace tegula {

class DeviceEmitter;

/// `first`, and reductions of the thread that are walked together with it.
llvm::SmallVector<tgl::ReduceOp> columnsTogether(DeviceEmitter &e, tgl::ReduceOp first);
/// Emits them, where the first stands.
void emitColumnsTogether(DeviceEmitter &e, llvm::ArrayRef<tgl::ReduceOp> together);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_COLUMNSTOGETHER_H
