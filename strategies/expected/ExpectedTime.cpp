//===- ExpectedTime.cpp - How long a launch should take -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/ExpectedTime.h"

#include "strategies/expected/Footprint.h"

#include <cmath>

using namespace llvm;
using namespace tegula;

// Rates without another source were fitted to bench/real at full sizes on an H200
// (bench/real/expected.py --times=docs/results/real.md --machine=h200).

/// Microseconds from the end of a launch to the begin of what the next one computes.
static constexpr double startMicroseconds = 2;
/// What code reaches of a copy's rate.
static constexpr double shareOfCopy = 0.95, shareOfCopyInScans = 0.85, shareOfCopyInSkinny = 0.6;
/// Bytes of a multiprocessor's first-level cache in a clock, of 128.
static constexpr double firstCacheBytes = 110;
/// Instructions of a multiprocessor in a clock, of 128: of general code; of tile loops, which do
/// them while tensor cores multiply; of skinny products, whose few threads wait for their weights;
/// on doubles, beside.
static constexpr double lanesPerClock = 118, lanesPerClockInTiles = 100, lanesPerClockInSkinny = 68,
                        doublesPerClock = 64;
/// Shares of the tensor cores' rate.
static constexpr double tensorShareOfTileLoops = 0.8, tensorShareOfReductions = 0.7,
                        tensorShareOfWarpgroups = 0.88, tensorShareOfSplitPrecision = 0.065,
                        tensorShareUnranked = 0.6;
/// Threads of a multiprocessor that hide each other's latencies.
static constexpr double threadsAtOnce = 2048;
/// Cycles from an instruction of a warp to its next, beside what the chain has: a multiprocessor
/// with a warp for each scheduler issues one in two of them.
static constexpr double issueCycles = 2;
/// Until a block's first tile is there, and from its last product to its results in memory.
static constexpr double rowTileMicroseconds = 4;
/// Additions a second to copies in shared memory.
static constexpr double sharedAtomicsRate = 3e12;
/// Until a launch of a sort has what the one before has counted.
static constexpr double passMicroseconds = 0.6;
/// Elements a second: of sorts in registers and passes over digits; of selections, which move few
/// of them; of radix sorts in one block.
static constexpr double sortedRate = 1.1e11, selectedRate = 1.25e11, sortedInBlockRate = 3e10;

ArrayRef<std::pair<StringRef, double ExpectedTime::*>> ExpectedTime::parts() {
  static constexpr std::pair<StringRef, double ExpectedTime::*> all[] = {
      {"start", &ExpectedTime::start},     {"memory", &ExpectedTime::memory},
      {"cache", &ExpectedTime::cache},     {"lanes", &ExpectedTime::lanes},
      {"tensor", &ExpectedTime::tensor},   {"chain", &ExpectedTime::chain},
      {"atomics", &ExpectedTime::atomics}, {"sort", &ExpectedTime::sort}};
  return all;
}

ExpectedTime &ExpectedTime::operator+=(const ExpectedTime &other) {
  for (auto [name, part] : parts())
    this->*part += other.*part;
  total += other.total;
  return *this;
}

StringRef ExpectedTime::largest() const {
  std::pair<double, StringRef> named[] = {{start, "the start of launches"},
                                          {memory, "memory"},
                                          {cache, "what threads ask the caches for"},
                                          {lanes, "instructions"},
                                          {tensor, "tensor cores"},
                                          {chain, "instructions that wait for each other"},
                                          {atomics, "additions to the same places"},
                                          {sort, "sorting"}};
  return std::max_element(std::begin(named), std::end(named))->second;
}

static constexpr double microseconds = 1e6;

/// Microseconds of additions to memory: where many meet, they follow each other.
static double atomicsTime(const LaunchWork &work) {
  constexpr double alone = 3e11, manyMeet = 16,
                   power = 0.47; // histograms and scatters of bench/real
  if (work.atomics == 0)
    return 0;
  double meeting = work.atomics / std::max(work.atomicTargets, 1.0);
  return work.atomics / alone * std::pow(1 + meeting / manyMeet, power) * microseconds;
}

/// Tiles of rows that follow each other in loops over tiles.
static double tilesOfRows(const LaunchWork &work, const Card &card) {
  if (work.strategy == fewRowsStrategy().name())
    return 1;
  return work.strategy == tileLoopStrategy().name() ? work.blocks / card.multiprocessors : 0;
}

/// How often a multiprocessor's threads give place to others.
static double wavesOf(const LaunchWork &work, const Card &card) {
  return work.points * work.team * work.columnSplit / work.vector / card.multiprocessors /
         threadsAtOnce;
}

/// Whether a multiprocessor has room for one block only, as rows are in its registers.
static bool isAlone(const LaunchWork &work) {
  constexpr double registers = 65536, beside = 32;
  return work.heldRegisters > 0 &&
         (work.heldRegisters + beside) * work.blockThreads * 2 > registers;
}

/// What a thread or team for each point takes.
static void addGeneral(const LaunchWork &work, const Card &card, ExpectedTime &time) {
  double perSecond = card.multiprocessors * card.clock;
  double threads = std::max(work.points * work.team / work.vector, 1.0);
  // Blocks come to multiprocessors whole.
  double blocks = std::ceil(threads / work.blockThreads);
  double perMultiprocessor = std::ceil(blocks / card.multiprocessors);
  double uneven = perMultiprocessor * card.multiprocessors / std::max(blocks, 1.0);
  double waves = perMultiprocessor * work.blockThreads / threadsAtOnce;
  if (waves > 4)
    uneven = 1;
  time.cache = std::max(work.sectors * sectorBytes / (firstCacheBytes * perSecond) * uneven,
                        work.cacheBytes / card.cacheRate) *
               microseconds;
  time.lanes = (work.instructions / lanesPerClock + work.doubles / doublesPerClock) * uneven /
               perSecond * microseconds;
  // Warps take their instructions in order.
  double alone = work.chain + issueCycles * work.instructions / (threads * work.columnSplit);
  time.chain = alone * (waves > 4 ? waves : std::ceil(waves)) / card.clock * microseconds;
  time.atomics = atomicsTime(work);
  time.sort = work.sorted / sortedRate * microseconds;
}

/// Microseconds that the ranking of tiles counts and blocks beside each other hide: it adds up
/// their loads, products and sums. The first of them, and products of other types, which have sums
/// of their own between, are as it says.
static double hiddenByBlocks(const LaunchWork &work, double ranked, double products,
                             double memory) {
  constexpr double firstTiles = 25, besideProducts = 0.6, besideMemory = 0.8;
  if (work.unit != LaunchUnit::TensorHalf)
    return 0;
  double more = std::max(ranked - std::max(products, memory) - firstTiles, 0.0);
  return more * (memory > products ? besideMemory : besideProducts);
}

/// Products by tensor cores in tiles: by the ranking of tiles where there is one, whose clocks have
/// the operands' bytes in them; never faster than cuBLAS.
static void addContraction(const LaunchWork &work, const Card &card, ExpectedTime &time) {
  constexpr double underLoad = 0.96, leastOfProducts = 1.05;
  bool areBytes = work.unit == LaunchUnit::TensorBytes;
  double products = 2 * work.products * work.computed / card.tensorRate / (areBytes ? 2 : 1);
  if (!work.clocks) {
    time.tensor = products / tensorShareUnranked * microseconds;
    return;
  }
  double least = work.unit == LaunchUnit::TensorSingle ? 0 : products * leastOfProducts;
  double ranked = std::max(*work.clocks / (card.clock * underLoad), least) * microseconds;
  time.tensor = ranked - hiddenByBlocks(work, ranked, least * microseconds, time.memory);
  (time.tensor > time.memory ? time.memory : time.tensor) = 0;
  time.lanes = work.instructions / lanesPerClock / card.multiprocessors / card.clock * microseconds;
}

/// What each part takes of a launch.
static ExpectedTime partsOf(const LaunchWork &work, const Card &card) {
  ExpectedTime time;
  double perSecond = card.multiprocessors * card.clock;
  double products = 2 * work.products * work.computed / card.tensorRate * microseconds;
  time.start = work.launches * startMicroseconds;
  time.memory =
      ((work.bytesRead - work.bytesCached + work.bytesWritten) / (card.copyRate * shareOfCopy) +
       work.bytesCached / card.cacheRate) *
      microseconds;
  StringRef strategy = work.strategy;
  if (strategy == contractionStrategy().name()) {
    addContraction(work, card, time);
  } else if (strategy == tileLoopStrategy().name()) {
    time.tensor = products / tensorShareOfTileLoops;
    time.lanes =
        work.instructions * work.computed / lanesPerClockInTiles / perSecond * microseconds;
  } else if (strategy == fewRowsStrategy().name()) {
    time.memory *= shareOfCopy; // nothing but loads
    time.lanes = work.tileInstructions / lanesPerClock / perSecond * microseconds;
  } else if (strategy == productReductionStrategy().name()) {
    bool isSplit = work.unit == LaunchUnit::TensorSingle;
    bool byWarpgroups = work.columnInstructions > 0;
    time.tensor = products / (isSplit        ? tensorShareOfSplitPrecision
                              : byWarpgroups ? tensorShareOfWarpgroups
                                             : tensorShareOfReductions);
    time.lanes = work.columnInstructions / lanesPerClockInTiles / perSecond * microseconds;
    time.atomics = atomicsTime(work);
  } else if (strategy == skinnyProductStrategy().name()) {
    time.memory /= shareOfCopyInSkinny;
    time.lanes = work.instructions / lanesPerClockInSkinny / perSecond * microseconds;
  } else if (strategy == fewTargetsStrategy().name()) {
    addGeneral(work, card, time);
    time.chain = 0; // a block has many points of its part under way
    time.atomics = work.atomics / sharedAtomicsRate * microseconds;
  } else if (strategy == scanStrategy().name()) {
    time.memory /= shareOfCopyInScans;
  } else if (strategy == sortStrategy().name()) {
    time.memory = 0; // keys move as often as they are sorted
    double rate = work.launches == 1 ? sortedInBlockRate
                  : work.passes == 1 ? selectedRate
                                     : sortedRate;
    time.sort = work.sorted * work.passes / rate * microseconds + passMicroseconds * work.launches;
  } else {
    addGeneral(work, card, time);
  }
  return time;
}

/// The power in which parts add up: nearly the sum where teams are at the same place of their
/// points, as all have begun together; less of one where others are elsewhere meanwhile, or, in
/// loops over tiles, have been given other work.
static double powerOf(const LaunchWork &work, const Card &card) {
  constexpr double together = 1.2, alone = 1.4, apart = 2, specialized = 2.5, fewWaves = 2;
  if (work.strategy == tileLoopStrategy().name())
    return specialized;
  if (work.strategy != generalStrategy().name() || work.team == 1)
    return apart;
  return wavesOf(work, card) <= fewWaves ? together : isAlone(work) ? alone : apart;
}

/// Microseconds of a launch whose parts are known, without its start.
static double combine(ExpectedTime time, const LaunchWork &work, const Card &card) {
  double after = rowTileMicroseconds * tilesOfRows(work, card);
  if (work.takesTurns > 0)
    time.tensor += std::exchange(time.lanes, 0);
  else if (work.strategy == contractionStrategy().name())
    after += std::exchange(time.lanes, 0); // epilogues follow their products
  // What goes through the caches is what comes from memory.
  double power = powerOf(work, card), sum = std::pow(std::max(time.memory, time.cache), power);
  for (double part : {time.lanes, time.tensor, time.chain, time.atomics, time.sort})
    sum += std::pow(part, power);
  return std::pow(sum, 1 / power) + after;
}

ExpectedTime tegula::expectedTime(const LaunchWork &work, const Card &card) {
  ExpectedTime time = partsOf(work, card);
  time.total = (time.start + combine(time, work, card)) * work.runs;
  for (auto [name, part] : ExpectedTime::parts())
    time.*part *= work.runs;
  return time;
}
