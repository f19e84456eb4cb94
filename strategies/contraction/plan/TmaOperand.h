//===- TmaOperand.h - Operands that TMA can load ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hopper copies a box of a tensor of up to five dims to shared memory by one instruction of one
// thread. It asks for neighbours in memory along the first dim and for strides that are multiples
// of 16 bytes; what lies outside is 0 (CUDA Driver API, "Tensor Map Object Management").
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_TMAOPERAND_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_TMAOPERAND_H

#include "ir/tgl/Invariance.h"
#include "strategies/contraction/plan/ContractionPlan.h"

namespace tegula {

/// The view of an operand that a TMA descriptor describes: [batch axes]... [m or n, or k] [the
/// other, contiguous in memory].
struct TmaOperand {
  static constexpr unsigned maxTmaDims = 5, bytes = 128;
  llvm::SmallVector<int64_t, 0> extents; ///< elements, those of neighbours first
  llvm::SmallVector<int64_t, 0> strides; ///< bytes, of all but the first
  llvm::SmallVector<unsigned, 0> batch;  ///< axes of the statement, of the third dim and on
};

/// The TMA view of the operand that `read`, its only factor, reads: K-major or not. Nothing if its
/// strides, extents or alignment rule TMA out, or are not known. `pointsOf` tells extents.
std::optional<TmaOperand> planTmaOperand(const ContractionPlan &plan, tgl::ReduceOp reduce,
                                         const ContractionSide &side,
                                         llvm::ArrayRef<unsigned> lines, tgl::ReadOp read,
                                         bool kMajor, tgl::PointsOf *pointsOf);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_TMAOPERAND_H
