//===- RowTileProducts.cpp - Products in tile loops -----------------------------------===//
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
#include "codegen/DeviceRowTiles.h"

#include "ir/TglUtils.h"
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
void DeviceRowTiles::copy(const Staged &staged, Value *stage, Value *low, Value *total) {
  bool fits = staged.moving == rowAxis ? !rowExists[0] : plan.extent % tile.columns == 0;
  Warpgroup group(b, false);
  tgl::ReadOp read = staged.read;
  const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
  const Split *split = staged.planes > 1 ? splitOf(read.getTensor()) : nullptr;
  const PlaneTile &plane = staged.shared;
  // A line is 64 points of the sum, or in panels of 64 columns. A thread's copies are of the same unit of many lines:
  // where the first one goes to and comes from tells it of the others.
  unsigned perLine = plane.unitsInLine(), lines = plane.alongSum ? plane.extent : plane.depth();
  if (numCopiers % perLine)
    perLine = PlaneTile::unit;
  unsigned panels = plane.unitsInLine() / perLine, units = perLine * lines;
  assert(numCopiers % perLine == 0 && units % numCopiers == 0 && "copies are of whole lines");
  auto extentOf = [&](mlir::BlockArgument axis) -> int64_t {
    return tgl::knownPoints(cast<tgl::AxesOp>(axis.getOwner()->getParentOp()),
                            {axis.getArgNumber()})
        .value_or(0);
  };
  ValueExpr element = tgl::elementOffset(buffer.type, read.getSubscriptExprs());
  std::optional<int64_t> lineStep = tgl::stepAlong(element, staged.lineAxis),
                         sumStep = tgl::stepAlong(element, staged.sumAxis);
  Value *ownLine = b.CreateUDiv(copier, i32(perLine)), *ownUnit = b.CreateURem(copier, i32(perLine));
  Value *firstOffset = nullptr;
  std::array<Value *, PlaneTile::unit> firstPlaces = {};
  for (unsigned chunk = 0; chunk < staged.chunks; ++chunk)
    for (unsigned number = 0; number < panels * units; number += numCopiers) {
      unsigned panel = number / units, linesBefore = number % units / perLine, unitsBefore = panel * perLine;
      Value *line = b.CreateAdd(ownLine, i32(linesBefore)), *unit = b.CreateAdd(ownUnit, i32(unitsBefore));
      // Positions, and those that none of the threads' is beyond.
      Value *start = wide(b.CreateShl(unit, i32(3)));
      unsigned pastLine = linesBefore + numCopiers / perLine, pastUnit = (unitsBefore + perLine) * PlaneTile::unit;
      Value *inSum = plane.alongSum ? start : wide(line),
            *inLines = plane.alongSum ? wide(line) : start;
      unsigned pastSum = (plane.alongSum ? pastUnit : pastLine) + chunk * PlaneTile::lineElements,
               pastLines = plane.alongSum ? pastLine : pastUnit;
      if (chunk)
        inSum = b.CreateAdd(inSum, i64(chunk * PlaneTile::lineElements));
      Value *exists = nullptr;
      auto place = [&](mlir::BlockArgument axis, Value *position, unsigned past) {
        bool moves = axis == staged.moving;
        Value *value = moves ? b.CreateAdd(low, position) : position;
        if (moves && !fits)
          exists = e.emitAnd(exists, b.CreateICmpSLT(value, total));
        if (!moves) {
          int64_t extent = extentOf(axis), own = tile.partOf(extent);
          if (past > own)
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, i64(own)));
          if (tile.isShared(extent))
            value = b.CreateAdd(value, lowOfPart(extent));
          if (past + own * (tile.parts - 1) > extent && tile.isShared(extent))
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, i64(extent)));
        }
        e.values[axis] = value;
      };
      place(staged.lineAxis, inLines, pastLines);
      place(staged.sumAxis, inSum, pastSum);
      Value *offset;
      if (firstOffset && lineStep && sumStep) {
        int64_t unitsApart = unitsBefore * PlaneTile::unit;
        int64_t apart = linesBefore * (plane.alongSum ? *lineStep : *sumStep) +
                        unitsApart * (plane.alongSum ? *sumStep : *lineStep) +
                        int64_t(chunk * PlaneTile::lineElements) * *sumStep;
        offset = b.CreateAdd(firstOffset, i64(apart));
      } else {
        offset = firstOffset = e.emitIndex(element);
      }
      if (exists)
        offset = b.CreateSelect(exists, offset, i64(0));
      // Eight lines on units are in the same order again.
      Value *&firstPlace = firstPlaces[linesBefore % PlaneTile::unit];
      unsigned behind = linesBefore / PlaneTile::unit * PlaneTile::unit * PlaneTile::lineBytes +
                        panel * plane.depth() * PlaneTile::lineBytes;
      if (!firstPlace) {
        firstPlace = b.CreateSub(group.place(plane, line, unit, 0), i32(behind));
        if (stage)
          firstPlace = b.CreateAdd(firstPlace, stage);
      }
      for (unsigned copy = 0; copy < staged.planes; ++copy) {
        Value *from =
            split ? b.CreateInBoundsGEP(b.getInt16Ty(), bytesAt(workspace, split->planeAt(copy)), offset)
                  : b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()), buffer.pointer, offset);
        unsigned distance = staged.base + copy * staged.planeBytes() + chunk * plane.bytes() + behind;
        group.copyUnit(b.CreateInBoundsGEP(b.getInt8Ty(), shared, b.CreateAdd(firstPlace, i32(distance))), from, exists);
      }
    }
}

Value *DeviceRowTiles::lowOfTile(Value *number) {
  return b.CreateAdd(firstTile, b.CreateMul(number, i64(tile.columns)));
}

/// The number (i32) of a tile of these rows among those of all rows of the block.
Value *DeviceRowTiles::inAll(Value *number) { return b.CreateAdd(tilesBefore, b.CreateTrunc(number, b.getInt32Ty())); }

/// Bytes behind the factor's base of the stage for a tile.
Value *DeviceRowTiles::stageOf(const Product &product, Value *number) {
  Value *parity = b.CreateAnd(inAll(number), i32(1));
  return b.CreateMul(parity, i32(product.column.bytes()));
}

/// Bytes behind the left factor's base of the place for these rows.
Value *DeviceRowTiles::rowStage(const Product &product) {
  return numRowStages == 1 ? nullptr : b.CreateSelect(isOdd, i32(product.row->bytes()), i32(0));
}

/// Starts copying a tile, if there is one.
void DeviceRowTiles::copyColumns(const Product &product, Value *number) {
  e.emitIf(b.CreateICmpSLT(number, numTiles),
           [&] { copy(product.column, stageOf(product, number), lowOfTile(number), tilesEnd); });
}

Value *DeviceRowTiles::descriptorOf(const Staged &staged, Value *stage, Value *first,
                                    unsigned step, unsigned plane) {
  constexpr unsigned inChunk = PlaneTile::lineElements / Warpgroup::stepDepth;
  Value *address = b.CreatePtrToInt(shared, b.getInt32Ty());
  if (stage)
    address = b.CreateAdd(address, stage);
  unsigned behind = staged.base + plane * staged.planeBytes() + step / inChunk * staged.shared.bytes();
  return Warpgroup(b, false).descriptor(staged.shared, address, first, 0, step % inChunk, behind);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The left factor in registers: four words for each 16 points of the sum, of each plane.
SmallVector<DeviceRowTiles::Values> DeviceRowTiles::rowWords(Product &product) {
  tgl::ReduceOp reduce = product.planned->reduce;
  mlir::Value left = product.planned->left;
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
  Values values = full(spreadOf(left), scope).values;
  keepExisting(values, scope, ConstantFP::get(b.getFloatTy(), 0));
  Intrinsic::ID pack =
      product.planned->isBrain ? Intrinsic::nvvm_ff2bf16x2_rn : Intrinsic::nvvm_ff2f16x2_rn;
  if (product.planned->planes > 1)
    product.scales = splitRows(values);
  SmallVector<Values> words;
  for (unsigned plane = 0; plane < product.planned->planes; ++plane)
    for (unsigned step = 0; step < product.depth / Warpgroup::stepDepth; ++step) {
      Values four;
      for (unsigned n = 8 * step; n < 8 * step + 8; n += 2) {
        Value *word = b.CreateIntrinsic(pack, {values[n + 1], values[n]});
        four.push_back(b.CreateBitCast(word, b.getInt32Ty()));
        if (plane + 1 < product.planned->planes) // what is left is the next plane
          for (unsigned own : {0, 1})
            values[n + own] = b.CreateFSub(
                values[n + own], b.CreateFPExt(b.CreateExtractElement(word, uint64_t(own)), b.getFloatTy()));
      }
      words.push_back(four);
    }
  return words;
}

/// All copies that were started are there, and what lay where the next go has been multiplied.
void DeviceRowTiles::awaitCopies() {
  async::awaitAllCopies(b);
  async::publish(b);
  barrier();
}

/// Starts a product with tile `number`, its sums added.
void DeviceRowTiles::multiply(Product &product, Value *number, ArrayRef<Values> words) {
  multiply(product, number, words, 0, product.columns);
}

/// Of `columns` columns from `first` on, a multiple of 64.
void DeviceRowTiles::multiply(Product &product, Value *number, ArrayRef<Values> words, unsigned first, unsigned columns) {
  Warpgroup warps(b, product.planned->isBrain);
  Value *stage = stageOf(product, number);
  unsigned steps = divideCeil(product.depth, Warpgroup::stepDepth);
  // Small products first: what tensor cores cut off is a part of the sum so far.
  static constexpr std::pair<unsigned, unsigned> three[] = {{1, 0}, {0, 1}, {0, 0}};
  for (auto [left, right] : ArrayRef(three).take_back(product.planned->planes > 1 ? 3 : 1))
    for (unsigned step = 0; step < steps; ++step) {
      const Staged &column = product.column;
      Value *factor = descriptorOf(column, stage, i32(first), step, right);
      if (product.row) {
        Value *rows =
            descriptorOf(*product.row, rowStage(product), b.CreateShl(warpgroup, i32(6)), step, left);
        product.sums = warps.multiply(product.sums, columns, rows, product.row->shared.alongSum, factor,
                                      column.shared.alongSum);
      } else {
        product.sums = warps.multiplyWords(product.sums, columns, words[left * steps + step], factor,
                                           column.shared.alongSum);
      }
    }
}

/// Left factors, and the first tiles, where nobody else copies them.
void DeviceRowTiles::startCopies() {
  if (hasRoles)
    return;
  for (const Product &product : products) {
    if (product.row)
      copy(*product.row, nullptr, firstRow, rowsEnd);
    if (!product.target)
      copyColumns(product, i64(0));
  }
}

/// Starts what an iteration starts with: products of left factors that do not change with this
/// tile, and those that the iteration before has left the words of.
void DeviceRowTiles::startTile() {
  hasRoles ? awaitTurn() : awaitCopies();
  for (Product &product : products)
    if (product.row) {
      product.sums.clear();
      awaitTile(product, tileNumber);
      multiply(product, tileNumber, {});
      async::commitProducts(b);
    }
  for (Product &product : products)
    if (product.target) {
      product.sums = elements[product.target].values;
      Values sums = product.sums;
      choose(b.CreateICmpSGT(tileNumber, i64(0)), sums, [&] {
        Value *before = b.CreateSub(tileNumber, i64(1));
        awaitTile(product, before);
        multiply(product, before, product.words);
        return product.sums;
      });
      elements[product.target].values = product.sums = sums;
      async::commitProducts(b);
    }
  if (hasRoles)
    return passTurn();
  for (const Product &product : products)
    copyColumns(product, product.target ? tileNumber : b.CreateAdd(tileNumber, i64(1)));
}

/// What the last iteration has left.
void DeviceRowTiles::finishTiles() {
  Value *last = b.CreateSub(numTiles, i64(1));
  if (!hasRoles)
    awaitCopies();
  for (Product &product : products)
    if (product.target) {
      product.sums = elements[product.target].values;
      awaitTile(product, last);
      multiply(product, last, product.words);
      async::commitProducts(b);
      elements[product.target].values = product.sums;
    }
  for (Product &product : products)
    if (product.target) {
      elements[product.target].values = async::readProducts(b, product.sums);
      product.sums.clear();
      releaseTile(product, last);
    }
}

/// ptxas moves a wait up to where nothing else needs to be done before it, and then nothing is left
/// to do while products are under way. It does not move one into the block before: here one ends,
/// with a branch that is never taken to code that is more than an instruction.
void DeviceRowTiles::holdBack() {
  Value *never = b.CreateICmpEQ(b.CreatePtrToInt(e.errorRecord, b.getInt64Ty()), i64(1));
  e.emitIf(never, [&] {
    e.nextLoopStays = true;
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
void DeviceRowTiles::settle(mlir::Value tensor) {
  auto found = find_if(products, [&](const Product &product) { return product.target == tensor; });
  if (found == products.end() || found->sums.empty())
    return;
  Values all = elements[tensor].values;
  unsigned numSums = all.size();
  SmallVector<Values *> tied;
  for (Product &product : products)
    for (Values &four : product.nextWords)
      tied.push_back(&four);
  for (mlir::Value value : tgl::TilesOp(plan.tiles).getYield().getValues())
    if (auto ready = spread.find(value); ready != spread.end() && value.getType().isF32())
      tied.push_back(&ready->second.values);
  for (Values *values : tied)
    for (Value *value : *values)
      all.push_back(b.CreateBitCast(value, b.getFloatTy()));
  holdBack();
  found->sums = all;
  Values settled = async::readProducts(b, found->sums);
  if (hasRoles)
    e.emitIf(b.CreateICmpSGT(tileNumber, i64(0)),
             [&] { releaseTile(*found, b.CreateSub(tileNumber, i64(1))); });
  found->sums.clear();
  elements[tensor].values.assign(settled.begin(), settled.begin() + numSums);
  ArrayRef<Value *> rest = ArrayRef(settled).drop_front(numSums);
  for (Values *values : tied)
    for (Value *&value : *values) {
      value = b.CreateBitCast(rest.front(), value->getType());
      rest = rest.drop_front();
    }
}

/// The words of products that the next iteration multiplies, before what the nest waits for.
void DeviceRowTiles::prepareWords(tgl::ParallelOp nest) {
  for (Product &product : products)
    if (product.target && product.planned->nest == nest)
      product.nextWords = rowWords(product);
}

void DeviceRowTiles::emitProduct(tgl::ReduceOp op, const Scope &scope) {
  Product &product = *find_if(products, [&](const Product &p) { return p.planned->reduce == op; });
  if (product.row) {
    Values sums = async::readProducts(b, product.sums);
    if (hasRoles) {
      releaseTile(product, tileNumber);
      holdBack(); // what follows: the copy of a tile to come takes the time that it does
    }
    doubtSmallSums(product, sums, scope, 0);
    undoScales(product, sums);
    spread[op.getResult()] = {true, true, sums};
    addParts(product, spread[op.getResult()].values);
    return;
  }
  SmallVector<Values> words;
  if (!product.target)
    words = rowWords(product);

  // What the sum is added to, where that is known here, is where it begins.
  Values sums;
  mlir::arith::AddFOp added;
  if (op->hasOneUse())
    added = dyn_cast<mlir::arith::AddFOp>(*op->user_begin());
  if (added && added->getBlock() == op->getBlock()) {
    mlir::Value other = added.getLhs() == op.getResult() ? added.getRhs() : added.getLhs();
    mlir::Operation *def = other.getDefiningOp();
    if (def && def->getBlock() == op->getBlock() && !op->isBeforeInBlock(def))
      sums = full(spreadOf(other), scope).values;
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
    if (sums.empty())
      sums.assign(product.columns / 2, ConstantFP::get(b.getFloatTy(), 0));
    spread[result] = {true, true, sums};
    return;
  }
  // Sums of planes are few terms each, added up here: what tensor cores cut off of a long sum would be more than f32 does.
  bool isSplit = product.planned->planes > 1;
  unsigned atOnce = isSplit ? columnsAtOnce(plan, tile, *product.planned) : product.columns;
  Values all;
  awaitTile(product, tileNumber);
  for (unsigned first = 0; first < product.columns; first += atOnce) {
    unsigned columns = std::min(atOnce, product.columns - first);
    product.sums = isSplit ? Values() : sums;
    multiply(product, tileNumber, words, first, columns);
    async::commitProducts(b);
    Values part = async::readProducts(b, product.sums);
    if (isSplit) {
      doubtSmallSums(product, part, scope, first);
      undoScales(product, part);
      if (!sums.empty())
        for (auto [sum, before] : zip_equal(part, ArrayRef(sums).slice(first / 2, columns / 2)))
          sum = b.CreateFAdd(sum, before);
    }
    all.append(part);
  }
  spread[result] = {true, true, all};
  releaseTile(product, tileNumber);
}
