//===- RowTileBounds.h - Which tiles change nothing ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ROWTILEBOUNDS_H
#define TEGULA_PASSES_ROWTILEBOUNDS_H

#include "passes/RowTiles.h"

namespace tegula {

/// Comparisons of `where`s without which an iteration gives back what it got. Numbers that are
/// carried, and what they are multiplied by, are taken to be finite: what a mask leaves out does
/// not meet infinities.
llvm::SmallVector<RowTilePlan::Bound> boundsOfTiles(const RowTilePlan &plan);

} // namespace tegula

#endif // TEGULA_PASSES_ROWTILEBOUNDS_H
