//===- FloatRange.h - Ranges of floating-point values -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_FLOATRANGE_H
#define TEGULA_CODEGEN_COMMON_FLOATRANGE_H

#include "mlir/IR/Value.h"
#include <limits>

namespace tegula {

/// Where a float lies that is not nan.
struct FloatRange {
  double low = -std::numeric_limits<double>::infinity(),
         high = std::numeric_limits<double>::infinity();
};

/// By the operations that make the value, as far as a few of them tell.
FloatRange rangeOf(mlir::Value value, unsigned depth = 0);

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_FLOATRANGE_H
