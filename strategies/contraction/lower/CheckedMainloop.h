//===- CheckedMainloop.h - The mainloop of a tile: fast, o ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The mainloop of a tile: fast, or exact where that is inaccurate.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_CHECKEDMAINLOOP_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_CHECKEDMAINLOOP_H

#include "strategies/contraction/lower/AccuracyCheck.h"
#include "strategies/contraction/lower/ConsumerMainloop.h"
#include "strategies/contraction/lower/MmaMainloop.h"
#include "strategies/contraction/lower/WgmmaMainloop.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Emits the fast mainloop of a product, and the exact one for tiles that are inaccurate.
class CheckedMainloop : public ContractionCode {
public:
  explicit CheckedMainloop(ContractionContext &context)
      : ContractionCode(context), mma(context), accuracy(context), wgmmaLoads(context),
        consumer(context), warpgroups(context) {}
  void emitCheckedMainloop(unsigned number, llvm::function_ref<void()> afterExact = nullptr);

private:
  /// The block's sums as `ofPart` makes them: of its part, or of all parts, each from 0, added up
  /// in order.
  Accumulators sumParts(unsigned number,
                        llvm::function_ref<Accumulators(MmaProduct &product)> ofPart);
  void emitMma(unsigned number, unsigned base, llvm::function_ref<void()> afterExact);

  MmaMainloop mma;
  AccuracyCheck accuracy;
  WgmmaLoads wgmmaLoads;
  ConsumerMainloop consumer;
  WgmmaMainloop warpgroups;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_CHECKEDMAINLOOP_H
