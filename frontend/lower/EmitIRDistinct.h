//===- EmitIRDistinct.h - Places that cannot repeat -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRDISTINCT_H
#define TEGULA_FRONTEND_LOWER_EMITIRDISTINCT_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

/// Whether a scatter's points go to different elements by the way its subscripts were computed:
/// places of a sort, or running counts of the points that are written.
bool writesDistinctPlaces(Emitter &emitter, const Stmt &scatter);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRDISTINCT_H
