//===- TglShapes.h - Shapes of tensors that are known when compiling -*- C++ -*-===//
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
#ifndef TEGULA_IR_TGL_TGLSHAPES_H
#define TEGULA_IR_TGL_TGLSHAPES_H

#include "ir/tgl/Tgl.h"
#include "llvm/Support/MathExtras.h"

namespace tegula::tgl {

/// Elements of a tensor; nothing where a dim is not known.
inline std::optional<int64_t> knownElements(mlir::Value tensor) {
  int64_t elements = 1;
  for (IndexExprAttr dim : mlir::cast<TglTensorType>(tensor.getType()).getDims()) {
    std::optional<int64_t> extent = dim.getExpr().asConstant();
    if (!extent || llvm::MulOverflow(elements, *extent, elements))
      return std::nullopt;
  }
  return elements;
}

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_TGLSHAPES_H
