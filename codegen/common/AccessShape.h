//===- AccessShape.h - How accesses move through memory -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Facts about accesses that hold before any code is emitted.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_ACCESSSHAPE_H
#define TEGULA_CODEGEN_COMMON_ACCESSSHAPE_H

#include "ir/tgl/Tgl.h"

namespace tegula {

enum class Stride { Uniform, Unit, Other };

/// By how many elements an offset moves along an axis where that is the same at every point of it:
/// `varies` tells which other operands do.
std::optional<int64_t> stepAlong(const tgl::ValueExpr &offset, mlir::Value axis,
                                 llvm::function_ref<bool(mlir::Value)> varies);
Stride strideAlong(const tgl::ValueExpr &offset, mlir::Value axis,
                   llvm::function_ref<bool(mlir::Value)> varies);

/// Vectors apart by so much are loaded whole and shuffled.
inline constexpr int64_t longestShortStep = 4;
inline bool isShortStep(int64_t step) {
  return step && step >= -longestShortStep && step <= longestShortStep;
}

/// i4: two elements share a byte.
inline bool isPacked(mlir::Type element) { return element.isInteger(4); }
unsigned storageBytes(mlir::Type element);
/// Bytes of a tensor, rounded up to a multiple of `alignment`.
IndexExpr tensorBytes(tgl::TglTensorType type, int64_t alignment);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_ACCESSSHAPE_H
