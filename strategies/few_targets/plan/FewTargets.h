//===- FewTargets.h - Plans sums of many points in few elements -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Many points that add to few elements (`h[x[i]] += 1`) wait for each other where general code adds
// in memory. Here a block keeps copies of the elements in its shared memory, adds the points of its
// part to them, and then adds what they hold to the tensor. So do the largest (`max=`) and the
// smallest (`min=`).
//
// Axes along which points never meet, as b in `h[b, x[b, i]] += 1`, are *apart*: a block has one
// point of them, and the elements that this point leaves are its *window*.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_FEW_TARGETS_PLAN_FEWTARGETS_H
#define TEGULA_STRATEGIES_FEW_TARGETS_PLAN_FEWTARGETS_H

#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"

namespace tegula {

/// A tensor that the statement's points add to.
struct FewTargetsTensor {
  mlir::Value tensor;
  tgl::ReduceKind combine;
  /// Dims of the window, in order; each other dim is subscripted by an axis that is apart.
  llvm::SmallVector<unsigned> dims;
  int64_t elements; ///< of the window

  tgl::TglTensorType type() const {
    return llvm::cast<tgl::TglTensorType>(mlir::Value(tensor).getType());
  }
  int64_t elementBytes() const;
  int64_t bytes() const { return elements * elementBytes(); }
};

struct FewTargetsPlan {
  tgl::ParallelOp op;
  llvm::SmallVector<FewTargetsTensor> tensors;
  llvm::SmallVector<unsigned> apart, inner; ///< axes of the statement
  int64_t groups, points;  ///< points of the axes that are apart, and of the others
  int64_t additions;       ///< of a point
  double bytesOfPoint = 0; ///< that it reads

  int64_t windowBytes() const;
  int64_t windowElements() const;
  const FewTargetsTensor &of(tgl::WriteOp write) const;
};

Matched<FewTargetsPlan> planFewTargets(tgl::ParallelOp op);

struct FewTargetsShape {
  int64_t copies;  ///< of the window in a block, a power of two; neighbouring threads have others
  int64_t parts;   ///< blocks that share a window
  int64_t threads; ///< of a block
  /// Blocks for which a multiprocessor has registers, 40 a thread.
  static constexpr int64_t maxResident = 3;

  /// Where each tensor's copies begin in shared memory, and where the last ends.
  llvm::SmallVector<int64_t> offsets(const FewTargetsPlan &plan) const;
  std::string name(const FewTargetsPlan &plan) const;

  static constexpr llvm::StringLiteral attributeName = "few_targets";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<FewTargetsShape> of(tgl::ParallelOp op);
};

/// Nothing where windows do not fit into shared memory, or adding in memory is as fast.
Matched<FewTargetsShape> chooseFewTargetsShape(const FewTargetsPlan &plan,
                                               const TargetInfo &target);

} // namespace tegula

#endif // TEGULA_STRATEGIES_FEW_TARGETS_PLAN_FEWTARGETS_H
