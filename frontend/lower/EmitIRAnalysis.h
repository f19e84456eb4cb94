//===- EmitIRAnalysis.h - What values depend on ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_LOWER_EMITIRANALYSIS_H
#define TEGULA_FRONTEND_LOWER_EMITIRANALYSIS_H

#include "frontend/check/Checked.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tegula::emit {

using namespace tegula::checked;

/// Ids of vars, sorted, each once.
using AxisSet = llvm::SmallVector<unsigned, 4>;
inline AxisSet axisSet(llvm::ArrayRef<unsigned> sorted) { return AxisSet(sorted); }
void insertAll(AxisSet &into, const AxisSet &from);
bool contains(const AxisSet &set, unsigned axis);
AxisSet intersection(const AxisSet &a, const AxisSet &b);
bool isSubset(const AxisSet &small, const AxisSet &large);

/// Facts about expressions of one program, computed once each.
class Analysis {
public:
  explicit Analysis(const Program &program) : program(program) {}

  /// The axes, tile and loop variables that the value varies along; Data variables are replaced by
  /// what they vary along, and what a reduction binds is left out.
  const AxisSet &axesOf(const Expr *expr);
  AxisSet axesOf(const IndexExpr &expr);
  /// The axes of a statement's own subscripts, value and guard.
  AxisSet axesOf(const Stmt &equation);
  /// The axes of the bounds of a variable.
  AxisSet axesOfBounds(const Var &var);

  /// Made of constants, sizes, variables and run-time scalars alone.
  bool isOnHost(const Expr *expr);
  /// The rule of EmitIR.h. Lets that are stored cost nothing.
  bool isCheap(const Expr *expr, llvm::function_ref<bool(const Let *)> isStored);
  bool dependsOnState(const Expr *expr);
  /// A sum of products of which one factor is read through a window (SPEC 6.5).
  bool isConvolution(const Expr *sum);
  bool refersTo(const Expr *expr, llvm::function_ref<bool(const Expr *)> what);
  bool readsTensor(const Expr *expr, const Tensor *tensor);
  bool readsTensor(const IndexExpr &expr, const Tensor *tensor);

  /// Visits every expression below (through lets and Data variables), each once; `visit` says
  /// whether to go on below.
  void walk(const Expr *root, llvm::function_ref<bool(const Expr *)> visit);
  /// Visits what `expr` refers to directly: operands, guards, data in subscripts and bounds.
  void forEachChild(const Expr *expr, llvm::function_ref<void(const Expr *)> visit);
  /// The Data expressions that `expr` refers to.
  void forEachData(const IndexExpr &expr, llvm::function_ref<void(const Expr *)> visit);

private:
  const Program &program;
  llvm::DenseMap<const Expr *, AxisSet> axes;
};

/// All statements below, in order, those of nested bodies included.
void forEachStmt(llvm::ArrayRef<Stmt *> body, llvm::function_ref<void(const Stmt &)> visit);

} // namespace tegula::emit

#endif // TEGULA_FRONTEND_LOWER_EMITIRANALYSIS_H
