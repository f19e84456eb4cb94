//===- RecurrenceStrategy.h - Strategy `recurrence` -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_RECURRENCESTRATEGY_H
#define TEGULA_STRATEGIES_RECURRENCESTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/recurrence/plan/Recurrence.h"

namespace tegula {

/// A loop over time, and the cluster that walks it.
using RecurrenceMatch = PlanMatch<RecurrencePlan, RecurrenceShape, recurrenceStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_RECURRENCESTRATEGY_H
