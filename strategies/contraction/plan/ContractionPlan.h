//===- ContractionPlan.h - Matches statements that are matrix products -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parallel statement whose values come from sums of products is a matrix product: its axes fall
// into *rows* (only one side of the product varies along them), *columns* (only the other side) and
// *batch* (both). What stands inside the sum is evaluated at any point: reads with any affine
// subscript, fills, conversions, elementwise functions. So a convolution is a matrix product whose
// columns are the points of an image. Host code (codegen/cpu/PackedGemm.h) and device code
// (strategies/contraction/lower/DeviceContraction.h) block such statements each in its own way.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_CONTRACTIONPLAN_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_CONTRACTIONPLAN_H

#include "passes/analysis/Matched.h"

namespace tegula {

/// An operand of a product, A or B.
struct ContractionSide {
  llvm::SmallVector<mlir::Value> factors;
  /// The operations of the statement and of the sum that compute the factors, in order.
  llvm::SmallVector<mlir::Operation *> slice;
  /// Whether the K axes, or the operand's M or N axes, can be collapsed to the last of them.
  bool collapsesSum = false, collapsesAxes = false;
  /// Whether memory is contiguous along K, not along M or N.
  bool lanesAlongK = false;
};

/// Factors that are constant over blocks of `points` neighbouring points of K: of
/// `sum(sa[i, g] * sb[j, g] * a[i, 128*g + k] * b[j, 128*g + k] for g, k)` these are sa and sb.
/// They are no part of the operands: a block's sum of products is multiplied by them when it is
/// added to the others (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
struct BlockScales {
  /// What varies with rows alone, and with columns; either may have no factor.
  ContractionSide a, b;
  int64_t points = 0; ///< 0: there are no such factors
  explicit operator bool() const { return points; }
};

struct ContractionProduct {
  tgl::ReduceOp reduce;
  ContractionSide a, b;
  BlockScales scales;
};

struct ContractionPlan {
  tgl::ParallelOp op;
  /// Axes of `op`. The last of the columns becomes vector lanes in the rest of the statement.
  llvm::SmallVector<unsigned> batch, rows, columns;
  std::vector<ContractionProduct> products;
  /// The operations of the statement outside of its sums.
  llvm::SmallVector<mlir::Operation *> epilogue;
  /// Whether the epilogue's row (column) axes can be collapsed to the last of them.
  bool epilogueCollapsesRows = false, epilogueCollapsesColumns = false;
  mlir::Type element; ///< f32 or f64; i32 of sums of products of bytes
};

/// Attribute of a write of partial results: the axes of the statement that are reduced. The points
/// that combine in one element are of one tile, and the tensor has no other writes but its
/// initialisation with the neutral element.
inline constexpr llvm::StringLiteral partialAttrName = "part";

/// The axis that must be a column if the statement writes partial results, which do not show it.
unsigned laneAxisOfPartials(tgl::ParallelOp op);

/// Whether an op that uses the axis gives the same for each `points` neighbours of it, from a
/// multiple on: a read whose subscripts divide the axis.
bool isConstantAlong(mlir::Operation *op, mlir::Value axis, int64_t points);

/// Points of K that steps of 8-bit operands divide, by mma.sync and by wgmma.
inline constexpr int64_t stepOfBytes = 128;

/// Whether the type is a float of 8 bits that tensor cores multiply.
bool isF8(mlir::Type element);
/// Whether the value is read from a tensor of 8-bit floats, at a place that exists.
bool readsF8(mlir::Value value);

/// Plans the statement as matrix products; nothing if it is none. `byVectors`: the epilogue runs on
/// vectors of columns, so results along a long axis must be near to each other in memory.
Matched<ContractionPlan> planContraction(tgl::ParallelOp op, bool byVectors = true);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_CONTRACTIONPLAN_H
