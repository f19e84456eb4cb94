//===- LaunchWork.cpp - What a launch asks of the device ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/LaunchWork.h"

#include "strategies/SkinnyProductStrategy.h"
#include "strategies/expected/StatementWalk.h"
#include "strategies/expected/StrategyWork.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

ArrayRef<std::pair<StringRef, double LaunchWork::*>> LaunchWork::counts() {
  static constexpr std::pair<StringRef, double LaunchWork::*> all[] = {
      {"runs", &LaunchWork::runs},
      {"points", &LaunchWork::points},
      {"team", &LaunchWork::team},
      {"vector", &LaunchWork::vector},
      {"blockThreads", &LaunchWork::blockThreads},
      {"columnSplit", &LaunchWork::columnSplit},
      {"heldRegisters", &LaunchWork::heldRegisters},
      {"bytesRead", &LaunchWork::bytesRead},
      {"bytesWritten", &LaunchWork::bytesWritten},
      {"bytesCached", &LaunchWork::bytesCached},
      {"sectors", &LaunchWork::sectors},
      {"cacheBytes", &LaunchWork::cacheBytes},
      {"instructions", &LaunchWork::instructions},
      {"doubles", &LaunchWork::doubles},
      {"tileInstructions", &LaunchWork::tileInstructions},
      {"columnInstructions", &LaunchWork::columnInstructions},
      {"products", &LaunchWork::products},
      {"operations", &LaunchWork::operations},
      {"atomics", &LaunchWork::atomics},
      {"atomicTargets", &LaunchWork::atomicTargets},
      {"chain", &LaunchWork::chain},
      {"sorted", &LaunchWork::sorted},
      {"sortedRow", &LaunchWork::sortedRow},
      {"keyBytes", &LaunchWork::keyBytes},
      {"launches", &LaunchWork::launches},
      {"passes", &LaunchWork::passes},
      {"blocks", &LaunchWork::blocks},
      {"computed", &LaunchWork::computed},
      {"takesTurns", &LaunchWork::takesTurns}};
  return all;
}

/// The second-level cache of an H100 or H200 as far as one launch leaves it to the next: 50 MB in
/// two halves.
static constexpr double cacheBytes = 30e6;

void LaunchWorkCounter::takeFromCache(const TrafficOfTensors &traffic, LaunchWork &work) {
  for (const auto &[tensor, own] : traffic) {
    auto last = touched.find(tensor);
    bool isNear = last != touched.end() && bytes - last->second + own.read < cacheBytes;
    bool isKept = work.runs > 1 && !own.moves && own.size < cacheBytes / 2;
    work.bytesRead += own.read;
    work.bytesWritten += own.written;
    if (isNear || isKept)
      work.bytesCached += own.read;
  }
  for (const auto &[tensor, own] : traffic) {
    bytes += own.read + own.written;
    touched[tensor] = bytes;
  }
}

std::optional<LaunchWork> LaunchWorkCounter::count(ParallelOp statement,
                                                   const StatementMatch *match) {
  LaunchWork work;
  work.strategy = (match ? match->strategy : generalStrategy()).name().str();
  std::optional<double> rowsTogether;
  if (match && match->strategy.cost(*match).unit)
    rowsTogether = 0;
  if (const auto *skinny = match ? dyn_cast<SkinnyProductMatch>(match) : nullptr)
    rowsTogether = double(skinny->plan.numRows);
  bool isGeneral =
      work.strategy == generalStrategy().name() || work.strategy == fewTargetsStrategy().name();
  StatementWalk walk(statement, work, isGeneral ? StatementThreads(statement) : StatementThreads(),
                     isGeneral, rowsTogether);
  if (!walk.count())
    return std::nullopt;
  // Beside tiles of ranges that data give there is code for what the tiles cannot take: the data
  // decide that there is such, and mostly there is none.
  auto launch = statement->getParentOfType<LaunchOp>();
  if (work.isEstimate && !work.clocks && launch.getStrategy() != StringRef(work.strategy)) {
    LaunchWork rest;
    rest.strategy = work.strategy;
    rest.runs = work.runs;
    rest.isEstimate = true;
    return rest;
  }
  takeFromCache(walk.traffic, work);
  if (work.doubles > 0)
    work.unit = LaunchUnit::Lanes64;
  if (!match)
    return work;
  addStrategy(*match, work);
  return work;
}
