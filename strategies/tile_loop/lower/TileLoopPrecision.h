//===- TileLoopPrecision.h - Split-precision f32 operands of a tile loop -*- C++ -*-===//
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
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRECISION_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRECISION_H

#include "strategies/tile_loop/lower/TileLoopAccuracyCheck.h"

namespace tegula {

class TileLoopPrecision {
public:
  TileLoopPrecision(TileLoopBlock &block, TileLoopAccuracyCheck &check);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;
  using SplitTensor = TileLoopBlock::SplitTensor;

  IndexExpr workspaceBytes() const;
  IndexExpr numBlocks() const;
  /// Emit the launches before the loop: the maximum of each tensor, and then its terms.
  void emitLargest(Value *workspace);
  void emitSplitPrecision(Value *workspace);

  //===--- In the loop ---===//

  void findScales();
  /// Scales values of rows, so that their terms have them whole; with what the sums of each row are
  /// to be multiplied.
  Values splitRows(Values &values);
  void undoScales(Product &product, Values &accumulators);

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  TileLoopAccuracyCheck &check;
  llvm::DenseMap<mlir::Value, Value *> inverses; ///< of the scales of tensors that are split

  void forSplitTensors(llvm::function_ref<void(const SplitTensor &split, Value *block)> body);
  Values forChunks(
      const SplitTensor &split, Value *block, llvm::ArrayRef<Value *> carried,
      llvm::function_ref<Values(Value *chunk, Value *element, llvm::ArrayRef<Value *> carried)>
          body);
  Value *exponentOf(Value *largest);
  Value *scaleFor(Value *exponent);
  Value *inverseFor(Value *exponent);
  Value *acrossLanes(Value *number, unsigned lanes);
  Value *exponentOf(const SplitTensor &split);
  Value *keepNonZero(Value *elements, Value *scaled);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRECISION_H
