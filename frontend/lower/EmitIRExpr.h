//===- EmitIRExpr.h - Scalar values -----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIREXPR_H
#define TEGULA_FRONTEND_LOWER_EMITIREXPR_H

#include "frontend/lower/EmitIRImpl.h"

namespace tegula::emit {

mlir::Value eval(Emitter &emitter, const Expr *expr);
mlir::Value evalAs(Emitter &emitter, const Expr *expr, mlir::Type type);
mlir::Value convertTo(Emitter &emitter, mlir::Value value, DType from, DType target, bool nearest,
                      mlir::Location loc);
/// To another compute type: exact where that is wider, else rounded, wrapped or compared with 0.
mlir::Value coerce(Emitter &emitter, mlir::Value value, mlir::Type type, mlir::Location loc);
/// What is written to an element of `type`: rounded once.
/// As coerce, of a value of a type of the language: unsigned ones get no sign.
mlir::Value coerce(Emitter &emitter, mlir::Value value, DType from, mlir::Type to,
                   mlir::Location loc);
mlir::Value toStore(Emitter &emitter, mlir::Value value, tgl::TglTensorType type,
                    mlir::Location loc);
mlir::Value constant(Emitter &emitter, mlir::Type type, double value, mlir::Location loc);
mlir::Value constantInt(Emitter &emitter, mlir::Type type, int64_t value, mlir::Location loc);
mlir::Type typeOf(Emitter &emitter, DType type);
mlir::Type computeTypeOf(Emitter &emitter, DType type);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIREXPR_H
