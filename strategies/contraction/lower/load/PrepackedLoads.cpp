//===- PrepackedLoads.cpp - Loads prepacked operands to shared memory ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producers copy the stages of operands that a launch before has prepacked (PrepackOperands.cpp),
// as the bytes that they are, and consumers load their scales.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/PrepackedLoads.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Which of the side's sets of planes, each of all lines, the tile that is set uses (i64): the
/// batch point's, or those of the matrix that data chooses for it.
llvm::Value *PrepackedLoads::prepackedTermsAt(const WgmmaOperand &operand,
                                              const PrepackedOperand &side) {
  if (!side.matrix)
    return context.batch;
  if (side.matrix != operand.givenMatrix) {
    SetVector<mlir::Operation *> needed;
    needed.insert(side.matrix.getDefiningOp());
    for (unsigned n = 0; n < needed.size(); ++n)
      for (mlir::Value value : needed[n]->getOperands())
        if (mlir::Operation *definition = value.getDefiningOp())
          needed.insert(definition);
    for (mlir::Operation *op : operand.side->slice)
      if (needed.contains(op))
        e.emitOp(op);
  }
  return e.valueOf(side.matrix);
}

/// The planes of a stage (i64, of the whole sum) of the tile that is set.
llvm::Value *PrepackedLoads::prepackedTermsOf(const WgmmaOperand &operand,
                                              const PrepackedOperand &side, Value *stage) {
  Value *tileNumber = b.CreateUDiv(operand.group->first, i64(operand.group->extent));
  tileNumber =
      b.CreateAdd(b.CreateMul(prepackedTermsAt(operand, side), e.emitSize(side.tiles)), tileNumber);
  Value *number = b.CreateAdd(b.CreateMul(tileNumber, e.emitSize(side.stages)), stage);
  Value *offset =
      b.CreateAdd(e.emitSize(side.terms), b.CreateMul(number, i64(operand.shared.bytes())));
  return b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace, offset);
}

/// Where one over the scale of a line (i64) of that tile lies.
llvm::Value *PrepackedLoads::scaleAddress(const WgmmaProduct &product, const WgmmaOperand &operand,
                                          const PrepackedOperand &side, Value *line) {
  Value *number;
  if (operand.window) {
    number = windows.imageOf(product, operand, wgmmaLoads.numberOf(operand, line, 1));
  } else {
    Value *lines = b.CreateMul(e.emitSize(side.tiles), i64(operand.group->extent));
    number = b.CreateAdd(b.CreateMul(prepackedTermsAt(operand, side), lines),
                         b.CreateAdd(operand.group->first, line));
  }
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace, e.emitSize(side.scales));
  return b.CreateInBoundsGEP(b.getFloatTy(), base, number);
}

/// Starts the copies of stage `number` (i64, of the whole sum).
void PrepackedLoads::copyPrepackedLines(const WgmmaOperand &operand, const PrepackedOperand &side,
                                        Value *number, Value *stage) {
  constexpr unsigned copyBytes = 16;
  Value *from = prepackedTermsOf(operand, side, number);
  from = b.CreateInBoundsGEP(b.getInt8Ty(), from, wide(b.CreateMul(here.thread, i32(copyBytes))));
  Value *to = b.CreateAdd(b.CreateMul(here.thread, i32(copyBytes)), i32(operand.offset));
  to = b.CreateInBoundsGEP(b.getInt8Ty(), stage, to);
  for (unsigned offset = 0; offset < operand.shared.bytes();
       offset += numbers.producerThreads() * copyBytes)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_cg_shared_global_16,
                      {b.CreateInBoundsGEP(b.getInt8Ty(), to, i32(offset)),
                       b.CreateInBoundsGEP(b.getInt8Ty(), from, i64(offset))});
}

/// Starts the copies of the block's stage `number` (i64).
void PrepackedLoads::copyPrepacked(const WgmmaProduct &product, Value *number, Value *stage) {
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = numbers.prepackedOperands(bytes);
  Value *step = indices.stepInKLoop(product.kLoop, b.CreateUDiv(number, i64(product.substeps)));
  Value *inSum = b.CreateAdd(b.CreateMul(step, i64(product.substeps)),
                             b.CreateURem(number, i64(product.substeps)));
  for (bool ofRows : {true, false}) {
    const WgmmaOperand &operand = ofRows ? product.a : product.b;
    const PrepackedOperand &side = sides[2 * product.number + !ofRows];
    if (operand.usesHaloTile)
      e.emitIf(b.CreateICmpEQ(b.CreateURem(number, i64(product.substeps)), i64(0)), [&] {
        haloLoads.loadHalo(product, side, b.CreateUDiv(number, i64(product.substeps)));
      });
    else if (operand.window)
      windows.copyWindows(product, operand, side, inSum, stage);
    else
      copyPrepackedLines(operand, side, inSum, stage);
  }
}

/// Brings one over the scale of each line to shared memory; consumers see it once the first stage
/// is there.
void PrepackedLoads::loadScales(const WgmmaProduct &product) {
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = numbers.prepackedOperands(bytes);
  for (bool ofRows : {true, false}) {
    const WgmmaOperand &operand = ofRows ? product.a : product.b;
    for (unsigned first = 0; first < operand.shared.extent; first += numbers.threads()) {
      Value *line = b.CreateAdd(here.thread, i32(first));
      auto load = [&] {
        Value *address =
            scaleAddress(product, operand, sides[2 * product.number + !ofRows], wide(line));
        LoadInst *inverse = b.CreateAlignedLoad(b.getFloatTy(), address, Align(4));
        inverse->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(b.getContext(), {}));
        b.CreateAlignedStore(
            inverse, precision.scaleOfLine(product, b.CreateAdd(line, i32(operand.firstLine))),
            Align(4));
      };
      if (first + numbers.threads() <= operand.shared.extent)
        load();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand.shared.extent - first)), load);
    }
  }
}
