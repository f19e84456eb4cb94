//===- PrepackedCost.h - What prepacking operands costs ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_PREPACKEDCOST_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_PREPACKEDCOST_H

#include "strategies/contraction/plan/TensorTile.h"

namespace tegula {

/// The cost of operands that an earlier launch prepacks.
struct PrepackedCost {
  double points = 0;       ///< multiplied for an element, of all products
  double clocksOfLine = 0; ///< to find the places of a window's taps
  double bytes = 0;        ///< that the launch reads and writes
  bool isAllowed = true;
  bool areNeighbours = false; ///< columns side by side have windows side by side
};

/// Of so many rows and columns, over all points of the batch.
PrepackedCost prepackedCost(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products,
                            double rows, double columns);

/// The cost of a tile whose windows are one copy of the image (halo tile).
struct HaloCost {
  double points = 0;   ///< multiplied for an element
  int64_t columns = 0; ///< those for the padding included
};

/// Nothing where that is not possible with tiles of so many columns.
std::optional<HaloCost> haloCost(const ContractionPlan &plan,
                                 llvm::ArrayRef<ProductOperands> products, int64_t columns);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_PREPACKEDCOST_H
