//===- PrepackOperands.h - Prepacks operands in a launch o ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prepacks operands in a launch of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKOPERANDS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKOPERANDS_H

#include "strategies/contraction/lower/load/PrepackWindows.h"
#include "strategies/contraction/lower/load/PrepackedLoads.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// The launch that prepacks the operands.
class PrepackLaunch : public ContractionCode {
public:
  explicit PrepackLaunch(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context), prepackedLoads(context), precision(context),
        windows(context) {}
  void emitPrepack();

private:
  void prepackLines(const WgmmaProduct &product, WgmmaOperand operand, const PrepackedOperand &side,
                    Value *number);

  WgmmaLoads wgmmaLoads;
  PrepackedLoads prepackedLoads;
  SplitPrecision precision;
  PrepackedWindows windows;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PREPACKOPERANDS_H
