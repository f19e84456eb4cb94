//===- FactorRange.h - How far apart the sizes of a factor's elements are -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_FACTORRANGE_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_FACTORRANGE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"

namespace tegula {

/// Whether a factor is a power of e or 2 that varies along the sum's axes, or a multiple of one,
/// computed here or by a statement before: decays. Its elements grow by any factor along the sum,
/// so that terms of f16 with a scale from the first of them do not hold the later ones. Powers
/// whose largest is 1 (a softmax's, a sigmoid's) are none.
bool isMultipleOfPower(mlir::Value factor, llvm::ArrayRef<mlir::BlockArgument> summed);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_FACTORRANGE_H
