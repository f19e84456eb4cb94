//===- ChunkedStatements.h - Statements over chunks of a loop's steps ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Equations of a loop of steps t = c*L + l become statements over chunks c and steps l of them. A
// Place is where one is being written; copies of the loop's values go there, and accesses to
// temporaries of a step go to temporaries of all steps.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDSTATEMENTS_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDSTATEMENTS_H

#include "passes/analysis/LinearRecurrence.h"

namespace tegula {

/// A tensor over axes of the loop's statements, with a chunk and steps of it in between.
struct ChunkTensor {
  mlir::Value tensor;
  llvm::SmallVector<mlir::Value> leading, trailing;
};

/// Where a statement is being written: what stands for axes of the loop's statements, and which
/// step of which chunk it is.
struct Place {
  mlir::OpBuilder builder;
  mlir::IRMapping map;
  mlir::Value chunk;
  tgl::ValueExpr step;

  explicit Place(mlir::Block &block) : builder(mlir::OpBuilder::atBlockEnd(&block)) {}
  Place(const Place &) = default;
  Place inside(mlir::Block &block) const {
    Place other(*this);
    other.builder = mlir::OpBuilder::atBlockEnd(&block);
    return other;
  }
};

/// Steps of blocks on the diagonal of a chunk's matrices, two of which are joined until one has all
/// steps: at most `most` if the length allows that.
int64_t stepsOfBlock(int64_t length, int64_t most);

class ChunkedStatements {
protected:
  using Dim = LinearRecurrence::Dim;

  ChunkedStatements(LinearRecurrence &found, int64_t length);

  LinearRecurrence &found;
  tgl::ForOp loop;
  int64_t length;
  mlir::OpBuilder builder; // before the loop
  mlir::Location loc;
  mlir::MLIRContext *context;
  IndexExpr count, chunks; // of steps, of chunks
  bool isWhole;            // the last chunk too has all steps

  //===--------------------------------------------------------------------===//
  // Axes and temporaries
  //===--------------------------------------------------------------------===//

  static tgl::AxisSpec specOf(mlir::Value axis);
  static llvm::SmallVector<tgl::AxisSpec> specsOf(llvm::ArrayRef<mlir::Value> axes);
  tgl::AxisSpec chunkAxis() { return {"chunk", 0, tgl::ValueExpr(chunks)}; }
  tgl::AxisSpec stepAxis(llvm::StringRef name = "step") { return {name.str(), 0, length}; }
  llvm::SmallVector<mlir::Value> axesOfKind(Dim kind);
  /// Axes of the loop's statements along which a factor varies, of these.
  static llvm::SmallVector<mlir::Value> axesAmong(llvm::ArrayRef<mlir::Value> axes,
                                                  llvm::ArrayRef<mlir::Value> factors);
  bool isColumnOrSummed(mlir::Value axis, llvm::ArrayRef<mlir::Value> axesByDim);
  /// Axes of the update are those of the readout.
  void alignAxes(Place &place, const LinearReadout &readout);
  llvm::SmallVector<mlir::Value> axesOfReadout(const LinearReadout &readout);
  /// The last step, plus one, that the state of a step has seen.
  static tgl::ValueExpr seenBy(const LinearReadout &readout, const tgl::ValueExpr &step) {
    return step + tgl::ValueExpr(readout.seesStep ? 1 : 0);
  }
  /// Steps of a chunk that the loop has.
  tgl::ValueExpr stepsOf(mlir::Value chunk);
  tgl::ValueExpr stepNumber(const Place &place);
  mlir::Value makeTemp(llvm::ArrayRef<mlir::Value> leading, bool hasChunk,
                       llvm::ArrayRef<int64_t> steps, llvm::ArrayRef<mlir::Value> trailing,
                       mlir::Type type, llvm::StringRef name, bool hasEnd = false);
  static llvm::SmallVector<tgl::ValueExpr>
  subscripts(const Place &place, llvm::ArrayRef<mlir::Value> leading, mlir::Value chunk,
             llvm::ArrayRef<tgl::ValueExpr> steps, llvm::ArrayRef<mlir::Value> trailing);
  mlir::Value readAt(Place &place, const ChunkTensor &from, llvm::ArrayRef<tgl::ValueExpr> steps);
  void writeAt(Place &place, const ChunkTensor &made, mlir::Value value);
  /// Temporaries of a step become those of all steps.
  void keepTemps();

  //===--------------------------------------------------------------------===//
  // Statements and copies of values
  //===--------------------------------------------------------------------===//

  /// A statement over axes of the loop's statements, a chunk, if `hasChunk`, and more.
  Place open(llvm::ArrayRef<mlir::Value> axes, bool hasChunk, llvm::ArrayRef<tgl::AxisSpec> more,
             mlir::Value *moreAxes);
  /// The loop variable is that of a step of the place's chunk.
  void setStep(Place &place, const tgl::ValueExpr &step);
  mlir::Value copy(Place &place, mlir::Value value);
  /// `more` times the factors; `more` may be null.
  mlir::Value product(Place &place, llvm::ArrayRef<mlir::Value> factors, mlir::Value more = {});
  mlir::Value number(mlir::OpBuilder &at, double value);
  mlir::Value integer(mlir::OpBuilder &at, int64_t value);
  /// Ends the body of a loop or a sum.
  static void yield(mlir::Operation *op, mlir::ValueRange values);
  mlir::Value sumOver(Place &place, llvm::ArrayRef<tgl::AxisSpec> specs,
                      llvm::function_ref<mlir::Value(Place &, tgl::ReduceOp)> term);
  /// Runs `write` with statements going into a loop, and ends the loop.
  void inLoop(llvm::StringRef name, const tgl::ValueExpr &high,
              llvm::function_ref<void(mlir::Value)> write);
  /// The statement for all steps; `valueOf` gives what stands for an op, or null.
  void writeAllSteps(tgl::ParallelOp statement,
                     llvm::function_ref<mlir::Value(Place &, mlir::Operation *)> valueOf);
  /// Whether a value has the loop variable, or reads a temporary that each step writes.
  bool variesByStep(mlir::Value value);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> temps; // of the loop: for all steps

  void copyOp(Place &place, mlir::Operation *op);
  /// An access to a temporary of the loop goes to the place's step of it.
  mlir::Value accessAllSteps(const Place &place, mlir::Operation *op);
};

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDSTATEMENTS_H
