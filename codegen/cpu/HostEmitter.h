//===- HostEmitter.h - Emits host code for a scheduled kernel ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel is one function that runs statements in order (EmitHost.cpp). A parallel statement
// outside of others is outlined (EmitHostOutline.cpp): its points are numbered, and the runtime
// calls the outlined function on ranges of numbers (EmitHostParallel.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_CPU_HOSTEMITTER_H
#define TEGULA_CODEGEN_CPU_HOSTEMITTER_H

#include "codegen/common/AccessShape.h"
#include "codegen/common/Emitter.h"
#include "codegen/cpu/EmitHost.h"

namespace tegula {

class HostEmitter : public Emitter {
public:
  using Value = llvm::Value;

  HostEmitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites)
      : Emitter(module, options, sites) {
    if (options.checked)
      this->options.vectorBytes = 0; // one element at a time
  }

  HostCode run(tgl::KernelOp kernel);

  /// Whether a temporary belongs to a point of an outlined statement. One inside of a nest without
  /// axes exists once, as those of the kernel do.
  static bool isOutlined(tgl::TempOp temp);

protected:
  void emitOp(mlir::Operation *op) override;
  void emitParallel(tgl::ParallelOp op) override;
  void emitReduce(tgl::ReduceOp op) override;
  /// A running sum of f32 is carried as f64 and rounded where it is read, as PyTorch does: 1 is
  /// still added to 2^24.
  void emitFor(tgl::ForOp op) override;
  /// The runtime sorts; only as many elements as anyone looks at.
  void emitSort(tgl::SortOp op) override;

  void emitTemp(tgl::TempOp op) override;

private:
  /// Temporaries begin and end on cache lines, so that neighbours do not share one.
  static constexpr int64_t cacheLineBytes = 64;
  /// Constant-size temporaries up to this live on the stack.
  static constexpr int64_t stackBytes = 16 * 1024;

  llvm::Function *function = nullptr;
  llvm::BasicBlock *entry = nullptr;
  Value *hostRun = nullptr;
  bool nested = false;
  llvm::DenseMap<mlir::Operation *, Value *> scratchAddress,
      scratchShadow; // of private temporaries
  unsigned numOutlined = 0;

  void begin(llvm::Function *target);

  Value *emitBytes(tgl::TglTensorType type) { return emitSize(tensorBytes(type, cacheLineBytes)); }

  /// Memory of a private temporary, or of its stamps: on the stack, or its share of the scratch
  /// space.
  Value *ownMemory(tgl::TempOp op, tgl::TglTensorType type,
                   const llvm::DenseMap<mlir::Operation *, Value *> &shares);

  //===--- Stamps (checked mode) ---===//

  Value *clockOf(Value *run);
  static tgl::TglTensorType shadowOf(tgl::TglTensorType type);

  /// Nothing is defined from here on; or, for an inout, everything was at the beginning.
  void clearShadow(const Buffer &buffer, bool isDefined);

  //===--- Outlining ---===//

  struct Captured {
    llvm::SmallVector<mlir::Value> tensors, scalars;
  };

  /// The values that the statement uses and does not define.
  Captured capturesOf(mlir::Operation *op);

  /// How the points of a statement are numbered: a box over `outer` axes, times blocks of the lane
  /// axis.
  struct Numbering {
    llvm::SmallVector<unsigned> outer; // slowest first
    llvm::SmallVector<unsigned> inner; // looped over inside: their bounds depend on other axes
    std::optional<LaneChoice> lane;
  };

  Numbering numberingOf(tgl::ParallelOp op);
  bool laneIsBlocked = false;

  Value *extent(tgl::AxesOp op, unsigned axis);

  void emitOutlined(tgl::ParallelOp op);

  /// A matrix product inside of a statement, on this thread.
  bool emitInnerProduct(tgl::ParallelOp op);

  /// Threads that parallel statements run on.
  Value *emitThreads();

  /// Point by point, along vectors where an axis allows it.
  void emitPoints(tgl::ParallelOp op);

  /// Points of the lane axis for one number where there are `others` points around it.
  Value *emitLaneBlock(Value *others, Value *length);

  //===--- Reductions of a whole kernel ---===//

  /// A long reduction outside of parallel statements: parts of its first axis on all threads, then
  /// the parts' results in order. False where it is short or cannot be cut.
  bool emitParallelReduction(tgl::ReduceOp op);

  using OutlinedBody =
      llvm::function_ref<void(Value *begin, Value *end, llvm::ArrayRef<Value *> passed)>;

  /// Outlines what `inside` emits for units [begin, end) of the statement and calls it for all
  /// `count`; it sees `extra` as `passed`.
  void outline(mlir::Operation *op, Value *count, Value *cost, llvm::ArrayRef<Value *> extra,
               OutlinedBody inside);

  void emitBody(llvm::Function *body, const Captured &captured,
                llvm::ArrayRef<llvm::StringRef> symbols, size_t numExtra,
                llvm::StructType *frameType, OutlinedBody inside);

  void emitNumbers(tgl::ParallelOp op, const Numbering &numbering, Value *laneBlock, Value *begin,
                   Value *end);

  /// One request for all private temporaries of the statement that do not fit on the stack.
  void allocateScratch(tgl::ParallelOp op);

  /// Memory of this thread from the member of HostRun; the function returns where there is none.
  Value *emitMemory(unsigned member, Value *bytes);

  //===--- Estimates ---===//

  /// The extent of an axis if it can be computed before `statement`, else a guess.
  Value *estimateExtent(tgl::AxesOp op, unsigned axis, mlir::Operation *statement);

  /// Operations of one point of a block.
  Value *emitWork(mlir::Block &block, mlir::Operation *statement);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_CPU_HOSTEMITTER_H
