//===- ScaledValues.h - Scale factors that rows share -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_SCALEDVALUES_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_SCALEDVALUES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include <optional>

namespace tegula {

/// Values with a common scale.
struct ScaledValues {
  llvm::SmallVector<llvm::Value *> values;
  llvm::Value *scale;
  double factor; ///< value of the scale
};

/// Divides all values by a factor that they share: a constant above 0 that is neither tiny nor
/// huge.
std::optional<ScaledValues> withoutScale(llvm::IRBuilder<> &b,
                                         llvm::ArrayRef<llvm::Value *> values);

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_SCALEDVALUES_H
