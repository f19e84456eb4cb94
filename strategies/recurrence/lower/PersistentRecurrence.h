//===- PersistentRecurrence.h - Persistent RNN: weights stay in registers -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The strategy `recurrence` (strategies/recurrence/plan/Recurrence.h): a cluster of blocks takes a
// row and walks the loop. A few neighbouring threads of a warp, *lanes*, share a point of a nest:
// each has its part of the terms of the point's sums, with their weights in registers, and all of
// them compute the rest. Values go this way:
//
//   states    in shared memory of every block, twice; lanes put a point's new value into all
//   blocks, where a barrier in
//             shared memory counts the bytes: who needs the state waits for as many as it has
//             (strategies/recurrence/lower/RecurrenceStates.h)
//   own       elements that one point alone touches: in registers of its lanes from the first step
//   to the last inputs    elements of other tensors: where they move with time, loaded a step ahead
//   results   written while values are under way
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_RECURRENCE_LOWER_PERSISTENTRECURRENCE_H
#define TEGULA_STRATEGIES_RECURRENCE_LOWER_PERSISTENTRECURRENCE_H

#include "strategies/recurrence/lower/RecurrenceStates.h"

namespace tegula {

class PersistentRecurrence {
public:
  PersistentRecurrence(DeviceEmitter &emitter, const RecurrencePlan &plan,
                       const RecurrenceShape &shape);

  /// The shape of the device function that `emit` fills.
  static DeviceShape deviceShape(const RecurrenceShape &shape);
  void emit();

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const RecurrencePlan &plan;
  RecurrenceShape shape;

  /// A nest's points in this thread.
  struct Point : RecurrencePoint {
    /// By sum and term: f32; null: with its neighbours in shared memory (`shared`).
    llvm::SmallVector<llvm::SmallVector<llvm::Value *>> weights;
    llvm::SmallVector<mlir::Operation *> invariant,
        prefetched; // reads: the same in all steps; a step ahead
  };
  llvm::SmallVector<Point> points; // by nest
  RecurrenceStates states;
  llvm::SmallVector<llvm::Value *> privates; // by own tensor: the value now
  /// Writes of results that wait for the next barrier: the operation, of which nest, and the value.
  struct Result {
    tgl::WriteOp write;
    unsigned nest;
  };
  llvm::SmallVector<Result> results;
  llvm::DenseMap<std::tuple<unsigned, unsigned, int64_t>, int64_t>
      shared; // by nest, sum and vector of terms: number
  llvm::Value *rank = nullptr, *thread = nullptr;

  llvm::Value *i64(int64_t value) { return b.getInt64(value); }
  bool countsBytes() const { return shape.countsBytes; }
  void assignPoints();
  void loadWeights();
  llvm::Value *sharedWeights(int64_t number);
  void findInputs();
  llvm::Value *emitRow();
  void emitStep(llvm::Value *step, llvm::Value *count,
                llvm::MutableArrayRef<llvm::Value *> carried);
  void emitNest(unsigned number);
  void emitSums(unsigned number);
  void emitWrite(unsigned number, tgl::WriteOp write);
  void writeResults();
  void setLoopVar(llvm::Value *step, llvm::Value *count);
  llvm::Value *loadPrivate(unsigned number);
  void storePrivate(unsigned number);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_RECURRENCE_LOWER_PERSISTENTRECURRENCE_H
