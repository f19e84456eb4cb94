//===- ScanStrategy.cpp - Strategy `scan-tiles`: long scans ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch of a scan for which tgl-split-scans has chosen tiles (ScanTile.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/ScanStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class ScanStrategy final : public Strategy {
public:
  StringRef name() const override { return "scan-tiles"; }
  StringRef attributeName() const override { return ScanTile::attributeName; }
  SmallVector<StringRef> preparations(const TargetInfo &target) const override {
    return isFor(target) ? SmallVector<StringRef>{"tgl-split-scans"} : SmallVector<StringRef>();
  }
  unsigned &counterIn(ScheduleCounts &counts) const override { return counts.scans; }

  Match match(ParallelOp op, const ScheduleRequest &) const override {
    return ScanMatch::make(op, matchLookBackScan(op),
                           [](const PrefixLoop &prefix) { return *ScanTile::of(prefix.loop); });
  }
  Match restore(ParallelOp op) const override {
    Matched<PrefixLoop> prefix = matchLookBackScan(op);
    if (!prefix)
      return Mismatch{"the statement is more than a scan in tiles", "", op};
    return ScanMatch::restore(op, prefix, ScanTile::of(prefix->loop));
  }

  StatementCost cost(const StatementMatch &match) const override {
    return {"scan in tiles of " + std::to_string(cast<ScanMatch>(match).shape.steps()) + " steps",
            std::nullopt,
            {}};
  }
};
} // namespace

const Strategy &tegula::scanStrategy() {
  static const ScanStrategy instance;
  return instance;
}
