//===- FewTargetsStrategy.h - Strategy `few-targets` ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_FEWTARGETSSTRATEGY_H
#define TEGULA_STRATEGIES_FEWTARGETSSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/few_targets/plan/FewTargets.h"

namespace tegula {

/// A statement that adds to few elements, and the copies of a block.
using FewTargetsMatch = PlanMatch<FewTargetsPlan, FewTargetsShape, fewTargetsStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_FEWTARGETSSTRATEGY_H
