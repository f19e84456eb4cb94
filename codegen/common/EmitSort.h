//===- EmitSort.h - Sorting a row as LLVM IR ----------------------*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_COMMON_EMITSORT_H
#define TEGULA_CODEGEN_COMMON_EMITSORT_H

#include "ir/tgl/Tgl.h"

namespace tegula {

class Emitter;

/// Sorts the row where it lies, by the steps of Emitter::emitSteps.
void emitSortNetwork(Emitter &e, tgl::SortOp op);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_EMITSORT_H
