//===- OrderSums.h - Deterministic accumulation -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_ORDERSUMS_H
#define TEGULA_PASSES_SCHEDULE_ORDERSUMS_H

#include "ir/tgl/Tgl.h"

namespace tegula {

/// Axes along which points may meet at an element that they add to become loops inside. The
/// statement in its place.
tgl::ParallelOp orderSums(tgl::ParallelOp parallel);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_ORDERSUMS_H
