//===- FragmentValues.h - Values in the MMA accumulator layout ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_FRAGMENTVALUES_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_FRAGMENTVALUES_H

#include "strategies/tile_loop/lower/TileLoopBlock.h"

namespace tegula {

class TileLoopProducts;

class FragmentValues {
public:
  FragmentValues(TileLoopBlock &block, TileLoopProducts &products);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Fragment = TileLoopBlock::Fragment;
  using Scope = TileLoopBlock::Scope;

  Fragment fragmentOf(mlir::Value value);
  /// An element for each row and column of the scope.
  Fragment full(const Fragment &value, const Scope &scope);
  /// `otherwise` at columns that do not exist.
  void keepExisting(Values &values, const Scope &scope, Value *otherwise);
  /// Sets the columns of a nest or a reduction.
  Scope enter(mlir::Operation *nest);

  //===--- Operations ---===//

  /// An operation for all elements of its fragment; outside of nests `scope` is null.
  void emitFragment(mlir::Operation *op, const Scope *scope);
  void emitWrite(tgl::WriteOp op, const Scope *scope);
  void emitNest(tgl::ParallelOp op);
  void emitReduce(tgl::ReduceOp op);
  /// An operation of a nest.
  void emitInner(mlir::Operation *op, const Scope &scope);

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  TileLoopProducts &products;

  void setOperands(mlir::Operation *op, unsigned row, unsigned column);
  Fragment forPoints(bool rows, bool columns, const Scope *scope,
                     llvm::function_ref<Value *(unsigned row, unsigned column)> body);
  Value *emitPoint(mlir::Operation *op, bool isElement);
  void divideByRows(mlir::arith::DivFOp op, const Scope &scope);
  void store(tgl::WriteOp op, const Scope &scope);
  void emitMasked(mlir::arith::SelectOp op, const Scope &scope, llvm::ArrayRef<Comparison> mask);
  void emitWhere(mlir::arith::SelectOp op, const Scope &scope, Value *isPartial,
                 llvm::function_ref<void()> begin,
                 llvm::function_ref<Value *(unsigned row, unsigned column)> holds);
  bool emitDataMask(mlir::arith::SelectOp op, const Scope &scope);
  void skipMaskOps(tgl::ParallelOp nest);
  bool isSplitAcrossCluster(tgl::ReduceOp op);
  void keepInBounds(Values &values, const Scope &scope, tgl::ReduceOp op, Value *otherwise);
  bool emitShiftedExp(mlir::Operation *op, const Scope &scope);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_FRAGMENTVALUES_H
