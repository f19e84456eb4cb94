//===- FastDivision.h - Divisions by what many elements share -----*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_FASTDIVISION_H
#define TEGULA_CODEGEN_SIMT_FASTDIVISION_H

#include "ir/tgl/Tgl.h"

namespace tegula {

class DeviceEmitter;

/// Emits a division of f32 by way of a reciprocal, where that is exact and faster; false where it
/// is not.
bool emitFastDivision(DeviceEmitter &e, mlir::Operation *op);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_FASTDIVISION_H
