//===- Sort.h - Sorting the rows of a tensor ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_SORT_H
#define TEGULA_RUNTIME_SORT_H

#include "ir/DTypes.h"
#include <cstdint>

namespace tegula {

/// Brings `length` elements of `values` into order, and with them `positions`: stable, nan the
/// largest, zeros of both signs equal. At least the first `take` are in their place afterwards;
/// what the rest holds is not said. `type` is not packed. `memory` gives so many bytes, or null, in
/// which case nothing happens.
void sortRow(void *values, int64_t *positions, int64_t length, int64_t take, DType type,
             bool descending, void *(*memory)(void *context, int64_t bytes), void *context);

} // namespace tegula

#endif // TEGULA_RUNTIME_SORT_H
