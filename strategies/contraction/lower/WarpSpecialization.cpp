//===- WarpSpecialization.cpp - Producer and consumer warps ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 values keep their accuracy (Ootomo and Yokota, arXiv 2203.03341): x * s = h + l with h the
// nearest number of f16 and l that of the rest, products hh, hl and lh. The power of two s puts the
// largest element of a row's (or column's) first step below 2^10: so all up to 64 times as large
// fit, and elements down to 2^-12 of it keep 22 bits, smaller ones an error of 2^-34 of it. Tensor
// cores truncate what they add up: sums are kept for 32 or 64 points of the sum and added to f32
// sums in registers.
//
// Where that does not hold a tile is computed again by mmaMainloop: where a sum is not finite (an
// element too large, or itself not finite), or as small as what was lost of it (AccuracyCheck.cpp).
//
// Half of a block's threads, the producers, load elements, convert and store them (or a third,
// where a launch before has done so and they copy); the others multiply, and do all the rest. A
// stage of shared memory goes from one to the other and back by a pair of barriers. While some of
// the producers' warps wait for elements the others convert theirs.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

namespace {
/// Registers of a thread of each role: together what a multiprocessor has.
struct WarpRoleRegisters {
  unsigned producer, consumer;
};
} // namespace

static WarpRoleRegisters warpRoleRegisters(bool usesBulkLoads, bool hasCopyProducers) {
  constexpr WarpRoleRegisters ofHalves = {88, 168}, ofCopyProducers = {72, 216},
                              ofBulkProducers = {40, 232};
  return usesBulkLoads ? ofBulkProducers : hasCopyProducers ? ofCopyProducers : ofHalves;
}

/// Exponent of the scale where that step is 0: for elements below 2^10.
static constexpr int zeroStepExponent = 6;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Of what is kept of lines, word `number` (i32).
Value *DeviceContraction::lineScaleWord(Value *number) {
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(memory.linesBase())));
}

/// Where bits of the largest absolute value of a line's first step are; or one over its scale.
Value *DeviceContraction::lineScaleAddress(LineValue which, Value *line) {
  return lineScaleWord(b.CreateAdd(line, i32(unsigned(which) * (tile.rows + tile.columns))));
}

/// The power of two for a line that puts its maximum, as bits, from 2^`scaledExponent` on and below
/// twice that; or one over it.
Value *DeviceContraction::scaleOf(Value *maximum, bool isInverse, int scaledExponent) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(maximum, i32(mantissaBits));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, exponent, i32(scaledExponent + 1));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umin, exponent, i32(2 * bias));
  exponent = b.CreateSelect(b.CreateICmpEQ(maximum, i32(0)),
                            i32(bias + scaledExponent - zeroStepExponent), exponent);
  Value *scale = isInverse ? b.CreateSub(exponent, i32(scaledExponent))
                           : b.CreateSub(i32(2 * bias + scaledExponent), exponent);
  return b.CreateBitCast(b.CreateShl(scale, i32(mantissaBits)), b.getFloatTy());
}

/// Makes what is at `largest` in shared memory the bits of `value` at least, and what is at `least`
/// these, less 1, at most: of 0 that is the largest number.
void DeviceContraction::noteLargest(Value *largest, Value *least, Value *value) {
  SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("block");
  Value *bits = b.CreateBitCast(value, b.getInt32Ty());
  b.CreateAtomicRMW(AtomicRMWInst::UMax, largest, bits, Align(4), AtomicOrdering::Monotonic, scope);
  b.CreateAtomicRMW(AtomicRMWInst::UMin, least, b.CreateSub(bits, i32(1)), Align(4),
                    AtomicOrdering::Monotonic, scope);
}

Value *DeviceContraction::largestOf(Value *chunk) {
  return b.CreateFPMaxReduce(b.CreateUnaryIntrinsic(Intrinsic::fabs, chunk));
}

/// `body` for lines of which this thread is the one to know the scale.
void DeviceContraction::forThreadLines(const WgmmaProduct &product,
                                       function_ref<void(Value *line)> body) {
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned first = 0; operand->isStaged && first < operand->shared.extent;
         first += threads()) {
      auto emitLine = [&] { body(b.CreateAdd(here.thread, i32(operand->firstLine + first))); };
      if (first + threads() <= operand->shared.extent)
        emitLine();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand->shared.extent - first)), emitLine);
    }
}

/// From the units of the first step, for each its scale.
SmallVector<Value *> DeviceContraction::findScales(const WgmmaProduct &product,
                                                   ArrayRef<Value *> chunks) {
  // Until one over the scale is known, the least of units' largest values is in its place.
  auto largestAt = [&](Value *line) { return lineScaleAddress(LineValue::Maximum, line); };
  auto leastAt = [&](Value *line) { return lineScaleAddress(LineValue::InverseScale, line); };
  auto load = [&](Value *place) { return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4)); };
  SmallVector<Value *> lines, scales;
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index)
      lines.push_back(b.CreateAdd(lineOf(chunkOf(*operand, index)), i32(operand->firstLine)));
  forThreadLines(product, [&](Value *line) {
    b.CreateAlignedStore(i32(0), largestAt(line), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(line), Align(4));
  });
  barrier();
  for (auto [line, chunk] : zip_equal(lines, chunks))
    noteLargest(largestAt(line), leastAt(line), largestOf(chunk));
  barrier();
  forThreadLines(product, [&](Value *line) {
    b.CreateAlignedStore(inverseScale(load(largestAt(line)), load(leastAt(line))), leastAt(line),
                         Align(4));
  });
  for (Value *line : lines)
    scales.push_back(scaleOf(load(largestAt(line)), /*isInverse=*/false));
  return scales;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Those that come to barriers of both roles: all, or, where one thread copies, its warp and those
/// that multiply.
unsigned DeviceContraction::barrierThreads() const {
  constexpr unsigned warpThreads = 32;
  return usesBulkLoads() ? threads() + warpThreads : blockThreads();
}

/// Announces to the other role that barrier `number` (i32) is reached; or waits for the other.
void DeviceContraction::arriveAt(Value *number) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                    {number, i32(barrierThreads())});
}
void DeviceContraction::waitAt(Value *number) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, i32(barrierThreads())});
}

/// The ring of each product, the same barriers for all, as one begins when the other has ended.
/// Where consumers add up in between each warpgroup goes on by itself, so that one's products are
/// under way while the other adds. Consumers publish where a producer would wait for loads; of a
/// tile of few stages none are under way.
void DeviceContraction::makeRings() {
  rings.clear();
  for (unsigned number = 0; number < products.size(); ++number) {
    async::RingShape shape{FirstRing, ringStages(), 1, barrierThreads() - threads(),
                           threads(), false};
    if (usesBulkLoads()) {
      unsigned bytes = number * ringStages() * 8;
      rings.push_back(
          async::makeCountedRing(b, shape, here.sharedAt(i32(memory.barriersBase() + bytes))));
      continue;
    }
    shape.groups = signalsPerWarpgroup() ? threads() / Wgmma::threads : 1;
    shape.fillersPublish = hasShortTiles(makeWgmmaProduct(number));
    rings.push_back(async::makeRing(b, shape));
  }
  if (usesHaloTile()) // that a patch is there stages tell
    haloRing = async::makeRing(
        b, {FirstRing + 2 * ringStages(), haloBuffers, 0, producerThreads(), threads(), false});
}

/// Waits for the tile's stage `number` (i64); where it is in the ring (i32).
Value *DeviceContraction::awaitStage(const WgmmaProduct &product, Value *number) {
  Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty()),
        *stage = inRing(inBlock);
  Value *group = signalsPerWarpgroup() ? b.CreateUDiv(here.thread, i32(Wgmma::threads)) : i32(0);
  async::wait(b, rings[product.number], inBlock, group);
  return stage;
}

/// The threads of the block that do not multiply do `body` and end; what follows is the others'.
void DeviceContraction::runProducers(function_ref<void()> body) {
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *producer = BasicBlock::Create(b.getContext(), "producer", function);
  BasicBlock *consumer = BasicBlock::Create(b.getContext(), "consumer", function);
  b.CreateCondBr(b.CreateICmpUGE(here.thread, i32(threads())), producer, consumer);
  b.SetInsertPoint(producer);
  body();
  b.CreateRetVoid();
  b.SetInsertPoint(consumer);
}

/// Producers do their part of all products and end.
void DeviceContraction::startWarpSpecialization() {
  // Registers move between roles only where the number at the start is fixed.
  b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "1");
  WarpRoleRegisters registers = warpRoleRegisters(usesBulkLoads(), hasCopyProducers());
  makeRings();
  runProducers([&] {
    SaveAndRestore own(here.thread, b.CreateSub(here.thread, i32(threads())));
    SaveAndRestore number(consumerBarrier, unsigned(ProducersOnly));
    if (usesBulkLoads())
      initStageBarriers();
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                      {i32(registers.producer)});
    auto produceAll = [&] {
      if (isPersistent())
        return producePersistentTiles();
      for (unsigned number = 0; number < products.size(); ++number) {
        if (number)
          waitAt(i32(SharedIsFree));
        WgmmaProduct product = makeWgmmaProduct(number);
        if (!hasCopyProducers()) {
          produce(product);
          continue;
        }
        produceCopies(product, noCopies());
        endCopies(product, numStages(product));
      }
    };
    if (!usesBulkLoads())
      return produceAll();
    e.emitIf(b.CreateICmpULT(here.thread, i32(barrierThreads() - threads())), [&] {
      arriveAt(i32(BarriersAreReady));
      skipPrologueStages();
      if (makesTmaDescriptors()) // by the thread that has boxes copied
        makeTmaDescriptors();
      if (usesTma())
        acquireTmaDescriptors();
      produceAll();
    });
  });
  issuePrologueLoads();
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {i32(registers.consumer)});
  if (usesBulkLoads()) // the barriers of stages are there
    waitAt(i32(BarriersAreReady));
  if (usesHaloTile())
    storeTapOffsets();
}

/// Shared memory is free for the next product.
void DeviceContraction::releaseProducers() {
  if (usesBulkLoads()) // what it was used for comes before copies, which have a proxy of their own
    async::publish(b);
  arriveAt(i32(SharedIsFree));
}

void DeviceContraction::produce(const WgmmaProduct &product) {
  SmallVector<Value *> first = loadNext(product, i64(0));
  if (unsigned few = shortTileStages(product))
    return produceShortTile(product, few, first);
  SmallVector<Value *> scales = findScales(product, first);
  e.emitLoop(
      i64(0), numStages(product), i64(1), first, // the units of the step
      [&](Value *number, ArrayRef<Value *> chunks) {
        Value *inTile = b.CreateTrunc(number, b.getInt32Ty());
        async::acquire(b, rings[product.number], inTile);
        storeChunks(product, chunks, scales, stageAddress(product, inRing(inTile)));
        async::commit(b, rings[product.number], inTile);
        return loadNext(product, b.CreateAdd(number, i64(1)));
      },
      "step");
}

/// How many stages the tile has, where the ring has room for all of them; 0: it has not, or nobody
/// knows.
unsigned DeviceContraction::shortTileStages(const WgmmaProduct &product) {
  auto *known = dyn_cast<ConstantInt>(numStages(product));
  return known && known->getSExtValue() <= ringStages() ? known->getSExtValue() : 0;
}

/// Finds scales and stores a tile's `count` stages, for which the ring has room: no load is made
/// for nothing. `loaded`: units of the first ones, which are there; those of the others are loaded
/// one stage ahead. (Two stages' loads are not under way at a time: the registers for that are not
/// there.)
void DeviceContraction::storeShortTile(const WgmmaProduct &product, unsigned count,
                                       ArrayRef<Value *> loaded,
                                       function_ref<void(unsigned number)> afterStage) {
  unsigned numChunks = chunksOfStage(product);
  SmallVector<Value *> scales = findScales(product, loaded.take_front(numChunks));
  SmallVector<Value *> later;
  auto isLoaded = [&](unsigned number) { return (number + 1) * numChunks <= loaded.size(); };
  for (unsigned number = 0; number < count; ++number) {
    ArrayRef<Value *> chunks =
        isLoaded(number) ? loaded.slice(number * numChunks, numChunks) : ArrayRef(later);
    storeChunks(product, chunks, scales, stageAddress(product, i32(number)));
    afterStage(number);
    if (number + 1 < count && !isLoaded(number + 1))
      later = loadNext(product, i64(number + 1));
  }
}

void DeviceContraction::produceShortTile(const WgmmaProduct &product, unsigned count,
                                         ArrayRef<Value *> loaded) {
  storeShortTile(product, count, loaded,
                 [&](unsigned number) { async::commit(b, rings[product.number], i32(number)); });
}

/// Of the tile, of this block.
Value *DeviceContraction::numStages(const WgmmaProduct &product) {
  return b.CreateMul(product.kLoop.steps, i64(product.substeps));
}

/// Of the tile's stage `number` (i64) that among all that go through the ring.
Value *DeviceContraction::stageNumber(const WgmmaProduct &product, Value *number) {
  return product.stagesBefore ? b.CreateAdd(product.stagesBefore, number) : number;
}

/// Gives the tile's stage `number` (i64) back, unless nobody waits for it.
void DeviceContraction::release(const WgmmaProduct &product, Value *number) {
  Value *inBlock = stageNumber(product, number), *last = b.CreateAdd(inBlock, i64(ringStages()));
  e.emitIf(
      b.CreateICmpSLT(last, product.stagesInAll ? product.stagesInAll : numStages(product)),
      [&] { async::release(b, rings[product.number], b.CreateTrunc(inBlock, b.getInt32Ty())); });
}

/// `body` for each of the tile's stages when it is there, with what `body` made of the one before;
/// what it makes of the last.
DeviceContraction::Accumulators
DeviceContraction::forStages(const WgmmaProduct &product, Accumulators accumulators,
                             function_ref<Accumulators(Value *, Value *, ArrayRef<Value *>)> body) {
  unsigned numAccumulators = accumulators.size();
  accumulators.append(prologueLoads);
  Accumulators last = e.emitLoop(
      i64(0), numStages(product), i64(1), accumulators,
      [&](Value *number, ArrayRef<Value *> carried) {
        Value *stage = awaitStage(product, number),
              *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty());
        SmallVector<Value *> copies =
            awaitPrologueLoad(inBlock, carried.drop_front(numAccumulators));
        Accumulators next = body(number, stage, carried.take_front(numAccumulators));
        next.append(copies);
        return next;
      },
      "stage");
  last.truncate(numAccumulators);
  return last;
}

/// Sums of stages one after the other, those of the next begun while one's are under way.
DeviceContraction::Accumulators
DeviceContraction::wgmmaMainloopByStages(const WgmmaProduct &product) {
  Accumulators zeros(warpgroupColumns(tile) / 2, zeroAccumulator());
  Accumulators last =
      forStages(product, zeros, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
        Value *before = b.CreateSub(number, i64(1));
        Accumulators accumulators = multiplyTerms(product, stageAddress(product, stage), current);
        async::awaitProducts(b, current.front());
        e.emitIf(b.CreateICmpSGE(before, i64(0)), [&] { release(product, before); });
        return accumulators;
      });
  Accumulators accumulators = async::readProducts(b, last);
  if (product.stagesInAll) // another tile's may wait for it
    release(product, b.CreateSub(numStages(product), i64(1)));
  return accumulators;
}

/// Whether registers hold sums and those of a step's stages, so that one's are added while the next
/// are under way.
bool DeviceContraction::hasRoomForStages(const WgmmaProduct &product) {
  constexpr unsigned ofPlaces = 40;
  return (1 + product.substeps) * warpgroupColumns(tile) / 2 + ofPlaces <=
         warpRoleRegisters(usesBulkLoads(), hasCopyProducers()).consumer;
}

/// Sums of one stage or a step's, each added to those before in registers. Tensor cores cut off
/// what does not fit: of positive sums of a step, 64 points, a part of 2.7e-7, of a stage's one of
/// 8e-8. A long sum of f32 loses more by its own roundings, unless it is in parts: then these
/// average out, and what is cut off does not. Of a short sum a stage is waited for at once, which
/// is faster than two together: 0.96 of the time for 512 x 512 x 512 (H200).
DeviceContraction::Accumulators
DeviceContraction::wgmmaMainloopBySteps(const WgmmaProduct &product) {
  constexpr int64_t shortSum = 512;
  std::optional<int64_t> points =
      tgl::knownPoints(cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation()));
  bool isShort = points && *points <= shortSum, addsEach = isShort || tile.splits > 1;
  unsigned together = isShort || (addsEach && !hasRoomForStages(product)) ? 1 : product.substeps;
  SmallVector<Value *> zeros(warpgroupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  auto addStages = [&](Value *first, ArrayRef<Value *> current) {
    Accumulators accumulators(current);
    SmallVector<Accumulators> partial;
    for (unsigned n = 0; n < together; ++n) {
      Value *stage = awaitStage(product, b.CreateAdd(first, i64(n)));
      Accumulators before = n && !addsEach ? partial.back() : Accumulators();
      partial.push_back(multiplyTerms(product, stageAddress(product, stage), before));
    }
    for (unsigned n = 0; n < together; ++n) {
      bool isAdded = addsEach || n + 1 == together;
      Accumulators added = isAdded ? async::readProducts(b, partial[n]) : Accumulators();
      if (!isAdded)
        async::awaitProducts(b, partial[n].front());
      release(product, b.CreateAdd(first, i64(n)));
      for (auto [number, one] : enumerate(added))
        accumulators[number] = b.CreateFAdd(accumulators[number], one);
    }
    return accumulators;
  };
  return e.emitLoop(
      i64(0), product.kLoop.steps, i64(1), zeros,
      [&](Value *step, ArrayRef<Value *> current) {
        Accumulators accumulators(current);
        for (unsigned substep = 0; substep < product.substeps; substep += together)
          accumulators = addStages(
              b.CreateAdd(b.CreateMul(step, i64(product.substeps)), i64(substep)), accumulators);
        return accumulators;
      },
      "step");
}

/// Shared memory is free for sums.
DeviceContraction::Accumulators DeviceContraction::consume(const WgmmaProduct &product,
                                                           AccuracyFlags &flags) {
  if (isPrepacked() && usesSplitPrecision())
    loadScales(product);
  Accumulators accumulators = usesHaloTile()                 ? haloMainloop(product)
                              : areBytes()                   ? byteMainloop(product)
                              : product.promotesAccumulators ? wgmmaMainloopBySteps(product)
                                                             : wgmmaMainloopByStages(product);
  if (!usesSplitPrecision())
    return accumulators;
  if (isPrepacked() && usesBulkLoads()) // else all have met since scales were stored
    barrier();
  flags = flagInaccurate(product, accumulators);
  unscale(product, accumulators);
  flags.isInaccurate = isAnyNotFinite(accumulators, flags.isInaccurate);
  return accumulators;
}
