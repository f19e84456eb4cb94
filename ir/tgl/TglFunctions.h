//===- TglFunctions.h - Functions of floats that math lacks -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_TGLFUNCTIONS_H
#define TEGULA_IR_TGL_TGLFUNCTIONS_H

#include "ir/tgl/Tgl.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace tegula::tgl {
/// Marks functions that round, and that take tens of instructions.
template <typename Op> class FloatFunction : public mlir::OpTrait::TraitBase<Op, FloatFunction> {};
} // namespace tegula::tgl

#define GET_OP_CLASSES
#include "ir/tgl/TglFunctions.h.inc"

#endif // TEGULA_IR_TGL_TGLFUNCTIONS_H
