//===- Figures.h - What a kernel moves, computes and occupies *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_FIGURES_H
#define TEGULA_BENCH_REPORT_FIGURES_H

#include "bench/report/Occupancy.h"
#include "compiler/Compiler.h"

namespace tegula::report {

/// Values of a kernel's sizes: those that are given, and what is derived from them.
class KnownSizes {
public:
  KnownSizes(const CompiledKernel &kernel, const std::map<std::string, int64_t> &given);
  std::optional<int64_t> of(llvm::StringRef name) const;
  /// Nothing where a size of it is not known.
  std::optional<int64_t> evaluate(const IndexExpr &expr) const;
  /// Sizes that have no value, in order.
  llvm::ArrayRef<std::string> missing() const { return unknown; }

private:
  std::map<std::string, int64_t, std::less<>> values;
  std::vector<std::string> unknown;
};

/// A device function of the plan.
struct LaunchFigures {
  std::string function;
  std::string units;    // what a block does
  unsigned threads = 0; // of a block
  unsigned cluster = 1; // blocks
  unsigned dynamicShared = 0;
  std::optional<uint64_t> blocks; // worth starting
  bool isChosen = false;          // it is the one that runs for these sizes
  std::optional<int64_t> bytes;   // of the tensors that it is given
};
/// In the order of the plan; of launches with several functions, each.
std::vector<LaunchFigures> launchesOf(const CompiledKernel &kernel, const KnownSizes &sizes,
                                      const DeviceLimits &limits);

/// What a call of the kernel moves and computes; needs all sizes.
struct CallFigures {
  double bytes = 0;      // inputs read and outputs written once
  double operations = 0; // KernelWork
};
std::optional<CallFigures> callFigures(const CompiledKernel &kernel, const KnownSizes &sizes);

/// The most operations in a second that can be done by the fastest units that the kernel uses: what
/// all takes at least follows from it, whatever part of the operations is theirs.
struct OperationRate {
  double perSecond;
  std::string units;
};
OperationRate operationRate(const CompiledKernel &kernel, const DeviceLimits &limits);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_FIGURES_H
