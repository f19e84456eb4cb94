//===- PrepackOperands.cpp - Prepacks operands in a launch of its own -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles that lie in a row use the same rows, so what SplitPrecision.cpp does to an element is
// done again by each of them, and takes all of the way from memory through registers to shared
// memory. Here a launch before does it once: it leaves the two planes of f16 in the workspace as
// the very bytes that a stage of shared memory is to hold, tile by tile and stage by stage, and for
// each line one over its scale, or NaN where the line is not fit for such planes. Producers then
// copy them asynchronously. Rows beyond the last are the last again.
//
// Numbers of 16 bits that do not come in vectors (rows of an odd length, windows) are brought into
// that order alike: they are their only plane, without a scale.
//
// The scale is that of SplitPrecision.cpp, found from as many of a line's first points as a
// block loads at a time.
//
// Where data chooses which of a tensor's matrices a point of the batch reads, each matrix is packed
// once, and tiles find out whose planes they copy.
//
// A side of windows is packed element by element instead (PrepackWindows.cpp).
//
// The workspace of each product: planes of rows, of columns; scales of rows, of columns.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/PrepackOperands.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// A block's lines, from `number` (i64) times `ContractionNumbers::prepackedLinesOfBlock` on.
void PrepackLaunch::prepackLines(const WgmmaProduct &product, WgmmaOperand operand,
                                 const PrepackedOperand &side, Value *number) {
  TileDim group = *operand.group;
  operand.group = &group;
  int64_t blocksOfTile = group.extent / ContractionNumbers::prepackedLinesOfBlock;
  Value *part = nullptr; // of the lines; null: all
  if (side.parts > 1) {
    part = b.CreateURem(number, i64(side.parts));
    number = b.CreateUDiv(number, i64(side.parts));
  }
  Value *blocksOfSet = b.CreateMul(e.emitSize(side.tiles), i64(blocksOfTile)),
        *set = b.CreateUDiv(number, blocksOfSet);
  number = b.CreateURem(number, blocksOfSet);
  context.batch = side.matrix ? i64(0) : set;
  here.setNumber(axes, plan.batch, false, context.batch);
  operand.givenMatrix = side.matrix;
  if (side.matrix)
    e.values[side.matrix] = set;
  group.first = b.CreateMul(b.CreateUDiv(number, i64(blocksOfTile)), i64(group.extent));
  Value *firstLine =
      b.CreateMul(b.CreateTrunc(b.CreateURem(number, i64(blocksOfTile)), b.getInt32Ty()),
                  i32(ContractionNumbers::prepackedLinesOfBlock));

  // Threads side by side have neighbours in memory.
  unsigned chunks =
      numbers.prepackThreads() / ContractionNumbers::prepackedLinesOfBlock; // side by side
  bool kMajor = operand.how->kMajor;
  Value *ownLine = kMajor
                       ? b.CreateUDiv(here.thread, i32(chunks))
                       : b.CreateURem(here.thread, i32(ContractionNumbers::prepackedLinesOfBlock));
  Value *ownChunk = kMajor
                        ? b.CreateURem(here.thread, i32(chunks))
                        : b.CreateUDiv(here.thread, i32(ContractionNumbers::prepackedLinesOfBlock));
  Value *line = b.CreateAdd(firstLine, ownLine);
  Value *lineNumber = wgmmaLoads.numberOf(operand, wide(line), 1);

  unsigned chunksOfStage = operand.shared.chunksPerLine();
  Value *allChunks = b.CreateMul(e.emitSize(side.stages), i64(chunksOfStage));
  Value *lastChunk = b.CreateSub(allChunks, i64(1));
  auto load = [&](Value *chunk) { // the last one again where there is none
    chunk = b.CreateBinaryIntrinsic(Intrinsic::smin, chunk, lastChunk);
    return wgmmaLoads.loadChunkAt(
        product, operand, b.CreateMul(chunk, i64(operand.shared.chunkElements())), lineNumber);
  };
  Value *begin = i64(0), *end = allChunks;
  if (part) {
    Value *rounds = b.CreateUDiv(b.CreateAdd(allChunks, i64(chunks * side.parts - 1)),
                                 i64(chunks * side.parts));
    Value *own = b.CreateMul(rounds, i64(chunks));
    begin = b.CreateMul(part, own);
    end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(begin, own), allChunks);
  }
  Wgmma warps = wgmmaLoads.wgmmaFor(product);
  auto store = [&](Value *chunkNumber, ArrayRef<Value *> terms) {
    e.emitIf(b.CreateICmpSLT(chunkNumber, allChunks), [&] {
      Value *stage = prepackedLoads.prepackedTermsOf(operand, side,
                                                     b.CreateUDiv(chunkNumber, i64(chunksOfStage)));
      Value *inLine = b.CreateTrunc(b.CreateURem(chunkNumber, i64(chunksOfStage)), b.getInt32Ty());
      for (unsigned term = 0; term < operand.shared.terms;
           ++term) { // what is copied is known to the last byte
        Value *offset = warps.swizzledOffset(operand.shared, line, inLine, term);
        Value *chunk =
            term < operand.terms ? terms[term] : Constant::getNullValue(terms.front()->getType());
        b.CreateAlignedStore(chunk, b.CreateInBoundsGEP(b.getInt8Ty(), stage, offset), Align(16));
      }
    });
  };
  if (!numbers.usesSplitPrecision()) {
    e.emitLoop(
        begin, end, i64(chunks), {},
        [&](Value *first, ArrayRef<Value *>) {
          Value *chunkNumber = b.CreateAdd(first, wide(ownChunk));
          store(chunkNumber, load(chunkNumber));
          return SmallVector<Value *>();
        },
        "span");
    return;
  }

  auto largestAt = [&](Value *inBlock) {
    return here.sharedAt(b.CreateMul(inBlock, i32(sizeof(float))));
  };
  auto leastAt = [&](Value *inBlock) {
    return largestAt(b.CreateAdd(inBlock, i32(ContractionNumbers::prepackedLinesOfBlock)));
  };
  auto loadWord = [&](Value *place) {
    return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4));
  };
  e.emitIf(b.CreateICmpULT(here.thread, i32(ContractionNumbers::prepackedLinesOfBlock)), [&] {
    b.CreateAlignedStore(i32(0), largestAt(here.thread), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(here.thread), Align(4));
  });
  barrier();
  precision.noteLargest(largestAt(ownLine), leastAt(ownLine),
                        precision.largestOf(load(wide(ownChunk))));
  barrier();
  Value *largest = loadWord(largestAt(ownLine)),
        *scale = precision.scaleOf(largest, /*isInverse=*/false);
  // All parts have the scale of the first points; one leaves it.
  Value *isFirst = b.CreateICmpEQ(ownChunk, i32(0));
  if (part)
    isFirst = b.CreateAnd(isFirst, b.CreateICmpEQ(part, i64(0)));
  e.emitIf(isFirst, [&] {
    Value *inverse = precision.inverseScale(largest, loadWord(leastAt(ownLine)));
    b.CreateAlignedStore(inverse, prepackedLoads.scaleAddress(product, operand, side, wide(line)),
                         Align(4));
  });
  e.emitLoop(
      begin, end, i64(chunks), {},
      [&](Value *first, ArrayRef<Value *>) {
        Value *chunkNumber = b.CreateAdd(first, wide(ownChunk));
        store(chunkNumber, precision.splitChunk(load(chunkNumber), scale, operand.terms));
        return SmallVector<Value *>();
      },
      "span");
}

void PrepackLaunch::emitPrepack() {
  here.begin();
  context.split = i64(0); // steps are those of all parts
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides = numbers.prepackedOperands(bytes);
  Value *number = wide(here.block);
  for (unsigned which = 0; which < products.size(); ++which) {
    WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(which);
    for (bool ofRows : {true, false}) {
      const PrepackedOperand &side = sides[2 * which + !ofRows];
      Value *blocks = e.emitSize(side.blocks);
      Value *isHere = b.CreateAnd(b.CreateICmpSGE(number, i64(0)), b.CreateICmpSLT(number, blocks));
      const WgmmaOperand &operand = ofRows ? product.a : product.b;
      e.emitIf(isHere, [&] {
        operand.window ? windows.prepackPixels(product, operand, side, number)
                       : prepackLines(product, operand, side, number);
      });
      number = b.CreateSub(number, blocks);
    }
  }
}
