//===- CpAsyncLoad.h - Loads operands of mma.sync to share ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads operands of mma.sync to shared memory (cp.async).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_CPASYNCLOAD_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_CPASYNCLOAD_H

#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// Loads the operands of mma.sync to shared memory: by cp.async, or evaluated.
class MmaLoads : public ContractionCode {
public:
  explicit MmaLoads(ContractionContext &context) : ContractionCode(context), indices(context) {}
  bool evaluates(const MmaProduct &product) const;
  void copyStep(MmaProduct &product, Value *step, Value *stage, Path path);
  llvm::SmallVector<Value *> evaluateStep(MmaProduct &product, Value *step);
  void storeStep(MmaProduct &product, llvm::ArrayRef<Value *> values, Value *stage);
  void evaluateToStage(MmaProduct &product, Value *step, Value *stage);

private:
  struct OperandCoord {
    Value *line, *position; ///< i32: coordinates in the tile
    Value *number, *k;      ///< i64: m or n index of the statement, and k
    Value *exists;          ///< i1; null: true
  };
  /// The copy of one vector to shared memory; `exists` as in OperandCoord.
  struct AsyncCopy {
    Value *to, *from, *exists;
  };
  struct LineAxes {
    tgl::AxesOp op;
    llvm::SmallVector<unsigned> group;
  };
  bool havePositions(const MmaOperand &operand) const;
  OperandCoord coordOf(const MmaProduct &product, const MmaOperand &operand, Value *step,
                       Value *index);
  void forVectors(const MmaOperand &operand, Path path,
                  llvm::function_ref<void(Value *index)> body);
  AsyncCopy copyAt(const MmaProduct &product, const MmaOperand &operand, const OperandCoord &place,
                   Value *stage);
  Value *addressInStage(const MmaOperand &operand, const OperandCoord &place, Value *stage);
  void emitCopy(const MmaOperand &operand, const AsyncCopy &copy);
  void copyTile(MmaProduct &product, MmaOperand &operand, Value *step, Value *stage, Path path);
  LineAxes axesOfLines(const MmaProduct &product, const MmaOperand &operand);
  bool dividesForLines(const MmaProduct &product, const MmaOperand &operand);
  std::optional<tgl::ValueExpr> stepOfLines(const MmaProduct &product, const MmaOperand &operand);
  void copyLines(const MmaProduct &product, const MmaOperand &operand, Value *step, Value *stage,
                 const tgl::ValueExpr &lineStep);
  Value *evaluate(const MmaProduct &product, const MmaOperand &operand, const OperandCoord &place);
  Value *evaluateAt(const MmaProduct &product, const MmaOperand &operand, Value *step,
                    Value *index);
  llvm::SmallVector<Value *> evaluateTile(MmaProduct &product, MmaOperand &operand, Value *step);
  void store(const MmaProduct &product, const MmaOperand &operand, Value *index, Value *value,
             Value *stage);

  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_CPASYNCLOAD_H
