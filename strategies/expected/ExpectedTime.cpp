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

// Rates were fitted to bench/real at full sizes on an H100 and an H200 (bench/real/expected.py).

/// Microseconds from the end of a launch to the begin of what the next one computes.
static constexpr double startMicroseconds = 2;
/// What code reaches of a copy's rate.
static constexpr double shareOfCopy = 0.95, shareOfCopyInScans = 0.85, shareOfCopyInSkinny = 0.6;
/// Bytes of a multiprocessor's first-level cache in a clock, of 128.
static constexpr double firstCacheBytes = 110;
/// Instructions of a multiprocessor in a clock, of 128: of general code; of tile loops, which do
/// them while tensor cores multiply; on doubles, beside.
static constexpr double lanesPerClock = 110, lanesPerClockInTiles = 100, doublesPerClock = 64;
/// Shares of the tensor cores' rate.
static constexpr double tensorShareOfTileLoops = 0.73, tensorShareOfReductions = 0.4,
                        tensorShareOfSplitPrecision = 0.1, tensorShareUnranked = 0.6;
/// Threads of a multiprocessor that hide each other's latencies; that keep its lanes busy.
static constexpr double threadsAtOnce = 2048, busyThreads = 160;
/// Additions a second to copies in shared memory.
static constexpr double sharedAtomicsRate = 3e12;
/// Elements a second: of sorts in registers, of radix sorts in one block, of passes over digits.
static constexpr double sortedRate = 1e11, sortedInBlockRate = 3e10;

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

/// What a thread or team for each point takes.
static void addGeneral(const LaunchWork &work, const Card &card, ExpectedTime &time) {
  double perSecond = card.multiprocessors * card.clock;
  double threads = std::max(work.points * work.team / work.vector, 1.0);
  // Blocks come to multiprocessors whole.
  double blocks = std::ceil(threads / work.blockThreads);
  double perMultiprocessor = std::ceil(blocks / card.multiprocessors);
  double uneven = perMultiprocessor * card.multiprocessors / std::max(blocks, 1.0);
  double resident = std::min(perMultiprocessor * work.blockThreads, threadsAtOnce);
  double waves = perMultiprocessor * work.blockThreads / threadsAtOnce;
  double fill = std::min(1.0, resident / busyThreads);
  if (waves > 4)
    uneven = 1;
  time.cache = (work.sectors * sectorBytes / (firstCacheBytes * perSecond) * uneven +
                work.cacheBytes / card.cacheRate) *
               microseconds;
  time.lanes = (work.instructions / lanesPerClock + work.doubles / doublesPerClock) / fill *
               uneven / perSecond * microseconds;
  time.chain = work.chain * (waves > 4 ? waves : std::ceil(waves)) / card.clock * microseconds;
  time.atomics = atomicsTime(work);
  time.sort = work.sorted / sortedRate * microseconds;
}

/// Products by tensor cores in tiles: by the ranking of tiles where there is one, whose clocks have
/// the operands' bytes in them; never faster than cuBLAS.
static void addContraction(const LaunchWork &work, const Card &card, ExpectedTime &time) {
  constexpr double boost = 1.12, leastOfProducts = 1.05;
  bool areBytes = work.unit == LaunchUnit::TensorBytes;
  double products = 2 * work.products * work.computed / card.tensorRate / (areBytes ? 2 : 1);
  if (!work.clocks) {
    time.tensor = products / tensorShareUnranked * microseconds;
    return;
  }
  double least = work.unit == LaunchUnit::TensorSingle ? 0 : products * leastOfProducts;
  time.tensor = std::max(*work.clocks / (card.clock * boost), least) * microseconds;
  (time.tensor > time.memory ? time.memory : time.tensor) = 0;
  time.lanes = work.instructions / lanesPerClock / card.multiprocessors / card.clock * microseconds;
}

ExpectedTime tegula::expectedTime(const LaunchWork &work, const Card &card) {
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
  } else if (strategy == productReductionStrategy().name()) {
    bool isSplit = work.unit == LaunchUnit::TensorSingle;
    time.tensor = products / (isSplit ? tensorShareOfSplitPrecision : tensorShareOfReductions);
    time.atomics = atomicsTime(work);
  } else if (strategy == skinnyProductStrategy().name()) {
    time.memory /= shareOfCopyInSkinny;
    time.lanes = work.instructions / lanesPerClock / perSecond * microseconds;
  } else if (strategy == fewTargetsStrategy().name()) {
    addGeneral(work, card, time);
    time.chain = 0; // a block has many points of its part under way
    time.atomics = work.atomics / sharedAtomicsRate * microseconds;
  } else if (strategy == scanStrategy().name()) {
    time.memory /= shareOfCopyInScans;
  } else if (strategy == sortStrategy().name()) {
    time.memory = 0; // keys move as often as they are sorted
    time.sort = work.sorted * work.passes / (work.launches > 1 ? sortedRate : sortedInBlockRate) *
                microseconds;
  } else {
    addGeneral(work, card, time);
  }
  // Parts that are nearly as busy get into each other's way.
  constexpr double power = 2;
  // What goes through the caches is what comes from memory.
  time.total = std::pow(std::max(time.memory, time.cache), power);
  for (double ExpectedTime::*part :
       {&ExpectedTime::lanes, &ExpectedTime::tensor, &ExpectedTime::chain, &ExpectedTime::atomics,
        &ExpectedTime::sort})
    time.total += std::pow(time.*part, power);
  time.total = (time.start + std::pow(time.total, 1 / power)) * work.runs;
  for (auto [name, part] : ExpectedTime::parts())
    time.*part *= work.runs;
  return time;
}
