//===- Work.h - Counts the operations of a kernel ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counted on the equations as emitted, before any pass: what the program asks for, whatever the
// compiler makes of it. Each arithmetic operation, comparison and elementary function on floats is
// one operation; so is each combining step of a reduction. A bound that depends on an outer index
// (`for k in 0:i+1`) counts with that index at the middle of its range.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_WORK_H
#define TEGULA_COMPILER_WORK_H

#include "mlir/IR/BuiltinOps.h"
#include "symbolic/IndexExpr.h"
#include <functional>
#include <vector>

namespace tegula {

class KernelWork {
public:
  using SizeOf = std::function<std::optional<int64_t>(llvm::StringRef)>;

  static KernelWork count(mlir::ModuleOp module);

  double operations(const SizeOf &sizeOf) const;
  /// The most terms that one sum adds up (or product, scan, loop), at least 1.
  double depth(const SizeOf &sizeOf) const;
  /// Roundings to fewer than 32 bits on the way to a result, and the result's own. Each temporary's
  /// counts twice, as sums of what it is multiplied by may cancel.
  unsigned roundings() const { return 1 + 2 * narrowTemporaries; }

private:
  /// An axis or loop; in the bounds the dim `d<n>` is ranges[n].
  struct Range {
    IndexExpr low, high;
  };
  struct Term {
    llvm::SmallVector<unsigned> ranges;
    double operations;
  };
  friend class WorkCounter;
  std::vector<double> extents(const SizeOf &sizeOf) const;
  std::vector<Range> ranges;
  std::vector<Term> terms;
  std::vector<llvm::SmallVector<unsigned>> depths;
  unsigned narrowTemporaries = 0;
};

} // namespace tegula

#endif // TEGULA_COMPILER_WORK_H
