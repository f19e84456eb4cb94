//===- Observe.h - What print and assert of a program saw -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_OBSERVE_OBSERVE_H
#define TEGULA_BENCH_OBSERVE_OBSERVE_H

#include "bench/Runner.h"

namespace tegula::bench {

/// An `assert` of the program does not hold, or a value is NaN that was looked for.
class FailedAssertion : public llvm::ErrorInfo<FailedAssertion> {
public:
  static char ID;
  explicit FailedAssertion(std::string message) : text(std::move(message)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

/// After a run: writes what each `print` saw, at most `points` of its points, in the order in which
/// a program of one thread reaches them. The first point at which an assertion fails, or a value is
/// what is looked for, is a FailedAssertion.
llvm::Error tellObservations(Launch &launch, unsigned points, llvm::raw_ostream &os);

} // namespace tegula::bench

#endif // TEGULA_BENCH_OBSERVE_OBSERVE_H
