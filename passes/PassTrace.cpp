//===- PassTrace.cpp - The IR after each pass that changed it -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/PassTrace.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tegula;

namespace {
class Tracer : public PassInstrumentation {
public:
  explicit Tracer(std::shared_ptr<PassTrace> trace) : trace(std::move(trace)) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (trace->initial.empty())
      last = trace->initial = textOfModule(op);
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    StringRef flag = pass->getArgument();
    // The adaptor that runs passes of kernels within a module has no flag.
    if (flag.empty() || flag == "tgl-verify-phase")
      return;
    ++trace->runs;
    std::string text = textOfModule(op);
    if (text == last)
      return;
    trace->changes.push_back({flag.str(), pass->getDescription().str(), text});
    last = std::move(text);
  }

private:
  static std::string textOfModule(Operation *op) {
    while (Operation *parent = op->getParentOp())
      op = parent;
    std::string text;
    llvm::raw_string_ostream(text) << *op;
    return text;
  }

  std::shared_ptr<PassTrace> trace;
  std::string last;
};
} // namespace

std::unique_ptr<PassInstrumentation> tegula::tracePasses(std::shared_ptr<PassTrace> trace) {
  return std::make_unique<Tracer>(std::move(trace));
}
