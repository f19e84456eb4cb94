//===- Runs.h - Neighbours for which a value is the same --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TGL_RUNS_H
#define TEGULA_IR_TGL_RUNS_H

#include "ir/tgl/Tgl.h"

namespace tegula::tgl {

/// The longest runs along an axis in which an expression is the same, from each multiple of their
/// length on: a power of two, at most `most`, which is one.
int64_t runAlong(const ValueExpr &expr, mlir::Value axis, int64_t most);

/// As above for values of the block whose argument the axis is, through all that they are computed
/// from: of packed words, scales of groups, and what they give for an element.
class Runs {
public:
  Runs(mlir::BlockArgument axis, int64_t most) : axis(axis), longest(most) {}

  int64_t most() const { return longest; }
  /// Sets what another argument of the block has.
  void set(mlir::BlockArgument argument, int64_t run) { given[argument] = std::min(run, longest); }
  int64_t of(mlir::Value value);
  /// Of what an op of the block is computed from, its expressions among it.
  int64_t of(mlir::Operation *op);

private:
  mlir::BlockArgument axis;
  int64_t longest;
  llvm::DenseMap<mlir::Value, int64_t> given;
  llvm::DenseMap<mlir::Operation *, int64_t> known;
};

} // namespace tegula::tgl

#endif // TEGULA_IR_TGL_RUNS_H
