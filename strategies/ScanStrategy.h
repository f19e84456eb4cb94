//===- ScanStrategy.h - Strategy `scan-tiles` -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SCANSTRATEGY_H
#define TEGULA_STRATEGIES_SCANSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/scan/plan/ScanTile.h"

namespace tegula {

/// A long scan that stands alone, and its tiles.
using ScanMatch = PlanMatch<PrefixLoop, ScanTile, scanStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_SCANSTRATEGY_H
