//===- Products.h - Reductions that are sums of products ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum over axes of the product of two elements whose subscripts are linear in the axes: a matrix
// product or a convolution. It is walked along the longest axis, by strides.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_PRODUCTS_H
#define TEGULA_PROVE_PRODUCTS_H

#include "prove/EvaluateImpl.h"

namespace tegula::prove {

class ProductReduction {
public:
  struct Subscript {
    IndexCode code;
    llvm::SmallVector<int64_t, 4> slopes; // by axis
  };
  struct Factor {
    unsigned tensor = 0;
    llvm::SmallVector<Subscript, 4> subscripts;
    bool isFilled = false; // with 0, outside of the tensor
  };

  static std::optional<ProductReduction> match(StepBuilder &builder, tgl::ReduceOp op,
                                               llvm::ArrayRef<AxisCode> axes);
  /// Nothing where the steps of the body must say what the sum is.
  std::optional<Number> run(Machine &machine) const;

private:
  static std::optional<Factor> factorOf(StepBuilder &builder, mlir::Value value, mlir::Block &body,
                                        mlir::ValueRange axes);

  llvm::SmallVector<AxisCode> axes;
  Factor factors[2];
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_PRODUCTS_H
