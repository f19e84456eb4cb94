//===- Flatten.h - A program as a list of simple equations --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_GRAD_FLATTEN_H
#define TEGULA_GRAD_FLATTEN_H

#include "grad/Builder.h"

namespace tegula::grad {

/// Brings the program into the form that is differentiated: equations in order, without calls,
/// blocks and names of values, each of them either a reduction or scan of a value of elements, or
/// such a value. Reductions of floats inside of values become temporaries of their own. Nothing,
/// with the reason in `refusal`, for a program with a form that has no rule.
std::optional<std::vector<Equation>> flatten(Builder &builder, Refusal &refusal);

} // namespace tegula::grad

#endif // TEGULA_GRAD_FLATTEN_H
