//===- StrategyLowering.cpp - How strategies make device code -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/lower/StrategyLowering.h"

using namespace llvm;
using namespace tegula;

const StrategyLowering &tegula::loweringOf(const Strategy &strategy) {
#define STRATEGY(function)                                                                         \
  if (&strategy == &function##Strategy())                                                          \
    return function##Lowering();
#include "strategies/Strategies.def"
  llvm_unreachable("all strategies are listed");
}

void KernelLowering::fail(mlir::Operation *op, const Twine &why) {
  if (failure.empty()) {
    raw_string_ostream stream(failure);
    stream << op->getLoc() << ": " << why;
  }
}

void StatementLowering::align(ArrayRef<mlir::Value> tensors) {
  for (mlir::Value tensor : tensors)
    step.tiles.aligned.push_back(llvm::find(inputs.tensors, tensor) - inputs.tensors.begin());
}

void StatementLowering::emitTileLaunch(PlanTileLaunch launch,
                                       function_ref<void(DeviceEmitter &, Value *workspace)> body) {
  DeviceEmitter emitter = kernel.newEmitter();
  emitter.usesDependentLaunch = launch.usesDependentLaunch;
  emitter.emitTileFunction(op, launch.function, inputs, launch.threads,
                           [&](Value *workspace) { body(emitter, workspace); });
  kernel.finish(emitter);
  launch.usesDependentLaunch = emitter.usesDependentLaunch;
  step.tiles.launches.push_back(std::move(launch));
}
