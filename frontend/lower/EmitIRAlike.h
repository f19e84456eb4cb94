//===- EmitIRAlike.h - Points that meet and write the same ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRALIKE_H
#define TEGULA_FRONTEND_LOWER_EMITIRALIKE_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

/// Whether a scatter's value is a function of the element that it writes: points that meet there
/// write the same bits, and nobody has to find out which of them is the last. Where the value reads
/// the target, all points must have read before one writes.
bool writesAlike(Emitter &emitter, const Stmt &scatter);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRALIKE_H
