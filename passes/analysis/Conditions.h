//===- Conditions.h - Booleans that compare integer expressions ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_CONDITIONS_H
#define TEGULA_PASSES_ANALYSIS_CONDITIONS_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// A comparison of integer expressions: `expr >= 0`, `== 0` or `!= 0`.
struct Comparison {
  Condition::Kind kind = Condition::NonNegative;
  tgl::ValueExpr expr;
  Comparison negated() const;
  Condition inDims(AxisScope &scope) const { return {kind, scope.toDims(expr), {}}; }
};

/// One part of a conjunction.
struct Conjunct {
  mlir::Value value;
  std::optional<Comparison> comparison; // where it is one
};

/// The parts of a boolean that all hold where it is true.
llvm::SmallVector<Conjunct> conjunctsOf(mlir::Value condition);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_CONDITIONS_H
