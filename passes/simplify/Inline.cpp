//===- Inline.cpp - Replaces calls of private kernels by their bodies --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_INLINEPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Writes a callee's precision onto its reductions, so that it survives in a caller of another one.
/// Reductions that came from a kernel with its own precision keep that.
static void keepPrecision(KernelOp callee) {
  std::optional<StringRef> precision = callee.getPrecision();
  if (!precision)
    return;
  callee.walk([&](ReduceOp reduce) {
    if (!reduce->hasAttr(precisionAttrName))
      reduce->setAttr(precisionAttrName, callee.getPrecisionAttr());
  });
}

namespace {
struct InlinePass : Counted<tegula::impl::InlinePassBase<InlinePass>> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<KernelOp> open;
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels)
      if (!kernel.isCalled() && failed(inlineInto(kernel, symbols, open)))
        return signalPassFailure();
    for (KernelOp kernel : kernels)
      if (kernel.isCalled())
        kernel.erase();
  }

  /// Makes `kernel` free of calls; `open` are the kernels on the way from the entry to here.
  LogicalResult inlineInto(KernelOp kernel, SymbolTable &symbols, SmallVector<KernelOp> &open) {
    if (llvm::is_contained(open, kernel))
      return kernel.emitError() << "kernel calls itself";
    open.push_back(kernel);
    SmallVector<CallOp> calls;
    kernel.walk([&](CallOp call) { calls.push_back(call); });
    for (CallOp call : calls) {
      auto callee = symbols.lookup<KernelOp>(call.getCallee());
      if (!callee)
        return call.emitError() << "no kernel is called '" << call.getCallee() << "'";
      if (failed(inlineInto(callee, symbols, open)))
        return failure();
      keepPrecision(callee);
      IRMapping map;
      map.map(callee.getBody().getArguments(), call.getArgs());
      OpBuilder builder(call);
      for (Operation &op : callee.getBody().front())
        builder.clone(op, map);
      call.erase();
      count("calls inlined");
    }
    open.pop_back();
    return success();
  }
};
} // namespace
