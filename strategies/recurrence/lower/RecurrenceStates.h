//===- RecurrenceStates.h - States of a persistent RNN in all blocks of a cluster -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The states of a resident recurrence (strategies/recurrence/lower/PersistentRecurrence.h): two
// copies of each in shared memory of every block, one that a step reads and one that it writes, and
// what tells a block that a copy has all its values. That is a barrier in shared memory which
// counts the bytes that come
// (`countsBytes`), or, the plain way, a barrier of all blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_RECURRENCE_LOWER_RECURRENCESTATES_H
#define TEGULA_STRATEGIES_RECURRENCE_LOWER_RECURRENCESTATES_H

#include "codegen/simt/DeviceEmitter.h"
#include "strategies/recurrence/plan/Recurrence.h"

namespace tegula {

/// A point of a nest in this thread.
struct RecurrencePoint {
  llvm::Value *lane = nullptr;   // i64: of the threads that share the point
  llvm::Value *axis = nullptr;   // i64: the point, or the last one again
  llvm::Value *writes = nullptr; // i1: there is such a point, and this is its first lane
  llvm::Value *exists = nullptr; // i1: there is such a point
  int64_t lanes = 0;
};

class RecurrenceStates {
public:
  RecurrenceStates(DeviceEmitter &emitter, const RecurrencePlan &plan,
                   const RecurrenceShape &shape);

  /// Allocates shared memory and computes addresses in other blocks. Before the rows, by all
  /// threads; i64: the thread in its block, and the block in its cluster.
  void allocate(llvm::Value *thread, llvm::Value *rank);

  // A row
  /// i64, by copy: phases of its barriers that earlier rows have ended.
  void beginRow(llvm::ArrayRef<llvm::Value *> phases);
  llvm::SmallVector<llvm::Value *> phasesAfter(llvm::Value *count);
  /// The row of each state into the first copy of every block.
  void load();
  /// Stores the row's final states, each block a part of them.
  void store(llvm::Value *count);

  // A step, counted from 0
  void beginStep(llvm::Value *step);
  /// Sets how many bytes the block waits for, by one thread, where bytes are counted.
  void expect(llvm::Value *step);
  /// f32 *: of the copy that is read now.
  llvm::Value *elementOf(unsigned state, llvm::Value *index);
  /// The point's value of the next step, into the copy that is not read now, of all blocks.
  void send(const RecurrencePoint &point, unsigned state, llvm::Value *value);
  /// Waits for all values of the copy that the step writes, where bytes are counted.
  void waitFor(unsigned state);
  /// Swaps the two copies: the state written in this step is read from here on.
  void swapCopies(unsigned state);

  void syncBlock();
  void syncAll();
  /// Cluster barrier that runs `meanwhile` between arrival and wait.
  void syncAll(llvm::function_ref<void()> meanwhile);

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const RecurrencePlan &plan;
  RecurrenceShape shape;

  struct State {
    llvm::GlobalVariable *copies = nullptr;   // two times `elements` f32, in shared memory
    llvm::GlobalVariable *barriers = nullptr; // of each copy, in a cluster
    /// Both of other blocks, by round of the lanes that write them.
    llvm::SmallVector<llvm::Value *> remote, remoteBarriers;
    int64_t elements = 0;
  };
  llvm::SmallVector<State> states;
  llvm::SmallVector<llvm::Value *>
      current; // by state: i64, the element where the one to be read begins
  llvm::Value *rank = nullptr, *thread = nullptr;
  llvm::Value *parity =
      nullptr; // i32: of the phase in which the copy that a step writes gets its values
  std::array<llvm::Value *, 2> phases; // i64, by copy: those that earlier rows have ended

  llvm::Value *i64(int64_t value) { return b.getInt64(value); }
  bool hasCluster() const { return shape.cluster > 1; }
  llvm::Value *copyAfter(unsigned state);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_RECURRENCE_LOWER_RECURRENCESTATES_H
