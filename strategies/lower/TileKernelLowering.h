//===- TileKernelLowering.h - Launches of the tile dialect -----*- C++ -* -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The statement's kernel has been formed and placed by passes (passes/tile): the statement stands
// in its `otherwise`. General code stands beside it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_LOWER_TILEKERNELLOWERING_H
#define TEGULA_STRATEGIES_LOWER_TILEKERNELLOWERING_H

#include "strategies/lower/StrategyLowering.h"

namespace tegula {

class TileKernelLowering final : public StrategyLowering {
public:
  /// `what`: a block computes, for people.
  explicit TileKernelLowering(llvm::StringRef what) : what(what) {}

  Coverage coverage(const StatementMatch &match, const EmitterOptions &options) const override;
  void lower(StatementLowering &statement, const StatementMatch &match) const override;

private:
  llvm::StringRef what;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_LOWER_TILEKERNELLOWERING_H
