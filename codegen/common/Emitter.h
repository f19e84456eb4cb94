//===- Emitter.h - Scheduled tgl to LLVM IR -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the regions of a launch and writes LLVM IR: an operation is emitted by the function of its
// feature, a nest becomes loops, or lanes along one of its axes. What host and device code share is
// here; HostEmitter and DeviceEmitter decide where parallel axes and temporaries go.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_COMMON_EMITTER_H
#define TEGULA_CODEGEN_COMMON_EMITTER_H

#include "codegen/common/Accumulators.h"
#include "codegen/common/LaneChoices.h"
#include "codegen/common/ScalarEmitter.h"

namespace tegula {

class Emitter : public ScalarEmitter {
public:
  using ScalarEmitter::ScalarEmitter;

  //===--- Operations (Emitter.cpp) ---===//

  void emitBlock(mlir::Block &block); // all but the terminator
  /// Loops that are known to have no points.
  static bool isEmpty(mlir::Operation *op);
  bool skipEmpty(mlir::Operation *op);
  virtual void emitOp(mlir::Operation *op);
  virtual void emitParallel(tgl::ParallelOp op);
  virtual void emitReduce(tgl::ReduceOp op);
  virtual void emitTemp(tgl::TempOp op) = 0;
  virtual void emitSort(tgl::SortOp op);
  /// `body` for 0 <= n < count in any order, all done when it returns (device code: by all
  /// threads).
  virtual void emitSteps(llvm::Value *count, llvm::function_ref<void(llvm::Value *)> body);
  virtual void emitFor(tgl::ForOp op);
  void emitTiles(tgl::TilesOp op);
  /// Ends every statement that other points may depend on (device code: a barrier).
  virtual void afterParallel() {}

  //===--- Reductions (EmitReduce.cpp) ---===//

  /// Emits the body at the current axes and adds its value.
  Accumulator emitReducePoint(tgl::ReduceOp op, Accumulator accumulator);
  /// How an axis is added up: its terms in parts of so many, those in parts of as many of them, and
  /// so on; with `keepsError` what rounding takes from the sum of the parts is added up too.
  struct BlockedSum {
    int64_t terms = 1;
    unsigned levels = 0;
    bool keepsError = false;
  };
  /// Parts that keep the error of a sum from growing with its length; none where it is short.
  virtual BlockedSum blockedSumOf(tgl::ReduceOp op, unsigned axis);
  /// for (iv = low; iv < high; iv += step) accumulator = body(iv, accumulator); each part has an
  /// accumulator of its own, which begins with zeros.
  Accumulator
  emitBlockedSum(tgl::ReduceOp op, llvm::Value *low, llvm::Value *high, int64_t step,
                 BlockedSum parts, Accumulator start,
                 llvm::function_ref<Accumulator(llvm::Value *iv, Accumulator before)> body);
  llvm::Value *emitExactSum(llvm::Value *low, llvm::Value *high, int64_t step, llvm::Value *start,
                            llvm::function_ref<llvm::Value *(llvm::Value *iv)> part);
  /// Loops over the axes `order`, the accumulator carried, around `innermost`.
  Accumulator emitSerialReduce(tgl::ReduceOp op, llvm::ArrayRef<unsigned> order,
                               Accumulator accumulator,
                               llvm::function_ref<Accumulator(Accumulator)> innermost);
  /// All of a reduction, at the current axes around it.
  virtual Accumulator emitReduceNest(tgl::ReduceOp op);

  //===--- Nests (EmitNests.cpp) ---===//

  /// Loops over `axes` in order, `body` innermost.
  void emitNest(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes, llvm::function_ref<void()> body);
  /// Bounds of an axis: its own, or the part of it that is being emitted.
  llvm::Value *emitLow(tgl::AxesOp op, unsigned axis);
  llvm::Value *emitHigh(tgl::AxesOp op, unsigned axis);
  struct AxisSlice {
    mlir::Value axis;
    llvm::Value *low, *high;
  };
  std::optional<AxisSlice> axisSlice;
  tgl::ValueExpr lowOf(tgl::AxesOp op, unsigned axis);
  tgl::ValueExpr highOf(tgl::AxesOp op, unsigned axis);
  /// The axis of `op` that becomes vector lanes; none where another axis around or inside does, or
  /// where lanes are not possible.
  std::optional<LaneChoice> chooseLanes(tgl::AxesOp op);
  void emitLaneRange(tgl::ParallelOp op, const LaneChoice &choice, llvm::Value *low,
                     llvm::Value *high);

private:
  LaneChoices laneChoices;

  template <typename Loop>
  void emitCarried(Loop op, llvm::Value *low, llvm::Value *high, llvm::Value *step,
                   const char *name, llvm::function_ref<void(llvm::Value *iv)> place);
  void emitLaneParallel(tgl::ParallelOp op, const LaneChoice &choice);
  Accumulator emitLaneReduce(tgl::ReduceOp op, const LaneChoice &choice, Accumulator outer);
  llvm::Value *emitFullEnd(llvm::Value *low, llvm::Value *high, unsigned step);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_COMMON_EMITTER_H
