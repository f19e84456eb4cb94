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
#include "strategies/tile_loop/lower/TileLoopProducts.h"

#include "codegen/async/Async.h"
#include "codegen/nvgpu/BF16Terms.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "target/DeviceFacts.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

TileLoopProducts::TileLoopProducts(TileLoopBlock &block)
    : c(block), e(block.e), b(block.b), copies(block), turns(block, copies), sums(block),
      check(block), precision(block, check), values(block, *this) {}

Value *TileLoopProducts::descriptorOf(const Staged &staged, Value *stage, Value *first,
                                      unsigned step, unsigned term) {
  constexpr unsigned inKBlock = WgmmaSharedLayout::lineElements / Wgmma::stepDepth;
  Value *address = b.CreatePtrToInt(c.shared, b.getInt32Ty());
  if (stage)
    address = b.CreateAdd(address, stage);
  unsigned behind =
      staged.base + term * staged.termBytes() + step / inKBlock * staged.shared.bytes();
  return Wgmma(b, false).descriptor(staged.shared, address, first, 0, step % inKBlock, behind);
}

/// Values as three terms of bf16, the largest first, which hold all bits of an f32: bits are cut
/// off, and what is left is exact. Where nothing is left, or the value is infinite, a term is the
/// least number of bf16 with the value's sign, which tensor cores cut off beside terms of 2^-109
/// and more: so products with infinities, of which a term of 0 would make NaN, are what those of
/// the value are. Terms of 0 are 0.
SmallVector<TileLoopBlock::Values> TileLoopProducts::bf16Words(Values points, unsigned steps) {
  Type *single = b.getFloatTy();
  constexpr double least = 0x1p-133, toOne = 0x1p100; // at least the least of any f32
  auto number = [&](double value) { return ConstantFP::get(single, value); };
  Values leastOf;
  for (Value *value : points)
    leastOf.push_back(b.CreateMaximum(
        b.CreateMinimum(b.CreateFMul(value, number(toOne)), number(least)), number(-least)));
  SmallVector<Values> words;
  for (unsigned term = 0; term < device::bf16Terms; ++term) {
    for (unsigned step = 0; step < steps; ++step) {
      Values four;
      for (unsigned n = 8 * step; n < 8 * step + 8; n += 2)
        four.push_back(upperHalves(b, points[n], points[n + 1]));
      words.push_back(four);
    }
    for (auto [value, smallest] : zip_equal(points, leastOf)) {
      Value *left = withoutUpperHalf(b, value); // NaN of an infinity
      value = b.CreateSelect(b.CreateFCmpONE(left, number(0)), left, smallest);
    }
  }
  return words;
}

/// The left factor in registers: four words for each 16 points of the sum, of each plane.
SmallVector<TileLoopBlock::Values> TileLoopProducts::rowWords(Product &product) {
  tgl::ReduceOp reduce = product.planned->reduce;
  mlir::Value left = product.planned->aValue;
  DenseSet<mlir::Operation *> needed;
  SmallVector<mlir::Value> pending{left};
  while (!pending.empty())
    if (mlir::Operation *def = pending.pop_back_val().getDefiningOp();
        def && reduce->isProperAncestor(def) && needed.insert(def).second)
      pending.append(def->operand_begin(), def->operand_end());
  Scope scope = values.enter(reduce);
  for (mlir::Operation &op : reduce.getBody().front())
    if (needed.contains(&op))
      values.emitInner(&op, scope);
  Values points = values.full(values.fragmentOf(left), scope).values;
  values.keepExisting(points, scope, ConstantFP::get(b.getFloatTy(), 0));
  Intrinsic::ID pack =
      product.planned->isBF16 ? Intrinsic::nvvm_ff2bf16x2_rn : Intrinsic::nvvm_ff2f16x2_rn;
  if (product.planned->leftTerms > 1)
    return bf16Words(points, product.depth / Wgmma::stepDepth);
  if (product.planned->terms > 1)
    product.scales = precision.splitRows(points);
  SmallVector<Values> words;
  for (unsigned term = 0; term < product.planned->terms; ++term)
    for (unsigned step = 0; step < product.depth / Wgmma::stepDepth; ++step) {
      Values four;
      for (unsigned n = 8 * step; n < 8 * step + 8; n += 2) {
        Value *word = b.CreateIntrinsic(pack, {points[n + 1], points[n]});
        four.push_back(b.CreateBitCast(word, b.getInt32Ty()));
        if (term + 1 < product.planned->terms) // what is left is the next plane
          for (unsigned own : {0, 1})
            points[n + own] = b.CreateFSub(
                points[n + own],
                b.CreateFPExt(b.CreateExtractElement(word, uint64_t(own)), b.getFloatTy()));
      }
      words.push_back(four);
    }
  return words;
}

/// Starts a product with tile `number`, its sums added.
void TileLoopProducts::multiply(Product &product, Value *number, ArrayRef<Values> words) {
  multiply(product, number, words, 0, product.columns);
}

/// Multiplies by `columns` columns, a multiple of 64, from `first` on.
void TileLoopProducts::multiply(Product &product, Value *number, ArrayRef<Values> words,
                                unsigned first, unsigned columns) {
  Wgmma warps(b, product.planned->isBF16);
  Value *stage = copies.stageOf(product, number);
  unsigned steps = divideCeil(product.depth, Wgmma::stepDepth);
  // Small products first: what tensor cores cut off is a part of the sum so far.
  using Pairs = ArrayRef<std::pair<unsigned, unsigned>>;
  static constexpr std::pair<unsigned, unsigned> three[] = {{1, 0}, {0, 1}, {0, 0}},
                                                 ofLeft[] = {{2, 0}, {1, 0}, {0, 0}};
  for (auto [left, right] : product.planned->leftTerms > 1
                                ? Pairs(ofLeft)
                                : Pairs(three).take_back(product.planned->terms > 1 ? 3 : 1))
    for (unsigned step = 0; step < steps; ++step) {
      const Staged &column = product.b;
      Value *factor = descriptorOf(column, stage, c.i32(first), step, right);
      if (product.a) {
        Value *rows = descriptorOf(*product.a, copies.rowStage(product),
                                   b.CreateShl(c.warpgroup, c.i32(6)), step, left);
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
void TileLoopProducts::startCopies() {
  if (c.isWarpSpecialized)
    return;
  for (auto [number, product] : enumerate(c.products)) {
    if (product.a)
      copies.copy(*product.a, nullptr, c.firstRow, c.rowsEnd);
    if (!product.target && product.owner == number)
      copies.copyColumns(product, c.i64(0));
  }
}

/// Starts what an iteration starts with: products of left factors that do not change with this
/// tile, and those that the iteration before has left the words of.
void TileLoopProducts::startTile() {
  c.isWarpSpecialized ? turns.awaitTurn() : copies.awaitCopies();
  for (Product &product : c.products)
    if (product.a) {
      product.accumulators.clear();
      turns.awaitTile(product, c.tileNumber);
      multiply(product, c.tileNumber, {});
      async::commitProducts(b);
    }
  for (Product &product : c.products)
    if (product.target) {
      product.accumulators = c.elements[product.target].values;
      Values accumulators = product.accumulators;
      c.choose(b.CreateICmpSGT(c.tileNumber, c.i64(0)), accumulators, [&] {
        Value *before = b.CreateSub(c.tileNumber, c.i64(1));
        turns.awaitTile(product, before);
        multiply(product, before, product.words);
        return product.accumulators;
      });
      c.elements[product.target].values = product.accumulators = accumulators;
      async::commitProducts(b);
    }
  if (c.isWarpSpecialized)
    return turns.passTurn();
  for (auto [number, product] : enumerate(c.products))
    if (product.owner == number)
      copies.copyColumns(product,
                         product.target ? c.tileNumber : b.CreateAdd(c.tileNumber, c.i64(1)));
}

/// Does what the last iteration has left to do.
void TileLoopProducts::finishTiles() {
  Value *last = b.CreateSub(c.numTiles, c.i64(1));
  if (!c.isWarpSpecialized)
    copies.awaitCopies();
  for (Product &product : c.products)
    if (product.target) {
      product.accumulators = c.elements[product.target].values;
      turns.awaitTile(product, last);
      multiply(product, last, product.words);
      async::commitProducts(b);
      c.elements[product.target].values = product.accumulators;
    }
  for (Product &product : c.products)
    if (product.target) {
      c.elements[product.target].values = async::readProducts(b, product.accumulators);
      product.accumulators.clear();
      turns.releaseTile(product, last);
    }
}

/// ptxas moves a wait up to where nothing else needs to be done before it, and then nothing is left
/// to do while products are under way. It does not move one into the block before: here one ends,
/// with a branch that is never taken to code that is more than an instruction.
void TileLoopProducts::deferWaits() {
  Value *never = b.CreateICmpEQ(b.CreatePtrToInt(e.checks.record, b.getInt64Ty()), c.i64(1));
  e.emitIf(never, [&] {
    e.keepNextLoopRolled = true;
    e.emitLoop(c.i64(0), b.CreateAdd(c.tileNumber, c.i64(2)), c.i64(1), {},
               [&](Value *, ArrayRef<Value *>) {
                 b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {c.i32(-1)});
                 return Values();
               });
  });
}

/// Before a temporary's elements are used. What is ready of the iteration is tied to the wait, so
/// that it is computed before and not after: its words for the next product, and what the loop
/// carries.
void TileLoopProducts::settle(mlir::Value tensor) {
  auto found =
      find_if(c.products, [&](const Product &product) { return product.target == tensor; });
  if (found == c.products.end() || found->accumulators.empty())
    return;
  Values all = c.elements[tensor].values;
  unsigned numSums = all.size();
  SmallVector<Values *> tied;
  for (Product &product : c.products)
    for (Values &four : product.nextWords)
      tied.push_back(&four);
  for (mlir::Value value : tgl::TilesOp(c.plan.tiles).getYield().getValues())
    if (auto ready = c.fragments.find(value); ready != c.fragments.end() && value.getType().isF32())
      tied.push_back(&ready->second.values);
  for (Values *values : tied)
    for (Value *value : *values)
      all.push_back(b.CreateBitCast(value, b.getFloatTy()));
  deferWaits();
  found->accumulators = all;
  Values settled = async::readProducts(b, found->accumulators);
  if (c.isWarpSpecialized)
    e.emitIf(b.CreateICmpSGT(c.tileNumber, c.i64(0)),
             [&] { turns.releaseTile(*found, b.CreateSub(c.tileNumber, c.i64(1))); });
  found->accumulators.clear();
  c.elements[tensor].values.assign(settled.begin(), settled.begin() + numSums);
  ArrayRef<Value *> rest = ArrayRef(settled).drop_front(numSums);
  for (Values *values : tied)
    for (Value *&value : *values) {
      value = b.CreateBitCast(rest.front(), value->getType());
      rest = rest.drop_front();
    }
}

/// The words of products that the next iteration multiplies, before what the nest waits for.
void TileLoopProducts::prepareWords(tgl::ParallelOp nest) {
  for (Product &product : c.products)
    if (product.target && product.planned->nest == nest)
      product.nextWords = rowWords(product);
}

void TileLoopProducts::emitProduct(tgl::ReduceOp op, const Scope &scope) {
  Product &product =
      *find_if(c.products, [&](const Product &p) { return p.planned->reduce == op; });
  if (product.a) {
    Values accumulators = async::readProducts(b, product.accumulators);
    if (c.isWarpSpecialized) {
      turns.releaseTile(product, c.tileNumber);
      deferWaits(); // what follows: the copy of a tile to come takes the time that it does
    }
    check.flagSmallSums(product, accumulators, scope, 0);
    precision.undoScales(product, accumulators);
    c.fragments[op.getResult()] = {true, true, accumulators};
    sums.addPartials(product, c.fragments[op.getResult()].values);
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
      accumulators = values.full(values.fragmentOf(other), scope).values;
    else
      added = nullptr;
  } else {
    added = nullptr;
  }

  mlir::Value result = op.getResult();
  if (added) {
    c.skipped.insert(added);
    result = added.getResult();
  }
  if (product.target) { // the next iteration multiplies
    product.words = std::exchange(product.nextWords, {});
    if (accumulators.empty())
      accumulators.assign(product.columns / 2, ConstantFP::get(b.getFloatTy(), 0));
    c.fragments[result] = {true, true, accumulators};
    return;
  }
  // Sums of planes are few terms each, added up here: what tensor cores cut off of a long sum would
  // be more than f32 does.
  bool addsTiles = product.planned->addsTiles();
  unsigned atOnce = addsTiles ? columnsAtOnce(c.plan, c.tile, *product.planned) : product.columns;
  Values all;
  turns.awaitTile(product, c.tileNumber);
  for (unsigned first = 0; first < product.columns; first += atOnce) {
    unsigned columns = std::min(atOnce, product.columns - first);
    product.accumulators = addsTiles ? Values() : accumulators;
    multiply(product, c.tileNumber, words, first, columns);
    async::commitProducts(b);
    Values partial = async::readProducts(b, product.accumulators);
    if (addsTiles) {
      check.flagSmallSums(product, partial, scope, first);
      precision.undoScales(product, partial);
      if (!accumulators.empty())
        for (auto [sum, before] :
             zip_equal(partial, ArrayRef(accumulators).slice(first / 2, columns / 2)))
          sum = b.CreateFAdd(sum, before);
    }
    all.append(partial);
  }
  c.fragments[result] = {true, true, all};
  turns.releaseTile(product, c.tileNumber);
}
