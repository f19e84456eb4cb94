//===- WarpgroupRoles.cpp - Sums of f32 by warpgroups ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// f32 values keep their accuracy (Ootomo and Yokota, arXiv 2203.03341): x * s = h + l with h the nearest
// number of f16 and l that of the rest, products hh, hl and lh. The power of two s puts the largest element of
// a row's (or column's) first step below 2^10: so all up to 64 times as large fit, and elements down to 2^-12
// of it keep 22 bits, smaller ones an error of 2^-34 of it. Tensor cores truncate what they add up: sums are
// kept for 32 or 64 points of the sum and added to f32 sums in registers.
//
// Where that does not hold a tile is computed again by sumUp: where a sum is not finite (an element too large,
// or itself not finite), or as small as what was lost of it (LostBits.cpp).
//
// Half of a block's threads, the producers, load elements, convert and store them (or a third, where a launch before
// has done so and they copy); the others multiply, and do all the rest. A stage of shared memory goes from one to the other and back by a pair of barriers. While some of
// the producers' warps wait for elements the others convert theirs.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

namespace {
/// Registers of a thread of each role: together what a multiprocessor has.
struct RoleRegisters {
  unsigned producer, consumer;
};
} // namespace

static RoleRegisters roleRegisters(bool copiesInBulk, bool hasCopiers) {
  constexpr RoleRegisters ofHalves = {88, 168}, ofCopiers = {72, 216}, ofBulkCopiers = {40, 232};
  return copiesInBulk ? ofBulkCopiers : hasCopiers ? ofCopiers : ofHalves;
}

/// Exponent of the scale where that step is 0: for elements below 2^10.
static constexpr int blindExponent = 6;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// Of what is kept of lines, word `number` (i32).
Value *DeviceContraction::lineWord(Value *number) {
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(memory.linesBase())));
}

/// Where bits of the largest absolute value of a line's first step are; or one over its scale.
Value *DeviceContraction::ofLine(LineValue which, Value *line) {
  return lineWord(b.CreateAdd(line, i32(unsigned(which) * (tile.rows + tile.columns))));
}

/// The power of two for a line that puts its maximum, as bits, from 2^`scaledExponent` on and below twice that; or one over it.
Value *DeviceContraction::scaleOf(Value *maximum, bool isInverse, int scaledExponent) {
  constexpr int bias = 127, mantissaBits = 23;
  Value *exponent = b.CreateLShr(maximum, i32(mantissaBits));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, exponent, i32(scaledExponent + 1));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umin, exponent, i32(2 * bias));
  exponent = b.CreateSelect(b.CreateICmpEQ(maximum, i32(0)), i32(bias + scaledExponent - blindExponent), exponent);
  Value *scale = isInverse ? b.CreateSub(exponent, i32(scaledExponent))
                           : b.CreateSub(i32(2 * bias + scaledExponent), exponent);
  return b.CreateBitCast(b.CreateShl(scale, i32(mantissaBits)), b.getFloatTy());
}

/// Makes what is at `largest` in shared memory the bits of `value` at least, and what is at `least` these, less 1, at most: of 0
/// that is the largest number.
void DeviceContraction::noteLargest(Value *largest, Value *least, Value *value) {
  SyncScope::ID scope = b.getContext().getOrInsertSyncScopeID("block");
  Value *bits = b.CreateBitCast(value, b.getInt32Ty());
  b.CreateAtomicRMW(AtomicRMWInst::UMax, largest, bits, Align(4), AtomicOrdering::Monotonic, scope);
  b.CreateAtomicRMW(AtomicRMWInst::UMin, least, b.CreateSub(bits, i32(1)), Align(4), AtomicOrdering::Monotonic, scope);
}

Value *DeviceContraction::largestOf(Value *unit) {
  return b.CreateFPMaxReduce(b.CreateUnaryIntrinsic(Intrinsic::fabs, unit));
}

/// `body` for lines of which this thread is the one to know the scale.
void DeviceContraction::forOwnLines(const PlaneProduct &product, function_ref<void(Value *line)> body) {
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned first = 0; operand->isStaged && first < operand->shared.extent; first += threads()) {
      auto emitLine = [&] { body(b.CreateAdd(here.thread, i32(operand->firstLine + first))); };
      if (first + threads() <= operand->shared.extent)
        emitLine();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand->shared.extent - first)), emitLine);
    }
}

/// From the units of the first step, for each its scale.
SmallVector<Value *> DeviceContraction::findScales(const PlaneProduct &product, ArrayRef<Value *> units) {
  // Until one over the scale is known, the least of units' largest values is in its place.
  auto largestAt = [&](Value *line) { return ofLine(LineValue::Maximum, line); };
  auto leastAt = [&](Value *line) { return ofLine(LineValue::InverseScale, line); };
  auto load = [&](Value *place) { return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4)); };
  SmallVector<Value *> lines, scales;
  for (const PlaneOperand *operand : {&product.row, &product.column})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index)
      lines.push_back(b.CreateAdd(lineOf(unitOf(*operand, index)), i32(operand->firstLine)));
  forOwnLines(product, [&](Value *line) {
    b.CreateAlignedStore(i32(0), largestAt(line), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(line), Align(4));
  });
  barrier();
  for (auto [line, unit] : zip_equal(lines, units))
    noteLargest(largestAt(line), leastAt(line), largestOf(unit));
  barrier();
  forOwnLines(product, [&](Value *line) {
    b.CreateAlignedStore(inverseScale(load(largestAt(line)), load(leastAt(line))), leastAt(line), Align(4));
  });
  for (Value *line : lines)
    scales.push_back(scaleOf(load(largestAt(line)), /*isInverse=*/false));
  return scales;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Those that come to barriers of both roles: all, or, where one thread copies, its warp and those that multiply.
unsigned DeviceContraction::barrierThreads() const {
  constexpr unsigned warpThreads = 32;
  return copiesInBulk() ? threads() + warpThreads : blockThreads();
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

/// The ring of each product, the same barriers for all, as one begins when the other has ended. Where consumers add up in
/// between each warpgroup goes on by itself, so that one's products are under way while the other adds. Consumers publish
/// where a producer would wait for loads; of a tile of few stages none are under way.
void DeviceContraction::makeRings() {
  rings.clear();
  for (unsigned number = 0; number < products.size(); ++number) {
    async::RingShape shape{Full, ringStages(), 1, barrierThreads() - threads(), threads(), false};
    if (copiesInBulk()) {
      unsigned bytes = number * ringStages() * 8;
      rings.push_back(async::makeCountedRing(b, shape, here.sharedAt(i32(memory.barriersBase() + bytes))));
      continue;
    }
    shape.groups = tellsOneByOne() ? threads() / Warpgroup::threads : 1;
    shape.fillersPublish = storesFew(makePlaneProduct(number));
    rings.push_back(async::makeRing(b, shape));
  }
  if (isShifted()) // that a patch is there stages tell
    patchRing = async::makeRing(b, {Full + 2 * ringStages(), patches, 0, stagers(), threads(), false});
}

/// Waits for the tile's stage `number` (i64); where it is in the ring (i32).
Value *DeviceContraction::awaitStage(const PlaneProduct &product, Value *number) {
  Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty()), *stage = inRing(inBlock);
  Value *group = tellsOneByOne() ? b.CreateUDiv(here.thread, i32(Warpgroup::threads)) : i32(0);
  async::wait(b, rings[product.number], inBlock, group);
  return stage;
}

/// The threads of the block that do not multiply do `body` and end; what follows is the others'.
void DeviceContraction::splitOff(function_ref<void()> body) {
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
void DeviceContraction::startRoles() {
  // Registers move between roles only where the number at the start is fixed.
  b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "1");
  RoleRegisters registers = roleRegisters(copiesInBulk(), hasCopiers());
  makeRings();
  splitOff([&] {
    SaveAndRestore own(here.thread, b.CreateSub(here.thread, i32(threads())));
    SaveAndRestore number(ownBarrier, unsigned(Producers));
    if (copiesInBulk())
      initStageBarriers();
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32, {i32(registers.producer)});
    auto produceAll = [&] {
      if (isPersistent())
        return produceOwnTiles();
      for (unsigned number = 0; number < products.size(); ++number) {
        if (number)
          waitAt(i32(Again));
        PlaneProduct product = makePlaneProduct(number);
        if (!hasCopiers()) {
          produce(product);
          continue;
        }
        produceCopies(product, noCopies());
        endCopies(product, numStages(product));
      }
    };
    if (!copiesInBulk())
      return produceAll();
    e.emitIf(b.CreateICmpULT(here.thread, i32(barrierThreads() - threads())), [&] {
      arriveAt(i32(Ready));
      leaveFirstStages();
      if (makesOwnMaps()) // by the thread that has boxes copied
        makeMaps();
      if (isMapped())
        acquireMaps();
      produceAll();
    });
  });
  copyFirstStages();
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32, {i32(registers.consumer)});
  if (copiesInBulk()) // the barriers of stages are there
    waitAt(i32(Ready));
  if (isShifted())
    storePlaces();
}

/// Shared memory is free for the next product.
void DeviceContraction::letProducersGoOn() {
  if (copiesInBulk()) // what it was used for comes before copies, which have a proxy of their own
    async::publish(b);
  arriveAt(i32(Again));
}

void DeviceContraction::produce(const PlaneProduct &product) {
  SmallVector<Value *> first = loadNext(product, i64(0));
  if (unsigned few = fewStages(product))
    return produceFew(product, few, first);
  SmallVector<Value *> scales = findScales(product, first);
  e.emitLoop(
      i64(0), numStages(product), i64(1), first, // the units of the step
      [&](Value *number, ArrayRef<Value *> units) {
        Value *inTile = b.CreateTrunc(number, b.getInt32Ty());
        async::acquire(b, rings[product.number], inTile);
        storeUnits(product, units, scales, planeStage(product, inRing(inTile)));
        async::commit(b, rings[product.number], inTile);
        return loadNext(product, b.CreateAdd(number, i64(1)));
      },
      "step");
}

/// How many stages the tile has, where the ring has room for all of them; 0: it has not, or nobody knows.
unsigned DeviceContraction::fewStages(const PlaneProduct &product) {
  auto *known = dyn_cast<ConstantInt>(numStages(product));
  return known && known->getSExtValue() <= ringStages() ? known->getSExtValue() : 0;
}

/// Finds scales and stores a tile's `count` stages, for which the ring has room: no load is made for nothing. `loaded`:
/// units of the first ones, which are there; those of the others are loaded one stage ahead. (Two stages' loads are not
/// under way at a time: the registers for that are not there.)
void DeviceContraction::storeFew(const PlaneProduct &product, unsigned count, ArrayRef<Value *> loaded,
                                 function_ref<void(unsigned number)> afterStage) {
  unsigned numUnits = unitsOfStage(product);
  SmallVector<Value *> scales = findScales(product, loaded.take_front(numUnits));
  SmallVector<Value *> later;
  auto isLoaded = [&](unsigned number) { return (number + 1) * numUnits <= loaded.size(); };
  for (unsigned number = 0; number < count; ++number) {
    ArrayRef<Value *> units = isLoaded(number) ? loaded.slice(number * numUnits, numUnits) : ArrayRef(later);
    storeUnits(product, units, scales, planeStage(product, i32(number)));
    afterStage(number);
    if (number + 1 < count && !isLoaded(number + 1))
      later = loadNext(product, i64(number + 1));
  }
}

void DeviceContraction::produceFew(const PlaneProduct &product, unsigned count, ArrayRef<Value *> loaded) {
  storeFew(product, count, loaded, [&](unsigned number) { async::commit(b, rings[product.number], i32(number)); });
}

/// Of the tile, of this block.
Value *DeviceContraction::numStages(const PlaneProduct &product) {
  return b.CreateMul(product.sum.steps, i64(product.substeps));
}

/// Of the tile's stage `number` (i64) that among all that go through the ring.
Value *DeviceContraction::stageNumber(const PlaneProduct &product, Value *number) {
  return product.stagesBefore ? b.CreateAdd(product.stagesBefore, number) : number;
}

/// Gives the tile's stage `number` (i64) back, unless nobody waits for it.
void DeviceContraction::release(const PlaneProduct &product, Value *number) {
  Value *inBlock = stageNumber(product, number), *last = b.CreateAdd(inBlock, i64(ringStages()));
  e.emitIf(b.CreateICmpSLT(last, product.stagesEver ? product.stagesEver : numStages(product)),
           [&] { async::release(b, rings[product.number], b.CreateTrunc(inBlock, b.getInt32Ty())); });
}

/// `body` for each of the tile's stages when it is there, with what `body` made of the one before; what it makes of the last.
DeviceContraction::Sums DeviceContraction::forStages(const PlaneProduct &product, Sums sums,
                                                     function_ref<Sums(Value *, Value *, ArrayRef<Value *>)> body) {
  unsigned numSums = sums.size();
  sums.append(firstCopies);
  Sums last = e.emitLoop(
      i64(0), numStages(product), i64(1), sums,
      [&](Value *number, ArrayRef<Value *> carried) {
        Value *stage = awaitStage(product, number), *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty());
        SmallVector<Value *> copies = awaitFirstStage(inBlock, carried.drop_front(numSums));
        Sums next = body(number, stage, carried.take_front(numSums));
        next.append(copies);
        return next;
      },
      "stage");
  last.truncate(numSums);
  return last;
}

/// Sums of stages one after the other, those of the next begun while one's are under way.
DeviceContraction::Sums DeviceContraction::sumUpStages(const PlaneProduct &product) {
  Sums zeros(groupColumns(tile) / 2, zeroSum());
  Sums last = forStages(product, zeros, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
    Value *before = b.CreateSub(number, i64(1));
    Sums sums = multiplyPlanes(product, planeStage(product, stage), current);
    async::awaitProducts(b, current.front());
    e.emitIf(b.CreateICmpSGE(before, i64(0)), [&] { release(product, before); });
    return sums;
  });
  Sums sums = async::readProducts(b, last);
  if (product.stagesEver) // another tile's may wait for it
    release(product, b.CreateSub(numStages(product), i64(1)));
  return sums;
}

/// Whether registers hold sums and those of a step's stages, so that one's are added while the next are under way.
bool DeviceContraction::hasRoomForStages(const PlaneProduct &product) {
  constexpr unsigned ofPlaces = 40;
  return (1 + product.substeps) * groupColumns(tile) / 2 + ofPlaces <=
         roleRegisters(copiesInBulk(), hasCopiers()).consumer;
}

/// Sums of one stage or a step's, each added to those before in registers. Tensor cores cut off what does not fit: of positive
/// sums of a step, 64 points, a part of 2.7e-7, of a stage's one of 8e-8. A long sum of f32 loses more by its own roundings, unless
/// it is in parts: then these average out, and what is cut off does not. Of a short sum a stage is waited for at once, which is
/// faster than two together: 0.96 of the time for 512 x 512 x 512 (H200).
DeviceContraction::Sums DeviceContraction::sumUpSteps(const PlaneProduct &product) {
  constexpr int64_t shortSum = 512;
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation()));
  bool isShort = points && *points <= shortSum, addsEach = isShort || tile.splits > 1;
  unsigned together = isShort || (addsEach && !hasRoomForStages(product)) ? 1 : product.substeps;
  SmallVector<Value *> zeros(groupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  auto addStages = [&](Value *first, ArrayRef<Value *> current) {
    Sums sums(current);
    SmallVector<Sums> partial;
    for (unsigned n = 0; n < together; ++n) {
      Value *stage = awaitStage(product, b.CreateAdd(first, i64(n)));
      Sums before = n && !addsEach ? partial.back() : Sums();
      partial.push_back(multiplyPlanes(product, planeStage(product, stage), before));
    }
    for (unsigned n = 0; n < together; ++n) {
      bool isAdded = addsEach || n + 1 == together;
      Sums added = isAdded ? async::readProducts(b, partial[n]) : Sums();
      if (!isAdded)
        async::awaitProducts(b, partial[n].front());
      release(product, b.CreateAdd(first, i64(n)));
      for (auto [number, one] : enumerate(added))
        sums[number] = b.CreateFAdd(sums[number], one);
    }
    return sums;
  };
  return e.emitLoop(
      i64(0), product.sum.steps, i64(1), zeros,
      [&](Value *step, ArrayRef<Value *> current) {
        Sums sums(current);
        for (unsigned substep = 0; substep < product.substeps; substep += together)
          sums = addStages(b.CreateAdd(b.CreateMul(step, i64(product.substeps)), i64(substep)), sums);
        return sums;
      },
      "step");
}

/// Shared memory is free for sums.
DeviceContraction::Sums DeviceContraction::consume(const PlaneProduct &product, Doubts &doubts) {
  if (isPacked() && isSplit())
    loadScales(product);
  Sums sums = isShifted()            ? sumUpShifted(product)
              : areBytes()           ? sumUpBytes(product)
              : product.keepsPartial ? sumUpSteps(product)
                                     : sumUpStages(product);
  if (!isSplit())
    return sums;
  if (isPacked() && copiesInBulk()) // else all have met since scales were stored
    barrier();
  doubts = findDoubts(product, sums);
  unscale(product, sums);
  doubts.isUnsafe = isAnyNotFinite(sums, doubts.isUnsafe);
  return sums;
}
