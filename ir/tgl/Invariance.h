//===- Invariance.h - What a choice may know of sizes -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `invariant M` in a kernel: the order of every sum is a function of the sizes that are summed over
// alone. All that chooses among orders (strategies, tiles, split-K, a thread or a team for a point,
// packing) asks here what it may know of sizes. Such a size is never a number in the IR, so that
// what a choice finds by `knownPoints` does not depend on it; a choice that needs a number goes by
// `plannedPoints`, in which the size is the same number at every launch.
//
// What no order follows from, as a tile's rows and columns, may be chosen by the class of a launch:
// the next power of two. Code is made for a class (compiler/CodeClass.h), which the kernel's
// attribute `invariant_classes` has, and `expectedPoints` counts in it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_INVARIANCE_H
#define TEGULA_IR_TGL_INVARIANCE_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/StringMap.h"

namespace tegula::tgl {

class Invariance {
public:
  /// Of the kernel that the op is, or is in.
  static Invariance of(mlir::Operation *op);

  /// Whether there are no such sizes: choices may depend on all that is known.
  bool isFree() const { return plans.empty(); }
  /// Whether a choice that an order follows from may depend on the size.
  bool mayDecide(llvm::StringRef size) const { return !plans.contains(size); }
  bool mayDecide(const IndexExpr &expr) const;
  /// What choices go by: such sizes are numbers, the same ones at every launch.
  IndexExpr planned(const IndexExpr &expr) const;
  ValueExpr planned(const ValueExpr &expr) const;
  /// What choices that no order follows from go by: such sizes are those of the kernel's classes.
  IndexExpr expected(const IndexExpr &expr) const;
  /// Such sizes are 1: what is chosen for all their values is to suit the least.
  IndexExpr least(const IndexExpr &expr) const;
  /// Whether code is for a class: else what is expected is what is planned.
  bool hasClasses() const { return !classes.empty(); }

  /// What a size that is bound by an argument is in plans: rows that keep a device busy, and none
  /// that would do so alone.
  static constexpr int64_t plannedExtent = 1024;
  /// The class of a size: the next power of two, of which there are few.
  static int64_t classOf(int64_t extent);
  /// Of the kernel: a dictionary from sizes that arguments bind to their classes.
  static constexpr llvm::StringLiteral classesName = "invariant_classes";

private:
  llvm::StringMap<IndexExpr> plans, classes, leasts; // by size
};

/// Points along axes, as a choice may know them.
using PointsOf = std::optional<int64_t>(AxesOp, llvm::ArrayRef<unsigned>);
/// As knownPoints, of the extents that choices go by.
std::optional<int64_t> plannedPoints(AxesOp op, llvm::ArrayRef<unsigned> axes);
std::optional<int64_t> plannedPoints(AxesOp op);
/// As knownPoints, of the extents that choices go by from which no order follows.
std::optional<int64_t> expectedPoints(AxesOp op, llvm::ArrayRef<unsigned> axes);
/// As knownPoints, where invariant sizes are 1.
std::optional<int64_t> leastPoints(AxesOp op, llvm::ArrayRef<unsigned> axes);

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_INVARIANCE_H
