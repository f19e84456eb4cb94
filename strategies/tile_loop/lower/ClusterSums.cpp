//===- ClusterSums.cpp - Splits a tile loop over a cluster of blocks ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of a cluster have the same rows and tiles; each has a part of the columns that are not the
// tile's. A product that sums over those columns gives a partial sum in each block, and all blocks
// add up all partial sums: first two neighbours exchange theirs, then two such pairs, so that every
// block gets the same bits. A thread stores its sums into the shared memory of the other block
// (`st.async`), where the thread of the same number waits for the bytes, loads them and adds them.
// That thread then stores a word into the first block, which waits for the word before it sends the
// next sums to the same address. Those come a tile later, long after the word has arrived.
//
// Where shared memory has no room for all sums of a tile, they go in rounds: the sums of one round
// are exchanged with the first neighbour while those of the round before are with the second.
//
// A block ends after it has waited for every store that it gets, so no store reaches a block that
// has ended.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/ClusterSums.h"
#include "codegen/async/Async.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

ClusterSums::ClusterSums(TileLoopBlock &block) : c(block), e(block.e), b(block.b) {}

static constexpr unsigned clusterSpace = 7, vectorBytes = 16, vectorFloats = 4;

/// Uses of each place for one tile.
unsigned ClusterSums::usesInTile() const {
  return roundsOf(c.plan, c.tile) * count_if(c.products, [&](const Product &product) {
           return splitsSum(*product.planned, c.tile);
         });
}

/// Byte (i32) of a warpgroup's place for sums of an exchange: those, then two barriers (full and
/// read), then words of threads.
Value *ClusterSums::placeOf(unsigned exchange, Value *group, unsigned behind) {
  unsigned bytes = bytesOfRound(c.plan, c.tile) + TileLoopShape::exchangeState;
  Value *number = b.CreateAdd(group, c.i32(exchange * c.tile.warpgroups));
  Value *distance = b.CreateAdd(b.CreateMul(number, c.i32(bytes)), c.i32(c.exchangeBase + behind));
  return b.CreateInBoundsGEP(b.getInt8Ty(), c.shared, distance);
}

Value *ClusterSums::fullBarrier(unsigned exchange, Value *group) {
  return placeOf(exchange, group, bytesOfRound(c.plan, c.tile));
}

Value *ClusterSums::readBarrier(unsigned exchange, Value *group) {
  return placeOf(exchange, group, bytesOfRound(c.plan, c.tile) + sizeof(int64_t));
}

/// The address of `own` in the block with which this one exchanges sums.
Value *ClusterSums::inOther(unsigned exchange, Value *own) {
  Value *other = b.CreateXor(c.clusterRank, c.i32(1 << exchange));
  return b.CreateIntrinsic(PointerType::get(b.getContext(), clusterSpace),
                           Intrinsic::nvvm_mapa_shared_cluster, {own, other});
}

/// Before threads have roles.
void ClusterSums::start() {
  if (c.tile.clusterBlocks == 1)
    return;
  Function *function = b.GetInsertBlock()->getParent();
  function->addFnAttr("nvvm.cluster_dim", std::to_string(c.tile.clusterBlocks));
  Value *block = c.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, 0x7fffffff);
  c.clusterRank = b.CreateURem(block, c.i32(c.tile.clusterBlocks));
  if (!c.splitsSums())
    return;
  e.emitIf(b.CreateICmpEQ(c.thread, c.i32(0)), [&] {
    Values barriers;
    for (unsigned exchange = 0; exchange < c.tile.exchanges(); ++exchange)
      for (unsigned group = 0; group < c.tile.warpgroups; ++group)
        barriers.append({fullBarrier(exchange, c.i32(group)), readBarrier(exchange, c.i32(group))});
    async::initCounts(b, barriers);
  });
  async::syncCluster(b); // others have begun, and have barriers
}

/// Puts a thread's sums into the place of the other block, once those of the use before have been
/// read there.
void ClusterSums::sendPartials(unsigned exchange, Value *use,
                               MutableArrayRef<Value *> accumulators) {
  Value *full = fullBarrier(exchange, c.warpgroup), *read = readBarrier(exchange, c.warpgroup);
  async::awaitPhase(b, read, b.CreateXor(b.CreateAnd(use, c.i32(1)), c.i32(1)), /*ofCluster=*/true);
  Value *own = b.CreateAnd(c.thread, c.i32(Wgmma::threads - 1));
  e.emitIf(b.CreateICmpEQ(own, c.i32(0)), [&] {
    async::expect(b, full, c.i32(bytesOfRound(c.plan, c.tile)));
    async::expect(b, read, c.i32(Wgmma::threads * sizeof(float)));
  });
  Value *barrier = inOther(exchange, full);
  Value *place =
      b.CreateInBoundsGEP(b.getInt8Ty(), inOther(exchange, placeOf(exchange, c.warpgroup, 0)),
                          c.wide(b.CreateMul(own, c.i32(vectorBytes))));
  for (unsigned first = 0; first < accumulators.size(); first += vectorFloats) {
    Value *to = b.CreateInBoundsGEP(b.getInt8Ty(), place,
                                    c.i64(first / vectorFloats * Wgmma::threads * vectorBytes));
    async::storeToCluster(b, to, accumulators.slice(first, vectorFloats), barrier);
  }
}

/// Adds the other block's, and says that the place is free.
void ClusterSums::receivePartials(unsigned exchange, Value *use,
                                  MutableArrayRef<Value *> accumulators) {
  async::awaitPhase(b, fullBarrier(exchange, c.warpgroup), b.CreateAnd(use, c.i32(1)),
                    /*ofCluster=*/true);
  Value *own = b.CreateAnd(c.thread, c.i32(Wgmma::threads - 1));
  Type *vector = FixedVectorType::get(b.getFloatTy(), vectorFloats);
  Value *place = b.CreateInBoundsGEP(vector, placeOf(exchange, c.warpgroup, 0), c.wide(own));
  for (unsigned first = 0; first < accumulators.size(); first += vectorFloats) {
    Value *from = b.CreateInBoundsGEP(vector, place, c.i64(first / vectorFloats * Wgmma::threads));
    Value *others = b.CreateAlignedLoad(vector, from, Align(vectorBytes));
    for (unsigned n = 0; n < vectorFloats; ++n)
      accumulators[first + n] =
          b.CreateFAdd(accumulators[first + n], b.CreateExtractElement(others, uint64_t(n)));
  }
  Value *word = placeOf(exchange, c.warpgroup, bytesOfRound(c.plan, c.tile) + 2 * sizeof(int64_t));
  Value *to = b.CreateInBoundsGEP(b.getFloatTy(), inOther(exchange, word), c.wide(own));
  async::storeToCluster(
      b, to, accumulators.back(),
      inOther(exchange, readBarrier(exchange, c.warpgroup))); // any number that waits for the loads
}

/// Adds up the partial sums of all blocks, where each has a part of the product's sums of this
/// tile.
void ClusterSums::addPartials(const Product &product, Values &accumulators) {
  if (!splitsSum(*product.planned, c.tile))
    return;
  unsigned rounds = roundsOf(c.plan, c.tile), exchanges = c.tile.exchanges(),
           perRound = accumulators.size() / rounds;
  unsigned usesBefore =
      rounds * count_if(ArrayRef(c.products).take_front(&product - c.products.data()),
                        [&](const Product &other) { return splitsSum(*other.planned, c.tile); });
  Value *inTile = b.CreateMul(b.CreateTrunc(c.tileNumber, b.getInt32Ty()), c.i32(usesInTile()));
  auto forRounds = [&](unsigned wave, auto body) {
    for (unsigned exchange = 0; exchange < exchanges; ++exchange)
      if (unsigned round = wave - exchange; exchange <= wave && round < rounds)
        (this->*body)(exchange, b.CreateAdd(inTile, c.i32(usesBefore + round)),
                      MutableArrayRef(accumulators).slice(round * perRound, perRound));
  };
  for (unsigned wave = 0; wave < rounds + exchanges - 1; ++wave) {
    forRounds(wave, &ClusterSums::sendPartials);
    forRounds(wave, &ClusterSums::receivePartials);
  }
}

/// Other blocks have read all that this one has sent, so nothing is under way to or from it.
void ClusterSums::end() {
  if (!c.splitsSums())
    return;
  Value *uses = b.CreateMul(b.CreateTrunc(c.numTiles, b.getInt32Ty()), c.i32(usesInTile()));
  Value *parity = b.CreateAnd(b.CreateSub(uses, c.i32(1)),
                              c.i32(1)); // of a barrier that nobody has used, it has ended
  for (unsigned exchange = 0; exchange < c.tile.exchanges(); ++exchange)
    async::awaitPhase(b, readBarrier(exchange, c.warpgroup), parity, /*ofCluster=*/true);
}
