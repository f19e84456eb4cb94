//===- StrategyWork.h - What a strategy makes of the work -*- C++ -*- -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_STRATEGYWORK_H
#define TEGULA_STRATEGIES_EXPECTED_STRATEGYWORK_H

#include "strategies/expected/LaunchWork.h"

namespace tegula {

/// Adds the unit, the blocks and the device launches of a strategy's shape, and the clocks of its
/// own model.
void addStrategy(const StatementMatch &match, LaunchWork &work);

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_STRATEGYWORK_H
