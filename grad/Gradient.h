//===- Gradient.h - The backward program of a kernel --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_GRADIENT_H
#define TEGULA_GRAD_GRADIENT_H

#include "frontend/check/InstanceOptions.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"
#include "grad/SavedOutputs.h"
#include <optional>
#include <string>
#include <vector>

namespace tegula::grad {

struct GradientOptions {
  /// The kernel, and what its constants and types are. What is left out is as InstanceOptions says;
  /// generic types and `...` stay what they are in the text.
  InstanceOptions instance;
  /// Tensors to differentiate with respect to; empty: all that have a gradient.
  std::vector<std::string> wrt;
  /// Optional tensors and scalars that calls leave out; all others are given.
  std::vector<std::string> leftOut;
  /// Which outputs of the kernel that the gradient needs are its parameters.
  SavedOutputs saved = SavedOutputs::ByCost;
};

/// The text of the kernel NAME_grad, in the canonical form. Its parameters are the kernel's own
/// that are needed, with `save` outputs, and `grad_y` for each output y; its outputs `grad_x`.
/// Nothing, with errors in `diagnostics`, where the program is wrong or something has no rule.
std::optional<std::string> gradientOf(const Module &module, const GradientOptions &options,
                                      Diagnostics &diagnostics);

} // namespace tegula::grad

#endif // TEGULA_GRAD_GRADIENT_H
