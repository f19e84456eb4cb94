//===- RadixSort.h - Radix sort of rows -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sorts by one digit after the other, from the lowest on, keep the order of those before
// (Knuth 5.2.5).
//
// In a block: elements stay in shared memory; each digit ranks them in registers and puts them to
// their ranks.
//
// In tiles, three launches for a digit: tiles count its values; for each value the counts of a
// row's tiles are summed up; tiles rank their elements, bring them into order in shared memory, and
// write runs of one value side by side. Elements go from the workspace to the sorted tensors and
// back.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SORT_LOWER_RADIXSORT_H
#define TEGULA_STRATEGIES_SORT_LOWER_RADIXSORT_H

#include "strategies/lower/StrategyLowering.h"
#include "strategies/sort/lower/RadixCode.h"

namespace tegula {

/// Where a block that sorts finds the elements of the current row.
using LoadElement =
    llvm::function_ref<RadixCode::Element(RadixCode &code, llvm::Value *row, llvm::Value *number)>;

/// Launches a block for each row, which sorts so many elements and leaves those that are kept.
void lowerBlockSort(StatementLowering &statement, const SortPlan &plan, const SortShape &block,
                    int64_t elements, LoadElement load);
void lowerTiledSort(StatementLowering &statement, const SortPlan &plan, const SortShape &shape);
void lowerSelection(StatementLowering &statement, const SortPlan &plan, const SortShape &shape);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SORT_LOWER_RADIXSORT_H
