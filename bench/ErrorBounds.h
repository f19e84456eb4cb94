//===- ErrorBounds.h - How far roundings may take a result --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel's text is evaluated on a launch's own inputs by prove/Evaluate.h, whose numbers carry a
// bound on their error: to first order, for any order of sums, with each rounding to f32 and to a
// storage type where the text has one, be it a temporary or inside of a formula, and with what the
// formulas make of errors.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_ERRORBOUNDS_H
#define TEGULA_BENCH_ERRORBOUNDS_H

#include "bench/Runner.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace tegula::bench {

class ErrorBounds {
public:
  /// By name of an argument, of each of its elements.
  using ByName = std::map<std::string, std::vector<double>>;

  /// Null where the kernel does not compile.
  static std::unique_ptr<ErrorBounds> make(const Module &module, CompileOptions options);
  ~ErrorBounds();

  /// Of outputs, and of inouts after the launch. `ofInputs` may leave inputs out, which are exact
  /// then. Nothing where the evaluation would take too long, or the kernel has what it does not
  /// know.
  std::optional<ByName> at(const Launch &launch, const ByName &ofInputs) const;

private:
  ErrorBounds();
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_ERRORBOUNDS_H
