//===- SameValue.h - Compares computations over different axes --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_SAMEVALUE_H
#define TEGULA_PASSES_ANALYSIS_SAMEVALUE_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Whether an op makes memory of its own: however alike two of them are, what they hold differs.
bool makesMemory(mlir::Operation *op);

/// Compares what two statements compute: the same ops with the same attributes on the same inputs,
/// where each axis inside one statement stands for one axis inside the other with equal bounds, and
/// a tensor made inside of one for a tensor made inside of the other. What stands outside of a
/// statement equals another only where neither touches memory. Whether the memory that equal ops
/// read (`inputs`) is the same at both statements is the caller's to see to.
class SameValue {
public:
  SameValue(mlir::Operation *first, mlir::Operation *second) : first(first), second(second) {}

  /// `b` stands for `a` from now on.
  void assume(mlir::Value a, mlir::Value b) { counterpart[a] = b; }
  bool equal(mlir::Operation *a, mlir::Operation *b);
  bool equal(mlir::Value a, mlir::Value b);
  /// The counterpart in the second statement of a value of the first, or null.
  mlir::Value lookup(mlir::Value a) const { return counterpart.lookup(a); }
  /// Tensors of the second statement from which ops that were found equal read.
  const llvm::SetVector<mlir::Value> &inputs() const { return read; }

private:
  mlir::Operation *first, *second;
  llvm::DenseMap<mlir::Value, mlir::Value> counterpart;
  llvm::SetVector<mlir::Value> read;
};

/// Whether two reductions over the same axes have the same terms: `a` of the first, `b` of the
/// second. Whether memory is the same at both is the caller's to see to.
bool sameTerms(tgl::ReduceOp first, mlir::Value a, tgl::ReduceOp second, mlir::Value b);

/// Equal for computations that SameValue may call equal.
llvm::hash_code hashOfStructure(mlir::Operation *op);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_SAMEVALUE_H
