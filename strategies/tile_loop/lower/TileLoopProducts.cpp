//===- TileLoopProducts.cpp - Matrix products of a tile loop --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each right factor has two stages. An iteration starts when the copies of the one before are
// there, then all of its products that can be started, then the copies for the next. Products are
// groups, in the order in which they are started; the number of those after one says how many may
// be under way when it is waited for.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/FusedTileLoop.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

//===----------------------------------------------------------------------===//
// Factors in shared memory
//===----------------------------------------------------------------------===//

/// Starts copying a factor's elements from `low` on along the axis that moves, 0 from `total` on.
/// `stage`: i32, bytes behind the first stage; null: 0.
void FusedTileLoop::copy(const Staged &staged, Value *stage, Value *low, Value *total) {
  bool fits = staged.moving == rowAxis ? !rowExists[0] : plan.extent % tile.columns == 0;
  Wgmma group(b, false);
  tgl::ReadOp read = staged.read;
  const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
  const SplitTensor *split = staged.terms > 1 ? splitTensorOf(read.getTensor()) : nullptr;
  const WgmmaSharedLayout &layout = staged.shared;
  // A line is 64 points of the sum, or in panels of 64 columns. A thread's copies are of the same
  // unit of many lines: where the first one goes to and comes from tells it of the others.
  unsigned perLine = layout.chunksPerLine(), lines = layout.kMajor ? layout.extent : layout.depth();
  if (numProducers % perLine)
    perLine = WgmmaSharedLayout::chunk;
  unsigned panels = layout.chunksPerLine() / perLine, chunks = perLine * lines;
  assert(numProducers % perLine == 0 && chunks % numProducers == 0 && "copies are of whole lines");
  auto extentOf = [&](mlir::BlockArgument axis) -> int64_t {
    return tgl::knownPoints(cast<tgl::AxesOp>(axis.getOwner()->getParentOp()),
                            {axis.getArgNumber()})
        .value_or(0);
  };
  ValueExpr element = tgl::elementOffset(buffer.type, read.getSubscriptExprs());
  std::optional<int64_t> lineStep = tgl::stepAlong(element, staged.lineAxis),
                         sumStep = tgl::stepAlong(element, staged.sumAxis);
  Value *ownLine = b.CreateUDiv(producer, i32(perLine)),
        *ownChunk = b.CreateURem(producer, i32(perLine));
  Value *firstOffset = nullptr;
  std::array<Value *, WgmmaSharedLayout::chunk> firstPlaces = {};
  for (unsigned kBlock = 0; kBlock < staged.kBlocks; ++kBlock)
    for (unsigned number = 0; number < panels * chunks; number += numProducers) {
      unsigned panel = number / chunks, linesBefore = number % chunks / perLine,
               chunksBefore = panel * perLine;
      Value *line = b.CreateAdd(ownLine, i32(linesBefore)),
            *chunk = b.CreateAdd(ownChunk, i32(chunksBefore));
      // Positions, and those that none of the threads' is beyond.
      Value *start = wide(b.CreateShl(chunk, i32(3)));
      unsigned pastLine = linesBefore + numProducers / perLine,
               pastChunk = (chunksBefore + perLine) * WgmmaSharedLayout::chunk;
      Value *inSum = layout.kMajor ? start : wide(line),
            *inLines = layout.kMajor ? wide(line) : start;
      unsigned pastSum = (layout.kMajor ? pastChunk : pastLine) +
                         kBlock * WgmmaSharedLayout::lineElements,
               pastLines = layout.kMajor ? pastLine : pastChunk;
      if (kBlock)
        inSum = b.CreateAdd(inSum, i64(kBlock * WgmmaSharedLayout::lineElements));
      Value *exists = nullptr;
      auto place = [&](mlir::BlockArgument axis, Value *position, unsigned past) {
        bool moves = axis == staged.moving;
        Value *value = moves ? b.CreateAdd(low, position) : position;
        if (moves && !fits)
          exists = e.emitAnd(exists, b.CreateICmpSLT(value, total));
        if (!moves) {
          int64_t extent = extentOf(axis), own = tile.blockShare(extent);
          if (past > own)
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, i64(own)));
          if (tile.isShared(extent))
            value = b.CreateAdd(value, lowOfRank(extent));
          if (past + own * (tile.clusterBlocks - 1) > extent && tile.isShared(extent))
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, i64(extent)));
        }
        e.values[axis] = value;
      };
      place(staged.lineAxis, inLines, pastLines);
      place(staged.sumAxis, inSum, pastSum);
      Value *offset;
      if (firstOffset && lineStep && sumStep) {
        int64_t chunksApart = chunksBefore * WgmmaSharedLayout::chunk;
        int64_t apart = linesBefore * (layout.kMajor ? *lineStep : *sumStep) +
                        chunksApart * (layout.kMajor ? *sumStep : *lineStep) +
                        int64_t(kBlock * WgmmaSharedLayout::lineElements) * *sumStep;
        offset = b.CreateAdd(firstOffset, i64(apart));
      } else {
        offset = firstOffset = e.emitIndex(element);
      }
      if (exists)
        offset = b.CreateSelect(exists, offset, i64(0));
      // Eight lines on units are in the same order again.
      Value *&firstPlace = firstPlaces[linesBefore % WgmmaSharedLayout::chunk];
      unsigned behind = linesBefore / WgmmaSharedLayout::chunk * WgmmaSharedLayout::chunk *
                            WgmmaSharedLayout::lineBytes +
                        panel * layout.depth() * WgmmaSharedLayout::lineBytes;
      if (!firstPlace) {
        firstPlace = b.CreateSub(group.swizzledOffset(layout, line, chunk, 0), i32(behind));
        if (stage)
          firstPlace = b.CreateAdd(firstPlace, stage);
      }
      for (unsigned copy = 0; copy < staged.terms; ++copy) {
        Value *from = split ? b.CreateInBoundsGEP(b.getInt16Ty(),
                                                  bytesAt(workspace, split->termAt(copy)), offset)
                            : b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()),
                                                  buffer.pointer, offset);
        unsigned distance =
            staged.base + copy * staged.termBytes() + kBlock * layout.bytes() + behind;
        group.copyChunk(
            b.CreateInBoundsGEP(b.getInt8Ty(), shared, b.CreateAdd(firstPlace, i32(distance))),
            from, exists);
      }
    }
}

Value *FusedTileLoop::lowOfTile(Value *number) {
  return b.CreateAdd(firstTile, b.CreateMul(number, i64(tile.columns)));
}

/// The number (i32) of a tile of these rows among those of all rows of the block.
Value *FusedTileLoop::inAll(Value *number) {
  return b.CreateAdd(tilesBefore, b.CreateTrunc(number, b.getInt32Ty()));
}

/// Bytes behind the factor's base of the stage for a tile.
Value *FusedTileLoop::stageOf(const Product &product, Value *number) {
  Value *parity = b.CreateAnd(inAll(number), i32(1));
  return b.CreateMul(parity, i32(product.b.bytes()));
}

/// Bytes behind the left factor's base of the place for these rows.
Value *FusedTileLoop::rowStage(const Product &product) {
  return numRowStages == 1 ? nullptr : b.CreateSelect(isOdd, i32(product.a->bytes()), i32(0));
}

/// Starts copying a tile, if there is one.
void FusedTileLoop::copyColumns(const Product &product, Value *number) {
  e.emitIf(b.CreateICmpSLT(number, numTiles),
           [&] { copy(product.b, stageOf(product, number), lowOfTile(number), tilesEnd); });
}

Value *FusedTileLoop::descriptorOf(const Staged &staged, Value *stage, Value *first, unsigned step,
                                   unsigned term) {
  constexpr unsigned inKBlock = WgmmaSharedLayout::lineElements / Wgmma::stepDepth;
  Value *address = b.CreatePtrToInt(shared, b.getInt32Ty());
  if (stage)
    address = b.CreateAdd(address, stage);
  unsigned behind =
      staged.base + term * staged.termBytes() + step / inKBlock * staged.shared.bytes();
  return Wgmma(b, false).descriptor(staged.shared, address, first, 0, step % inKBlock, behind);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The left factor in registers: four words for each 16 points of the sum, of each plane.
SmallVector<FusedTileLoop::Values> FusedTileLoop::rowWords(Product &product) {
  tgl::ReduceOp reduce = product.planned->reduce;
  mlir::Value left = product.planned->aValue;
  DenseSet<mlir::Operation *> needed;
  SmallVector<mlir::Value> pending{left};
  while (!pending.empty())
    if (mlir::Operation *def = pending.pop_back_val().getDefiningOp();
        def && reduce->isProperAncestor(def) && needed.insert(def).second)
      pending.append(def->operand_begin(), def->operand_end());
  Scope scope = enter(reduce);
  for (mlir::Operation &op : reduce.getBody().front())
    if (needed.contains(&op))
      emitInner(&op, scope);
  Values values = full(fragmentOf(left), scope).values;
  keepExisting(values, scope, ConstantFP::get(b.getFloatTy(), 0));
  Intrinsic::ID pack =
      product.planned->isBF16 ? Intrinsic::nvvm_ff2bf16x2_rn : Intrinsic::nvvm_ff2f16x2_rn;
  if (product.planned->terms > 1)
    product.scales = splitRows(values);
  SmallVector<Values> words;
  for (unsigned term = 0; term < product.planned->terms; ++term)
    for (unsigned step = 0; step < product.depth / Wgmma::stepDepth; ++step) {
      Values four;
      for (unsigned n = 8 * step; n < 8 * step + 8; n += 2) {
        Value *word = b.CreateIntrinsic(pack, {values[n + 1], values[n]});
        four.push_back(b.CreateBitCast(word, b.getInt32Ty()));
        if (term + 1 < product.planned->terms) // what is left is the next plane
          for (unsigned own : {0, 1})
            values[n + own] = b.CreateFSub(
                values[n + own],
                b.CreateFPExt(b.CreateExtractElement(word, uint64_t(own)), b.getFloatTy()));
      }
      words.push_back(four);
    }
  return words;
}

/// Waits until all copies that were started have arrived, and until the operands that the next
/// copies overwrite have been multiplied.
void FusedTileLoop::awaitCopies() {
  async::awaitAllCopies(b);
  async::publish(b);
  barrier();
}

/// Starts a product with tile `number`, its sums added.
void FusedTileLoop::multiply(Product &product, Value *number, ArrayRef<Values> words) {
  multiply(product, number, words, 0, product.columns);
}

/// Multiplies by `columns` columns, a multiple of 64, from `first` on.
void FusedTileLoop::multiply(Product &product, Value *number, ArrayRef<Values> words,
                             unsigned first, unsigned columns) {
  Wgmma warps(b, product.planned->isBF16);
  Value *stage = stageOf(product, number);
  unsigned steps = divideCeil(product.depth, Wgmma::stepDepth);
  // Small products first: what tensor cores cut off is a part of the sum so far.
  static constexpr std::pair<unsigned, unsigned> three[] = {{1, 0}, {0, 1}, {0, 0}};
  for (auto [left, right] : ArrayRef(three).take_back(product.planned->terms > 1 ? 3 : 1))
    for (unsigned step = 0; step < steps; ++step) {
      const Staged &column = product.b;
      Value *factor = descriptorOf(column, stage, i32(first), step, right);
      if (product.a) {
        Value *rows =
            descriptorOf(*product.a, rowStage(product), b.CreateShl(warpgroup, i32(6)), step, left);
        product.accumulators =
            warps.multiply(product.accumulators, columns, rows, product.a->shared.kMajor, factor,
                           column.shared.kMajor);
      } else {
        product.accumulators =
            warps.multiplyWords(product.accumulators, columns, words[left * steps + step], factor,
                                column.shared.kMajor);
      }
    }
}

/// Left factors, and the first tiles, where nobody else copies them.
void FusedTileLoop::startCopies() {
  if (isWarpSpecialized)
    return;
  for (const Product &product : products) {
    if (product.a)
      copy(*product.a, nullptr, firstRow, rowsEnd);
    if (!product.target)
      copyColumns(product, i64(0));
  }
}

/// Starts what an iteration starts with: products of left factors that do not change with this
/// tile, and those that the iteration before has left the words of.
void FusedTileLoop::startTile() {
  isWarpSpecialized ? awaitTurn() : awaitCopies();
  for (Product &product : products)
    if (product.a) {
      product.accumulators.clear();
      awaitTile(product, tileNumber);
      multiply(product, tileNumber, {});
      async::commitProducts(b);
    }
  for (Product &product : products)
    if (product.target) {
      product.accumulators = elements[product.target].values;
      Values accumulators = product.accumulators;
      choose(b.CreateICmpSGT(tileNumber, i64(0)), accumulators, [&] {
        Value *before = b.CreateSub(tileNumber, i64(1));
        awaitTile(product, before);
        multiply(product, before, product.words);
        return product.accumulators;
      });
      elements[product.target].values = product.accumulators = accumulators;
      async::commitProducts(b);
    }
  if (isWarpSpecialized)
    return passTurn();
  for (const Product &product : products)
    copyColumns(product, product.target ? tileNumber : b.CreateAdd(tileNumber, i64(1)));
}

/// Does what the last iteration has left to do.
void FusedTileLoop::finishTiles() {
  Value *last = b.CreateSub(numTiles, i64(1));
  if (!isWarpSpecialized)
    awaitCopies();
  for (Product &product : products)
    if (product.target) {
      product.accumulators = elements[product.target].values;
      awaitTile(product, last);
      multiply(product, last, product.words);
      async::commitProducts(b);
      elements[product.target].values = product.accumulators;
    }
  for (Product &product : products)
    if (product.target) {
      elements[product.target].values = async::readProducts(b, product.accumulators);
      product.accumulators.clear();
      releaseTile(product, last);
    }
}

/// ptxas moves a wait up to where nothing else needs to be done before it, and then nothing is left
/// to do while products are under way. It does not move one into the block before: here one ends,
/// with a branch that is never taken to code that is more than an instruction.
void FusedTileLoop::deferWaits() {
  Value *never = b.CreateICmpEQ(b.CreatePtrToInt(e.checks.record, b.getInt64Ty()), i64(1));
  e.emitIf(never, [&] {
    e.keepNextLoopRolled = true;
    e.emitLoop(i64(0), b.CreateAdd(tileNumber, i64(2)), i64(1), {},
               [&](Value *, ArrayRef<Value *>) {
                 b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {i32(-1)});
                 return Values();
               });
  });
}

/// Before a temporary's elements are used. What is ready of the iteration is tied to the wait, so
/// that it is computed before and not after: its words for the next product, and what the loop
/// carries.
void FusedTileLoop::settle(mlir::Value tensor) {
  auto found = find_if(products, [&](const Product &product) { return product.target == tensor; });
  if (found == products.end() || found->accumulators.empty())
    return;
  Values all = elements[tensor].values;
  unsigned numSums = all.size();
  SmallVector<Values *> tied;
  for (Product &product : products)
    for (Values &four : product.nextWords)
      tied.push_back(&four);
  for (mlir::Value value : tgl::TilesOp(plan.tiles).getYield().getValues())
    if (auto ready = fragments.find(value); ready != fragments.end() && value.getType().isF32())
      tied.push_back(&ready->second.values);
  for (Values *values : tied)
    for (Value *value : *values)
      all.push_back(b.CreateBitCast(value, b.getFloatTy()));
  deferWaits();
  found->accumulators = all;
  Values settled = async::readProducts(b, found->accumulators);
  if (isWarpSpecialized)
    e.emitIf(b.CreateICmpSGT(tileNumber, i64(0)),
             [&] { releaseTile(*found, b.CreateSub(tileNumber, i64(1))); });
  found->accumulators.clear();
  elements[tensor].values.assign(settled.begin(), settled.begin() + numSums);
  ArrayRef<Value *> rest = ArrayRef(settled).drop_front(numSums);
  for (Values *values : tied)
    for (Value *&value : *values) {
      value = b.CreateBitCast(rest.front(), value->getType());
      rest = rest.drop_front();
    }
}

/// The words of products that the next iteration multiplies, before what the nest waits for.
void FusedTileLoop::prepareWords(tgl::ParallelOp nest) {
  for (Product &product : products)
    if (product.target && product.planned->nest == nest)
      product.nextWords = rowWords(product);
}

void FusedTileLoop::emitProduct(tgl::ReduceOp op, const Scope &scope) {
  Product &product = *find_if(products, [&](const Product &p) { return p.planned->reduce == op; });
  if (product.a) {
    Values accumulators = async::readProducts(b, product.accumulators);
    if (isWarpSpecialized) {
      releaseTile(product, tileNumber);
      deferWaits(); // what follows: the copy of a tile to come takes the time that it does
    }
    flagSmallSums(product, accumulators, scope, 0);
    undoScales(product, accumulators);
    fragments[op.getResult()] = {true, true, accumulators};
    addPartials(product, fragments[op.getResult()].values);
    return;
  }
  SmallVector<Values> words;
  if (!product.target)
    words = rowWords(product);

  // Accumulators begin with the value that the sum is added to, where it is known here.
  Values accumulators;
  mlir::arith::AddFOp added;
  if (op->hasOneUse())
    added = dyn_cast<mlir::arith::AddFOp>(*op->user_begin());
  if (added && added->getBlock() == op->getBlock()) {
    mlir::Value other = added.getLhs() == op.getResult() ? added.getRhs() : added.getLhs();
    mlir::Operation *def = other.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() && !op->isBeforeInBlock(def))
      accumulators = full(fragmentOf(other), scope).values;
    else
      added = nullptr;
  } else {
    added = nullptr;
  }

  mlir::Value result = op.getResult();
  if (added) {
    skipped.insert(added);
    result = added.getResult();
  }
  if (product.target) { // the next iteration multiplies
    product.words = std::exchange(product.nextWords, {});
    if (accumulators.empty())
      accumulators.assign(product.columns / 2, ConstantFP::get(b.getFloatTy(), 0));
    fragments[result] = {true, true, accumulators};
    return;
  }
  // Sums of planes are few terms each, added up here: what tensor cores cut off of a long sum would
  // be more than f32 does.
  bool usesSplitPrecision = product.planned->terms > 1;
  unsigned atOnce =
      usesSplitPrecision ? columnsAtOnce(plan, tile, *product.planned) : product.columns;
  Values all;
  awaitTile(product, tileNumber);
  for (unsigned first = 0; first < product.columns; first += atOnce) {
    unsigned columns = std::min(atOnce, product.columns - first);
    product.accumulators = usesSplitPrecision ? Values() : accumulators;
    multiply(product, tileNumber, words, first, columns);
    async::commitProducts(b);
    Values partial = async::readProducts(b, product.accumulators);
    if (usesSplitPrecision) {
      flagSmallSums(product, partial, scope, first);
      undoScales(product, partial);
      if (!accumulators.empty())
        for (auto [sum, before] :
             zip_equal(partial, ArrayRef(accumulators).slice(first / 2, columns / 2)))
          sum = b.CreateFAdd(sum, before);
    }
    all.append(partial);
  }
  fragments[result] = {true, true, all};
  releaseTile(product, tileNumber);
}
