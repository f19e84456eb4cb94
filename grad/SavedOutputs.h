//===- SavedOutputs.h - What a gradient takes from the forward pass -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_SAVEDOUTPUTS_H
#define TEGULA_GRAD_SAVEDOUTPUTS_H

namespace tegula::grad {

/// Outputs of the kernel that its gradient needs are parameters of the gradient, or computed again.
enum class SavedOutputs {
  /// Parameters are those whose elements are reductions: reading one costs less than its
  /// operations.
  ByCost,
  All,
  None
};

} // namespace tegula::grad

#endif // TEGULA_GRAD_SAVEDOUTPUTS_H
