//===- Operations.h - Recognises the asynchronous operations ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For the passes of this folder: what an instruction is, and how long what a value stands for has
// been under way.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_ASYNC_OPERATIONS_H
#define TEGULA_CODEGEN_ASYNC_OPERATIONS_H

#include "codegen/async/Async.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Instructions.h"
#include <optional>

namespace tegula::async {

/// Kinds of asynchronous operations; each has commits and waits of its own.
enum class Kind { Copies, Products };

bool isCommit(const llvm::Instruction &instruction, Kind kind);
bool isRead(const llvm::Instruction &instruction);
bool isAwait(const llvm::Instruction &instruction, Kind kind);
/// Either of the two.
bool isWait(const llvm::Instruction &instruction, Kind kind);
/// The instruction whose result the value is, where that is under way: a commit of copies, a
/// product. Null: nothing is, or it came to a loop or branch.
llvm::Instruction *startOf(Value *value, Kind kind);

enum class RingOp { Make, MakeCounted, Acquire, Commit, Wait, Release, Init, Expect, Leave };
std::optional<RingOp> ringOp(const llvm::Instruction &instruction);

/// A ring as the operation that makes it says.
struct Ring {
  explicit Ring(const llvm::CallInst &make);
  const llvm::CallInst &make;
  bool isCounted;
  RingShape shape;
  /// First of the barriers for empty stages.
  unsigned firstEmpty() const { return shape.first + shape.groups * shape.stages; }
  unsigned endOfBarriers() const { return firstEmpty() + shape.stages; }
  /// Address of a counted ring's mbarriers in shared memory.
  Value *barriers() const { return make.getArgOperand(4); }
};
/// The ring that an operation uses.
Ring ringOf(const llvm::CallInst &op);

/// Where a function commits things of a kind.
class Commits {
public:
  Commits(const llvm::Function &function, Kind kind);
  bool empty() const { return ofBlock.empty(); }
  /// Minimum of commits between the start of the value and `wait`, over all paths; none: no path.
  std::optional<unsigned> minCommitsSince(Value *value, llvm::Instruction *wait) const;
  /// That minimum over all values that a wait is for.
  std::optional<unsigned> minCommitsSinceWaitedFor(llvm::CallInst &wait) const;

private:
  Kind kind;
  llvm::DenseMap<const llvm::BasicBlock *, llvm::SmallVector<const llvm::Instruction *>> ofBlock;

  /// In the block: after `after` (null: from its start), before `before` (null: to its end).
  unsigned between(const llvm::BasicBlock *block, const llvm::Instruction *after,
                   const llvm::Instruction *before) const;
};

} // namespace tegula::async

#endif // TEGULA_CODEGEN_ASYNC_OPERATIONS_H
